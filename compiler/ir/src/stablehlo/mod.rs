//! Ops as StableHLO text: the answer of an op, and the builder with which it writes itself.
//!
//! An op gets the names and types of its operands in the text, and returns those of its results. It writes operations of StableHLO or CHLO
//! through [`HloBuilder`], which numbers the values.

mod builder;
mod custom_calls;
mod devices;
mod forms;
mod gathers;
mod literals;
mod names;
mod reductions;

pub use self::builder::HloBuilder;
pub use self::gathers::{HloGather, HloScatter};
pub use self::names::{HloElement, HloType, HloValue, sharding_text};
pub use self::reductions::{HloCombination, HloWindowDim};

/// The form of an op in StableHLO.
pub enum Exported<'a> {
    /// It writes itself.
    Written(&'a dyn WritesStablehlo),
    /// Nothing: the text computes the same without it, but a user misses its effect.
    Dropped,
    /// StableHLO cannot express it. The reason completes the sentence "StableHLO has no ...".
    Missing(&'static str),
    /// The op exists only after partitioning, so an exported program has none.
    AfterPartitioning,
}

/// An op that has a form in StableHLO.
pub trait WritesStablehlo {
    /// Writes operations for these operands, and returns the results in order. `results` are the results of the statement, for their types.
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap>;
}

/// A property of an op that StableHLO lacks. The text completes the sentence "StableHLO has no ...".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloGap(pub String);
