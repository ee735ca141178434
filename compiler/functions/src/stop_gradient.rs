//! `stop_gradient`: the same values, treated as constants in derivatives.

use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::no_array;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;

/// The calls of `stop_gradient`, which make other names of values.
pub struct StopGradient;

impl Call for StopGradient {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The same values, treated as constants in derivatives.
        stop_gradient(x: Of("array, tuple or struct")), Any, Own, "(x: f32[4]) { stop_gradient(x) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let given = args.required("x")?;
        let mut leaves = Vec::new();
        trees::leaves(&given.term, "", &mut leaves);
        let mut stopped = Vec::new();
        for (_, leaf) in leaves {
            if !leaf.is_operand() {
                return Err(no_array(leaf, given.span));
            }
            stopped.push(if let Term::Array(value) = leaf {
                Term::Array(build.stopped_alias(*value))
            } else {
                leaf.clone()
            });
        }
        Ok(trees::rebuild(&given.term, &mut stopped.into_iter()))
    }
}
