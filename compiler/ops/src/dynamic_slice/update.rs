//! `dynamic_update_slice(x, v, (i, 0))`: an assignment to a block that begins at dynamic places.

use crate::dynamic_slice::{Start, check_lens};
use crate::promote::assigned;
use crate::region::Places;
use crate::slice::SliceRange;
use crate::update::Update;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;

/// `dynamic_update_slice(x, v, (i, 0))`
pub struct DynamicUpdate;

impl Call for DynamicUpdate {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The array with a block replaced at a dynamic start; the block is moved inside the array if necessary.
        dynamic_update_slice(operand: Array, update: Array, start_indices: Of("tuple of ints or scalars")),
            Any, Planes(operand, update), "(x: f32[4, 6], new: f32[2, 3], i: i32) { dynamic_update_slice(x, new, (i, 2)) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "operand")?;
        let ty = build.ty(value).array.clone();
        let new = args.required("update")?;
        let new = assigned(build, ty.dtype, (&new.term, new.span))?;
        let lens = build.ty(new).shape().to_vec();
        check_lens(&lens, &ty.shape, args.span)?;
        let mut operands = vec![value, new];
        let starts = args.required("start_indices")?;
        let mut at = Vec::new();
        for (start, &len) in crate::dynamic_slice::starts(build, starts, &ty.shape, &lens)?.into_iter().zip(&lens) {
            at.push(match start {
                Start::Static(at) => Places::Range(SliceRange::between(at, at + len)),
                Start::Dynamic(at) => {
                    operands.push(at);
                    Places::Dynamic(len)
                }
            });
        }
        Ok(Term::Array(build.emit1(Update::replacing(at), &operands)?))
    }
}
