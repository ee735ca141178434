//! Functions that derivatives treat as one.

use crate::program::{Block, Stmt, Value};
use std::ops::Range;

/// The statements of a function that derivatives treat as one: those of which the first result has one of these numbers.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The numbers of the values that the function defines.
    pub values: Range<u32>,
    /// Those of the tangents that stand among its statements, where a forward derivative has been taken.
    pub tangents: Vec<Range<u32>>,
    /// Its treatment in derivatives.
    pub kind: UnitKind,
}

impl Unit {
    /// A function that defines these values.
    pub fn new(values: Range<u32>, kind: UnitKind) -> Unit {
        Unit { values, tangents: Vec::new(), kind }
    }

    /// Whether a value is one of its own.
    pub fn contains(&self, value: Value) -> bool {
        self.ranges().any(|range| range.contains(&value.0))
    }

    /// Its values and tangents.
    pub fn ranges(&self) -> impl Iterator<Item = &Range<u32>> {
        std::iter::once(&self.values).chain(&self.tangents)
    }

    /// The number of its values and tangents.
    pub fn len(&self) -> usize {
        self.ranges().map(ExactSizeIterator::len).sum()
    }

    /// Whether it defines no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds tangents, which are newer than all others.
    pub fn extend(&mut self, tangents: Range<u32>) {
        debug_assert!(self.values.end <= tangents.start, "tangents follow the values");
        // Those of blocks inside have been added before.
        self.tangents.retain(|known| known.end <= tangents.start);
        match self.tangents.last_mut() {
            Some(last) if last.end == tangents.start => last.end = tangents.end,
            Some(_) | None => self.tangents.push(tangents),
        }
    }
}

/// The treatment of the statements of a function in derivatives.
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
