//! Cuts loops where conditions on indices change, so that no element needs a test.
//!
//! ```text
//! for i in 0..n { y[i] = if 1 <= i < n { x[i - 1] } else { h[i] } }
//! =>
//! for i in 0..1 { y[i] = h[i] }    for i in 1..n { y[i] = x[i - 1] }
//! ```
//!
//! Along each dimension all conditions hold in the *middle*; the indices before and after it become separate kernels. In the kernels of
//! outer dimensions' ends, conditions on inner dimensions remain tests: these kernels are small. Reduced dimensions are not cut.
//!
//! The cuts may differ from device to device. Devices that fill a buffer together divide the range of the uncut kernel, so each
//! part has its position in that range ([`Cutout`]).

use crate::lower::cutout::Cutout;
use spmdc_abi::{DType, Scalar};
use spmdc_kernel::grain::grain;
use spmdc_kernel::loops::{Affine, Combine, Elem, Extent, Inst, Kernel, affines, affines_mut, operands, operands_mut};
use spmdc_kernel::machine::Machine;
use spmdc_kernel::nest::{Nest, scalar_bounds};

/// The kernel, or the kernels of its parts.
pub fn peel(kernel: Kernel, machine: &Machine) -> Vec<(Kernel, Option<Cutout>)> {
    let conditions = conditions(&kernel);
    let mut parts = Vec::new();
    let mut middle = PeeledPoints { ranges: vec![None; kernel.dims.len()], known: Vec::new() };
    for dim in 0..kernel.dims.len() {
        let here: Vec<&Condition> = conditions.iter().filter(|condition| condition.dim == dim).collect();
        if here.is_empty() {
            continue;
        }
        let zero = Scalar::Const(0);
        let len = extent(&kernel, dim);
        let first = here.iter().fold(zero.clone(), |first, condition| max(first, condition.low.clone()));
        let first = min(first, len.clone());
        let end = here.iter().fold(len.clone(), |end, condition| min(end, condition.high.clone()));
        let end = max(end, first.clone());
        for (from, to) in [(&zero, &first), (&end, &len)] {
            if bounds(to).1 <= bounds(from).0 {
                continue;
            }
            let mut part = middle.clone();
            part.ranges[dim] = Some((from.clone(), to.clone()));
            for condition in &here {
                part.known.extend(condition.truth(from, to).map(|truth| (condition.at, truth)));
            }
            parts.push(part);
        }
        middle.ranges[dim] = Some((first, end));
        middle.known.extend(here.iter().map(|condition| (condition.at, true)));
    }
    if conditions.is_empty() {
        return vec![(kernel, None)];
    }
    let is_empty = |(from, to): &(Scalar, Scalar)| bounds(to).1 <= bounds(from).0;
    if !middle.ranges.iter().flatten().any(is_empty) {
        parts.push(middle);
    }
    let parts = parts.iter().enumerate();
    let grain = grain(&kernel, machine);
    parts.map(|(number, part)| (part.of(&kernel), part.cutout(&kernel, grain, number > 0))).collect()
}

/// A condition `low <= index of dim < high`, by the instruction that computes it.
struct Condition {
    at: usize,
    dim: usize,
    low: Scalar,
    high: Scalar,
}

impl Condition {
    /// Whether it holds for all indices in a range, or for none; None: it may change, or is unknown.
    fn truth(&self, from: &Scalar, to: &Scalar) -> Option<bool> {
        let holds = bounds(&self.low).1 <= bounds(from).0 && bounds(&self.high).0 >= bounds(to).1;
        let fails = self.low == *to
            || self.high == *from
            || bounds(&self.low).0 >= bounds(to).1
            || bounds(&self.high).1 <= bounds(from).0;
        if holds { Some(true) } else { fails.then_some(false) }
    }
}

/// The conditions worth cutting at: conditions on one index that choose between values.
fn conditions(kernel: &Kernel) -> Vec<Condition> {
    let chooses =
        |at: usize| kernel.insts.iter().any(|inst| matches!(inst, Inst::Select { cond, .. } if cond.0 as usize == at));
    let known = kernel.insts.iter().enumerate().filter_map(|(at, inst)| {
        let Inst::InRange { affine, low, high } = inst else { return None };
        let &[(dim, 1)] = affine.terms.as_slice() else { return None };
        let fixed = |affine: &Affine| affine.terms.is_empty() && affine.dynamic.is_empty();
        let rest = Affine { terms: Vec::new(), ..affine.clone() };
        if kernel.dims[dim].reduced || ![&rest, low, high].into_iter().all(fixed) || !chooses(at) {
            return None;
        }
        let bound = |bound: &Affine| scalar_of(&bound.plus(&rest.times(-1)), kernel);
        Some(Condition { at, dim, low: bound(low), high: bound(high) })
    });
    known.collect()
}

/// A part of the points of a kernel.
#[derive(Clone)]
struct PeeledPoints {
    /// The bounds along each dimension; None for the whole dimension.
    ranges: Vec<Option<(Scalar, Scalar)>>,
    /// Conditions whose truth is known in this part.
    known: Vec<(usize, bool)>,
}

impl PeeledPoints {
    /// Its position in the range of the whole kernel.
    fn cutout(&self, kernel: &Kernel, grain: u32, continues: bool) -> Option<Cutout> {
        if !kernel.range_dim {
            return None;
        }
        let first = self.ranges[0].as_ref().map_or(Scalar::Const(0), |(from, _)| from.clone());
        Some(Cutout { whole: extent(kernel, 0), first, continues, grain })
    }

    fn of(&self, kernel: &Kernel) -> Kernel {
        let mut part = pruned(kernel, &self.known);
        for (dim, range) in self.ranges.iter().enumerate() {
            let Some((from, to)) = range else { continue };
            let most = part.dims[dim].extent.most();
            let len = minus(to.clone(), from.clone());
            part.dims[dim].extent = if let Scalar::Const(len) = len {
                Extent::Static(len.max(0) as u64)
            } else {
                let max = most.min(bounds(&len).1.max(0) as u64);
                Extent::Scalar { slot: slot(&mut part, len), max }
            };
            let start = if let Scalar::Const(start) = from {
                Affine::constant(*start)
            } else {
                Affine { scalars: vec![(slot(&mut part, from.clone()), 1)], ..Affine::default() }
            };
            each_affine(&mut part, &|affine| affine.plus(&start.times(Nest::stride(affine, dim))));
        }
        part
    }
}

fn slot(kernel: &mut Kernel, scalar: Scalar) -> usize {
    let known = kernel.scalars.iter().position(|known| *known == scalar);
    known.unwrap_or_else(|| {
        kernel.scalars.push(scalar);
        kernel.scalars.len() - 1
    })
}

/// The kernel with these conditions known, without the instructions that become unused.
fn pruned(kernel: &Kernel, known: &[(usize, bool)]) -> Kernel {
    let truth = |at: usize| known.iter().find(|(condition, _)| *condition == at).map(|&(_, truth)| truth);
    // For each instruction, the equal one that replaces it.
    let mut same: Vec<Elem> = (0..kernel.insts.len() as u32).map(Elem).collect();
    for (at, inst) in kernel.insts.iter().enumerate() {
        if let Inst::Select { cond, then, otherwise, .. } = inst
            && let Some(truth) = truth(cond.0 as usize)
        {
            same[at] = same[if truth { then } else { otherwise }.0 as usize];
        }
    }
    let mut needed = vec![false; kernel.insts.len()];
    let mut stack: Vec<Elem> = Vec::new();
    let dynamic = |affine: &Affine| affine.dynamic.iter().map(|&(elem, _)| elem).collect::<Vec<_>>();
    for store in &kernel.stores {
        stack.extend(store.operands());
        stack.extend(dynamic(&store.access.address));
    }
    while let Some(elem) = stack.pop() {
        let at = same[elem.0 as usize].0 as usize;
        if !std::mem::replace(&mut needed[at], true) {
            stack.extend(operands(&kernel.insts[at]));
            affines(&kernel.insts[at]).for_each(|affine| stack.extend(dynamic(affine)));
        }
    }
    let mut place = vec![Elem(0); kernel.insts.len()];
    let mut part = Kernel { insts: Vec::new(), ..kernel.clone() };
    for at in (0..kernel.insts.len()).filter(|&at| needed[at]) {
        place[at] = Elem(part.insts.len() as u32);
        part.insts.push(match truth(at) {
            Some(truth) => Inst::Const { dtype: DType::Bool, bits: u64::from(truth) },
            None => kernel.insts[at].clone(),
        });
    }
    let renumber = |elem: &mut Elem| *elem = place[same[elem.0 as usize].0 as usize];
    part.insts.iter_mut().flat_map(operands_mut).for_each(renumber);
    for store in &mut part.stores {
        renumber(&mut store.value);
        if let Some(Combine::Scan { first, .. }) = &mut store.combine {
            renumber(first);
        }
    }
    each_affine(&mut part, &|affine| {
        let mut affine = affine.clone();
        affine.dynamic.iter_mut().for_each(|(elem, _)| renumber(elem));
        affine
    });
    part
}

/// Changes every index and address of the kernel.
pub(super) fn each_affine(kernel: &mut Kernel, change: &dyn Fn(&Affine) -> Affine) {
    kernel.insts.iter_mut().flat_map(affines_mut).for_each(|affine| *affine = change(affine));
    kernel.stores.iter_mut().for_each(|store| store.access.address = change(&store.access.address));
}

// Numbers that may differ between devices.

fn extent(kernel: &Kernel, dim: usize) -> Scalar {
    match kernel.dims[dim].extent {
        Extent::Static(extent) => Scalar::Const(extent as i64),
        Extent::Scalar { slot, .. } => kernel.scalars[slot].clone(),
    }
}

/// An affine value without indices.
fn scalar_of(affine: &Affine, kernel: &Kernel) -> Scalar {
    affine.scalars.iter().fold(Scalar::Const(affine.constant), |sum, &(slot, stride)| {
        plus(sum, times(kernel.scalars[slot].clone(), stride))
    })
}

fn bounds(scalar: &Scalar) -> (i64, i64) {
    scalar_bounds(scalar).unwrap_or((i64::MIN, i64::MAX))
}

fn plus(a: Scalar, b: Scalar) -> Scalar {
    match (a, b) {
        (Scalar::Const(a), Scalar::Const(b)) => Scalar::Const(a.wrapping_add(b)),
        (Scalar::Const(0), other) | (other, Scalar::Const(0)) => other,
        (a, b) => Scalar::Add(Box::new(a), Box::new(b)),
    }
}

fn times(a: Scalar, b: i64) -> Scalar {
    if let Scalar::Const(a) = a {
        return Scalar::Const(a.wrapping_mul(b));
    }
    if b == 1 { a } else { Scalar::Mul(Box::new(a), Box::new(Scalar::Const(b))) }
}

fn minus(a: Scalar, b: Scalar) -> Scalar {
    if a == b { Scalar::Const(0) } else { plus(a, times(b, -1)) }
}

fn min(a: Scalar, b: Scalar) -> Scalar {
    if a == b || bounds(&a).1 <= bounds(&b).0 {
        a
    } else if bounds(&b).1 <= bounds(&a).0 {
        b
    } else {
        Scalar::Min(Box::new(a), Box::new(b))
    }
}

fn max(a: Scalar, b: Scalar) -> Scalar {
    if a == b || bounds(&a).0 >= bounds(&b).1 {
        a
    } else if bounds(&b).0 >= bounds(&a).1 {
        b
    } else {
        Scalar::Max(Box::new(a), Box::new(b))
    }
}
