//! The partial results of reductions, as values of the generated code.

use super::vector::Bundle;

/// The partial results of one store.
#[derive(Clone, Debug)]
pub struct Accumulator {
    /// One bundle, or several that take turns.
    pub bundles: Vec<Partial>,
    /// The partial result of the remaining elements.
    pub rest: Option<Partial>,
    /// Whether zero, with which a sum begins, is yet to be added to the combination of the lanes.
    pub owes_zero: bool,
}

impl Accumulator {
    pub fn partials(&self) -> impl Iterator<Item = &Partial> {
        self.bundles.iter().chain(&self.rest)
    }

    pub fn partials_mut(&mut self) -> impl Iterator<Item = &mut Partial> {
        self.bundles.iter_mut().chain(&mut self.rest)
    }
}

/// The combination of points in bundles of this many lanes.
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    pub lanes: u32,
    pub value: Bundle,
    /// The position of the value, in `I32` lanes.
    pub position: Option<Bundle>,
}
