//! Loops over columns, compiled for the widest vectors of the processor. They round each product and each difference, and the order of a
//! sum does not depend on the vectors: so the bits are the same on every processor.

use crate::MatrixElement;
use faer::{MatMut, MatRef};

/// Terms of a sum that are added side by side.
const LANES: usize = 16;

/// Runs a loop with the widest vectors of the processor.
#[inline(always)]
pub(crate) fn widest<R>(body: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(body)
}

/// Column `j` as a slice.
#[inline(always)]
pub(crate) fn column<T>(a: MatRef<'_, T>, j: usize) -> &[T] {
    a.col(j).try_as_col_major().expect("columns are contiguous").as_slice()
}

/// Column `j` as a slice, to be written.
#[inline(always)]
pub(crate) fn column_mut<T>(a: MatMut<'_, T>, j: usize) -> &mut [T] {
    a.col_mut(j).try_as_col_major_mut().expect("columns are contiguous").as_slice_mut()
}

/// Subtracts a multiple of a column.
#[inline(always)]
pub(crate) fn subtract_multiple<T: MatrixElement>(to: &mut [T], from: &[T], factor: T) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to -= *from * factor);
}

/// The sum of products of two columns.
#[inline(always)]
pub(crate) fn dot<T: MatrixElement>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::of(0.0); LANES];
    let (own, other) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = own.remainder().iter().zip(other.remainder());
    for (a, b) in own.zip(other) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(rest) {
        *sum += *a * *b;
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            let other = sums[lane + width];
            sums[lane] += other;
        }
    }
    sums[0]
}

/// The largest magnitude, at least zero. NaN is passed over.
#[inline(always)]
pub(crate) fn largest_of<T: MatrixElement>(column: &[T]) -> T {
    let mut most = [T::of(0.0); LANES];
    let chunks = column.chunks_exact(LANES);
    let rest = chunks.remainder();
    let larger = |most: T, x: T| if x.magnitude() > most { x.magnitude() } else { most };
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = larger(most[lane], chunk[lane]);
        }
    }
    let all = most.into_iter().chain(rest.iter().copied());
    all.fold(T::of(0.0), larger)
}

/// The first place with the largest magnitude. NaN in the first place is the largest, and is passed over elsewhere.
#[inline(always)]
pub(crate) fn place_of_largest<T: MatrixElement>(column: &[T]) -> usize {
    let most = largest_of(column);
    // A NaN in the first place is not smaller than the others.
    if column.first().is_none_or(|first| first.magnitude().partial_cmp(&most).is_none_or(|order| order.is_ge())) {
        return 0;
    }
    column.iter().position(|x| x.magnitude() == most).unwrap_or(0)
}
