//! The steps that the devices of a group run panel by panel for each other.

use super::accesses::{Accesses, PanelSharers, run_by_panels};
use super::{Flat, Replay, Stopped, fault};
use spmdc_abi::{AxisSet, GroupPanels, KernelStep, ReduceStep, Step};
use spmdc_ir::lower::work::Work;
use spmdc_ir::program::Value;

/// The steps of the panels of a group.
#[derive(Default)]
pub struct GroupAccesses<'a> {
    /// The values of the buffers of each kernel, and its call.
    kernels: Vec<(&'a [Value], KernelStep)>,
    reductions: Vec<&'a ReduceStep>,
}

impl<'a> GroupAccesses<'a> {
    pub fn add(&mut self, work: &'a Work, step: Flat<'a>) {
        if let (Work::Kernel { buffers, .. }, Flat::Kernel(kernel) | Flat::Panels { kernel, .. }) = (work, step) {
            // Each unit of the range is computed for every device of the group.
            self.kernels.push((buffers, KernelStep { split: AxisSet::EMPTY, ..kernel.clone() }));
        } else if let Flat::Other(Step::Reduce(reduction)) = step {
            self.reductions.push(reduction);
        }
    }

    /// Checks that no panel of a group touches data that another panel writes, on any of its devices.
    pub fn run(self, panels: &GroupPanels, replay: &mut Replay<'_>) -> Result<(), Stopped> {
        let axes = panels.dividing();
        let Some((_, first)) = self.kernels.first() else { return fault("panels of no kernel") };
        let is_alike = self.kernels.iter().all(|(_, kernel)| kernel.range == first.range);
        if !is_alike || !replay.mesh.is_equal_along(&first.range, axes) {
            return fault("the kernels of panels have several ranges");
        }
        let group = PanelSharers { axes, reductions: self.reductions };
        let kernels = self.kernels.iter().map(|(values, step)| Accesses {
            kernel: &replay.plan.kernels[step.kernel as usize],
            values,
            step,
        });
        run_by_panels(&kernels.collect::<Vec<_>>(), &group, replay)
    }
}
