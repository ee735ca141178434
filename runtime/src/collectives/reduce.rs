//! Combines the partial values of several devices: all_reduce, reduce_scatter, and both with a change of layout.
//!
//! Cost: with `n` partial values each device reads `n` times the part of the result that it writes, and writes it once. If the result is
//! shared, each sharing device writes a part, so an all_reduce of `B` bytes reads `n * B` bytes in total.
//!
//! Values are combined in pairs of neighbours by device number, then in pairs of pairs, and so on; a last one without a neighbour waits. So
//! every device and every run gets the same bits, whatever the number of threads. A process can also combine the values of its own devices
//! before it sends them, with the same bits: if a part of this tree is in one process, it is sent as one value. Narrow floats are combined
//! in f32 and rounded once. They are sent unchanged, or combined in f32 if that takes fewer bytes. Rounding twice would change the bits.
//!
//! Between `P` processes that all need a result of `B` bytes, each receives `(P - 1) * B` bytes if it combines all elements. In two rounds
//! it receives `2 * (P - 1) / P * B` bytes: it combines a share of the elements, and receives the other shares from the processes that have
//! combined them. The values of an element are combined in the same order either way.

use std::mem::MaybeUninit;
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{BlockBox, Sides, cut, cut_evenly};
use crate::components::Components;
use crate::data::boxes::{BoxCopy, Rows};
use crate::errors::trap::RunError;
use crate::processes::reads::DeviceReads;
use spmdc_abi::mesh::{DeviceMesh, split_axes};
use spmdc_abi::sorted::distinct;
use spmdc_abi::{AxisSet, DType, Kind, ReduceOp, ReduceStep, Width};

/// Number of elements that are combined at a time over all partial values: they stay in registers, or at least in the first-level
/// cache.
const TILE: usize = 64;

/// A box of elements to combine.
#[derive(Clone, Debug)]
pub(crate) struct BoxReduction {
    /// The partial values, in the order of their devices; the first one is combined with nothing when it is read.
    sources: Box<[PartialValue]>,
    to: *mut u8,
    rows: Rows,
    dtype: DType,
    /// Whether the result stays in the type in which elements are combined, its rows one after another.
    stays_wide: bool,
    /// The loop for the type and the operation.
    combine: CombineFn,
}

/// Combines the partial values of these rows.
pub(crate) type CombineFn = unsafe fn(&BoxReduction, &Rows);

/// The place of a partial value.
#[derive(Clone, Copy, Debug)]
struct PartialValue {
    base: *const u8,
    /// Whether the rows are one after another from there on, as in a message, rather than in a device's buffer.
    is_packed: bool,
    /// Whether it is in the type in which elements are combined.
    is_wide: bool,
    /// The number of pairs that end with this value: it is combined with the previous value, the result with the one before, and so on.
    ends: u32,
}

/// The number of values that wait for their neighbour at a time, at most: there are fewer than 2^17 devices.
const WAITING: usize = 17;

/// The tree in which values are combined: calls `leaf` for a part of the positions, from left to right, with the number of pairs that end
/// with it. A part is a single position, or all positions of a pair for which `is_whole` holds.
fn each_part(positions: usize, is_whole: &impl Fn(Range<usize>) -> bool, leaf: &mut impl FnMut(Range<usize>, u32)) {
    fn part(
        range: Range<usize>,
        size: usize,
        ends: u32,
        is_whole: &impl Fn(Range<usize>) -> bool,
        leaf: &mut impl FnMut(Range<usize>, u32),
    ) {
        let middle = range.start + size / 2;
        if range.len() == 1 || is_whole(range.clone()) {
            leaf(range, ends);
        } else if middle >= range.end {
            part(range, size / 2, ends, is_whole, leaf);
        } else {
            part(range.start..middle, size / 2, 0, is_whole, leaf);
            part(middle..range.end, size / 2, ends + 1, is_whole, leaf);
        }
    }
    part(0..positions, positions.next_power_of_two(), 0, is_whole, leaf);
}

/// For each of the values that are combined, the number of pairs that end with it.
pub(crate) fn pairs(values: usize) -> Vec<u32> {
    let mut ends = Vec::with_capacity(values);
    each_part(values, &|_| false, &mut |_, pairs| ends.push(pairs));
    debug_assert_eq!(ends.len(), values, "every value is combined");
    ends
}

impl BoxReduction {
    /// Combines and writes.
    ///
    /// # Safety
    /// All rows must be within memory that this thread may read and write, aligned for the planned type; no other thread may write either
    /// side meanwhile, and the target must not overlap a source.
    pub unsafe fn run(&self) {
        // SAFETY: as promised by the caller.
        unsafe { (self.combine)(self, &self.rows) };
    }
}

/// A reduction of the units of a range, for all devices of a group.
#[derive(Debug)]
pub(crate) struct UnitReduction {
    /// The reduction for one of the devices, of all units.
    of_first: BoxReduction,
    /// The memory of the result on the other devices that do not share it with that one.
    others: Box<[*mut u8]>,
    /// Bytes of a unit.
    unit: usize,
}

// SAFETY: the pointers lead into the program's memory, and the threads that call `run` have different units.
unsafe impl Sync for UnitReduction {}

impl UnitReduction {
    /// Combines the units and writes them to all devices.
    ///
    /// # Safety
    /// As for [`BoxReduction::run`], for the rows of these units.
    pub unsafe fn run(&self, units: Range<i64>) {
        let bytes = units.start as usize * self.unit..units.end as usize * self.unit;
        let rows = Rows { from: bytes.start, to: bytes.start, ..Rows::contiguous(bytes.len()) };
        // SAFETY: as promised by the caller.
        unsafe { (self.of_first.combine)(&self.of_first, &rows) };
        for &other in &self.others {
            // SAFETY: as promised by the caller; different memory of one arena does not overlap.
            unsafe { other.add(bytes.start).copy_from_nonoverlapping(self.of_first.to.add(bytes.start), bytes.len()) };
        }
    }
}

/// The reduction of units of this number of bytes for the devices of a group. `from` is the memory of all partial values in the order of
/// the devices, and `to` the different memory of their results.
pub(crate) fn of_units(
    step: &ReduceStep,
    from: &[*const u8],
    to: &[*mut u8],
    unit: usize,
    components: &Components,
) -> Result<UnitReduction, RunError> {
    let (first, others) = to.split_first().ok_or_else(|| RunError::internal("a reduction has no device"))?;
    let of_first = BoxReduction { stays_wide: false, ..combined(step, from, *first, Rows::contiguous(0), components)? };
    Ok(UnitReduction { of_first, others: others.into(), unit })
}

/// How processes share the work of a reduction whose result several of them need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// Each of them combines all elements that its devices need.
    One,
    /// Each combines a share of the elements, and then gets the other shares by [`gather`].
    Two,
}

/// A portion of the elements that a device combines: number `number` of `count` of nearly the same size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portion {
    pub number: usize,
    pub count: usize,
}

impl Portion {
    pub const WHOLE: Portion = Portion { number: 0, count: 1 };
}

/// The loop of a reduction.
fn combine_of(components: &Components, step: &ReduceStep) -> Result<CombineFn, RunError> {
    let combine = components.code::<Option<CombineFn>>(step.component())?;
    combine.ok_or_else(|| {
        let dtype = step.to.layout.dtype.name();
        RunError::internal(format!("{:?} is not defined for {dtype}", step.op)).at(step.site)
    })
}

/// The boxes that the device combines, given the axes of all participating devices (`group`).
pub(crate) fn plan(
    reads: &mut DeviceReads<'_>,
    step: &ReduceStep,
    (group, rounds, portion): (AxisSet, Rounds, Portion),
    device: usize,
    components: &Components,
) -> Result<Vec<BoxReduction>, RunError> {
    let mesh = reads.mesh();
    let dtype = step.to.layout.dtype;
    let combine = combine_of(components, step)?;
    let sides = Sides::new(reads, device, group, &step.from, &step.to);
    let to = reads.own(step.to.place, device);
    let mut pieces = sides.whole_pieces(group, step.site)?;
    if rounds == Rounds::Two {
        pieces.retain_mut(|piece| {
            let combiners = combiners(mesh, step, group, device, piece);
            let rank = combiners.iter().position(|&process| process == mesh.process(device));
            rank.is_some_and(|rank| cut_evenly(&mut piece.range, rank, combiners.len()))
        });
    }
    if portion.count > 1 {
        pieces.retain_mut(|piece| cut(&mut piece.range, portion.number, portion.count));
    }
    sides.divide(&mut pieces);
    debug_assert_eq!(step.from.layout.dtype, dtype, "what is combined keeps its type");
    let planned = |piece: &BlockBox| {
        let rows = sides.rows(piece);
        let copies = sides.copies(group).minus(step.reduce);
        let owners: Vec<usize> =
            mesh.group(piece.owner, step.reduce).into_iter().map(|peer| reads.nearest(peer, copies)).collect();
        let from = |owner: usize| mesh.process(owner);
        let is_far = |owner: usize| from(owner) != mesh.process(device);
        let is_whole = |range: Range<usize>| {
            let owners = &owners[range];
            let is_fewer = combined_size(dtype) <= owners.len() * dtype.size();
            is_fewer && is_far(owners[0]) && owners.iter().all(|&owner| from(owner) == from(owners[0]))
        };
        let mut sources = Vec::new();
        each_part(owners.len(), &is_whole, &mut |range, ends| {
            let is_wide = range.len() > 1 && combined_size(dtype) > dtype.size();
            let size = if is_wide { combined_size(dtype) } else { dtype.size() };
            let (base, is_packed) = reads.source(&owners[range], step.from.place, &rows, (dtype.size(), size));
            sources.push(PartialValue { base, is_packed, is_wide, ends });
        });
        BoxReduction { sources: sources.into(), to, rows, dtype, stays_wide: false, combine }
    };
    Ok(pieces.iter().map(planned).collect())
}

/// The copies of elements that other processes have combined for the device, after it has combined its own part in [`Rounds::Two`].
pub(crate) fn gather(
    reads: &mut DeviceReads<'_>,
    step: &ReduceStep,
    group: AxisSet,
    device: usize,
) -> Result<Vec<BoxCopy>, RunError> {
    let mesh = reads.mesh();
    let (from, own) = (Sides::new(reads, device, group, &step.from, &step.to), mesh.process(device));
    let sides = Sides::new(reads, device, group, &step.to, &step.to);
    let to = reads.own(step.to.place, device);
    let (rank, count) = mesh.rank(device, sides.sharing);
    let needing = needing(mesh, step, group, device);
    let mut copies = Vec::new();
    for piece in from.whole_pieces(group, step.site)? {
        let combiners = combiners(mesh, step, group, device, &piece);
        for (part, &process) in combiners.iter().enumerate().filter(|(_, process)| **process != own) {
            let owner = needing.iter().copied().find(|&other| mesh.process(other) == process);
            let owner = owner.expect("a process combines what one of its devices needs");
            let mut share = BlockBox { owner, range: piece.range.clone() };
            if cut_evenly(&mut share.range, part, combiners.len()) && cut(&mut share.range, rank, count) {
                copies.extend(reads.copy(owner, step.to.place, sides.rows(&share), to));
            }
        }
    }
    debug_assert!(mesh.processes() > 1 || copies.is_empty(), "one process combines everything");
    Ok(copies)
}

/// The devices that need the block of the result that this one needs, in the order of their numbers.
fn needing(mesh: &DeviceMesh, step: &ReduceStep, group: AxisSet, device: usize) -> Vec<usize> {
    let mut needing = mesh.group(device, group.minus(split_axes(&step.to.layout)));
    needing.sort_unstable();
    needing
}

/// The processes that combine a piece in [`Rounds::Two`], in ascending order: the processes that need it and have partial values of it, or
/// all that need it if none of them has any. They are the same for all devices that need the piece.
fn combiners(mesh: &DeviceMesh, step: &ReduceStep, group: AxisSet, device: usize, piece: &BlockBox) -> Vec<usize> {
    let processes = |devices: Vec<usize>| distinct(devices.into_iter().map(|device| mesh.process(device)));
    let needing = processes(needing(mesh, step, group, device));
    let having = processes(mesh.group(piece.owner, group.minus(split_axes(&step.from.layout))));
    let both: Vec<usize> = needing.iter().copied().filter(|process| having.binary_search(process).is_ok()).collect();
    if both.is_empty() { needing } else { both }
}

/// Bytes of an element while it is combined; narrow floats are combined in f32.
fn combined_size(dtype: DType) -> usize {
    match (dtype.kind(), dtype.width()) {
        (Kind::Float, Width::W8 | Width::W16) => size_of::<f32>(),
        (Kind::Float, Width::W32 | Width::W64)
        | (Kind::Bool | Kind::Signed | Kind::Unsigned | Kind::Key, Width::W8 | Width::W16 | Width::W32 | Width::W64) => {
            dtype.size()
        }
    }
}

/// The combination of the partial values of some devices of this process, which is sent to another one. `from` are their buffers, in the
/// order of their positions, and `rows` map these into the message `to`.
pub(crate) fn combined(
    step: &ReduceStep,
    from: &[*const u8],
    to: *mut u8,
    rows: Rows,
    components: &Components,
) -> Result<BoxReduction, RunError> {
    let dtype = step.to.layout.dtype;
    let combine = combine_of(components, step)?;
    let mut sources = Vec::new();
    each_part(from.len(), &|_| false, &mut |range, ends| {
        sources.push(PartialValue { base: from[range.start], is_packed: false, is_wide: false, ends });
    });
    debug_assert_eq!(sources.len(), from.len(), "every value is combined");
    let stays_wide = combined_size(dtype) > dtype.size();
    Ok(BoxReduction { sources: sources.into(), to, rows, dtype, stays_wide, combine })
}

/// The loads and stores of elements of a type for combining.
pub(crate) trait Element: Copy {
    type Wide: Copy + Default;

    /// Loads at most one tile.
    fn load(dtype: DType, from: &[Self], to: &mut [Self::Wide]);

    fn store(dtype: DType, from: &[Self::Wide], to: &mut [Self]);
}

macro_rules! plain_elements {
    ($($type:ty)*) => {$(
        impl Element for $type {
            type Wide = $type;

            #[inline(always)]
            fn load(_: DType, from: &[$type], to: &mut [$type]) {
                // Not `copy_from_slice`, which is a call for a single element.
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }

            #[inline(always)]
            fn store(_: DType, from: &[$type], to: &mut [$type]) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    )*};
}

plain_elements!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

impl Element for f16 {
    type Wide = f32;

    fn load(_: DType, from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn store(_: DType, from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

/// The upper half of an f32.
#[derive(Clone, Copy)]
pub(crate) struct Bf16(u16);

impl Element for Bf16 {
    type Wide = f32;

    #[inline(always)]
    fn load(_: DType, from: &[Bf16], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = f32::from_bits((from.0 as u32) << 16);
        }
    }

    #[inline(always)]
    fn store(_: DType, from: &[f32], to: &mut [Bf16]) {
        for (to, from) in to.iter_mut().zip(from) {
            let bits = from.to_bits();
            // To nearest, ties to even; a NaN stays a NaN though its payload may lie in the lower half.
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            *to = Bf16(if from.is_nan() { bits >> 16 | 0x40 } else { rounded } as u16);
        }
    }
}

/// A float of at most 16 bits that no instruction converts; the element type says how.
#[derive(Clone, Copy)]
pub(crate) struct NarrowElement<T>(T);

macro_rules! narrow_elements {
    ($($type:ty)*) => {$(
        impl Element for NarrowElement<$type> {
            type Wide = f32;

            #[inline(always)]
            fn load(dtype: DType, from: &[NarrowElement<$type>], to: &mut [f32]) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = dtype.widen(from.0.into()) as f32;
                }
            }

            #[inline(always)]
            fn store(dtype: DType, from: &[f32], to: &mut [NarrowElement<$type>]) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = NarrowElement(dtype.narrow((*from).into()) as $type);
                }
            }
        }
    )*};
}

narrow_elements!(u8 u16);

/// An operation on two values; the first one belongs to the device with the lower number.
pub(crate) trait Operation<T> {
    fn apply(a: T, b: T) -> T;
}

pub(crate) struct Add;
pub(crate) struct Multiply;
pub(crate) struct Max;
pub(crate) struct Min;
pub(crate) struct And;
pub(crate) struct Or;

macro_rules! integer_operations {
    ($($type:ty)*) => {$(
        impl Operation<$type> for Add {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                a.wrapping_add(b)
            }
        }

        impl Operation<$type> for Multiply {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                a.wrapping_mul(b)
            }
        }

        impl Operation<$type> for Max {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                a.max(b)
            }
        }

        impl Operation<$type> for Min {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                a.min(b)
            }
        }
    )*};
}

integer_operations!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float_operations {
    ($($type:ty)*) => {$(
        impl Operation<$type> for Add {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                a + b
            }
        }

        impl Operation<$type> for Multiply {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                a * b
            }
        }

        // Not `f32::max`, which drops a NaN and does not order zeros.
        impl Operation<$type> for Max {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                if a > b || a.is_nan() || (a == b && a.is_sign_positive()) { a } else { b }
            }
        }

        impl Operation<$type> for Min {
            #[inline(always)]
            fn apply(a: $type, b: $type) -> $type {
                if a < b || a.is_nan() || (a == b && a.is_sign_negative()) { a } else { b }
            }
        }
    )*};
}

float_operations!(f32 f64);

impl Operation<u8> for And {
    #[inline(always)]
    fn apply(a: u8, b: u8) -> u8 {
        a & b
    }
}

impl Operation<u8> for Or {
    #[inline(always)]
    fn apply(a: u8, b: u8) -> u8 {
        a | b
    }
}

/// The loop itself: one pass over the output, a tile at a time.
///
/// # Safety
/// As for [`BoxReduction::run`], with elements of type `E`.
#[inline(always)]
unsafe fn combine<E: Element, O: Operation<E::Wide>>(plan: &BoxReduction, rows: &Rows) {
    let (first, others) = plan.sources.split_first().expect("a device combines its own values");
    let count = rows.row / size_of::<E>();
    debug_assert_eq!(count * size_of::<E>(), rows.row, "a row is of whole elements");
    debug_assert!(plan.to.cast::<E>().is_aligned(), "elements are aligned");
    let mut total = [E::Wide::default(); TILE];
    let mut next = [E::Wide::default(); TILE];
    let mut waiting = [const { MaybeUninit::<[E::Wide; TILE]>::uninit() }; WAITING];
    let mut count_waiting = 0;
    for row in 0..rows.count() {
        let (from, to) = rows.at(row);
        debug_assert!(
            from.is_multiple_of(align_of::<E>()) && to.is_multiple_of(align_of::<E>()),
            "elements are aligned"
        );
        for begin in (0..count).step_by(TILE) {
            let len = TILE.min(count - begin);
            let tile = |source: &PartialValue| {
                let offset = if source.is_packed { row * rows.row } else { from };
                debug_assert!(!source.is_wide, "a wide value is no row of elements");
                // SAFETY: as promised by the caller; the elements `begin..begin + len` are part of a row.
                unsafe { std::slice::from_raw_parts(source.base.add(offset).cast::<E>().add(begin), len) }
            };
            let wide = |source: &PartialValue| {
                // SAFETY: as above; a wide value is packed, row after row.
                unsafe { std::slice::from_raw_parts(source.base.cast::<E::Wide>().add(row * count + begin), len) }
            };
            let load = |source: &PartialValue, to: &mut [E::Wide]| match source.is_wide {
                true => to.copy_from_slice(wide(source)),
                false => E::load(plan.dtype, tile(source), to),
            };
            // SAFETY: as for the sources, and nothing else refers to the target.
            let target = || unsafe { std::slice::from_raw_parts_mut(plan.to.add(to).cast::<E>().add(begin), len) };
            let store_wide = |total: &[E::Wide]| {
                // SAFETY: as above; there is room for packed wide rows.
                let to = unsafe { plan.to.add(rows.to).cast::<E::Wide>().add(row * count + begin) };
                // SAFETY: as above.
                unsafe { std::slice::from_raw_parts_mut(to, len) }.copy_from_slice(total);
            };
            if len == TILE {
                // The common case separately: with a constant length, tiles stay in vector registers.
                let mut rest = &plan.sources[..];
                while let Some(source) = rest.first() {
                    let is_first = rest.len() == plan.sources.len();
                    let tile = |source: &PartialValue| &tile(source)[..TILE];
                    let (used, ends) = match rest {
                        [a, b, c, d, ..]
                            if (a.ends, b.ends, c.ends) == (0, 1, 0)
                                && d.ends >= 2
                                && !(a.is_wide || b.is_wide || c.is_wide || d.is_wide) =>
                        {
                            combine_four::<E, O>(plan.dtype, [tile(a), tile(b), tile(c), tile(d)], &mut next);
                            (4, d.ends - 2)
                        }
                        _ => {
                            match source.is_wide {
                                true => next.copy_from_slice(&wide(source)[..TILE]),
                                false => E::load(plan.dtype, tile(source), &mut next),
                            }
                            (1, source.ends)
                        }
                    };
                    rest = &rest[used..];
                    if ends == 0 {
                        if !is_first {
                            waiting[count_waiting].write(total);
                            count_waiting += 1;
                        }
                        total = next;
                        continue;
                    }
                    for (a, b) in total.iter_mut().zip(&next) {
                        *a = O::apply(*a, *b);
                    }
                    for _ in 1..ends {
                        count_waiting -= 1;
                        // SAFETY: it has been written when it began to wait.
                        let before = unsafe { waiting[count_waiting].assume_init_ref() };
                        for (b, a) in total.iter_mut().zip(before) {
                            *b = O::apply(*a, *b);
                        }
                    }
                }
                match plan.stays_wide {
                    true => store_wide(&total),
                    false => E::store(plan.dtype, &total, &mut target()[..TILE]),
                }
            } else {
                load(first, &mut total[..len]);
                for source in others {
                    if source.ends == 0 {
                        waiting[count_waiting].write(total);
                        count_waiting += 1;
                        load(source, &mut total[..len]);
                        continue;
                    }
                    load(source, &mut next[..len]);
                    for (a, b) in total[..len].iter_mut().zip(&next[..len]) {
                        *a = O::apply(*a, *b);
                    }
                    for _ in 1..source.ends {
                        count_waiting -= 1;
                        // SAFETY: as above.
                        let before = unsafe { waiting[count_waiting].assume_init_ref() };
                        for (b, a) in total[..len].iter_mut().zip(before) {
                            *b = O::apply(*a, *b);
                        }
                    }
                }
                match plan.stays_wide {
                    true => store_wide(&total[..len]),
                    false => E::store(plan.dtype, &total[..len], target()),
                }
            }
            debug_assert_eq!(count_waiting, 0, "every value is combined");
        }
    }
}

/// The number of elements for which four values are in registers at a time.
const PART: usize = 16;

/// Combines tiles of four neighbours: both pairs, and the pair of these. Nothing waits in memory meanwhile.
#[inline(always)]
fn combine_four<E: Element, O: Operation<E::Wide>>(dtype: DType, tiles: [&[E]; 4], to: &mut [E::Wide; TILE]) {
    for (begin, to) in (0..TILE).step_by(PART).zip(to.chunks_exact_mut(PART)) {
        let mut parts = [[E::Wide::default(); PART]; 4];
        for (part, tile) in parts.iter_mut().zip(tiles) {
            E::load(dtype, &tile[begin..begin + PART], part);
        }
        let [a, b, c, d] = &parts;
        for (at, to) in to.iter_mut().enumerate() {
            *to = O::apply(O::apply(a[at], b[at]), O::apply(c[at], d[at]));
        }
    }
}

/// Runs the loop with the widest available registers. The width does not change results: every element is combined separately, and a
/// compiler may not fuse a product with a sum.
///
/// # Safety
/// As for [`combine`].
unsafe fn combine_wide<E: Element, O: Operation<E::Wide>>(plan: &BoxReduction, rows: &Rows) {
    /// # Safety
    /// As for [`combine`], and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2<E: Element, O: Operation<E::Wide>>(plan: &BoxReduction, rows: &Rows) {
        // SAFETY: as promised by the caller.
        unsafe { combine::<E, O>(plan, rows) }
    }
    // SAFETY: as promised by the caller; the feature is available.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return with_avx2::<E, O>(plan, rows);
        }
        combine::<E, O>(plan, rows)
    }
}

/// A generic function for the type and the operation, `$function::<E, O>` with an [`Element`] and an [`Operation`]; None if the type
/// does not support the operation. In a constant, nothing but that function is compiled.
macro_rules! by_operation {
    ($dtype:expr, $op:expr, $function:ident as $signature:ty) => {{
        use spmdc_abi::{FloatFormat, Kind, ReduceOp, Width};
        use $crate::collectives::reduce::{Add, And, Bf16, Max, Min, Multiply, NarrowElement, Or};
        macro_rules! arithmetic {
            ($type:ty) => {
                match $op {
                    ReduceOp::Sum => Some($function::<$type, Add> as $signature),
                    ReduceOp::Product => Some($function::<$type, Multiply>),
                    ReduceOp::Max => Some($function::<$type, Max>),
                    ReduceOp::Min => Some($function::<$type, Min>),
                    ReduceOp::And | ReduceOp::Or => None,
                }
            };
        }
        match ($dtype.kind(), $dtype.width()) {
            (Kind::Bool, _) => match $op {
                ReduceOp::And | ReduceOp::Min => Some($function::<u8, And> as $signature),
                ReduceOp::Or | ReduceOp::Max => Some($function::<u8, Or>),
                ReduceOp::Sum | ReduceOp::Product => None,
            },
            (Kind::Signed, Width::W8) => arithmetic!(i8),
            (Kind::Signed, Width::W16) => arithmetic!(i16),
            (Kind::Signed, Width::W32) => arithmetic!(i32),
            (Kind::Signed, Width::W64) => arithmetic!(i64),
            (Kind::Unsigned, Width::W8) => arithmetic!(u8),
            (Kind::Unsigned, Width::W16) => arithmetic!(u16),
            (Kind::Unsigned, Width::W32) => arithmetic!(u32),
            (Kind::Unsigned, Width::W64) => arithmetic!(u64),
            (Kind::Float, Width::W8) => arithmetic!(NarrowElement<u8>),
            (Kind::Float, Width::W16) if matches!($dtype.format(), Some(FloatFormat::F16)) => arithmetic!(half::f16),
            (Kind::Float, Width::W16) if matches!($dtype.format(), Some(FloatFormat::BF16)) => arithmetic!(Bf16),
            (Kind::Float, Width::W16) => arithmetic!(NarrowElement<u16>),
            (Kind::Float, Width::W32) => arithmetic!(f32),
            (Kind::Float, Width::W64) => arithmetic!(f64),
            (Kind::Key, _) => None,
        }
    }};
}
pub(crate) use by_operation;

/// The loop for a type and an operation; None if the type does not support the operation.
pub(crate) const fn combine_function(dtype: DType, op: ReduceOp) -> Option<CombineFn> {
    by_operation!(dtype, op, combine_wide as CombineFn)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use half::bf16;

    /// Combines arrays of `count` elements, given as bytes.
    fn combined_bytes(dtype: DType, op: ReduceOp, sources: &[Vec<u8>]) -> Vec<u8> {
        let aligned: Vec<Vec<u64>> = sources.iter().map(|bytes| to_words(bytes)).collect();
        let mut parts = Vec::new();
        each_part(aligned.len(), &|_| false, &mut |range, ends| {
            let base = aligned[range.start].as_ptr().cast();
            parts.push(PartialValue { base, is_packed: false, is_wide: false, ends });
        });
        let mut to = vec![0u64; aligned[0].len()];
        let plan = BoxReduction {
            sources: parts.into(),
            to: to.as_mut_ptr().cast(),
            rows: Rows::contiguous(sources[0].len()),
            dtype,
            stays_wide: false,
            combine: combine_function(dtype, op).unwrap(),
        };
        // SAFETY: all arrays have this many elements, and 64-bit words are aligned for every type.
        unsafe { plan.run() };
        to.iter().flat_map(|word| word.to_ne_bytes()).take(sources[0].len()).collect()
    }

    fn to_words(bytes: &[u8]) -> Vec<u64> {
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        };
        bytes.chunks(8).map(word).collect()
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    #[test]
    fn sums_are_of_pairs_at_every_length() {
        fn sum(values: &[f32]) -> f32 {
            match values {
                [value] => *value,
                values => {
                    let (left, right) = values.split_at(values.len().next_power_of_two() / 2);
                    sum(left) + sum(right)
                }
            }
        }
        for count in [1, 3, 64, 65, 200] {
            for devices in [1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 33] {
                let source =
                    |seed: usize| (0..count).map(|i| ((i * 7 + seed * 13) as f32).sin() * 1e3).collect::<Vec<f32>>();
                let sources: Vec<Vec<f32>> = (0..devices).map(source).collect();
                let at = |i: usize| sources.iter().map(|source| source[i]).collect::<Vec<f32>>();
                let expected: Vec<f32> = (0..count).map(|i| sum(&at(i))).collect();
                let bytes: Vec<Vec<u8>> = sources.iter().map(|source| f32s(source)).collect();
                assert_eq!(combined_bytes(DType::F32, ReduceOp::Sum, &bytes), f32s(&expected));
            }
        }
    }

    #[test]
    fn parts_of_one_process_are_whole() {
        let parts = |positions: usize, each: usize, own: usize| {
            let mut found = Vec::new();
            let process = |at: usize| at / each;
            let is_whole =
                |range: Range<usize>| process(range.start) != own && process(range.start) == process(range.end - 1);
            each_part(positions, &is_whole, &mut |range, ends| found.push((range.start, range.end, ends)));
            found
        };
        assert_eq!(parts(8, 4, 0), [(0, 1, 0), (1, 2, 1), (2, 3, 0), (3, 4, 2), (4, 8, 1)]);
        // Three devices in each process: their values do not make up one pair.
        assert_eq!(parts(6, 3, 0), [(0, 1, 0), (1, 2, 1), (2, 3, 0), (3, 4, 2), (4, 6, 1)]);
        assert_eq!(parts(5, 1, 0), [(0, 1, 0), (1, 2, 1), (2, 3, 0), (3, 4, 2), (4, 5, 1)]);
    }

    #[test]
    fn nan_wins() {
        let values = [f32s(&[1.0, f32::NAN, 2.0]), f32s(&[f32::NAN, 1.0, 3.0])];
        for (op, last) in [(ReduceOp::Max, 3.0f32), (ReduceOp::Min, 2.0)] {
            let result = combined_bytes(DType::F32, op, &values);
            let at = |i: usize| f32::from_ne_bytes(result[i * 4..i * 4 + 4].try_into().unwrap());
            assert!(at(0).is_nan() && at(1).is_nan());
            assert_eq!(at(2), last);
        }
    }

    #[test]
    fn half_floats_are_rounded_once() {
        // 2048 + 1 is not an f16: rounding after each addition would stay at 2048.
        let ones = |value: f32| f16::from_f32(value).to_ne_bytes().to_vec();
        let sum = combined_bytes(DType::F16, ReduceOp::Sum, &[ones(2048.0), ones(1.0), ones(1.0)]);
        assert_eq!(sum, ones(2050.0));
        let ones = |value: f32| bf16::from_f32(value).to_ne_bytes().to_vec();
        let sum = combined_bytes(DType::Bf16, ReduceOp::Sum, &[ones(256.0), ones(1.0), ones(1.0)]);
        assert_eq!(sum, ones(258.0));
        let nan = combined_bytes(DType::Bf16, ReduceOp::Max, &[ones(f32::NAN), ones(1.0)]);
        assert!(bf16::from_ne_bytes([nan[0], nan[1]]).is_nan());
        // f8e4m3 has no number beyond 448; in between there may be one.
        let byte = |value: f64| vec![DType::F8e4m3.narrow(value) as u8];
        let sum = combined_bytes(DType::F8e4m3, ReduceOp::Sum, &[byte(448.0), byte(448.0), byte(-448.0), byte(-1.5)]);
        assert_eq!(sum, byte(448.0));
        assert_eq!(combined_bytes(DType::F8e4m3, ReduceOp::Product, &[byte(448.0), byte(2.0)]), [0x7f]);
        assert_eq!(combined_bytes(DType::F8e5m2, ReduceOp::Product, &[vec![0x7b], vec![0x41]]), [0x7c]);
        assert_eq!(combined_bytes(DType::F8e5m2, ReduceOp::Min, &[vec![0xfc], vec![0x41], vec![0xc0]]), [0xfc]);
    }

    #[test]
    fn bf16_rounds_as_the_half_crate_does() {
        for i in 0..100_000u32 {
            let value = f32::from_bits(i.wrapping_mul(0x9e37_79b9));
            let mut ours = [Bf16(0)];
            Bf16::store(DType::Bf16, &[value], &mut ours);
            assert_eq!(ours[0].0, bf16::from_f32(value).to_bits(), "{value}");
            let mut by_format = [NarrowElement(0u16)];
            NarrowElement::<u16>::store(DType::Bf16, &[value], &mut by_format);
            assert_eq!(by_format[0].0, ours[0].0, "{value}");
        }
    }

    #[test]
    fn integers_wrap_and_bools_combine() {
        assert_eq!(combined_bytes(DType::U8, ReduceOp::Sum, &[vec![200], vec![100]]), [44]);
        assert_eq!(combined_bytes(DType::I8, ReduceOp::Max, &[vec![200], vec![100]]), [100]);
        assert_eq!(combined_bytes(DType::Bool, ReduceOp::And, &[vec![1, 1, 0], vec![1, 0, 0]]), [1, 0, 0]);
        assert_eq!(combined_bytes(DType::Bool, ReduceOp::Or, &[vec![1, 1, 0], vec![1, 0, 0]]), [1, 1, 0]);
        assert!(combine_function(DType::Key, ReduceOp::Sum).is_none());
    }
}
