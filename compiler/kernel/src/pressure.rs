//! The registers that loops in the body of a kernel need.

use super::loops::{Elem, Inst};
use super::nest::Nest;
use super::repeats::used;

impl Nest {
    /// The largest number of registers, for each four lanes, of values that a loop in the body needs at once, of those loops that run at
    /// every point; None without one.
    pub(super) fn pressure_of_trips(&self) -> Option<f64> {
        let is_inner = |elem: &&Elem| {
            matches!(self.insts[elem.0 as usize], Inst::Repeat { .. })
                && self.levels[elem.0 as usize] == self.dims.len()
        };
        let pressures = self.order.iter().filter(is_inner).map(|&repeat| self.pressure_of(repeat));
        pressures.max_by(f64::total_cmp)
    }

    fn pressure_of(&self, repeat: Elem) -> f64 {
        let weight = |elem: Elem| self.dtype(elem).size().max(4) as f64 / 4.0;
        let members: Vec<Elem> =
            self.order.iter().copied().filter(|&elem| self.inside[elem.0 as usize] == Some(repeat)).collect();
        // Where each value is used last; those of the next trip at the end.
        let mut last = vec![None; self.insts.len()];
        for (at, &elem) in members.iter().enumerate() {
            used(&self.insts[elem.0 as usize]).for_each(|operand| last[operand.0 as usize] = Some(at));
        }
        self.carried(repeat).iter().for_each(|(_, next)| last[next.0 as usize] = Some(members.len()));
        let is_needed = |elem: &Elem| last[elem.0 as usize].is_some();
        let invariant =
            |at: &usize| last[*at].is_some() && self.inside[*at] != Some(repeat) && self.levels[*at] == self.dims.len();
        let invariants: f64 = (0..self.insts.len()).filter(invariant).map(|at| weight(Elem(at as u32))).sum();
        let mut live: Vec<Elem> = self.carried(repeat).iter().map(|&(value, _)| value).filter(is_needed).collect();
        let mut most = 0.0_f64;
        for (at, &elem) in members.iter().enumerate() {
            if !live.contains(&elem) && is_needed(&elem) {
                live.push(elem);
            }
            most = most.max(live.iter().map(|&elem| weight(elem)).sum());
            live.retain(|elem| last[elem.0 as usize].is_some_and(|end| end > at));
        }
        invariants + most
    }
}
