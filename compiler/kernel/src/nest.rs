//! How a kernel runs: its loops, the vectorised one, and the level of each instruction.
//!
//! - Neighbouring dimensions that every access walks through without a gap are merged, so that a short inner dimension does not
//!   prevent vectorisation: `f32[1000, 3]` plus itself is one loop over 3000 elements. The range of a kernel stays in units of its
//!   first dimension, which [`Nest::range`] converts to units of the loop.
//! - An instruction belongs to a *level*: 0 is before all loops, `k + 1` inside loop `k`, as deep as its operands require.
//! - One dimension may be cut into bundles of lanes. Instructions that depend on its index *vary*; all others stay scalars.
//! - All of a loop in the body ([`repeats`]) is at one level.
//! - A load under a `select` on indices, as from padding, is *guarded*: it is executed only if its value is needed.

use super::loops::{Affine, Elem, Extent, Inst, Kernel, LoopDim, Store, affines, affines_mut, operands};
use super::repeats;
use crate::scalar::{BinaryOp, UnaryOp};
use spmdc_abi::{DType, Scalar};
use std::ops::Range as Run;

/// Number of points along each side of a tile.
pub const SIDE: i64 = 4;

/// The number of iterations of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Length {
    /// The kernel's scalar that is multiplied by `factor`; None: 1.
    pub slot: Option<usize>,
    /// Iterations per unit of the scalar; the number of iterations if `slot` is None.
    pub factor: u64,
    /// The maximum on any device.
    pub max: u64,
}

impl Length {
    /// The number of iterations; None if it depends on the device.
    pub fn known(&self) -> Option<u64> {
        if self.slot.is_none() { Some(self.factor) } else { None }
    }
}

/// One loop of the nest.
#[derive(Clone, Debug, PartialEq)]
pub struct NestDim {
    /// The number of its iterations.
    pub length: Length,
    /// Whether the stores combine values over it.
    pub reduced: bool,
    /// The merged dimensions of the kernel.
    pub of: Run<usize>,
}

/// The size of a strip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strips {
    /// Number of columns of a strip; a multiple of every bundle's lanes.
    pub columns: u32,
    /// Number of rows that are combined between loading and storing a partial result.
    pub rows: u32,
}

/// The random bits of a nest that come in tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    /// The instructions.
    pub draws: Vec<Elem>,
    /// Number of points of a tile along the loop that is cut; a multiple of [`GROUP`](spmdc_threefry::GROUP) and of the lanes of every bundle and sum.
    pub points: u32,
}

/// The cut of a loop into bundles.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The index of the loop that is cut.
    pub dim: usize,
    /// A second dimension of the bundles, which makes them tiles of 4 by 4 points. It is the loop around `dim`, which is the
    /// innermost.
    pub rows: Option<usize>,
    /// Lanes of the bundles, widest first; 1 at the end if elements may remain. If sums run by lanes, bundles implement these in
    /// turn: four bundles of 4 lanes, for instance.
    pub lanes: Vec<u32>,
    /// If set, partial results are on the stack, for a strip of `dim` at a time. `dim` is the innermost dimension, after the
    /// reduced ones.
    pub strips: Option<Strips>,
}

impl Cut {
    /// The dimensions that differ between lanes.
    pub fn dims(&self) -> impl Iterator<Item = usize> + Clone {
        std::iter::once(self.dim).chain(self.rows)
    }
}

/// The required order of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No result depends on it.
    Any,
    /// Row-major over the reduced dimensions.
    InTurn,
    /// Adjacent terms of this dimension of the nest in separate lanes, as many as [`LANES`](super::order::LANES).
    Lanes {
        /// Index of a reduced dimension of the nest.
        dim: usize,
    },
}

/// The loop that runs over the kernel's range.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRange {
    /// The index of the loop.
    pub dim: usize,
    /// Iterations per unit of the range.
    pub scale: i64,
}

/// A kernel with its loops. Its indices refer to `dims`, not to the dimensions of the kernel.
#[derive(Clone, Debug)]
pub struct Nest {
    /// The loops, outermost first.
    pub dims: Vec<NestDim>,
    /// The loop over the kernel's range; None if the kernel is called for `0..1` only.
    pub range: Option<KernelRange>,
    /// The instructions of the kernel, then the conditions of guards.
    pub insts: Vec<Inst>,
    /// For each instruction the condition under which it is needed; None for always.
    pub guards: Vec<Option<Elem>>,
    /// The stores of the kernel, with addresses over the loops of the nest.
    pub stores: Vec<Store>,
    /// The instructions that stores depend on, operands first.
    pub order: Vec<Elem>,
    /// For each instruction its level: 0 is before all loops, `k + 1` inside loop `k`.
    pub levels: Vec<usize>,
    /// For each instruction the innermost loop of the body that it is inside ([`repeats`]); all of a loop has its level.
    pub inside: Vec<Option<Elem>>,
    /// For each instruction whether it differs between the lanes of a bundle.
    pub varies: Vec<bool>,
    /// The order in which the terms of each result are combined.
    pub sums: Order,
    /// The loop that runs in bundles; None for scalars only.
    pub cut: Option<Cut>,
    /// The random bits that come in tiles along the loop that is cut.
    pub tiles: Option<Tiles>,
    /// Bounds of the kernel's scalars.
    scalar_bounds: Vec<Option<(i64, i64)>>,
}

/// The function that chooses the nest of each kernel.
pub type NestOf<'a> = dyn Fn(&Kernel) -> Nest + Sync + 'a;

impl Nest {
    /// The nest before the order of its sums is known, and before a loop is cut.
    pub(super) fn plain(kernel: &Kernel) -> Nest {
        let dim = |(at, dim): (usize, &LoopDim)| NestDim {
            length: length(&dim.extent),
            reduced: dim.reduced,
            of: at..at + 1,
        };
        let mut nest = Nest {
            dims: kernel.dims.iter().enumerate().map(dim).collect(),
            range: kernel.range_dim.then_some(KernelRange { dim: 0, scale: 1 }),
            insts: kernel.insts.clone(),
            guards: Vec::new(),
            stores: kernel.stores.clone(),
            order: Vec::new(),
            levels: Vec::new(),
            inside: Vec::new(),
            varies: Vec::new(),
            sums: Order::Any,
            cut: None,
            tiles: None,
            scalar_bounds: kernel.scalars.iter().map(scalar_bounds).collect(),
        };
        nest.collapse();
        nest.guard(kernel);
        nest.sort();
        nest.place();
        nest
    }

    /// The first reduced dimension, or the number of dimensions.
    pub fn first_reduced(&self) -> usize {
        self.dims.iter().position(|dim| dim.reduced).unwrap_or(self.dims.len())
    }

    /// Whether some store combines values.
    pub fn has_reduction(&self) -> bool {
        self.stores.iter().any(|store| store.combine.is_some())
    }

    /// The type of an instruction's result.
    pub fn dtype(&self, elem: Elem) -> DType {
        match &self.insts[elem.0 as usize] {
            Inst::Load { dtype, .. }
            | Inst::Const { dtype, .. }
            | Inst::Index { dtype, .. }
            | Inst::Binary { dtype, .. }
            | Inst::Select { dtype, .. }
            | Inst::RandomBits { dtype, .. }
            | Inst::Carried { dtype, .. }
            | Inst::Last { dtype, .. }
            | Inst::Fma { dtype, .. } => *dtype,
            Inst::Unary { op, dtype, .. } => op.result_dtype(*dtype),
            Inst::Cast { to, .. } | Inst::Bitcast { to, .. } => *to,
            Inst::LoopInvariant { .. } | Inst::CheckIndex { .. } | Inst::Limit { .. } | Inst::Repeat { .. } => {
                DType::I64
            }
            Inst::Compare { .. } | Inst::InRange { .. } => DType::Bool,
        }
    }

    /// The stride of an affine value along a dimension.
    pub fn stride(affine: &Affine, dim: usize) -> i64 {
        affine.terms.iter().find(|&&(d, _)| d == dim).map_or(0, |&(_, stride)| stride)
    }

    /// The minimum and maximum, if all parts are bounded.
    pub fn bounds(&self, affine: &Affine) -> Option<(i64, i64)> {
        let mut bounds = (affine.constant, affine.constant);
        let mut add = |range: (i64, i64), stride: i64| {
            let ends = (range.0.checked_mul(stride)?, range.1.checked_mul(stride)?);
            bounds = (bounds.0.checked_add(ends.0.min(ends.1))?, bounds.1.checked_add(ends.0.max(ends.1))?);
            Some(())
        };
        for &(dim, stride) in &affine.terms {
            add((0, self.dims[dim].length.max.max(1) as i64 - 1), stride)?;
        }
        for &(slot, stride) in &affine.scalars {
            add(self.scalar_bounds[slot]?, stride)?;
        }
        for &(elem, stride) in &affine.dynamic {
            let (Inst::LoopInvariant { last, .. } | Inst::Limit { last, .. }) = self.insts[elem.0 as usize] else {
                return None;
            };
            add((0, i64::try_from(last).ok()?), stride)?;
        }
        Some(bounds)
    }

    /// Whether a loop may have no iterations although the range is not empty.
    pub fn may_be_empty(&self, dim: usize) -> bool {
        let length = &self.dims[dim].length;
        let is_range = self.range.as_ref().is_some_and(|range| range.dim == dim && range.scale > 0);
        !is_range
            && match length.slot {
                None => length.factor == 0,
                Some(slot) => self.scalar_bounds[slot].is_none_or(|(least, _)| least <= 0),
            }
    }

    /// Whether the value is known to fit in i32.
    pub fn fits_i32(&self, affine: &Affine) -> bool {
        self.bounds(affine).is_some_and(|(low, high)| low >= i64::from(i32::MIN) && high <= i64::from(i32::MAX))
    }

    /// Every affine value of the kernel.
    fn affines_mut(&mut self) -> impl Iterator<Item = &mut Affine> {
        let insts = self.insts.iter_mut().flat_map(affines_mut);
        insts.chain(self.stores.iter_mut().map(|store| &mut store.access.address))
    }

    /// Merges neighbouring dimensions if no access distinguishes them, and drops dimensions of one iteration.
    fn collapse(&mut self) {
        let first = usize::from(self.range.is_some());
        for dim in (first..self.dims.len()).rev() {
            if self.dims[dim].length.known() == Some(1) {
                self.drop_dim(dim);
            }
        }
        let mut dim = 0;
        while dim + 1 < self.dims.len() {
            if self.can_join(dim) {
                self.join(dim);
            } else {
                dim += 1;
            }
        }
    }

    fn can_join(&mut self, outer: usize) -> bool {
        let (a, b) = (&self.dims[outer], &self.dims[outer + 1]);
        let inner = b.length.known().and_then(|inner| i64::try_from(inner).ok());
        let (Some(inner), true) = (inner, a.reduced == b.reduced) else { return false };
        // The only remaining dimension of one iteration is the range.
        a.length.known() == Some(1)
            || self
                .affines_mut()
                .all(|affine| Nest::stride(affine, outer) == Nest::stride(affine, outer + 1).wrapping_mul(inner))
    }

    /// Merges two dimensions, with the strides of the inner one.
    fn join(&mut self, outer: usize) {
        let factor = self.dims[outer].length.clone();
        let inner = self.dims[outer + 1].length.factor;
        let first = self.dims[outer].of.start;
        self.drop_dim(outer);
        self.dims[outer].of.start = first;
        self.dims[outer].length = Length { factor: factor.factor * inner, max: factor.max * inner, ..factor };
        if let (0, Some(range)) = (outer, &mut self.range) {
            range.scale *= inner as i64;
        }
    }

    fn drop_dim(&mut self, dropped: usize) {
        for affine in self.affines_mut() {
            affine.terms.retain(|&(dim, _)| dim != dropped);
            affine.terms.iter_mut().filter(|(dim, _)| *dim > dropped).for_each(|(dim, _)| *dim -= 1);
        }
        self.dims.remove(dropped);
    }

    /// Finds the loads and checks that are needed only under conditions on indices.
    fn guard(&mut self, kernel: &Kernel) {
        let count = self.insts.len();
        let on_indices = self.conditions_on_indices();
        let mut needs = vec![Need::Never; count];
        for store in &self.stores {
            let dynamic = store.access.address.dynamic.iter().map(|&(elem, _)| elem);
            store.operands().chain(dynamic).for_each(|operand| needs[operand.0 as usize] = Need::Always);
        }
        for user in (0..count).rev() {
            let need = needs[user];
            let inst = self.insts[user].clone();
            if let Inst::Select { cond, then, otherwise, .. } = inst
                && on_indices[cond.0 as usize]
                && then != otherwise
            {
                let not = Inst::Unary { op: UnaryOp::Not, dtype: DType::Bool, arg: cond };
                let in_then = self.both(need, Need::When(cond));
                let negated = Need::When(self.add(not));
                let in_otherwise = self.both(need, negated);
                for (operand, need) in [(cond, need), (then, in_then), (otherwise, in_otherwise)] {
                    needs[operand.0 as usize] = self.either(needs[operand.0 as usize], need);
                }
                continue;
            }
            let dynamic = affines(&inst).flat_map(|affine| affine.dynamic.iter().map(|&(elem, _)| elem));
            for operand in operands(&inst).chain(dynamic) {
                needs[operand.0 as usize] = self.either(needs[operand.0 as usize], need);
            }
        }
        self.guards = vec![None; self.insts.len()];
        for (at, need) in needs.into_iter().enumerate() {
            let matters = match self.insts[at].load() {
                Some((access, _)) => {
                    let len = kernel.buffers[access.buffer].len as i64;
                    !self.bounds(&access.address).is_some_and(|(first, last)| first >= 0 && last < len)
                }
                None => self.insts[at].check().is_some(),
            };
            if let (true, Need::When(condition)) = (matters, need)
                && !self.depends(condition, Elem(at as u32))
            {
                self.guards[at] = Some(condition);
            }
        }
    }

    /// Whether an element is computed from another one, dynamic indices included.
    fn depends(&self, elem: Elem, on: Elem) -> bool {
        let mut seen = vec![false; self.insts.len()];
        let mut stack = vec![elem];
        while let Some(elem) = stack.pop() {
            if elem == on {
                return true;
            }
            if !std::mem::replace(&mut seen[elem.0 as usize], true) {
                stack.extend(self.dependencies(elem));
            }
        }
        false
    }

    /// Finds bools that depend on indices alone.
    fn conditions_on_indices(&self) -> Vec<bool> {
        let mut on_indices: Vec<bool> = Vec::with_capacity(self.insts.len());
        for inst in &self.insts {
            let known = match inst {
                Inst::InRange { .. } | Inst::Index { .. } | Inst::Const { .. } => true,
                Inst::Load { .. }
                | Inst::LoopInvariant { .. }
                | Inst::Carried { .. }
                | Inst::Repeat { .. }
                | Inst::Last { .. } => false,
                Inst::CheckIndex { .. }
                | Inst::Limit { .. }
                | Inst::Unary { .. }
                | Inst::Binary { .. }
                | Inst::Compare { .. }
                | Inst::Select { .. }
                | Inst::Fma { .. }
                | Inst::RandomBits { .. }
                | Inst::Cast { .. }
                | Inst::Bitcast { .. } => operands(inst).all(|operand| on_indices[operand.0 as usize]),
            };
            on_indices.push(known);
        }
        on_indices
    }

    fn add(&mut self, inst: Inst) -> Elem {
        let at = self.insts.iter().position(|known| *known == inst).unwrap_or_else(|| {
            self.insts.push(inst);
            self.insts.len() - 1
        });
        Elem(at as u32)
    }

    fn both(&mut self, a: Need, b: Need) -> Need {
        match (a, b) {
            (Need::Never, _) | (_, Need::Never) => Need::Never,
            (Need::Always, need) | (need, Need::Always) => need,
            (Need::When(a), Need::When(b)) if a == b => Need::When(a),
            (Need::When(lhs), Need::When(rhs)) => {
                Need::When(self.add(Inst::Binary { op: BinaryOp::And, dtype: DType::Bool, lhs, rhs, site: None }))
            }
        }
    }

    fn either(&mut self, a: Need, b: Need) -> Need {
        match (a, b) {
            (Need::Always, _) | (_, Need::Always) => Need::Always,
            (Need::Never, need) | (need, Need::Never) => need,
            (Need::When(a), Need::When(b)) if a == b => Need::When(a),
            (Need::When(lhs), Need::When(rhs)) => {
                if self.is_negation(lhs, rhs) {
                    return Need::Always;
                }
                Need::When(self.add(Inst::Binary { op: BinaryOp::Or, dtype: DType::Bool, lhs, rhs, site: None }))
            }
        }
    }

    fn is_negation(&self, a: Elem, b: Elem) -> bool {
        let negates = |a: Elem, b: Elem| matches!(self.insts[a.0 as usize], Inst::Unary { op: UnaryOp::Not, dtype: DType::Bool, arg } if arg == b);
        negates(a, b) || negates(b, a)
    }

    /// The instructions that must come before this one: its operands, the dynamic indices of its address, its guard.
    fn dependencies(&self, elem: Elem) -> Vec<Elem> {
        let inst = &self.insts[elem.0 as usize];
        let mut all: Vec<Elem> = operands(inst).collect();
        for affine in affines(inst) {
            all.extend(affine.dynamic.iter().map(|&(elem, _)| elem));
        }
        all.extend(self.guards[elem.0 as usize]);
        all
    }

    pub(super) fn sort(&mut self) {
        self.order = Vec::with_capacity(self.insts.len());
        let mut seen = vec![false; self.insts.len()];
        // An explicit stack, because chains of fused operations may be long.
        let mut stack: Vec<(Elem, bool)> = Vec::new();
        for store in self.stores.iter().rev() {
            stack.extend(store.operands().map(|operand| (operand, false)));
            stack.extend(store.access.address.dynamic.iter().map(|&(elem, _)| (elem, false)));
        }
        while let Some((elem, ready)) = stack.pop() {
            if ready {
                self.order.push(elem);
            } else if !std::mem::replace(&mut seen[elem.0 as usize], true) {
                stack.push((elem, true));
                stack.extend(self.dependencies(elem).into_iter().rev().map(|operand| (operand, false)));
            }
        }
    }

    pub(super) fn place(&mut self) {
        self.levels = vec![0; self.insts.len()];
        self.inside = repeats::inside(&self.insts, &self.order);
        for at in 0..self.order.len() {
            let elem = self.order[at];
            let from_operands =
                self.dependencies(elem).into_iter().map(|operand| self.levels[operand.0 as usize]).max().unwrap_or(0);
            let from_indices = affines(&self.insts[elem.0 as usize]).map(deepest).max().unwrap_or(0);
            let level = from_operands.max(from_indices);
            self.levels[elem.0 as usize] = level;
            if matches!(self.insts[elem.0 as usize], Inst::Repeat { .. }) {
                let within = |other: &&Elem| repeats::is_within(&self.inside, **other, elem);
                self.order[..at].iter().filter(within).for_each(|other| self.levels[other.0 as usize] = level);
            }
        }
    }

    /// Makes the two dimensions of a tile, or the columns of strips, innermost.
    pub(super) fn move_inward(&mut self) {
        let Some(Cut { dim: column, rows, strips, .. }) = self.cut else { return };
        if rows.is_none() && strips.is_none() {
            return;
        }
        debug_assert!(!matches!(self.sums, Order::Lanes { .. }), "sums by lanes are cut along their own dimension");
        let mut order: Vec<usize> = (0..self.dims.len()).filter(|&dim| Some(dim) != rows && dim != column).collect();
        order.extend(rows);
        order.push(column);
        let place = |dim: usize| order.iter().position(|&old| old == dim).expect("every dimension has a place");
        for affine in self.affines_mut() {
            affine.terms.iter_mut().for_each(|(dim, _)| *dim = place(*dim));
            affine.terms.sort_unstable();
        }
        if let Some(range) = &mut self.range {
            range.dim = place(range.dim);
        }
        if let Some(cut) = &mut self.cut {
            (cut.dim, cut.rows) = (place(column), rows.map(place));
        }
        self.dims = order.iter().map(|&dim| self.dims[dim].clone()).collect();
        self.place();
    }

    /// Finds the instructions that depend on the index of one of the dimensions.
    pub fn varying(&self, dims: impl Iterator<Item = usize> + Clone) -> Vec<bool> {
        let mut varies = vec![false; self.insts.len()];
        loop {
            for &elem in &self.order {
                let inst = &self.insts[elem.0 as usize];
                let by_operands = if let Inst::Last { repeat, place, .. } = inst {
                    varies[self.carried(*repeat)[*place].0.0 as usize]
                } else {
                    // All points take the same number of trips, and carried values differ one by one.
                    let counts_trips = matches!(inst, Inst::Repeat { .. });
                    !counts_trips && self.dependencies(elem).into_iter().any(|operand| varies[operand.0 as usize])
                };
                let by_index = affines(inst).any(|affine| dims.clone().any(|dim| Nest::stride(affine, dim) != 0));
                varies[elem.0 as usize] |= by_operands || by_index;
            }
            // A value that differs in the next trip differs in all.
            let pairs = self.order.iter().flat_map(|&elem| self.carried(elem));
            let found: Vec<Elem> = pairs
                .filter(|(value, next)| varies[next.0 as usize] && !varies[value.0 as usize])
                .map(|&(value, _)| value)
                .collect();
            if found.is_empty() {
                return varies;
            }
            found.into_iter().for_each(|value| varies[value.0 as usize] = true);
        }
    }

    /// The carried values of a loop of the body, each with the value of the next trip; empty for other instructions.
    pub fn carried(&self, elem: Elem) -> &[(Elem, Elem)] {
        if let Inst::Repeat { carried, .. } = &self.insts[elem.0 as usize] { carried } else { &[] }
    }

    /// The level of a store at every point.
    pub fn store_level(&self, store: &Store) -> usize {
        let dynamic = store.access.address.dynamic.iter().map(|&(elem, _)| self.levels[elem.0 as usize]).max();
        self.levels[store.value.0 as usize].max(deepest(&store.access.address)).max(dynamic.unwrap_or(0))
    }
}

/// The condition under which the value of an instruction is needed.
#[derive(Clone, Copy, Debug)]
enum Need {
    Never,
    Always,
    When(Elem),
}

fn length(extent: &Extent) -> Length {
    match *extent {
        Extent::Static(n) => Length { slot: None, factor: n, max: n },
        Extent::Scalar { slot, max } => Length { slot: Some(slot), factor: 1, max },
    }
}

/// One more than the deepest loop that an affine value depends on.
fn deepest(affine: &Affine) -> usize {
    affine.terms.iter().map(|&(dim, _)| dim + 1).max().unwrap_or(0)
}

/// The minimum and maximum on any device; None if they overflow i64 or a table has no entries.
pub fn scalar_bounds(scalar: &Scalar) -> Option<(i64, i64)> {
    match scalar {
        Scalar::Const(value) => Some((*value, *value)),
        Scalar::BlockLen(dim) | Scalar::BlockStart(dim) => Some((0, dim.size as i64)),
        // Device numbers have at most 16 bits.
        Scalar::Coordinate(_) => Some((0, i64::from(u16::MAX))),
        Scalar::Table { values, .. } => Some((*values.iter().min()?, *values.iter().max()?)),
        Scalar::Min(a, b) => {
            let (a, b) = (scalar_bounds(a)?, scalar_bounds(b)?);
            Some((a.0.min(b.0), a.1.min(b.1)))
        }
        Scalar::Max(a, b) => {
            let (a, b) = (scalar_bounds(a)?, scalar_bounds(b)?);
            Some((a.0.max(b.0), a.1.max(b.1)))
        }
        Scalar::Add(a, b) => {
            let (a, b) = (scalar_bounds(a)?, scalar_bounds(b)?);
            Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
        }
        Scalar::Mul(a, b) => {
            let (a, b) = (scalar_bounds(a)?, scalar_bounds(b)?);
            let products = [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
            Some((*products.iter().min()?, *products.iter().max()?))
        }
    }
}
