//! Control flow: statements that hold blocks.
//!
//! It is no op: its types and layouts come from its blocks, and each pass says by itself how it goes through them.

use super::Block;
use crate::layout::parts::AxisParts;
use crate::layout::sharding::Sharding;
use crate::layout::types::AxisSet;

/// A statement that decides which others run, how often, and on whose behalf.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// `for`
    For(ForLoop),
    /// `while`
    While(WhileLoop),
    /// `if`
    Branch(Branch),
    /// The body of a `manual` function, where it is called.
    Manual(ManualRegion),
}

/// `for i in start..end`, with carried values and, under `collect`, one value per trip.
///
/// Operands: with `range` the initial carries; without, the i32 scalars start and end before them. Results: the last carries, then
/// each collected value stacked along a new first dimension (`range` is known then).
#[derive(Clone, Debug, PartialEq)]
pub struct ForLoop {
    /// Start (inclusive) and end (exclusive); None where they are known only when the program runs.
    pub range: Option<(i64, i64)>,
    /// The number of values that each trip collects.
    pub collected: usize,
    /// Takes `i` (an i32 scalar) and the carries, and gives the next carries and then the `collected` values.
    pub body: Block,
}

impl ForLoop {
    /// How many operands stand before the carries.
    pub fn bounds(&self) -> usize {
        if self.range.is_some() { 0 } else { 2 }
    }

    /// The number of trips; None where it is known only when the program runs.
    pub fn trips(&self) -> Option<u64> {
        self.range.map(|(start, end)| (end - start).max(0) as u64)
    }
}

/// `while`: operands are the initial carries, results the last ones.
#[derive(Clone, Debug, PartialEq)]
pub struct WhileLoop {
    /// Takes the carries and gives a bool scalar.
    pub cond: Block,
    /// Takes the carries and gives the next.
    pub body: Block,
}

/// `if`: the operand is a bool scalar; both blocks take nothing and give the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Runs where the operand is true.
    pub then: Block,
    /// Runs where the operand is false.
    pub otherwise: Block,
}

impl Branch {
    /// Both blocks, `then` first.
    pub fn sides(&self) -> [&Block; 2] {
        [&self.then, &self.otherwise]
    }
}

/// The body of a `manual` function.
///
/// `inputs` and `outputs` say for each operand and result how its dimensions are split over the manual axes (and only those).
#[derive(Clone, Debug, PartialEq)]
pub struct ManualRegion {
    /// The name of the function.
    pub name: String,
    /// The manual axes.
    pub axes: AxisSet,
    /// For each operand its split over the manual axes.
    pub inputs: Vec<Sharding>,
    /// For each result its split over the manual axes.
    pub outputs: Vec<Sharding>,
    /// Takes the local blocks of the operands and gives local results.
    pub body: Block,
}

impl Control {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Control::For(_) => "for",
            Control::While(_) => "while",
            Control::Branch(_) => "if",
            Control::Manual(_) => "manual",
        }
    }

    /// What it holds, in the order in which it is written.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> + use<'_> {
        let blocks = match self {
            Control::For(ForLoop { body, .. }) | Control::Manual(ManualRegion { body, .. }) => [Some(body), None],
            Control::While(WhileLoop { cond, body }) => [Some(cond), Some(body)],
            Control::Branch(Branch { then, otherwise }) => [Some(then), Some(otherwise)],
        };
        blocks.into_iter().flatten()
    }

    /// As [`Control::blocks`], to change them.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> + use<'_> {
        let blocks = match self {
            Control::For(ForLoop { body, .. }) | Control::Manual(ManualRegion { body, .. }) => [Some(body), None],
            Control::While(WhileLoop { cond, body }) => [Some(cond), Some(body)],
            Control::Branch(Branch { then, otherwise }) => [Some(then), Some(otherwise)],
        };
        blocks.into_iter().flatten()
    }

    /// Axes have been cut: puts their parts wherever it names axes itself.
    pub fn name_parts(&mut self, parts: &AxisParts) {
        match self {
            Control::Manual(region) => {
                region.axes = parts.set(region.axes);
                region.inputs.iter_mut().chain(&mut region.outputs).for_each(|layout| *layout = parts.sharding(layout));
            }
            Control::For(_) | Control::While(_) | Control::Branch(_) => {}
        }
    }
}
