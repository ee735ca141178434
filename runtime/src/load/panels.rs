//! Prepares kernels that run panel by panel.

use std::collections::BTreeSet;

use super::{Counted, Loader, chunk};
use crate::collectives::reduce::{UnitReduction, of_units};
use crate::errors::trap::RunError;
use crate::run::device::Action;
use crate::run::kernels::{KernelCall, Panels, PanelsMember, PanelsOfGroup, Sharing};
use spmdc_abi::{GroupPanels, KernelStep, ReduceStep, Scalar, Step};

impl Loader<'_> {
    pub(super) fn panels(&mut self, steps: &[KernelStep], lags: &[u64], panel: i64) {
        let Some(first) = steps.first() else { return };
        let (maker, functions) = (self.call_maker(), self.kernels);
        let costs: Vec<f32> = steps.iter().map(|step| step.cost).collect();
        let lags: Vec<i64> = lags.iter().map(|&lag| lag as i64).collect();
        self.emit(first.site, "kernel", |device, out| {
            let calls: Vec<KernelCall> =
                steps.iter().map(|step| maker.call(step, functions[step.kernel as usize], device, out)).collect();
            let begin = calls.iter().map(|call| call.begin).min().unwrap_or(0);
            let end = calls.iter().map(|call| call.end).max().unwrap_or(begin);
            let team = maker.team(device);
            let chunk = chunk(end - begin, i64::from(first.grain), costs.iter().sum(), team);
            let is_lagging = lags.iter().any(|lag| *lag > 0);
            let sharing = match () {
                () if chunk == 0 => Sharing::Alone,
                () if is_lagging => pipeline(&costs, team as usize),
                () => Sharing::Range { chunk },
            };
            Action::Panels(Box::new(Panels {
                calls: calls.into(),
                lags: lags.clone().into(),
                panel,
                begin,
                end,
                sharing,
            }))
        });
    }

    pub(super) fn group_panels(&mut self, step: &GroupPanels) -> Result<(), RunError> {
        let mesh = self.mesh;
        let dividing = step.dividing();
        let is_here = |device: usize| mesh.mates(device, dividing).len() == mesh.count(dividing.iter());
        if mesh.processes() > 1 && !(0..mesh.devices()).all(is_here) {
            return self.steps(&step.steps);
        }
        let Some(first) = step.kernels().next() else { return Ok(()) };
        for reduction in step.reductions() {
            let &ReduceStep { kind, bytes, counts, .. } = reduction;
            self.collective((reduction.group, Counted { kind, bytes, counts }), reduction.site, None);
        }
        let (range, mut prepared) = (&first.range, Vec::new());
        for &device in self.memory.devices() {
            let reductions = step.reductions().map(|reduction| self.unit_reduction(reduction, range, device));
            prepared.push(reductions.collect::<Result<Vec<_>, _>>()?);
        }
        let (maker, functions, mut prepared) = (self.call_maker(), self.kernels, prepared.into_iter());
        self.emit(first.site, "kernel", |device, out| {
            let mut reductions = prepared.next().into_iter().flatten();
            let mut parts = Vec::new();
            let mut cost = 0.0;
            for inner in &step.steps {
                for kernel in inner.kernels() {
                    let writers = sharers_once(mesh.group(device, step.group), |member| {
                        mesh.linear(member, step.group.minus(kernel.split).iter())
                    });
                    let function = functions[kernel.kernel as usize];
                    let calls: Vec<KernelCall> =
                        writers.iter().map(|&member| maker.call(kernel, function, member, out)).collect();
                    cost += kernel.cost * calls.len() as f32;
                    parts.push(PanelsMember::Kernel(calls.into()));
                }
                if let Step::Reduce(_) = inner {
                    parts.extend(reductions.next().map(PanelsMember::Combine));
                }
            }
            debug_assert_eq!(reductions.count(), 0, "every reduction is a part");
            let units = mesh.share_of((mesh.resolve(range, device), step.grain), dividing, device);
            let chunk = chunk(units.end - units.start, i64::from(step.grain), cost, maker.team(device));
            let panel = step.panel as i64;
            Action::GroupPanels(Box::new(PanelsOfGroup { parts: parts.into(), panel, units, chunk }))
        });
        Ok(())
    }

    /// A reduction for all devices of the group of a device; the units of a range are divided among others.
    fn unit_reduction(&self, step: &ReduceStep, range: &Scalar, device: usize) -> Result<UnitReduction, RunError> {
        let (mesh, memory) = (self.mesh, self.memory);
        let group = mesh.group(device, step.reduce);
        let from: Vec<*const u8> =
            group.iter().map(|&member| memory.address(step.from.place, member).cast_const()).collect();
        let own = memory.axes(step.to.place.arena);
        let receivers = sharers_once(group, |member| mesh.linear(member, own.iter()));
        let to: Vec<*mut u8> = receivers.iter().map(|&member| memory.address(step.to.place, member)).collect();
        let unit = mesh.unit_bytes(&step.from.layout, range).unwrap_or(0);
        of_units(step, &from, &to, unit as usize, self.components).map_err(|error| error.at(step.site))
    }
}

/// The first device for each instance of memory, if several devices may share one.
fn sharers_once(mut devices: Vec<usize>, instance: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut known = BTreeSet::new();
    devices.retain(|&device| known.insert(instance(device)));
    devices
}

/// Maximum time of a pipeline, as a multiple of the time that a team takes if each thread has the same work. The kernels of a pipeline find
/// the rows of the ones before them in a cache, which is worth more than that.
const UNEVEN: f32 = 1.5;

/// Divides kernels that depend on each other among the threads of a team: each thread runs some of them on all panels.
fn pipeline(costs: &[f32], team: usize) -> Sharing {
    debug_assert!(team > 0 && !costs.is_empty(), "{} kernels for {team} threads", costs.len());
    let total: f32 = costs.iter().sum();
    let (mut stages, mut begin, mut before, mut most) = (Vec::new(), 0, 0.0, 0f32);
    for stage in 1..=team {
        let bound = total * stage as f32 / team as f32;
        let (mut end, mut cost) = (begin, 0.0);
        // A kernel belongs to the stage in which the middle of its time lies.
        while end < costs.len() && (stage == team || before + cost + costs[end] / 2.0 <= bound) {
            cost += costs[end];
            end += 1;
        }
        if end > begin {
            stages.push(begin..end);
        }
        (begin, before, most) = (end, before + cost, most.max(cost));
    }
    debug_assert_eq!(stages.iter().map(ExactSizeIterator::len).sum::<usize>(), costs.len(), "a kernel is in no stage");
    let is_even = most * team as f32 <= UNEVEN * total;
    if is_even { Sharing::pipeline(stages) } else { Sharing::Kernels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_divided_by_their_time() {
        let stages = |costs: &[f32], team| match pipeline(costs, team) {
            Sharing::Pipeline { stages, .. } => stages.iter().map(ExactSizeIterator::len).collect(),
            Sharing::Alone | Sharing::Range { .. } | Sharing::Kernels => Vec::new(),
        };
        assert_eq!(stages(&[1.0; 16], 2), [8, 8]);
        assert_eq!(stages(&[1.0; 16], 16), [1; 16]);
        assert_eq!(stages(&[3.0, 1.0, 1.0, 1.0], 2), [1, 3]);
        assert_eq!(stages(&[1.0; 5], 2), [3, 2]);
        // Half of the threads would have nothing to do.
        assert_eq!(stages(&[1.0; 4], 8), [0; 0]);
        assert_eq!(stages(&[8.0, 1.0], 2), [0; 0]);
    }
}
