//! Transformations of functions, such as `grad` and `vmap`.
//!
//! Their results are functions, which the checker carries out where they are called: it alone knows the functions of the program. Here are their
//! names and signatures.

use spmdc_ir::call::signature::{Signature, signatures};

/// A transformation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transformation {
    /// `grad(f)`
    Grad,
    /// `value_and_grad(f)`
    ValueAndGrad,
    /// `vjp(f, x)`
    Vjp,
    /// `jvp(f, (x,), (t,))`
    Jvp,
    /// `jacobian(f)`
    Jacobian,
    /// `hessian(f)`
    Hessian,
    /// `checkpoint(f)`
    Checkpoint,
    /// `custom_vjp(f, fwd, bwd)`
    CustomVjp,
    /// `vmap(f)`
    Vmap,
}

impl Transformation {
    /// Every transformation.
    pub const ALL: [Transformation; 9] = [
        Transformation::Grad,
        Transformation::ValueAndGrad,
        Transformation::Vjp,
        Transformation::Jvp,
        Transformation::Jacobian,
        Transformation::Hessian,
        Transformation::Checkpoint,
        Transformation::CustomVjp,
        Transformation::Vmap,
    ];

    /// The forms of calls: one for each transformation, in their order.
    pub const SIGNATURES: &'static [Signature] = signatures! {
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
        /// The function that maps a function of one element over a dimension of its arguments.
        vmap(fun: Of("function"), in_axes: Of("int or `_`, or a tuple of these for the arguments") = 0, out_axes: Of("int or `_`, or a tuple of these for the results") = 0),
            Any, Own, "(x: f32[4, 6]) { vmap(|row| flip(row))(x) }";
    };

    /// The names in the language, in order.
    pub const NAMES: [&str; Transformation::ALL.len()] = {
        let mut names = [""; Transformation::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Transformation::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The name in the language.
    pub const fn name(self) -> &'static str {
        match self {
            Transformation::Grad => "grad",
            Transformation::ValueAndGrad => "value_and_grad",
            Transformation::Vjp => "vjp",
            Transformation::Jvp => "jvp",
            Transformation::Jacobian => "jacobian",
            Transformation::Hessian => "hessian",
            Transformation::Checkpoint => "checkpoint",
            Transformation::CustomVjp => "custom_vjp",
            Transformation::Vmap => "vmap",
        }
    }
}
