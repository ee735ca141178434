//! Buffers: the values that share one place at different times, the arena of the place, and its offset.

use super::holes::TakenSpace;
use super::lifetimes::{Interval, Lifetimes, common, find, join};
use super::time::of_work;
use crate::order::{Schedule, Task};
use spmdc_abi::{Arena, Place};
use spmdc_ir::lower::work::Work;
use spmdc_ir::program::Value;
use spmdc_kernel::loops::{Affine, Extent, Inst, Kernel};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;
use std::collections::BTreeSet;

/// Offsets are multiples of this many bytes.
const ALIGNMENT: u64 = 64;

/// One buffer and the values that it holds at different times.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub values: Vec<Value>,
    /// The lifetimes of all its values together.
    pub intervals: Vec<Interval>,
    pub bytes: u64,
    /// The axes along which each coordinate has a separate instance.
    pub axes: AxisSet,
    /// Whether it holds a parameter or a constant, with which no other value shares it.
    pub fixed: bool,
}

/// The buffer of each value, and the place of each buffer.
pub struct Storage {
    pub buffers: Vec<Buffer>,
    /// For each buffer, its arena and offset.
    pub places: Vec<Place>,
    pub arenas: Vec<Arena>,
    /// For each value, its buffer; None for values that are not in memory.
    pub buffer_of: Vec<Option<usize>>,
}

impl Storage {
    pub fn new(schedule: &Schedule, lifetimes: &Lifetimes<'_>, mesh: &Mesh) -> Storage {
        let mut merger = Merger::new(schedule, lifetimes, mesh);
        let mut carried = BTreeSet::new();
        add_carried(&schedule.tasks, &mut carried);
        merger.merge_all(&carried);
        merger.place()
    }

    pub fn place(&self, value: Value) -> Place {
        let buffer = self.buffer_of[value.0 as usize].expect("work reads and writes values in memory only");
        self.places[buffer]
    }

    pub fn buffer(&self, value: Value) -> Option<&Buffer> {
        self.buffer_of[value.0 as usize].map(|buffer| &self.buffers[buffer])
    }
}

struct Merger<'a> {
    lifetimes: &'a Lifetimes<'a>,
    mesh: &'a Mesh,
    /// One for each class of values; of merged classes the first is valid.
    buffers: Vec<Buffer>,
    /// The links of a disjoint-set forest of the merged classes.
    root: Vec<usize>,
}

impl<'a> Merger<'a> {
    fn new(schedule: &Schedule, lifetimes: &'a Lifetimes<'a>, mesh: &'a Mesh) -> Merger<'a> {
        let mut buffers: Vec<Buffer> = (0..lifetimes.intervals.len())
            .map(|class| Buffer {
                values: Vec::new(),
                intervals: lifetimes.intervals[class].clone(),
                bytes: 0,
                axes: lifetimes.control[class],
                fixed: lifetimes.fixed[class],
            })
            .collect();
        let several = mesh.several();
        for (index, ty) in schedule.types.iter().enumerate() {
            let buffer = &mut buffers[lifetimes.class_of[index]];
            if buffer.intervals.is_empty() {
                continue;
            }
            buffer.values.push(Value(index as u32));
            buffer.bytes = buffer.bytes.max(ty.block_bytes(mesh) as u64);
            buffer.axes = buffer.axes.union(ty.distinct_axes());
        }
        // In `manual` code a replicated value may be used as a block or as a partial sum.
        for work in lifetimes.work.iter().flatten() {
            if let Work::Exchange { from, to, .. } | Work::Reduce { from, to, .. } = work {
                for side in [from, to] {
                    let split = side.layout.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| axis as usize).collect();
                    let buffer = &mut buffers[lifetimes.class_of[side.value.0 as usize]];
                    buffer.axes = buffer.axes.union(split);
                }
            }
            if let Work::Reduce { from, reduce, .. } = work {
                let buffer = &mut buffers[lifetimes.class_of[from.value.0 as usize]];
                buffer.axes = buffer.axes.union(*reduce);
            }
        }
        let mut divided = vec![false; buffers.len()];
        for work in lifetimes.work.iter().flatten() {
            let slow = of_work(work, mesh) > mesh.machine.private_nanos as f64;
            work.writes().iter().for_each(|value| divided[lifetimes.class_of[value.0 as usize]] |= slow);
        }
        for (buffer, divided) in buffers.iter_mut().zip(divided) {
            buffer.axes = if buffer.bytes <= mesh.machine.private_bytes as u64 && !divided {
                several
            } else {
                buffer.axes.intersect(several)
            };
        }
        debug_assert!(
            buffers.iter().all(|buffer| buffer.axes.is_subset_of(several)),
            "arenas differ along axes of several devices"
        );
        let root = (0..buffers.len()).collect();
        let mut merger = Merger { lifetimes, mesh, buffers, root };
        merger.equalize();
        merger
    }

    /// Makes all buffers that one kernel writes shared by the same devices, because these divide its work.
    fn equalize(&mut self) {
        loop {
            let mut changed = false;
            for work in self.lifetimes.work.iter().flatten() {
                let written: Vec<usize> = work.results().into_iter().map(|value| self.class(value)).collect();
                let axes = written.iter().fold(AxisSet::EMPTY, |set, &class| set.union(self.buffers[class].axes));
                for class in written {
                    changed |= self.buffers[class].axes != axes;
                    self.buffers[class].axes = axes;
                }
            }
            if !changed {
                break;
            }
        }
    }

    fn class(&mut self, value: Value) -> usize {
        let class = self.lifetimes.class_of[value.0 as usize];
        find(&mut self.root, class)
    }

    /// Merges copies first, and among these the copies of carried values of loops: a trip that changes nothing, such as the untaken side of
    /// an `if`, must not copy. Then merges kernels that can write in place of an operand.
    fn merge_all(&mut self, carried: &BTreeSet<Value>) {
        for of_loops in [true, false] {
            for work in self.lifetimes.work.iter().flatten() {
                if let Work::Copy { from, to, .. } = work
                    && of_loops == (carried.contains(from) || carried.contains(to))
                {
                    self.merge(*from, *to);
                }
            }
        }
        for work in self.lifetimes.work.iter().flatten() {
            if let Work::Kernel { .. } = work {
                let reads = work.reads();
                for written in work.writes() {
                    // One merge is enough: after it the buffer lies on an operand.
                    let _ = reads
                        .iter()
                        .any(|&read| self.may_be_in_place(work, read, written) && self.merge(read, written));
                }
            }
        }
    }

    /// Puts two values into one buffer if their lifetimes allow it. True if they are in one buffer.
    fn merge(&mut self, a: Value, b: Value) -> bool {
        let (a, b) = (self.class(a), self.class(b));
        if a == b {
            return true;
        }
        let (x, y) = (&self.buffers[a], &self.buffers[b]);
        if x.fixed || y.fixed || x.bytes != y.bytes || x.axes != y.axes {
            return false;
        }
        let both = common(&x.intervals, &y.intervals);
        // The lifetimes may overlap only where one value is computed from the other in place.
        let allowed = |merger: &mut Self, &both: &Interval| {
            merger.is_in_place(both, (a, b)) || both.0 < both.1 && merger.is_in_place(both, (b, a))
        };
        if !both.iter().all(|interval| allowed(self, interval)) {
            return false;
        }
        let (keep, drop) = (a.min(b), a.max(b));
        debug_assert!(self.root[keep] == keep && self.root[drop] == drop, "only whole classes are merged");
        let dropped = std::mem::replace(
            &mut self.buffers[drop],
            Buffer { values: Vec::new(), intervals: Vec::new(), bytes: 0, axes: AxisSet::EMPTY, fixed: false },
        );
        let kept = &mut self.buffers[keep];
        kept.values.extend(dropped.values);
        kept.intervals = join(kept.intervals.iter().copied().chain(dropped.intervals).collect());
        self.root[drop] = keep;
        true
    }

    /// Whether the work at these times computes `new` from `old`, or at a single time one of the two from the other, and may do so in
    /// place. It may be several parts of one kernel, each of which writes other elements.
    fn is_in_place(&mut self, (start, end): Interval, (old, new): (usize, usize)) -> bool {
        if start % 2 == 1 || end % 2 == 1 {
            return false;
        }
        let work = self.lifetimes.work.get(start as usize / 2..=end as usize / 2).unwrap_or_default();
        if start < end {
            let continues = |work: &Option<&Work>| {
                if let Some(Work::Kernel { cutout, .. }) = work {
                    cutout.as_ref().map(|cutout| cutout.continues)
                } else {
                    None
                }
            };
            let mut parts = work.iter().map(continues);
            let is_whole = parts.next().is_some_and(|first| first.is_some()) && parts.all(|next| next == Some(true));
            let begins = self.buffers[new].intervals.iter().any(|interval| interval.0 == start);
            let ends = self.buffers[old].intervals.iter().any(|interval| interval.1 == end && interval.0 < start);
            if !(is_whole && begins && ends) {
                return false;
            }
        }
        let mut found = false;
        for work in work {
            let Some(work) = work else { return false };
            let (reads, writes) = (work.reads(), work.writes());
            let reads: Vec<(Value, usize)> = reads.into_iter().map(|value| (value, self.class(value))).collect();
            let writes: Vec<(Value, usize)> = writes.into_iter().map(|value| (value, self.class(value))).collect();
            let of_both =
                |read: usize, write: usize| (read, write) == (old, new) || start == end && (read, write) == (new, old);
            for (read, write) in reads.iter().flat_map(|read| writes.iter().map(move |write| (read, write))) {
                if of_both(read.1, write.1) {
                    found = true;
                    if !self.may_be_in_place(work, read.0, write.0) {
                        return false;
                    }
                }
            }
            // The old value is only read while the new one is only written.
            let has = |values: &[(Value, usize)], class: usize| values.iter().any(|value| value.1 == class);
            if start < end && (has(&writes, old) || has(&reads, new)) {
                return false;
            }
        }
        found
    }

    fn may_be_in_place(&self, work: &Work, read: Value, written: Value) -> bool {
        match work {
            Work::Copy { .. } => true,
            Work::Kernel { kernel, buffers, .. } => {
                let slot = |value| buffers.iter().position(|&known| known == value);
                let (Some(read), Some(written)) = (slot(read), slot(written)) else { return false };
                is_aligned(kernel, read, written)
            }
            Work::Product { .. }
            | Work::Tiles { .. }
            | Work::Library { .. }
            | Work::Alias { .. }
            | Work::Constant { .. }
            | Work::Exchange { .. }
            | Work::Reduce { .. }
            | Work::Permute { .. }
            | Work::Fetch { .. }
            | Work::CheckIndex { .. }
            | Work::Print { .. } => false,
        }
    }

    /// Offsets for all buffers: best fit, the largest buffer first.
    fn place(mut self) -> Storage {
        let mut kept = Vec::new();
        let mut number = vec![None; self.buffers.len()];
        for (class, number) in number.iter_mut().enumerate() {
            if self.root[class] == class && !self.buffers[class].intervals.is_empty() {
                *number = Some(kept.len());
                kept.push(self.buffers[class].clone());
            }
        }
        let classes = self.lifetimes.class_of.clone();
        let buffer_of = classes.into_iter().map(|class| number[find(&mut self.root, class)]).collect();
        let mut kinds: Vec<AxisSet> = kept.iter().map(|buffer| buffer.axes).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut arenas = Vec::new();
        let mut places = vec![Place { arena: 0, offset: 0 }; kept.len()];
        for (arena, &axes) in kinds.iter().enumerate() {
            let mut members: Vec<usize> = (0..kept.len()).filter(|&buffer| kept[buffer].axes == axes).collect();
            members.sort_by_key(|&buffer| (!kept[buffer].fixed, std::cmp::Reverse(kept[buffer].bytes), buffer));
            let mut bytes = 0;
            let movable = members.iter().map(|&member| &kept[member]).filter(|buffer| !buffer.fixed);
            let mut taken = TakenSpace::new(movable.map(|buffer| buffer.intervals.as_slice()));
            // Fixed buffers, whose bytes are never reused, come first, one after the other.
            let mut first = 0;
            for &member in &members {
                let size = kept[member].bytes.max(1).next_multiple_of(ALIGNMENT);
                let offset = if kept[member].fixed {
                    first += size;
                    first - size
                } else {
                    let offset = taken.best_fit(&kept[member].intervals, size, first);
                    taken.take(&kept[member].intervals, &(offset..offset + size));
                    offset
                };
                debug_assert!(offset.is_multiple_of(ALIGNMENT), "a buffer lies at {offset}");
                debug_assert!(kept[member].fixed || offset >= first, "a buffer lies on a fixed one");
                places[member] = Place { arena: arena as u16, offset };
                bytes = bytes.max(offset + size);
            }
            arenas.push(Arena { axes, bytes });
        }
        debug_assert!(self.mesh.axes.len() <= 32);
        debug_assert!(arenas.len() <= usize::from(u16::MAX), "the number of an arena has 16 bits");
        debug_assert!(
            kept.iter()
                .zip(&places)
                .all(|(buffer, place)| place.offset + buffer.bytes <= arenas[place.arena as usize].bytes),
            "a buffer lies beyond its arena"
        );
        Storage { buffers: kept, places, arenas, buffer_of }
    }
}

/// Adds the values that loops among the tasks carry.
fn add_carried(tasks: &[Task], carried: &mut BTreeSet<Value>) {
    for task in tasks {
        if let Task::For { carries, .. } | Task::While { carries, .. } = task {
            carried.extend(carries.iter().map(|carry| carry.param));
        }
        task.blocks().into_iter().for_each(|tasks| add_carried(tasks, carried));
    }
}

/// Whether the kernel reads buffer `read` only at the index at which it then writes buffer `written`, and stores there at every point:
/// back ends rely on the latter (`Nest::loads_move`).
pub(crate) fn is_aligned(kernel: &Kernel, read: usize, written: usize) -> bool {
    let mut stores = kernel.stores.iter().filter(|store| store.access.buffer == written);
    let (Some(store), None) = (stores.next(), stores.next()) else { return false };
    let address = &store.access.address;
    let same = |other: &Affine| other == address;
    store.combine.is_none()
        && kernel.buffers[read].dtype.size() == kernel.buffers[written].dtype.size()
        && kernel
            .dims
            .iter()
            .enumerate()
            .all(|(dim, info)| info.extent == Extent::Static(1) || address.terms.iter().any(|&(known, _)| known == dim))
        && kernel.insts.iter().all(|inst| match inst {
            Inst::Load { access, .. } => access.buffer != read || same(&access.address),
            Inst::LoopInvariant { buffer, .. } => *buffer != read,
            Inst::Const { .. }
            | Inst::Index { .. }
            | Inst::CheckIndex { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Compare { .. }
            | Inst::Select { .. }
            | Inst::Fma { .. }
            | Inst::Cast { .. }
            | Inst::Bitcast { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::InRange { .. } => true,
        })
}
