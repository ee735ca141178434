//! Counted loops in the body of a kernel.
//!
//! ```text
//! for trip in 0..100 { (x, y) = (x * x - y * y + a, 2 * x * y + b) }
//!
//! 4: carried from 2    5: carried from 3    ...    9: next x    12: next y
//! 13: repeat 100 times, 4 -> 9 and 5 -> 12    14: the last 4    15: the last 5
//! ```
//!
//! A loop is a [`Inst::Repeat`], which names its carried values and the values of the next trip. There are no blocks: an instruction is
//! *inside* a loop if the next trip needs it and it depends on a carried value. All other instructions that the loop needs are computed
//! once, before it. Later instructions use [`Inst::Last`]. Loops can be nested. A kernel whose points are computed in bundles runs all
//! trips of a bundle, one bundle after the other.

use super::loops::{Elem, Inst, affines, operands};

/// Assumed number of trips that are not known before the kernel runs.
const ASSUMED_TRIPS: f64 = 16.0;

/// For each instruction the innermost loop that it is inside; None outside of all loops. `order` has the instructions of interest, operands
/// first.
pub fn inside(insts: &[Inst], order: &[Elem]) -> Vec<Option<Elem>> {
    let mut inside = vec![None; insts.len()];
    // Inner loops first: outer ones need what they give.
    for (end, &repeat) in order.iter().enumerate() {
        let Inst::Repeat { carried, .. } = &insts[repeat.0 as usize] else { continue };
        let mut varies = vec![false; insts.len()];
        carried.iter().for_each(|(value, _)| varies[value.0 as usize] = true);
        for elem in &order[..end] {
            let depends = used(&insts[elem.0 as usize]).any(|operand| varies[operand.0 as usize]);
            varies[elem.0 as usize] |= depends;
        }
        let mut stack: Vec<Elem> = carried.iter().flat_map(|&(value, next)| [value, next]).collect();
        let mut seen = vec![false; insts.len()];
        while let Some(elem) = stack.pop() {
            let at = elem.0 as usize;
            if varies[at] && !std::mem::replace(&mut seen[at], true) {
                inside[at] = inside[at].or(Some(repeat));
                stack.extend(used(&insts[at]));
            }
        }
    }
    inside
}

/// The operands of an instruction and the dynamic indices of its addresses.
pub fn used(inst: &Inst) -> impl Iterator<Item = Elem> {
    operands(inst).chain(affines(inst).flat_map(|affine| affine.dynamic.iter().map(|&(elem, _)| elem)))
}

/// Whether an instruction is inside a loop, at any depth.
pub fn is_within(inside: &[Option<Elem>], elem: Elem, repeat: Elem) -> bool {
    std::iter::successors(inside[elem.0 as usize], |outer| inside[outer.0 as usize]).any(|outer| outer == repeat)
}

/// For each instruction the number of times that it runs at a point.
pub fn times(insts: &[Inst], inside: &[Option<Elem>]) -> Vec<f64> {
    let around = |elem: usize| std::iter::successors(inside[elem], |outer| inside[outer.0 as usize]);
    (0..insts.len())
        .map(|elem| around(elem).map(|repeat| trips(insts, repeat).unwrap_or(ASSUMED_TRIPS)).product())
        .collect()
}

/// As [`times`], for the body of a kernel, whose operands come first.
pub fn times_in(insts: &[Inst]) -> Vec<f64> {
    if !insts.iter().any(|inst| matches!(inst, Inst::Repeat { .. })) {
        return vec![1.0; insts.len()];
    }
    let order: Vec<Elem> = (0..insts.len() as u32).map(Elem).collect();
    times(insts, &inside(insts, &order))
}

/// The number of trips of a loop, if it is known.
pub fn trips(insts: &[Inst], repeat: Elem) -> Option<f64> {
    let Inst::Repeat { trips, .. } = &insts[repeat.0 as usize] else { return None };
    let Inst::Const { bits, .. } = insts[trips.0 as usize] else { return None };
    Some((bits as i64).max(0) as f64)
}
