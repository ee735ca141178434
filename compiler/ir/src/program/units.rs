//! Functions that derivatives treat as one.

use super::{Block, Stmt, Value};
use std::ops::Range;

/// The statements of a function that derivatives treat as one: those of which the first result has a number in this range.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The numbers of the values that the function defines.
    pub values: Range<u32>,
    /// What derivatives do with it.
    pub kind: UnitKind,
}

/// What derivatives do with the statements of a function.
#[derive(Clone, Debug)]
pub enum UnitKind {
    /// The reverse computes its values again: `checkpoint`.
    Recomputed,
    /// The reverse is that of the program: `custom_vjp`.
    Custom(Box<CustomRule>),
}

/// A function with a reverse of its own. All blocks are templates, of which the program has copies at most.
#[derive(Clone, Debug)]
pub struct CustomRule {
    /// The arguments: the name that the function uses, and the value.
    pub inputs: Vec<(Value, Value)>,
    /// The values from outside that the functions use besides.
    pub captured: Vec<Value>,
    /// The results of the function.
    pub outputs: Vec<Value>,
    /// The statements that replace those of the function where its derivative is taken.
    pub forward: Vec<Stmt>,
    /// The results that they give.
    pub forward_outputs: Vec<Value>,
    /// Takes the cotangents of the results, and returns those of the arguments.
    pub reverse: Block,
}
