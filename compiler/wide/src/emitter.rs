//! The state of the emission of loops.

use crate::body::{BodyEmitter, Registers};
use crate::code::V;
use crate::plan::LanePlan;
use spmdc_kernel::loops::Elem;
use std::collections::HashMap;

/// The lanes of a group that is not whole.
#[derive(Clone, Copy)]
pub(crate) struct Tail {
    pub mask: V,
    /// The mask of each half.
    pub halves: Registers,
    /// The number of lanes.
    pub count: V,
}

/// A partial result.
#[derive(Clone, Copy)]
pub(crate) struct LaneTotal {
    pub value: Registers,
    pub position: Option<V>,
}

/// The partial results of a store.
#[derive(Clone)]
pub(crate) struct LaneTotals {
    pub store: usize,
    /// One for each group.
    pub parts: Vec<LaneTotal>,
    /// The sum of the terms after the last whole sixteen, in its lowest lane.
    pub rest: Option<V>,
}

/// A kernel that is emitted, at the place that is reached.
pub(crate) struct LoopEmitter<'p> {
    pub plan: &'p LanePlan<'p>,
    pub body: BodyEmitter,
    pub scalars: Vec<V>,
    pub begin: Option<V>,
    pub end: Option<V>,
    /// The index of each loop that is entered.
    pub indices: Vec<Option<V>>,
    /// The pointer of each class.
    pub pointers: Vec<V>,
    /// Indices that are read once.
    pub dynamic: HashMap<Elem, V>,
    /// For each operation its registers by group.
    pub values: Vec<Vec<Registers>>,
    /// The number of groups side by side.
    pub groups: usize,
    /// The lanes that are left.
    pub tail: Option<Tail>,
    pub accumulators: Vec<LaneTotals>,
    pub in_main_loop: bool,
    /// Whether large arrays are written past the caches.
    pub streams: bool,
    /// The memory of the least codes of failed checks, on the stack.
    pub codes: Option<i32>,
}
