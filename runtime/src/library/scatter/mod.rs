//! Updates of elements at indices: `x[i] += v`, and sums over the elements with equal indices.
//!
//! The work is divided in one of two ways. Parts of the result are ranges of rows, or of the elements of a row: a thread scans all indices
//! and applies the updates in its part. Shares of the updates each have an array, and are combined afterwards
//! (`compiler/ops/src/scatter/lowering.rs`). Either way the order of the updates of an element depends on sizes alone. They are applied
//! in order or, if there are few elements, in [`LANES`] separate turns.

mod places;

use super::radix::prefetch;
use super::{
    LibraryCall, LibraryCheck, LibraryCode, OwnCalls, PreparedFunction, StepArrays, View, ViewDim, by_width, expect,
    other_function,
};
use crate::collectives::reduce::{Element, Operation, by_operation};
use places::{AHEAD, GROUP, IndexArray, PlaceFinder, TILE, TileIndices, UpdatePlaces, prefetch_group};
use spmdc_abi::mesh::share;
use spmdc_abi::{
    Check, Checked, DType, LibraryArray, LibraryFunction, LibraryStep, ReduceOp, ScatterIndex, ScatterParts,
    ScatterRows, trap,
};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Rows between the current one and the prefetched one: the places of rows have no order that the processor could know.
const ROWS_AHEAD: usize = 4;

/// Bytes of a row that are prefetched, at most. The processor itself continues long rows.
const ROW_BYTES: usize = 512;

/// Maximum number of dimensions of the result and of the updates.
const MAX_RANK: usize = 16;

/// Tables of few elements, to which updates are applied in turn: an update does not wait for the one before if both are of one element.
const LANES: usize = 4;

/// Bytes of all these tables, at most: they stay in the first-level cache.
const LANE_BYTES: usize = 1 << 14;

/// Minimum number of updates for each element of these tables.
const LANE_UPDATES: usize = 4;

/// Applies some updates.
pub(crate) type UpdateFn = unsafe fn(updates: &Updates<'_>) -> i64;

/// The updates of an element type by an operation, or by replacement; None if the type does not support the operation.
pub(crate) struct Scatters(Option<UpdateFn>);

impl Scatters {
    pub const fn new(dtype: DType, combine: Option<ReduceOp>) -> Scatters {
        Scatters(match combine {
            Some(op) => by_operation!(dtype, op, combining as UpdateFn),
            None => Some(by_width!(dtype, replacing())),
        })
    }
}

impl LibraryCheck for Scatters {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let step = arrays.step;
        let LibraryFunction::Scatter(scatter) = &step.function else { return Err(other_function()) };
        let lens = |array: &LibraryArray| arrays.own(array);
        let ([result], [updates, indices @ ..]) = (step.results.as_slice(), step.operands.as_slice()) else {
            return Err("a scatter requires updates, indices and a result".to_string());
        };
        let (mut to, from) = (lens(result), lens(updates));
        if scatter.divided == ScatterParts::Updates && !to.is_empty() {
            to.remove(0);
            expect(scatter.combine.is_some() && scatter.start.is_some(), "shares of updates without a beginning")?;
        }
        let indexed = scatter.first.len();
        arrays.are_own("a scatter without indices")?;
        expect(indexed == indices.len() && indexed > 0, "a scatter without indices")?;
        let rank = indices[0].dims.len();
        let of_indices = |array: &LibraryArray| array.dtype.is_integer() && lens(array)[..] == from[..rank];
        expect(indexed <= to.len() && rank <= from.len(), "a scatter of too few dimensions")?;
        expect(indices.iter().all(of_indices), "a scatter with indices of another shape")?;
        expect(to[indexed..] == from[rank..], "a scatter of rows of another shape")?;
        expect(to.len() <= MAX_RANK && from.len() <= MAX_RANK, "a scatter of many dimensions")?;
        let is_dim = |parts| !matches!(parts, ScatterParts::Result(dim) if dim >= to.len());
        expect(is_dim(scatter.divided), "a scatter along a dimension that does not exist")?;
        let is_known = |&meaning: &ScatterIndex| match meaning {
            ScatterIndex::Checked(number) => {
                number < 0x7fff && step.checks.get(number).is_some_and(|check| extent(check).is_some())
            }
            ScatterIndex::Plain | ScatterIndex::AtLeastZero => true,
        };
        let are_known = scatter.indices.len() == indexed && scatter.indices.iter().all(is_known);
        expect(are_known, "a scatter with indices of no meaning")?;
        expect(updates.dtype == result.dtype, "a scatter of another type")?;
        expect(self.0.is_some(), "a scatter that is not defined")
    }
}

impl LibraryCode for Scatters {
    fn prepare(&self, step: &LibraryStep, _: OwnCalls) -> Box<dyn PreparedFunction> {
        let LibraryFunction::Scatter(scatter) = &step.function else { unreachable!("the step has been checked") };
        let apply = self.0.expect("the operation has been checked");
        Box::new(PreparedScatter { scatter: scatter.clone(), apply })
    }
}

#[derive(Debug)]
struct PreparedScatter {
    scatter: ScatterRows,
    apply: UpdateFn,
}

impl PreparedFunction for PreparedScatter {
    unsafe fn call(&self, call: &LibraryCall<'_>, parts: Range<usize>) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { scatter(call, self, parts) }
    }
}

const fn replacing<W: Copy>() -> UpdateFn {
    apply::<ReplacedRows<W>>
}

/// # Safety
/// As for `apply`.
unsafe fn combining<E: Element, O: Operation<E::Wide>>(updates: &Updates<'_>) -> i64 {
    // SAFETY: as promised by the caller.
    unsafe { apply::<CombinedRows<E, O>>(updates) }
}

/// The way in which rows of an element type are updated.
trait RowUpdate {
    type Element: Copy;

    /// The element after an update.
    fn updated(dtype: DType, element: Self::Element, update: Self::Element) -> Self::Element;

    /// Updates `len` neighbours.
    ///
    /// # Safety
    /// Both rows must have these elements, which this thread may access; they are in different buffers.
    unsafe fn row(dtype: DType, to: *mut Self::Element, from: *const Self::Element, len: usize);
}

/// The update replaces the element.
struct ReplacedRows<W>(PhantomData<W>);

impl<W: Copy> RowUpdate for ReplacedRows<W> {
    type Element = W;

    #[inline(always)]
    fn updated(_: DType, _: W, update: W) -> W {
        update
    }

    #[inline(always)]
    unsafe fn row(_: DType, to: *mut W, from: *const W, len: usize) {
        // SAFETY: as promised by the caller.
        unsafe { to.copy_from_nonoverlapping(from, len) }
    }
}

/// The update is combined with the element.
struct CombinedRows<E, O>(PhantomData<(E, O)>);

impl<E: Element, O: Operation<E::Wide>> RowUpdate for CombinedRows<E, O> {
    type Element = E;

    #[inline(always)]
    fn updated(dtype: DType, element: E, update: E) -> E {
        let mut element = [element];
        combine_tile::<E, O, 1>(dtype, &mut element, &[update]);
        element[0]
    }

    #[inline(always)]
    unsafe fn row(dtype: DType, to: *mut E, from: *const E, len: usize) {
        // SAFETY: as promised by the caller.
        let (to, from) = unsafe { (std::slice::from_raw_parts_mut(to, len), std::slice::from_raw_parts(from, len)) };
        let (to, from) = combine_tiles::<E, O, 64>(dtype, to, from);
        let (to, from) = combine_tiles::<E, O, 16>(dtype, to, from);
        let (to, from) = combine_tiles::<E, O, 4>(dtype, to, from);
        combine_tiles::<E, O, 1>(dtype, to, from);
    }
}

/// Combines as many whole tiles as there are; gives the rest.
#[inline(always)]
fn combine_tiles<'a, E: Element, O: Operation<E::Wide>, const N: usize>(
    dtype: DType,
    to: &'a mut [E],
    from: &'a [E],
) -> (&'a mut [E], &'a [E]) {
    let (whole, rest) = to.as_chunks_mut::<N>();
    let (updates, others) = from.as_chunks::<N>();
    whole.iter_mut().zip(updates).for_each(|(to, from)| combine_tile::<E, O, N>(dtype, to, from));
    (rest, others)
}

/// `to = to op from`, each rounded to the type.
#[inline(always)]
fn combine_tile<E: Element, O: Operation<E::Wide>, const N: usize>(dtype: DType, to: &mut [E; N], from: &[E; N]) {
    let (mut total, mut next) = ([E::Wide::default(); N], [E::Wide::default(); N]);
    E::load(dtype, to, &mut total);
    E::load(dtype, from, &mut next);
    for (a, b) in total.iter_mut().zip(&next) {
        *a = O::apply(*a, *b);
    }
    E::store(dtype, &total, to);
}

/// One dimension of rows: its length in this part, and its strides in the result and in the updates, in elements.
#[derive(Clone, Copy, Default)]
struct RowDim {
    len: usize,
    to: usize,
    from: usize,
}

/// The loops over a row, outermost first; the last one is given to the row function.
struct RowLoops {
    dims: [RowDim; MAX_RANK],
    count: usize,
}

impl RowLoops {
    /// The dimensions of a row; neighbours that are contiguous in both arrays are merged.
    fn new(dims: impl Iterator<Item = RowDim>) -> RowLoops {
        let mut loops = RowLoops { dims: [RowDim::default(); MAX_RANK], count: 0 };
        for dim in dims.filter(|dim| dim.len != 1) {
            if let Some(outer) = loops.count.checked_sub(1).map(|last| &mut loops.dims[last])
                && (outer.to, outer.from) == (dim.to * dim.len, dim.from * dim.len)
            {
                *outer = RowDim { len: outer.len * dim.len, ..dim };
                continue;
            }
            loops.dims[loops.count] = dim;
            loops.count += 1;
        }
        loops
    }

    /// Calls `row` for each innermost row, with the offsets of its first element in the result and in the updates.
    fn each(&self, mut row: impl FnMut(usize, usize, RowDim)) {
        let Some(inner) = self.count.checked_sub(1) else {
            return row(0, 0, RowDim { len: 1, to: 1, from: 1 });
        };
        let outer = &self.dims[..inner];
        let total: usize = outer.iter().map(|dim| dim.len).product();
        for mut index in 0..total {
            let (mut to, mut from) = (0, 0);
            for dim in outer.iter().rev() {
                to += index % dim.len * dim.to;
                from += index % dim.len * dim.from;
                index /= dim.len;
            }
            row(to, from, self.dims[inner]);
        }
    }
}

/// A dimension of the index arrays: its length, and its strides in the updates and in each array.
#[derive(Clone, Copy, Default)]
struct PlaceDim {
    len: usize,
    from: usize,
    places: [usize; MAX_RANK],
}

/// The dimensions of the index arrays, outermost first.
struct PlaceLoops {
    dims: [PlaceDim; MAX_RANK],
    count: usize,
}

impl PlaceLoops {
    /// The dimensions; neighbours that are contiguous in all arrays are merged.
    fn new(updates: &[ViewDim], arrays: &[IndexArray<'_>]) -> PlaceLoops {
        let mut loops = PlaceLoops { dims: [PlaceDim::default(); MAX_RANK], count: 0 };
        for (number, extent) in updates.iter().enumerate().filter(|(_, extent)| extent.len != 1) {
            let mut dim = PlaceDim { len: extent.len, from: extent.stride, places: [0; MAX_RANK] };
            dim.places.iter_mut().zip(arrays).for_each(|(stride, array)| *stride = array.dims[number].stride);
            if let Some(outer) = loops.count.checked_sub(1).map(|last| &mut loops.dims[last])
                && outer.from == dim.from * dim.len
                && outer.places.iter().zip(&dim.places).all(|(outer, own)| *outer == own * dim.len)
            {
                *outer = PlaceDim { len: outer.len * dim.len, ..dim };
                continue;
            }
            loops.dims[loops.count] = dim;
            loops.count += 1;
        }
        // Indices without dimensions are a line of one.
        if loops.count == 0 {
            loops.dims[0] = PlaceDim { len: 1, ..PlaceDim::default() };
            loops.count = 1;
        }
        loops
    }

    fn total(&self) -> usize {
        self.dims[..self.count].iter().map(|dim| dim.len).product()
    }
}

/// Updates, and the part of the result to which a thread applies them.
pub(crate) struct Updates<'a> {
    dtype: DType,
    arrays: &'a [IndexArray<'a>],
    loops: &'a PlaceLoops,
    /// The numbers of the updates.
    range: Range<usize>,
    /// The first element of the result whose rows the thread updates.
    to: *mut u8,
    /// The first update.
    from: *const u8,
    rows: &'a RowLoops,
    /// The bits with which elements begin if they are few and of one row each, so that they are combined in tables.
    lanes: Option<u64>,
}

/// The updates of a tile: the first one, and their distance in elements.
struct TileUpdates<E> {
    from: *const E,
    step: usize,
    len: usize,
}

impl<E: Copy> TileUpdates<E> {
    /// # Safety
    /// The tile must have an update at this position, which this thread may read.
    #[inline(always)]
    unsafe fn at(&self, position: usize) -> E {
        debug_assert!(position < self.len, "an update beyond its tile");
        // SAFETY: as promised by the caller.
        unsafe { self.from.add(position * self.step).read() }
    }
}

/// Applies updates; gives the code of the first failed check.
///
/// # Safety
/// The arrays must have the elements that the updates name, of the type of `U`, and this thread may access them; the updates and the
/// indices are in other buffers than the result.
unsafe fn apply<U: RowUpdate>(updates: &Updates<'_>) -> i64 {
    let mut finder = PlaceFinder::new();
    // SAFETY: as promised by the caller.
    unsafe {
        match updates.lanes {
            Some(start) => by_lanes::<U>(updates, start, &mut finder),
            None if updates.rows.count == 0 => {
                let to = updates.to.cast::<U::Element>();
                let stride = updates.arrays[0].stride;
                updates.each_tile(&mut finder, |places, tile| elements::<U>(updates.dtype, (to, stride), places, tile));
            }
            None => updates.each_tile(&mut finder, |places, tile| rows::<U>(updates, places, tile)),
        }
    }
    finder.code
}

impl Updates<'_> {
    /// Calls a function with the positions and the updates of each tile, in order. If indices are used in place, a tile is a short group,
    /// so that the check of one overlaps with the updates of the previous one.
    ///
    /// # Safety
    /// As for `apply`.
    #[inline(always)]
    unsafe fn each_tile<E: Copy>(
        &self,
        finder: &mut PlaceFinder,
        mut tile: impl FnMut(UpdatePlaces<'_>, TileUpdates<E>),
    ) {
        let loops = &self.loops.dims[..self.loops.count];
        let inner = loops[loops.len() - 1];
        let mut number = self.range.start;
        while number < self.range.end {
            // The offsets of the update and of its indices.
            let (mut rest, mut from, mut places) = (number, 0, [0; MAX_RANK]);
            for dim in loops.iter().rev() {
                let index = rest % dim.len;
                rest /= dim.len;
                from += index * dim.from;
                places.iter_mut().zip(&dim.places).for_each(|(place, stride)| *place += index * stride);
            }
            let len = (inner.len - number % inner.len).min(self.range.end - number);
            // As they lie in memory, if they are 32-bit numbers.
            let lone = self.arrays.len() == 1 && inner.places[0] == 1;
            let direct = if lone { self.arrays[0].direct(places[0]) } else { None };
            let mut done = 0;
            while done < len {
                let count = if direct.is_some() { GROUP } else { TILE }.min(len - done);
                let from = self.from.cast::<E>().wrapping_add(from + done * inner.from);
                let updates = TileUpdates { from, step: inner.from, len: count };
                if let Some(direct) = direct {
                    direct.prefetch(done);
                    if inner.from == 1 {
                        prefetch_group(from.wrapping_add(AHEAD));
                    }
                }
                // SAFETY: as promised by the caller.
                let found = match direct.and_then(|direct| unsafe { direct.all_inside(done, count) }) {
                    Some(indices) => UpdatePlaces::All(indices),
                    None => {
                        let indices: [TileIndices<'_>; MAX_RANK] = std::array::from_fn(|dim| {
                            let dim = dim.min(self.arrays.len() - 1);
                            let step = inner.places[dim];
                            TileIndices { array: &self.arrays[dim], at: places[dim] + done * step, step }
                        });
                        // SAFETY: as promised by the caller.
                        unsafe { finder.find(&indices[..self.arrays.len()], count) }
                    }
                };
                tile(found, updates);
                done += count;
            }
            number += len;
        }
    }
}

/// Updates rows of one element.
///
/// # Safety
/// As for `apply`; the places are in the result.
#[inline(always)]
unsafe fn elements<U: RowUpdate>(
    dtype: DType,
    (to, stride): (*mut U::Element, usize),
    places: UpdatePlaces<'_>,
    tile: TileUpdates<U::Element>,
) {
    let update = |offset: usize, value: U::Element| {
        // SAFETY: as promised by the caller.
        unsafe {
            let element = to.add(offset);
            element.write(U::updated(dtype, element.read(), value));
        }
    };
    // SAFETY: as promised by the caller.
    unsafe {
        match places {
            UpdatePlaces::All(indices) if stride == 1 && tile.step == 1 => {
                let updates = std::slice::from_raw_parts(tile.from, tile.len);
                let indices = std::slice::from_raw_parts(indices, tile.len);
                indices.iter().zip(updates).for_each(|(&index, &value)| update(index as usize, value));
            }
            UpdatePlaces::All(indices) => {
                for position in 0..tile.len {
                    update(indices.add(position).read() as usize * stride, tile.at(position));
                }
            }
            UpdatePlaces::Some(offsets, positions) => {
                let each = offsets.iter().zip(positions);
                each.for_each(|(&offset, &position)| update(offset, tile.at(position.into())));
            }
        }
    }
}

/// Combines updates of few elements in separate tables, then in the result.
///
/// # Safety
/// As for `apply`.
unsafe fn by_lanes<U: RowUpdate>(updates: &Updates<'_>, start: u64, finder: &mut PlaceFinder) {
    let IndexArray { range, stride, .. } = updates.arrays[0];
    let len = range.1 - range.0;
    let mut memory = [MaybeUninit::<u64>::uninit(); LANE_BYTES / 8];
    assert!(LANES * len * size_of::<U::Element>() <= LANE_BYTES, "tables for {len} elements");
    let tables = memory.as_mut_ptr().cast::<U::Element>();
    let dtype = updates.dtype;
    // SAFETY: the tables have these elements; the rest is as promised by the caller. The bits of an element are the lowest of `start`.
    unsafe {
        let first = (&raw const start).cast::<u8>().add(if cfg!(target_endian = "big") { 8 - dtype.size() } else { 0 });
        let first = first.cast::<U::Element>().read_unaligned();
        (0..LANES * len).for_each(|at| tables.add(at).write(first));
        updates
            .each_tile(finder, |places, tile| lane_tile::<U>(dtype, (tables, len), (range.0, stride), places, &tile));
        let to = updates.to.cast::<U::Element>();
        for at in 0..len {
            let lane = |lane: usize| tables.add(lane * len + at).read();
            let total = (1..LANES).fold(lane(0), |total, next| U::updated(dtype, total, lane(next)));
            to.add((range.0 + at) * stride).write(total);
        }
    }
}

/// Combines the updates of a tile with elements of the tables, in turn.
///
/// # Safety
/// As for `by_lanes`.
#[inline(always)]
unsafe fn lane_tile<U: RowUpdate>(
    dtype: DType,
    (tables, len): (*mut U::Element, usize),
    (first, stride): (usize, usize),
    places: UpdatePlaces<'_>,
    tile: &TileUpdates<U::Element>,
) {
    let update = |lane: usize, at: usize, value: U::Element| {
        // SAFETY: as promised by the caller.
        unsafe {
            let element = tables.add(lane * len + at);
            element.write(U::updated(dtype, element.read(), value));
        }
    };
    // SAFETY: as promised by the caller.
    unsafe {
        match places {
            UpdatePlaces::All(indices) => {
                let indices = std::slice::from_raw_parts(indices, tile.len);
                let (turns, rest) = indices.as_chunks::<LANES>();
                let one = tile.at(0);
                if tile.step == 0 {
                    for turn in turns {
                        turn.iter().enumerate().for_each(|(lane, &index)| update(lane, index as usize, one));
                    }
                } else {
                    for (number, turn) in turns.iter().enumerate() {
                        let value = |lane: usize| tile.at(number * LANES + lane);
                        turn.iter().enumerate().for_each(|(lane, &index)| update(lane, index as usize, value(lane)));
                    }
                }
                for (lane, &index) in rest.iter().enumerate() {
                    update(lane, index as usize, tile.at(turns.len() * LANES + lane));
                }
            }
            UpdatePlaces::Some(offsets, positions) => {
                for (&offset, &position) in offsets.iter().zip(positions) {
                    let position = usize::from(position);
                    update(position % LANES, offset / stride - first, tile.at(position));
                }
            }
        }
    }
}

/// Updates rows of several elements.
///
/// # Safety
/// As for `apply`; the places are in the result.
#[inline(always)]
unsafe fn rows<U: RowUpdate>(updates: &Updates<'_>, places: UpdatePlaces<'_>, tile: TileUpdates<U::Element>) {
    let (loops, dtype) = (updates.rows, updates.dtype);
    let stride = updates.arrays[0].stride;
    let row = |offset: usize, position: usize| {
        let to = updates.to.cast::<U::Element>().wrapping_add(offset);
        let from = tile.from.wrapping_add(position * tile.step);
        // SAFETY: as promised by the caller.
        unsafe {
            match loops.dims[..loops.count] {
                [RowDim { len, to: 1, from: 1 }] => U::row(dtype, to, from, len),
                _ => loops.each(|more, other, row| {
                    for at in 0..row.len {
                        let element = to.add(more + at * row.to);
                        let update = from.add(other + at * row.from).read();
                        element.write(U::updated(dtype, element.read(), update));
                    }
                }),
            }
        }
    };
    let bytes = match loops.dims[..loops.count] {
        [RowDim { len, to: 1, from: 1 }] => ROW_BYTES.min(len * size_of::<U::Element>()),
        _ => 0,
    };
    let soon = |offset: usize, position: usize| {
        let to = updates.to.cast::<U::Element>().wrapping_add(offset).cast::<u8>();
        let from = tile.from.wrapping_add(position * tile.step).cast::<u8>();
        for at in (0..bytes).step_by(64) {
            prefetch(to.wrapping_add(at));
            prefetch(from.wrapping_add(at));
        }
    };
    match places {
        UpdatePlaces::All(indices) => {
            // SAFETY: as promised by the caller.
            let indices = unsafe { std::slice::from_raw_parts(indices, tile.len) };
            for (at, &index) in indices.iter().enumerate() {
                if let Some(&next) = indices.get(at + ROWS_AHEAD) {
                    soon(next as usize * stride, at + ROWS_AHEAD);
                }
                row(index as usize * stride, at);
            }
        }
        UpdatePlaces::Some(offsets, positions) => {
            for (at, (&offset, &position)) in offsets.iter().zip(positions).enumerate() {
                let next = at + ROWS_AHEAD;
                if let (Some(&offset), Some(&position)) = (offsets.get(next), positions.get(next)) {
                    soon(offset, position.into());
                }
                row(offset, position.into());
            }
        }
    }
}

/// The part of the result that a thread makes, and the updates that it applies.
struct ScatterPart<'a> {
    result: View<'a>,
    /// A range of a dimension of the result.
    divided: usize,
    range: Range<usize>,
    /// This share of the updates, and the number of shares.
    share: (usize, usize),
}

/// Makes some parts of a call; returns the code of the first failed check.
///
/// # Safety
/// As for [`PreparedFunction::call`]; `parts` are those of the divided dimension.
unsafe fn scatter(call: &LibraryCall<'_>, prepared: &PreparedScatter, parts: Range<usize>) -> i64 {
    let result = call.result(0);
    // SAFETY: as promised by the caller.
    unsafe {
        match prepared.scatter.divided {
            ScatterParts::Result(divided) => {
                scatter_part(call, prepared, ScatterPart { result, divided, range: parts, share: (0, 1) })
            }
            ScatterParts::Updates => {
                let (shares, dims) = (result.dims[0], &result.dims[1..]);
                let each = parts.map(|share| {
                    let base = result.base.wrapping_add(share * shares.stride * result.dtype.size());
                    let result = View { base, dims, ..result };
                    let range = 0..dims[0].len;
                    let part = ScatterPart { result, divided: 0, range, share: (share, shares.len) };
                    scatter_part(call, prepared, part)
                });
                each.fold(trap::NONE, crate::run::team::first_trap)
            }
        }
    }
}

/// # Safety
/// As for `scatter`.
unsafe fn scatter_part(call: &LibraryCall<'_>, prepared: &PreparedScatter, part: ScatterPart<'_>) -> i64 {
    let (result, updates) = (part.result, call.operand(0, 0));
    let PreparedScatter { scatter, apply } = prepared;
    // The indices of the first elements of the device's block in the indexed dimensions.
    let (first, checks) = (&call.step.block, &call.step.checks);
    let (indexed, size) = (first.len(), result.dtype.size());
    let rank = updates.dims.len() - (result.dims.len() - indexed);
    debug_assert!(part.range.end <= result.dims[part.divided].len, "a part beyond the result");
    let own = |dim: usize| if dim == part.divided { part.range.clone() } else { 0..result.dims[dim].len };
    // The first element of this part of each row.
    let (mut to, mut from) = (0, 0);
    let mut rows = [RowDim::default(); MAX_RANK];
    for dim in indexed..result.dims.len() {
        let (target, update) = (result.dims[dim], updates.dims[rank + dim - indexed]);
        to += own(dim).start * target.stride;
        from += own(dim).start * update.stride;
        rows[dim - indexed] = RowDim { len: own(dim).len(), to: target.stride, from: update.stride };
    }
    let rows = &rows[..result.dims.len() - indexed];
    let loops = RowLoops::new(rows.iter().copied());
    let index_array = |dim: usize| {
        let array = call.operand(1 + dim, 0);
        let meaning = scatter.indices[dim];
        let extent = match meaning {
            ScatterIndex::Checked(number) => extent(&checks[number]).expect("the check is of an index"),
            ScatterIndex::Plain | ScatterIndex::AtLeastZero => 0,
        };
        IndexArray {
            dims: array.dims,
            base: array.base.cast_const(),
            dtype: array.dtype,
            meaning,
            extent,
            first: first[dim],
            range: (own(dim).start, own(dim).end),
            stride: result.dims[dim].stride,
        }
    };
    let arrays: [IndexArray; MAX_RANK] = std::array::from_fn(|dim| index_array(dim.min(indexed - 1)));
    let arrays = &arrays[..indexed];
    let places = PlaceLoops::new(&updates.dims[..rank], arrays);
    let range = share(places.total() as i64, part.share.0, part.share.1);
    let range = range.start as usize..range.end as usize;
    // Decided by sizes alone, not by the part: the order of the updates depends on it.
    let elements = result.dims[0].len;
    let is_short = loops.count == 0 && indexed == 1 && places.count == 1 && scatter.combine.is_some();
    let few = LANES * elements * size <= LANE_BYTES && places.total() / part.share.1 >= LANES * LANE_UPDATES * elements;
    let lanes = scatter.start.filter(|_| is_short && few && elements > 0);
    if let Some(bits) = scatter.start.filter(|_| lanes.is_none()) {
        // SAFETY: as promised by the caller.
        unsafe { by_width!(result.dtype, fill(&result, bits, part.divided, &part.range)) };
    }
    if places.total() == 0 || rows.iter().any(|dim| dim.len == 0) {
        return trap::NONE;
    }
    let updates = Updates {
        dtype: result.dtype,
        arrays,
        loops: &places,
        range,
        to: result.base.wrapping_add(to * size),
        from: updates.base.wrapping_add(from * size),
        rows: &loops,
        lanes,
    };
    // SAFETY: as promised by the caller.
    unsafe { apply(&updates) }
}

/// The size of the dimension whose indices a check is of.
fn extent(check: &Check) -> Option<i64> {
    match check.of {
        Checked::Index { extent } => Some(extent),
        Checked::Divisor => None,
    }
}

/// Sets all elements of a part of the result.
///
/// # Safety
/// As for `scatter`.
unsafe fn fill<W: TryFrom<u64> + Copy>(result: &View<'_>, bits: u64, divided: usize, part: &Range<usize>) {
    let bits = bits & (u64::MAX >> (64 - 8 * size_of::<W>()));
    let Ok(value) = W::try_from(bits) else { return };
    let dims = result.dims.iter().enumerate();
    let loops = RowLoops::new(dims.map(|(dim, extent)| RowDim {
        len: if dim == divided { part.len() } else { extent.len },
        to: extent.stride,
        from: extent.stride,
    }));
    let begin = part.start * result.dims[divided].stride;
    if result.dims.iter().any(|dim| dim.len == 0) || part.is_empty() {
        return;
    }
    loops.each(|more, _, row| {
        // SAFETY: as promised by the caller.
        unsafe {
            let first = result.base.cast::<W>().add(begin + more);
            if row.to == 1 {
                std::slice::from_raw_parts_mut(first.cast::<MaybeUninit<W>>(), row.len).fill(MaybeUninit::new(value));
                return;
            }
            (0..row.len).for_each(|at| first.add(at * row.to).write(value));
        }
    });
}
