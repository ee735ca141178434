//! `diff(a, n=2, axis=0)`: differences of neighbours, as in `numpy.diff`. It is not an op.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Operand;
use spmdc_ir::call::term::Term;
use spmdc_ir::shape;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::elementwise::{Binary, Compare};
use spmdc_ops::promote;
use spmdc_ops::slice::{SliceRange, slice_dim};

/// The calls of `diff`; they emit slices and differences. Along a split dimension each of these windows takes one element from a
/// neighbour.
pub struct Diff;

/// Maximum number of differences of differences, each of which is a separate statement.
const MAX_TIMES: usize = 100;

impl Call for Diff {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The differences of neighbours, taken n times; for bools, whether they differ.
        diff(a: Array, n: Int = 1, axis: Int = -1, prepend: Of("number or array") = None, append: Of("number or array") = None),
            NumbersAndBools, Planes(a, prepend, append), "(x: f32[4, 6]) { diff(x, axis=1) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "a")?;
        let times = args.optional_int("n")?.unwrap_or(1);
        let sizes = build.ty(value).shape().to_vec();
        let Ok(times) = usize::try_from(times) else {
            let message = must_be("`n`", "at least 0", times);
            return Err(Diagnostic::error(Code::E0225, args.span, message));
        };
        let axis = shape::axis(args.optional_int("axis")?.unwrap_or(-1), sizes.len(), args.span)?;
        if times == 0 {
            return Ok(Term::Array(value));
        }
        let (before, after) = (args.take("prepend"), args.take("append"));
        let given = [before, Some(Arg { name: None, term: Term::Array(value), span: args.span }), after];
        let given: Vec<Arg> = given.into_iter().flatten().collect();
        let operands: Vec<Operand<'_>> = given.iter().map(|arg| (&arg.term, arg.span)).collect();
        let mut parts = promote::promoted(build, &operands)?;
        // A number is one element in front or behind.
        let one = sizes.iter().enumerate().map(|(dim, &size)| if dim == axis { 1 } else { size }).collect::<Vec<_>>();
        for part in &mut parts {
            if build.ty(*part).rank() == 0 {
                *part = broadcast(build, *part, &one)?;
            }
        }
        let mut value = concatenate(build, &parts, axis)?;
        // Nothing is left after as many differences as there are elements.
        let times = times.min(build.ty(value).shape()[axis]);
        if times > MAX_TIMES {
            let message = must_be("`n`", format_args!("at most {MAX_TIMES}"), times);
            return Err(Diagnostic::error(Code::E0225, args.span, message));
        }
        for _ in 0..times {
            let size = build.ty(value).shape()[axis];
            let last = size.saturating_sub(1);
            let right = slice_dim(build, value, axis, SliceRange::between(size.min(1), size))?;
            let left = slice_dim(build, value, axis, SliceRange::between(0, last))?;
            value = match build.ty(value).dtype() == DType::Bool {
                true => build.emit1(Compare(CompareOp::Ne), &[right, left])?,
                false => build.emit1(Binary(BinaryOp::Sub), &[right, left])?,
            };
        }
        Ok(Term::Array(value))
    }
}
