//! `kron(a, b)`: the Kronecker product, as in `numpy.kron`. It is not an op.

use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::promote;
use spmdc_ops::reshape::reshape;

/// The calls of `kron`; they emit a product of reshaped operands, whose dimensions are then merged in pairs.
pub struct Kron;

impl Call for Kron {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The Kronecker product: a copy of b for each element of a, multiplied by it.
        kron(a: Array, b: Array), NumbersAndBools, Products(a, b), "(x: f32[2, 3], y: f32[3, 2]) { kron(x, y) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let (a, b) = (args.required("a")?, args.required("b")?);
        let values = promote::promoted(build, &[(&a.term, a.span), (&b.term, b.span)])?;
        let rank = values.iter().map(|&value| build.ty(value).rank()).max().unwrap_or(0);
        // In front of missing dimensions and beside each there is one of size 1.
        let sizes = |value| {
            let shape = build.ty(value).shape();
            [&vec![1; rank - shape.len()], shape].concat()
        };
        let (outer, inner) = (sizes(values[0]), sizes(values[1]));
        let wide = |sizes: &[usize], first: bool| {
            let pair = |&size: &usize| if first { [size, 1] } else { [1, size] };
            sizes.iter().flat_map(pair).collect::<Vec<usize>>()
        };
        let a = reshape(build, values[0], &wide(&outer, true))?;
        let b = reshape(build, values[1], &wide(&inner, false))?;
        let product = build.emit1(Binary(BinaryOp::Mul), &[a, b])?;
        let merged: Vec<usize> = outer.iter().zip(&inner).map(|(outer, inner)| outer * inner).collect();
        Ok(Term::Array(reshape(build, product, &merged)?))
    }
}
