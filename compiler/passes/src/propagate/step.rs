//! One step of propagation: the values around one op agree on the axes of its factors, as far as they can.
//!
//! ```text
//! x + y, x: f32[8@X,16], y: f32[8,16@Y]     i is split over X and j over Y: all three become f32[8@X,16@Y]
//! x + y, x: f32[8@X,16], y: f32[8,16@X]     X cannot split both: the result becomes f32[8@X,16], y stays as it is
//! ```
//!
//! For each factor, all tensors want the longest list of axes that has every other list as a prefix; if lists diverge, they want the common
//! prefix. Factors take turns, beginning with the factors of large tensors. A tensor takes the longest possible part of a list. Results
//! come before operands, and an operand takes no axis that the result could not take.

use spmdc_grammar::span::Span;
use spmdc_layout::crossings;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::projection::Projection;
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::types::AxisSet;

/// The state of propagation for a value, or for several that must get equal layouts.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// The dimensions of the array.
    pub dims: Vec<SlotDim>,
    /// Bytes of the whole array.
    pub bytes: usize,
    /// The axes that propagation may add here.
    pub allowed: AxisSet,
    /// The cause of each added axis.
    pub causes: Vec<(u8, Cause)>,
}

/// The op of a `Cause` where an operand gets the layout of its annotation at once.
pub const ANNOTATION: &str = "annotation";

/// Why propagation split a value over an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    /// The slot that had the axis before.
    pub from: usize,
    /// The statement that connects both.
    pub span: Span,
    /// The name of its op.
    pub op: &'static str,
}

/// A dimension of a slot.
#[derive(Clone, Debug)]
pub struct SlotDim {
    /// The number of elements along it.
    pub size: usize,
    /// The axes that split it, major to minor.
    pub axes: Vec<u8>,
    /// The number of leading axes that stay in front: those over which a `manual` function gives its results.
    pub first: usize,
    /// Whether its layout is given, so that propagation adds no axis.
    pub pinned: bool,
}

impl Slot {
    fn used(&self) -> AxisSet {
        self.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| axis as usize).collect()
    }

    /// Whether propagation has added axes.
    pub fn is_split_further(&self) -> bool {
        !self.causes.is_empty()
    }

    /// Splits a dimension further if that is valid: only over allowed axes (or those in `given`), each once, that split no other
    /// dimension, and not into many more blocks than it has elements.
    pub fn extend(&mut self, dim: usize, axes: &[u8], given: AxisSet, cause: Cause, mesh: &Mesh) -> bool {
        let used = self.used();
        let allowed = self.allowed.union(given);
        let SlotDim { size, axes: current, first, pinned } = &self.dims[dim];
        let added = || axes.iter().filter(|axis| !current.contains(axis)).map(|&axis| axis as usize);
        let fits = !pinned
            && axes != current
            && axes.starts_with(&current[..*first])
            && (1..axes.len()).all(|at| !axes[..at].contains(&axes[at]))
            && extends(current, axes, self.allowed)
            && added().all(|axis| allowed.contains(axis) && !used.contains(axis))
            && (*size != 1 && mesh.size_of(axes) <= 2 * size || added().all(|axis| given.contains(axis)));
        if fits {
            let new: Vec<u8> = added().map(|axis| axis as u8).collect();
            self.causes.extend(new.into_iter().map(|axis| (axis, cause)));
            self.dims[dim].axes = axes.to_vec();
            debug_assert_eq!(
                self.dims.iter().map(|dim| dim.axes.len()).sum::<usize>(),
                self.used().len(),
                "an axis splits two dimensions"
            );
        }
        fits
    }
}

/// Whether `longer` splits further than `shorter`. Axes that propagation does not decide may end up after ones that it does.
fn extends(shorter: &[u8], longer: &[u8], movable: AxisSet) -> bool {
    let common = common_prefix(shorter, longer);
    let mut rest = longer[common..].iter();
    shorter[common..].iter().all(|axis| !movable.contains(*axis as usize) && rest.any(|other| other == axis))
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The extent of propagation; each stage includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PropagationStage {
    /// Ops that only carry data: elementwise ops, transposes, loops.
    Carry,
    /// All ops, but only factors that pass through.
    Pass,
    /// All factors; and where operands differ, the larger one decides.
    All,
}

/// Preferences of propagation where order alone would decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Among factors that compete for an axis in a result, the factors of small and later tensors come first.
    pub later_first: bool,
    /// A split that a reshape cuts finer than its axes passes to another dimension of the result.
    pub cuts_pass: bool,
    /// Small values in loops stay whole: each device computes all of them, instead of a barrier in each step.
    pub small_whole: bool,
    /// Of operands that disagree, the one decides to whose layout the others move with the fewest bytes between hosts.
    pub inside_hosts: bool,
}

impl Choices {
    /// No preference: order alone decides.
    pub const NONE: Choices = Choices { later_first: false, cuts_pass: false, small_whole: false, inside_hosts: false };

    /// The preferences of both.
    pub fn and(self, other: Choices) -> Choices {
        Choices {
            later_first: self.later_first || other.later_first,
            cuts_pass: self.cuts_pass || other.cuts_pass,
            small_whole: self.small_whole || other.small_whole,
            inside_hosts: self.inside_hosts || other.inside_hosts,
        }
    }
}

/// An op and the slots of its operands, then of its results.
#[derive(Clone, Debug)]
pub struct OpNode {
    /// The factors of the op, with the blocks that they can have.
    pub projection: Projection,
    /// The slot of each tensor, by position.
    pub slots: Vec<usize>,
    /// The place of the op in the program.
    pub span: Span,
    /// The name of the op.
    pub op: &'static str,
}

/// The axes that the tensors of an op want a factor to be split over.
struct Wish {
    factor: usize,
    axes: Vec<u8>,
    /// Whether some tensor's list diverges from the others.
    forked: bool,
    /// The size of the largest tensor that has the whole list, and its index.
    bytes: usize,
    tensor: usize,
}

impl OpNode {
    /// Whether the op only carries data: all its factors pass through.
    fn carries(&self) -> bool {
        let factors = &self.projection.rule.factors;
        factors.iter().all(|factor| factor.size == 1 || factor.kind == FactorKind::Pass)
    }

    fn tensor(&self, tensor: usize) -> &[Vec<usize>] {
        let rule = &self.projection.rule;
        match tensor.checked_sub(rule.operands.len()) {
            None => &rule.operands[tensor],
            Some(result) => &rule.results[result],
        }
    }

    /// The axes of a factor of a tensor.
    fn axes<'s>(&self, tensor: usize, factor: usize, slots: &'s [Slot], mesh: &Mesh) -> Option<&'s [u8]> {
        let slot = &slots[self.slots[tensor]];
        self.projection.axes_of(self.tensor(tensor), factor, |dim| &slot.dims[dim].axes, mesh)
    }

    /// Runs one step; true if anything changed. Records in `open` the choices that would have changed the result.
    pub fn step(
        &self,
        slots: &mut [Slot],
        mesh: &Mesh,
        stage: PropagationStage,
        chosen: Choices,
        open: &mut Choices,
    ) -> bool {
        if stage == PropagationStage::Carry && !self.carries() {
            return false;
        }
        let operands = self.projection.rule.operands.len();
        debug_assert_eq!(
            operands + self.projection.rule.results.len(),
            self.slots.len(),
            "`{}` has a slot for each tensor",
            self.op
        );
        let mut wishes = self.wishes(slots, mesh, stage);
        if wishes.len() > 1 && self.contend(&wishes) {
            open.later_first = true;
            if chosen.later_first {
                wishes.reverse();
            }
        }
        let mut changed = false;
        for tensor in (operands..self.slots.len()).chain(0..operands) {
            for wish in &wishes {
                if !self.tensor(tensor).iter().flatten().any(|&factor| factor == wish.factor) {
                    continue;
                }
                let mut results = (operands..self.slots.len()).filter(|_| tensor < operands);
                let in_result =
                    results.find_map(|result| Some((result, self.axes(result, wish.factor, slots, mesh)?.to_vec())));
                let (from, wanted) = in_result.unwrap_or_else(|| (wish.tensor, wish.axes.clone()));
                changed |= self.take(tensor, wish.factor, &wanted, from, slots, mesh);
                if stage == PropagationStage::All && wish.forked && tensor >= operands {
                    changed |= self.choose((tensor, wish.factor), slots, mesh, chosen, open);
                }
            }
        }
        changed
    }

    fn wishes(&self, slots: &[Slot], mesh: &Mesh, stage: PropagationStage) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for (factor, info) in self.projection.rule.factors.iter().enumerate() {
            let takes_part = match info.kind {
                FactorKind::Pass => true,
                FactorKind::Reduce(_) | FactorKind::Window => stage == PropagationStage::All,
                FactorKind::Whole => false,
            };
            // A dimension of size 1 is split only where it is cut out to be put in again (`choose_alignments`).
            if !takes_part || self.projection.whole[factor] || info.size == 1 {
                continue;
            }
            let mut wish = Wish { factor, axes: Vec::new(), forked: false, bytes: 0, tensor: 0 };
            for tensor in 0..self.slots.len() {
                let Some(axes) = self.axes(tensor, factor, slots, mesh) else { continue };
                let slot = &slots[self.slots[tensor]];
                if extends(&wish.axes, axes, slot.allowed) {
                    if wish.forked {
                        continue;
                    }
                    if axes != wish.axes || wish.bytes < slot.bytes {
                        (wish.bytes, wish.tensor) = (slot.bytes, tensor);
                        wish.axes = axes.to_vec();
                    }
                } else if !extends(axes, &wish.axes, slot.allowed) {
                    wish.axes.truncate(common_prefix(axes, &wish.axes));
                    wish.forked = true;
                }
            }
            if !wish.axes.is_empty() || wish.forked {
                wishes.push(wish);
            }
        }
        wishes.sort_by_key(|wish| (std::cmp::Reverse(wish.bytes), wish.tensor, wish.factor));
        wishes
    }

    /// Whether a result cannot satisfy all wishes, because two of its factors want the same axis.
    fn contend(&self, wishes: &[Wish]) -> bool {
        let in_result = |factor: usize| {
            let result = self.projection.rule.results.first();
            result.is_some_and(|dims| dims.iter().flatten().any(|&other| other == factor))
        };
        let here: Vec<&Wish> = wishes.iter().filter(|wish| in_result(wish.factor)).collect();
        let contend = |a: &Wish, b: &Wish| a.axes.iter().any(|axis| b.axes.contains(axis));
        here.iter().enumerate().any(|(i, a)| here[i + 1..].iter().any(|b| contend(a, b)))
    }

    /// Gives a factor of a tensor as many of these axes as it can take; tensor `from` has them.
    fn take(&self, tensor: usize, factor: usize, wanted: &[u8], from: usize, slots: &mut [Slot], mesh: &Mesh) -> bool {
        let rule = self.tensor(tensor);
        let Some(dim) = rule.iter().position(|dim| dim.contains(&factor)) else { return false };
        // A prefix of the present axes splits nothing further.
        if self.axes(tensor, factor, slots, mesh).is_some_and(|axes| axes.starts_with(wanted)) {
            return false;
        }
        debug_assert!(from < self.slots.len(), "what has the axes is a tensor of `{}`", self.op);
        for end in (1..=wanted.len()).rev() {
            let wanted = &wanted[..end];
            if !self.projection.fits(factor, mesh.size_of(wanted)) {
                continue;
            }
            // The axes of the whole dimension with this factor split over them.
            let mut next = vec![Vec::new(); self.projection.rule.factors.len()];
            let mut known = true;
            for &other in &rule[dim] {
                match self.axes(tensor, other, slots, mesh) {
                    _ if other == factor => next[other] = wanted.to_vec(),
                    Some(axes) => next[other] = axes.to_vec(),
                    None => known = false,
                }
            }
            if !known || !self.projection.is_filled(&rule[dim], &next, mesh) {
                continue;
            }
            let axes: Vec<u8> = rule[dim].iter().flat_map(|&other| next[other].iter().copied()).collect();
            let cause = Cause { from: self.slots[from], span: self.span, op: self.op };
            if slots[self.slots[tensor]].extend(dim, &axes, AxisSet::EMPTY, cause, mesh) {
                return true;
            }
        }
        false
    }

    /// If an operand is split in the middle of a joined dimension, as `f32[8,16@Y]` before a reshape to `f32[128]`, blocks of the
    /// result are not blocks of the operand. The result takes the axes at its front, unless it is already split: devices then
    /// exchange parts of blocks instead of gathering all. True if anything changed.
    pub fn exchange(&self, slots: &mut [Slot], mesh: &Mesh) -> bool {
        let Projection { rule, even, .. } = &self.projection;
        let ([_], [_], true) = (rule.operands.as_slice(), rule.results.as_slice(), even.contains(&true)) else {
            return false;
        };
        let mut changed = false;
        for (dim, factors) in rule.results[0].iter().enumerate() {
            let Some(&front) = factors.iter().find(|&&factor| rule.factors[factor].size != 1) else { continue };
            let mut lists = factors.iter().filter_map(|&factor| self.axes(0, factor, slots, mesh));
            let split = lists.find(|axes| !axes.is_empty()).map(<[u8]>::to_vec);
            let (Some(axes), true) = (split, slots[self.slots[1]].dims[dim].axes.is_empty()) else { continue };
            if rule.factors[front].kind == FactorKind::Pass
                && rule.factors[front].size.is_multiple_of(mesh.size_of(&axes))
            {
                let cause = Cause { from: self.slots[0], span: self.span, op: self.op };
                changed |= slots[self.slots[1]].extend(dim, &axes, AxisSet::EMPTY, cause, mesh);
            }
        }
        changed
    }

    /// For a reshape that leaves no room for a split, such as `f32[8@Y,16]` to `f32[2,4,16]` with Y = 4. Returns the largest other
    /// dimension of the result that this op passes on whole, and the axes that it could take. Devices would exchange parts of blocks.
    fn passed_on(&self, slots: &[Slot], mesh: &Mesh) -> Option<(usize, Vec<u8>)> {
        let Projection { rule, even, .. } = &self.projection;
        let ([operand], [result], true) = (rule.operands.as_slice(), rule.results.as_slice(), even.contains(&true))
        else {
            return None;
        };
        let (from, to) = (&slots[self.slots[0]], &slots[self.slots[1]]);
        let used = to.used();
        let is_left = |dim: &&SlotDim| !dim.axes.is_empty() && dim.axes.iter().all(|&axis| !used.contains(axis.into()));
        let left = from.dims.iter().find(is_left)?.axes.clone();
        let blocks = mesh.size_of(&left);
        let fits = |&(dim, factors): &(usize, &Vec<usize>)| {
            let &[factor] = factors.as_slice() else { return false };
            let Some(origin) = operand.iter().position(|dim| dim.contains(&factor)) else { return false };
            let first = operand[origin].iter().find(|&&other| rule.factors[other].size != 1);
            let size = rule.factors[factor].size;
            rule.factors[factor].kind == FactorKind::Pass
                && first == Some(&factor)
                && from.dims[origin].axes.is_empty()
                && to.dims[dim].axes.is_empty()
                && (size.is_multiple_of(blocks) || !even[factor] && size > blocks)
        };
        let dims = result.iter().enumerate().filter(fits);
        dims.max_by_key(|(dim, _)| (to.dims[*dim].size, std::cmp::Reverse(*dim))).map(|(dim, _)| (dim, left))
    }

    /// Splits another dimension of a reshape's result, if that is chosen; true if anything changed.
    pub fn pass_on(&self, slots: &mut [Slot], mesh: &Mesh, chosen: Choices, open: &mut Choices) -> bool {
        let Some((dim, axes)) = self.passed_on(slots, mesh) else { return false };
        let cause = Cause { from: self.slots[0], span: self.span, op: self.op };
        let mut result = slots[self.slots[1]].clone();
        let changed = result.extend(dim, &axes, AxisSet::EMPTY, cause, mesh);
        open.cuts_pass |= changed;
        if changed && chosen.cuts_pass {
            slots[self.slots[1]] = result;
        }
        changed && chosen.cuts_pass
    }

    /// If operands differ and the result has no axes, it takes the axes of the largest operand; among equal ones, of the operand that they
    /// split most.
    fn choose(
        &self,
        (result, factor): (usize, usize),
        slots: &mut [Slot],
        mesh: &Mesh,
        chosen: Choices,
        open: &mut Choices,
    ) -> bool {
        if self.axes(result, factor, slots, mesh).is_none_or(|axes| !axes.is_empty()) {
            return false;
        }
        let mut best: Option<(usize, usize, usize, &[u8])> = None;
        // As `best`, first by the bytes between hosts.
        let mut inside: Option<(u64, usize, usize, usize, &[u8])> = None;
        for tensor in 0..self.projection.rule.operands.len() {
            let Some(axes) = self.axes(tensor, factor, slots, mesh) else { continue };
            let rank = (slots[self.slots[tensor]].bytes, mesh.size_of(axes));
            if best.as_ref().is_none_or(|(bytes, blocks, ..)| rank > (*bytes, *blocks)) {
                best = Some((rank.0, rank.1, tensor, axes));
            }
            let crossing = self.crossing(factor, axes, slots, mesh);
            let is_nearer = |&(least, bytes, blocks, ..): &(u64, usize, usize, usize, &[u8])| {
                crossing < least || crossing == least && rank > (bytes, blocks)
            };
            if inside.as_ref().is_none_or(is_nearer) {
                inside = Some((crossing, rank.0, rank.1, tensor, axes));
            }
        }
        let mut best = best.map(|(_, _, from, axes)| (from, axes.to_vec()));
        let inside = inside.map(|(.., from, axes)| (from, axes.to_vec()));
        if inside != best {
            open.inside_hosts = true;
            if chosen.inside_hosts {
                best = inside;
            }
        }
        best.is_some_and(|(from, axes)| self.take(result, factor, &axes, from, slots, mesh))
    }

    /// Bytes that a host receives from others if the operands that have a factor are split over these axes along it.
    fn crossing(&self, factor: usize, axes: &[u8], slots: &[Slot], mesh: &Mesh) -> u64 {
        if mesh.hosts.is_none() {
            return 0;
        }
        let (size, to) = (self.projection.rule.factors[factor].size, [DimSharding::closed(axes.to_vec())]);
        let moved = |tensor: usize| {
            let from = [DimSharding::closed(self.axes(tensor, factor, slots, mesh)?.to_vec())];
            let section = slots[self.slots[tensor]].bytes / size.max(1);
            Some(crossings::moved(&[size], &from, &to, mesh) * section as u64)
        };
        (0..self.projection.rule.operands.len()).filter_map(moved).sum()
    }
}
