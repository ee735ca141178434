//! Functions that are transformations of others: derivatives, and functions of many elements at once.

use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::{Block, Value};

/// A function that is a transformation of another one.
#[derive(Debug)]
pub enum Derived {
    /// `grad(f)` or `value_and_grad(f)`.
    Gradient(Gradient),
    /// The second result of `vjp`.
    Pullback(Pullback),
    /// `jacobian(f)`, and with its own result as `f` `hessian(f)`.
    Jacobian(Jacobian),
    /// `vmap(f)`.
    Mapped(Mapped),
    /// `checkpoint(f)`
    Checkpoint(Arg),
    /// `custom_vjp(f, fwd, bwd)`
    Custom(CustomVjp),
}

/// The derivative of all elements of a function's results by all elements of arguments.
#[derive(Debug)]
pub struct Jacobian {
    pub function: Arg,
    /// The arguments by which it is taken.
    pub argnums: Vec<i64>,
    /// Whether these are several arguments, and so the derivative by them a tuple.
    pub is_tuple: bool,
    pub has_aux: bool,
}

/// A function of one element, as a function of many at once.
#[derive(Debug)]
pub struct Mapped {
    pub function: Arg,
    /// The mapped dimension of each argument; None for the first one of all.
    pub in_axes: Option<Box<Arg>>,
    /// The place of the mapped dimension in each result.
    pub out_axes: Option<Box<Arg>>,
}

/// The gradient of a function.
#[derive(Debug)]
pub struct Gradient {
    pub function: Arg,
    /// The arguments by which it is taken.
    pub argnums: Vec<i64>,
    /// Whether there are gradients with respect to several arguments, which are a tuple.
    pub is_tuple: bool,
    pub has_aux: bool,
    pub with_value: bool,
}

/// A function with a custom reverse.
#[derive(Debug)]
pub struct CustomVjp {
    pub function: Arg,
    /// Returns the function's result and the residuals.
    pub forward: Arg,
    /// Returns the cotangents of the arguments, from the residuals and the cotangent of the result.
    pub reverse: Arg,
}

/// An expanded function.
#[derive(Debug)]
pub struct Pullback {
    /// Takes the cotangents of the results, and returns the cotangents of the arguments.
    pub reverse: Block,
    pub inputs: Vec<Vec<Leaf>>,
    /// The arguments, for their form.
    pub given: Vec<Term>,
    pub output: Term,
}

/// A leaf of an argument by which a derivative is taken.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The value in the program.
    pub given: Value,
    /// Its copy, on which the function's statements depend.
    pub copy: Value,
    /// Whether it is the imaginary plane of complex numbers.
    pub is_imaginary: bool,
}
