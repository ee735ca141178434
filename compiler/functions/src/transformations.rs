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
        /// The function that returns the gradient of a function's scalar result with respect to an argument, or to several.
        grad(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, Refused(DERIVATIVES), "(x: f32[4]) { grad(|a| sum(sin(a)))(x) }";
        /// The function that returns a function's scalar result and its gradient.
        value_and_grad(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, Refused(DERIVATIVES),
            "(x: f32[4]) { value_and_grad(|a| sum(sin(a)))(x) }";
        /// A function's result, and a function from a cotangent of the result to the cotangents of the arguments.
        vjp(fun: Of("function"), [rest] primals: Of("arrays, tuples or structs")), Floats, Own,
            "(x: f32[4]) { let (y, back) = vjp(|a| sin(a), x); (y, back(y)) }";
        /// A function's result, and its tangent for tangents of the arguments.
        jvp(fun: Of("function"), primals: Of("tuple"), tangents: Of("tuple")), Floats, Own, "(x: f32[4]) { jvp(|a| sin(a), (x,), (x,)) }";
        /// The function that returns the derivatives of all elements of a function's result with respect to all elements of its argument.
        jacobian(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, Refused(DERIVATIVES), "(x: f32[4]) { jacobian(|a| a * sum(a))(x) }";
        /// The function that returns the second derivatives of a function's result.
        hessian(fun: Of("function"), argnums: Ints = 0, has_aux: Bool = false), Floats, Refused(DERIVATIVES), "(x: f32[4]) { hessian(|a| sum(a * a * a))(x) }";
        /// The function, whose reverse recomputes the values instead of keeping them.
        checkpoint(fun: Of("function")), Floats, Refused(DERIVATIVES),
            "(x: f32[4]) { grad(|a| sum(checkpoint(|b| sin(cos(b)))(a)))(x) }";
        /// The function, with a custom reverse: `fwd` returns the result and residuals, and `bwd` the tuple of the arguments' cotangents.
        custom_vjp(fun: Of("function"), fwd: Of("function"), bwd: Of("function")), Floats, Refused(DERIVATIVES),
            "(x: f32[4]) { let f = custom_vjp(|a| sin(a), |a| (sin(a), cos(a)), |c, g| (c * g,)); grad(|a| sum(f(a)))(x) }";
        /// The same values, treated as constants in derivatives.
        stop_gradient(x: Of("array, tuple or struct")), Any, Own, "(x: f32[4]) { stop_gradient(x) }";
        /// The function that maps a function of one element over a dimension of its arguments.
        vmap(fun: Of("function"), in_axes: Of("int or `_`, or a tuple of these for the arguments") = 0, out_axes: Of("int or `_`, or a tuple of these for the results") = 0),
            Any, Own, "(x: f32[4, 6]) { vmap(|row| flip(row))(x) }";
    };

    fn call(name: &str, args: &mut Args<'_>, _: &mut CallBuilder) -> Result<Term, Diagnostic> {
        Err(not_supported(name, args.span))
    }
}
