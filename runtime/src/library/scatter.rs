//! Updates of elements at indices: `x[i] += v`, and sums over the elements with equal indices.
//!
//! A thread scans all indices and applies the updates that fall into its part of the result, so each element gets its updates in
//! their order, whatever the number of threads. Parts are ranges of rows, or of the elements of a row.

use super::{LibraryCall, View, ViewDim, by_width};
use crate::collectives::reduce::{Element, Operation, by_operation};
use spmdc_abi::{DType, ReduceOp, ScatterRows};
use std::marker::PhantomData;
use std::ops::Range;

/// Maximum number of dimensions of the result and of the updates.
pub(super) const MAX_RANK: usize = 16;

/// Elements of a row that are combined at a time.
const TILE: usize = 64;

/// Applies a line of updates.
type LineFn = unsafe fn(line: &UpdateLine<'_>);

/// The function for a type and an operation; None if the type does not support the operation.
pub(super) fn function(dtype: DType, combine: Option<ReduceOp>) -> Option<LineFn> {
    match combine {
        Some(op) => by_operation!(dtype, op, combining as LineFn),
        None => Some(by_width!(dtype, replacing())),
    }
}

fn replacing<W: Copy>() -> LineFn {
    update_line::<ReplacedRows<W>>
}

/// # Safety
/// As for `update_line`.
unsafe fn combining<E: Element, O: Operation<E::Wide>>(line: &UpdateLine<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { update_line::<CombinedRows<E, O>>(line) }
}

/// The way in which rows of an element type are updated.
trait RowUpdate {
    type Element: Copy;

    /// Updates `len` elements at these distances.
    ///
    /// # Safety
    /// Both rows must have these elements, which this thread may access; they are in different buffers.
    unsafe fn row(dtype: DType, to: (*mut Self::Element, usize), from: (*const Self::Element, usize), len: usize);
}

/// The update replaces the element.
struct ReplacedRows<W>(PhantomData<W>);

impl<W: Copy> RowUpdate for ReplacedRows<W> {
    type Element = W;

    #[inline(always)]
    unsafe fn row(_: DType, (to, step): (*mut W, usize), (from, own): (*const W, usize), len: usize) {
        if step == 1 && own == 1 && len > 1 {
            // SAFETY: as promised by the caller.
            return unsafe { to.copy_from_nonoverlapping(from, len) };
        }
        for at in 0..len {
            // SAFETY: as promised by the caller.
            unsafe { to.add(at * step).write(from.add(at * own).read()) }
        }
    }
}

/// The update is combined with the element.
struct CombinedRows<E, O>(PhantomData<(E, O)>);

impl<E: Element, O: Operation<E::Wide>> RowUpdate for CombinedRows<E, O> {
    type Element = E;

    #[inline(always)]
    unsafe fn row(dtype: DType, (to, step): (*mut E, usize), (from, own): (*const E, usize), len: usize) {
        if step == 1 && own == 1 && len > 1 {
            // SAFETY: as promised by the caller.
            let (to, from) =
                unsafe { (std::slice::from_raw_parts_mut(to, len), std::slice::from_raw_parts(from, len)) };
            for (to, from) in to.chunks_exact_mut(TILE).zip(from.chunks_exact(TILE)) {
                combine_tile::<E, O, TILE>(dtype, to, from);
            }
            let done = len / TILE * TILE;
            for (to, from) in to[done..].iter_mut().zip(&from[done..]) {
                combine_tile::<E, O, 1>(dtype, std::slice::from_mut(to), std::slice::from_ref(from));
            }
            return;
        }
        for at in 0..len {
            // SAFETY: as promised by the caller.
            unsafe {
                let (target, update) = (to.add(at * step), from.add(at * own).read());
                let mut element = [target.read()];
                combine_tile::<E, O, 1>(dtype, &mut element, &[update]);
                target.write(element[0]);
            }
        }
    }
}

/// `to = to op from`, each rounded to the type.
#[inline(always)]
fn combine_tile<E: Element, O: Operation<E::Wide>, const N: usize>(dtype: DType, to: &mut [E], from: &[E]) {
    let (mut total, mut next) = ([E::Wide::default(); N], [E::Wide::default(); N]);
    E::load(dtype, &to[..N], &mut total);
    E::load(dtype, &from[..N], &mut next);
    for (a, b) in total.iter_mut().zip(&next) {
        *a = O::apply(*a, *b);
    }
    E::store(dtype, &total, &mut to[..N]);
}

/// One dimension of rows: its length in this part, and its strides in the result and in the updates, in elements.
#[derive(Clone, Copy, Default)]
pub(super) struct RowDim {
    len: usize,
    to: usize,
    from: usize,
}

/// The loops over a row, outermost first; the last one is given to the row function.
pub(super) struct RowLoops {
    dims: [RowDim; MAX_RANK],
    count: usize,
}

impl RowLoops {
    /// The dimensions of a row, of which neighbours that are contiguous in both arrays are merged.
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

/// The indices of one dimension of the result.
#[derive(Clone, Copy)]
pub(super) struct IndexArray<'a> {
    dims: &'a [ViewDim],
    base: *const i64,
    /// The stride of its last dimension.
    step: usize,
    /// The index of the first element of the device's block.
    first: i64,
    /// The part of the block that the thread updates.
    range: (usize, usize),
    /// The stride of the dimension in the result.
    stride: usize,
}

/// Updates along the last dimension of the index arrays.
pub(super) struct UpdateLine<'a> {
    dtype: DType,
    arrays: &'a [IndexArray<'a>],
    /// The offset of the first index in each array.
    places: [usize; MAX_RANK],
    len: usize,
    /// The first element of the result that the thread updates.
    to: *mut u8,
    /// The first update, and the distance between updates in elements.
    from: *const u8,
    step: usize,
    rows: &'a RowLoops,
}

/// # Safety
/// The arrays must have the elements that the line names, of the type of `U`, and this thread may access them; the updates and the
/// indices are in other buffers than the result.
unsafe fn update_line<U: RowUpdate>(line: &UpdateLine<'_>) {
    let (result, updates) = (line.to.cast::<U::Element>(), line.from.cast::<U::Element>());
    debug_assert!(line.len > 0, "a line without updates");
    // SAFETY: as promised by the caller: there is a first update.
    let mut unused = unsafe { updates.read() };
    for position in 0..line.len {
        let (mut target, mut is_own) = (0, true);
        for (array, place) in line.arrays.iter().zip(&line.places) {
            // SAFETY: as promised by the caller.
            let index = unsafe { array.base.add(place + position * array.step).read() };
            // An index before the block becomes a number beyond it.
            let local = index.wrapping_sub(array.first) as u64 as usize;
            is_own &= array.range.0 <= local && local < array.range.1;
            target = local.wrapping_mul(array.stride).wrapping_add(target);
        }
        // SAFETY: as promised by the caller; the indices of own updates lie in the block.
        unsafe {
            let from = updates.add(position * line.step);
            if line.rows.count == 0 {
                // Without a branch, which could not be predicted: updates of other threads go to an element of no use.
                let to = if is_own { result.wrapping_add(target) } else { &raw mut unused };
                U::row(line.dtype, (to, 1), (from, 1), 1);
                continue;
            }
            if !is_own {
                continue;
            }
            let to = result.add(target);
            match line.rows.dims[..line.rows.count] {
                [row] => U::row(line.dtype, (to, row.to), (from, row.from), row.len),
                _ => line.rows.each(|more, other, row| {
                    U::row(line.dtype, (to.add(more), row.to), (from.add(other), row.from), row.len);
                }),
            }
        }
    }
}

/// # Safety
/// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the call has the arrays that `check` demands. `first` has the index
/// of the first element of the device's block for each indexed dimension, and `part` is a range of the divided dimension.
pub(super) unsafe fn scatter(call: &LibraryCall<'_>, scatter: &ScatterRows, first: &[i64], part: Range<usize>) {
    let (result, updates) = (call.result(0), call.operand(0, 0));
    let update = function(result.dtype, scatter.combine).expect("the operation has been checked");
    let (indexed, size) = (first.len(), result.dtype.size());
    let rank = updates.dims.len() - (result.dims.len() - indexed);
    debug_assert!(part.end <= result.dims[scatter.divided].len, "a part beyond the result");
    if let Some(bits) = scatter.start {
        // SAFETY: as promised by the caller.
        unsafe { by_width!(result.dtype, fill(&result, bits, scatter.divided, &part)) };
    }
    let own = |dim: usize| if dim == scatter.divided { part.clone() } else { 0..result.dims[dim].len };
    // The first element of this part of each row.
    let (mut to, mut from) = (0, 0);
    let mut rows = [RowDim::default(); MAX_RANK];
    for dim in indexed..result.dims.len() {
        let (target, update) = (result.dims[dim], updates.dims[rank + dim - indexed]);
        to += own(dim).start * target.stride;
        from += own(dim).start * update.stride;
        rows[dim - indexed] = RowDim { len: own(dim).len(), to: target.stride, from: update.stride };
    }
    let loops = RowLoops::new(rows[..result.dims.len() - indexed].iter().copied());
    let lens = &updates.dims[..rank];
    if lens.iter().any(|dim| dim.len == 0) || rows[..result.dims.len() - indexed].iter().any(|dim| dim.len == 0) {
        return;
    }
    let index_array = |dim: usize| {
        let array = call.operand(1 + dim, 0);
        IndexArray {
            dims: array.dims,
            base: array.base.cast_const().cast(),
            step: array.dims.last().map_or(0, |dim| dim.stride),
            first: first[dim],
            range: (own(dim).start, own(dim).end),
            stride: result.dims[dim].stride,
        }
    };
    let arrays: [IndexArray; MAX_RANK] = std::array::from_fn(|dim| index_array(dim.min(indexed - 1)));
    let arrays = &arrays[..indexed];
    let inner = lens.last().map_or(1, |dim| dim.len);
    let total: usize = lens.iter().map(|dim| dim.len).product();
    for outer in (0..total).step_by(inner) {
        // The offsets of the first of a line of updates.
        let (mut at, mut places) = (from, [0; MAX_RANK]);
        let mut rest = outer;
        for (dim, extent) in lens.iter().enumerate().rev() {
            let index = rest % extent.len;
            rest /= extent.len;
            at += index * extent.stride;
            for (array, place) in arrays.iter().zip(&mut places) {
                *place += index * array.dims[dim].stride;
            }
        }
        let line = UpdateLine {
            dtype: result.dtype,
            arrays,
            places,
            len: inner,
            to: result.base.wrapping_add(to * size),
            from: updates.base.wrapping_add(at * size),
            step: lens.last().map_or(0, |dim| dim.stride),
            rows: &loops,
        };
        // SAFETY: as promised by the caller.
        unsafe { update(&line) };
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
        for at in 0..row.len {
            // SAFETY: as promised by the caller.
            unsafe { result.base.cast::<W>().add(begin + more + at * row.to).write(value) }
        }
    });
}
