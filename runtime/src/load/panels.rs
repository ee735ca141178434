//! Prepares kernels that run panel by panel.

use std::collections::BTreeSet;

use super::{Counted, Loader, chunk};
use crate::collectives::reduce::{UnitReduction, of_units};
use crate::device::Op;
use crate::kernels::{KernelCall, Panels, PanelsOfGroup, PartOfPanels};
use crate::trap::RunError;
use spmdc_abi::{GroupPanels, KernelStep, ReduceStep, Scalar, Step};

impl Loader<'_> {
    pub(super) fn panels(&mut self, steps: &[KernelStep], panel: i64) {
        let Some(first) = steps.first() else { return };
        let (maker, functions) = (self.call_maker(), self.kernels);
        let cost = steps.iter().map(|step| step.cost).sum();
        self.emit(first.site, "kernel", |device, out| {
            let calls: Vec<KernelCall> =
                steps.iter().map(|step| maker.call(step, functions[step.kernel as usize], device, out)).collect();
            let (begin, end) = (calls[0].begin, calls[0].end);
            debug_assert!(
                calls.iter().all(|call| (call.begin, call.end) == (begin, end)),
                "the kernels of panels have one range"
            );
            let chunk = chunk(end - begin, i64::from(first.grain), cost, maker.team(device));
            Op::Panels(Box::new(Panels { calls: calls.into(), panel, begin, end, chunk }))
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
                    parts.push(PartOfPanels::Kernel(calls.into()));
                }
                if let Step::Reduce(_) = inner {
                    parts.extend(reductions.next().map(PartOfPanels::Combine));
                }
            }
            debug_assert_eq!(reductions.count(), 0, "every reduction is a part");
            let units = mesh.share_of((mesh.resolve(range, device), step.grain), dividing, device);
            let chunk = chunk(units.end - units.start, i64::from(step.grain), cost, maker.team(device));
            let panel = step.panel as i64;
            Op::GroupPanels(Box::new(PanelsOfGroup { parts: parts.into(), panel, units, chunk }))
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
        of_units(step, &from, &to, unit as usize).map_err(|error| error.at(step.site))
    }
}

/// Of the devices of which several may have one instance of memory, the first of each instance.
fn sharers_once(mut devices: Vec<usize>, instance: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut known = BTreeSet::new();
    devices.retain(|&device| known.insert(instance(device)));
    devices
}
