//! Prepares loops and branches.

use super::Loader;
use crate::errors::trap::RunError;
use crate::run::device::{Action, Counter, LoopBound};
use spmdc_abi::{Bound, Place, Site, Step};

impl Loader<'_> {
    pub(super) fn for_loop(
        &mut self,
        counter: Place,
        (start, end): (&Bound, &Bound),
        body: &[Step],
        site: Site,
    ) -> Result<(), RunError> {
        let memory = self.memory;
        let slot = self.counters;
        self.counters += 1;
        let head = self.outline.len();
        self.emit(site, "loop", |device, out| {
            let place = memory.address(counter, device).cast();
            debug_assert_eq!(out.counters.len(), slot, "every device has the loop's counter");
            out.counters.push(Counter { place, current: 0, end: 0 });
            let limit = |bound: &Bound| match bound {
                Bound::Const(value) => LoopBound::Known(*value),
                Bound::Memory(place, dtype) => LoopBound::Memory(memory.address(*place, device), *dtype),
            };
            Action::For { counter: slot, start: limit(start), end: limit(end), exit: 0 }
        });
        // A loop in a loop with known trips is a part of the progress of that one.
        let known = match (start, end) {
            (Bound::Const(start), Bound::Const(end)) if !self.in_known_loop => Some((*start, end.abs_diff(*start))),
            (Bound::Const(_) | Bound::Memory(..), Bound::Const(_) | Bound::Memory(..)) => None,
        };
        if let Some((start, total)) = known {
            self.emit(site, "loop", |_, _| Action::Progress { counter: Some(slot), start, total });
        }
        let outside = (self.in_known_loop, self.varying);
        self.in_known_loop |= known.is_some();
        self.varying = [start, end].into_iter().fold(self.varying, |varying, bound| match bound {
            Bound::Const(_) => varying,
            Bound::Memory(place, _) => varying.union(self.own_axes(*place)),
        });
        self.steps(body)?;
        debug_assert!(slot < self.counters, "loops inside have other counters");
        (self.in_known_loop, self.varying) = outside;
        self.emit(site, "loop", |_, _| Action::Next { counter: slot, body: head + 1 });
        self.land(head);
        if let Some((start, total)) = known {
            self.emit(site, "loop", |_, _| Action::Progress { counter: None, start, total });
        }
        Ok(())
    }

    pub(super) fn while_loop(
        &mut self,
        (cond, flag): (&[Step], Place),
        body: &[Step],
        site: Site,
    ) -> Result<(), RunError> {
        let head = self.outline.len();
        let outside = self.varying;
        self.varying = outside.union(self.own_axes(flag));
        self.steps(cond)?;
        let branch = self.unless(flag, site);
        self.steps(body)?;
        self.varying = outside;
        debug_assert!(head <= branch, "the condition comes before the jump out of the loop");
        self.emit(site, "loop", |_, _| Action::Jump { target: head });
        self.land(branch);
        Ok(())
    }

    pub(super) fn branch(
        &mut self,
        flag: Place,
        (then, otherwise): (&[Step], &[Step]),
        site: Site,
    ) -> Result<(), RunError> {
        let outside = self.varying;
        self.varying = outside.union(self.own_axes(flag));
        let branch = self.unless(flag, site);
        self.steps(then)?;
        let jump = self.outline.len();
        self.emit(site, "branch", |_, _| Action::Jump { target: 0 });
        debug_assert!(branch < jump, "the first side ends with a jump over the second one");
        self.land(branch);
        self.steps(otherwise)?;
        self.land(jump);
        self.varying = outside;
        Ok(())
    }

    /// Jumps over the following operations if the flag is false; `land` sets the target.
    fn unless(&mut self, flag: Place, site: Site) -> usize {
        let memory = self.memory;
        self.emit(site, "branch", |device, _| Action::Unless { flag: memory.address(flag, device), target: 0 });
        debug_assert!(self.outline.len() > 0, "the jump is an operation");
        self.outline.len() - 1
    }

    /// Sets the target of the jump that was emitted as operation `jump` to the next operation.
    fn land(&mut self, jump: usize) {
        let here = self.outline.len();
        for device in &mut self.out.devices {
            if let Action::For { exit: target, .. } | Action::Unless { target, .. } | Action::Jump { target } =
                &mut device.actions[jump]
            {
                debug_assert!(jump < here, "a jump that is landed leads forward");
                *target = here;
            } else {
                unreachable!("operation {jump} is no jump");
            }
        }
    }
}
