//! Control flow: statements that contain blocks.
//!
//! Control flow is not an op: its types and layouts come from its blocks, and each pass handles it explicitly.

use crate::program::Block;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::sub_axes::SubAxes;
use spmdc_layout::types::AxisSet;

/// A statement that decides whether, how often and on which devices other statements run.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// `for`
    For(ForLoop),
    /// `while`
    While(WhileLoop),
    /// `if`
    Branch(Branch),
    /// The body of a `manual` function at one of its calls.
    Manual(ManualRegion),
}

/// `for i in start..end`, with carried values and, under `collect`, one value per trip.
///
/// Operands: with `range` the initial carries; without, the i32 scalars start and end before them. Results: the last carries, then
/// each collected value stacked along a new first dimension (`range` is known then).
#[derive(Clone, Debug, PartialEq)]
pub struct ForLoop {
    /// Start (inclusive) and end (exclusive); None if they are unknown at compile time.
    pub range: Option<(i64, i64)>,
    /// The number of values that each trip collects.
    pub collected: usize,
    /// Takes `i` (an i32 scalar) and the carries, and returns the next carries and then the `collected` values.
    pub body: Block,
}

impl ForLoop {
    /// The number of operands before the carries.
    pub fn bounds(&self) -> usize {
        if self.range.is_some() { 0 } else { 2 }
    }

    /// The number of trips; None if it is unknown at compile time.
    pub fn trips(&self) -> Option<u64> {
        self.range.map(|(start, end)| (end - start).max(0) as u64)
    }
}

/// `while`: operands are the initial carries, results the last ones.
#[derive(Clone, Debug, PartialEq)]
pub struct WhileLoop {
    /// Takes the carries and returns a bool scalar.
    pub cond: Block,
    /// Takes the carries and returns the next ones.
    pub body: Block,
}

/// `if`: the operand is a bool scalar; both blocks have no parameters and return the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Runs if the operand is true.
    pub then: Block,
    /// Runs if the operand is false.
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
/// `inputs` and `outputs` give for each operand and result the split of its dimensions over the manual axes (and only those).
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
    /// Takes the local blocks of the operands and returns local results.
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

    /// Its blocks, in textual order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> + use<'_> {
        let blocks = match self {
            Control::For(ForLoop { body, .. }) | Control::Manual(ManualRegion { body, .. }) => [Some(body), None],
            Control::While(WhileLoop { cond, body }) => [Some(cond), Some(body)],
            Control::Branch(Branch { then, otherwise }) => [Some(then), Some(otherwise)],
        };
        blocks.into_iter().flatten()
    }

    /// As [`Control::blocks`], mutable.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> + use<'_> {
        let blocks = match self {
            Control::For(ForLoop { body, .. }) | Control::Manual(ManualRegion { body, .. }) => [Some(body), None],
            Control::While(WhileLoop { cond, body }) => [Some(cond), Some(body)],
            Control::Branch(Branch { then, otherwise }) => [Some(then), Some(otherwise)],
        };
        blocks.into_iter().flatten()
    }

    /// Replaces cut axes by their parts wherever it names axes itself.
    pub fn name_parts(&mut self, parts: &SubAxes) {
        match self {
            Control::Manual(region) => {
                region.axes = parts.set(region.axes);
                region.inputs.iter_mut().chain(&mut region.outputs).for_each(|layout| *layout = parts.sharding(layout));
            }
            Control::For(_) | Control::While(_) | Control::Branch(_) => {}
        }
    }
}
