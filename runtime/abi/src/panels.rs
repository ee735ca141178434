//! Steps that devices run panel by panel for each other.

use crate::{AxisSet, KernelStep, ReduceStep, Step};
use serde::{Deserialize, Serialize};

/// Kernels with one range, and reductions whose elements belong to the units of the range. For any unit, each step uses only elements that
/// the other steps write for the same unit, on all devices of a group together. No step stops the program.
///
/// The devices of a group divide the range. Each runs all steps for one panel of its share, on the memory of every member of the group,
/// then for the next panel. So intermediate results stay in the cache and no device waits in between. A barrier of all devices that differ
/// along `group` and `split` comes before the step, and one after it. If devices that divide the range are in several processes, every
/// device runs `steps` one after the other instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupPanels {
    /// The axes along which the reductions combine.
    pub group: AxisSet,
    /// Further axes along which devices share all memory that is written, and divide the range.
    pub split: AxisSet,
    /// Kernels, panels, reductions, and the barriers between them, in the order in which they run on each panel.
    pub steps: Vec<Step>,
    /// Units of the range in a panel.
    pub panel: u64,
    /// As in [`KernelStep::grain`](crate::KernelStep::grain), of all kernels.
    pub grain: u32,
}

impl GroupPanels {
    /// The calls of kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelStep> {
        self.steps.iter().flat_map(Step::kernels)
    }

    /// The reductions, in order.
    pub fn reductions(&self) -> impl Iterator<Item = &ReduceStep> {
        self.steps.iter().filter_map(|step| if let Step::Reduce(step) = step { Some(step) } else { None })
    }

    /// The axes along which the devices that divide the range differ.
    pub fn dividing(&self) -> AxisSet {
        self.group.union(self.split)
    }
}
