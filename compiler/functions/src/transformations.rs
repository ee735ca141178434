//! The signatures of transformations of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`, `stop_gradient`,
//! `checkpoint`, `custom_vjp`, `vmap`. The
//! checker carries them out, as it knows the functions of the program.

use crate::later::not_supported;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;

/// The calls of transformations.
pub struct Transformations;

/// Their names.
pub const TRANSFORMATIONS: [&str; 10] = [
    "grad",
    "value_and_grad",
    "vjp",
    "jvp",
    "jacobian",
    "hessian",
    "stop_gradient",
    "checkpoint",
    "custom_vjp",
    "vmap",
];

impl Call for Transformations {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The function that gives the gradient of a function's result, a number, by its argument, or by several.
        grad(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, "(x: f32[4]) { grad(|a| sum(sin(a)))(x) }";
        /// The function that gives a function's result, a number, and its gradient.
        value_and_grad(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats,
            "(x: f32[4]) { value_and_grad(|a| sum(sin(a)))(x) }";
        /// A function's result, and the function that maps a cotangent of it to those of the arguments.
        vjp(fun: Of("function"), [rest] primals: Of("arrays, tuples or structs")), Floats,
            "(x: f32[4]) { let (y, back) = vjp(|a| sin(a), x); (y, back(y)) }";
        /// A function's result, and its tangent for tangents of the arguments.
        jvp(fun: Of("function"), primals: Of("tuple"), tangents: Of("tuple")), Floats, "(x: f32[4]) { jvp(|a| sin(a), (x,), (x,)) }";
        /// The function that gives the derivatives of all elements of a function's result by all elements of its argument.
        jacobian(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, "(x: f32[4]) { jacobian(|a| a * sum(a))(x) }";
        /// The function that gives the second derivatives of a function's result.
        hessian(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, "(x: f32[4]) { hessian(|a| sum(a * a * a))(x) }";
        /// The function, of which the reverse computes the values again instead of keeping them.
        checkpoint(fun: Of("function")), Floats,
            "(x: f32[4]) { grad(|a| sum(checkpoint(|b| sin(cos(b)))(a)))(x) }";
        /// The function, with a reverse of its own: `fwd` gives the result and residuals, `bwd` the tuple of the arguments' cotangents.
        custom_vjp(fun: Of("function"), fwd: Of("function"), bwd: Of("function")), Floats,
            "(x: f32[4]) { let f = custom_vjp(|a| sin(a), |a| (sin(a), cos(a)), |c, g| (c * g,)); grad(|a| sum(f(a)))(x) }";
        /// The same values, on which no gradient depends.
        stop_gradient(x: Of("array, tuple or struct")), Any, "(x: f32[4]) { stop_gradient(x) }";
        /// The function that computes a function of one element for all elements along a dimension of its arguments.
        vmap(fun: Of("function"), in_axes: Of("int or `_`, or a tuple of these for the arguments") = 0, out_axes: Of("int or `_`, or a tuple of these for the results") = 0),
            Any, "(x: f32[4, 6]) { vmap(|row| flip(row))(x) }";
    };

    fn call(name: &str, args: &mut Args<'_>, _: &mut CallBuilder) -> Result<Term, Diagnostic> {
        Err(not_supported(name, args.span))
    }
}
