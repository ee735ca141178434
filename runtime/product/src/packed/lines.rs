//! Products with few rows or columns whose operands both have their terms side by side: sums along the contraction, without panels.
//!
//! ```text
//! lane 0 sums terms 0, 16, 32, ..; lane 1 terms 1, 17, ..     16 lanes of f32, 8 of f64
//! lanes i and i + 8, then i and i + 4, .. are added
//! ```
//!
//! All kernels have these lanes, so they produce the same bits. The order differs from that of panels.

use super::kernel::{PanelKernel, PanelLane};
use super::{PackedOperand, PackedProduct};

/// Rows of the longer operand whose sums are in registers at the same time.
const LONG: usize = 4;

/// The most lanes, and the most sums of a tile.
const MAX_LANES: usize = 16;
const MOST_SUMS: usize = 4 * LONG;

/// Some rows of both operands, and the result of the first ones.
#[derive(Clone, Copy)]
struct LineTile<L> {
    few: *const L,
    of_few: isize,
    long: *const L,
    of_long: isize,
    terms: usize,
    c: *mut L,
    c_few: isize,
    c_long: isize,
    adds: bool,
}

/// Computes a product with `V` vectors of lanes, and tiles of at most `FEW` rows of the operand with fewer.
///
/// # Safety
/// As for [`PackedKernel::run`](super::PackedKernel::run); the terms of both operands are side by side.
#[inline(always)]
pub(super) unsafe fn multiply_lines<K: PanelKernel, const V: usize, const FEW: usize>(product: &PackedProduct) {
    let PackedProduct { m, n, k, a, b, .. } = *product;
    debug_assert!(a.along == 1 && b.along == 1 && V * K::LANES <= MAX_LANES && (1..=4).contains(&FEW));
    let (rows, columns) = ((m, a, product.c_rows), (n, b, product.c_columns));
    let ((few, of_few, c_few), (long, of_long, c_long)) = if m <= n { (rows, columns) } else { (columns, rows) };
    let row = |operand: &PackedOperand, row: usize| {
        operand.first.cast::<K::Lane>().wrapping_offset((row as isize).wrapping_mul(operand.across))
    };
    for second in (0..long).step_by(LONG) {
        let mut first = 0;
        while first < few {
            let tile = LineTile {
                few: row(&of_few, first),
                of_few: of_few.across,
                long: row(&of_long, second),
                of_long: of_long.across,
                terms: k,
                c: product.c.cast::<K::Lane>().wrapping_offset(first as isize * c_few + second as isize * c_long),
                c_few,
                c_long,
                adds: product.adds,
            };
            let rows = (few - first).min(FEW);
            // SAFETY: as promised by the caller.
            unsafe {
                if long - second >= LONG {
                    rows_of_few::<K, V, LONG>(&tile, rows);
                } else {
                    for next in 0..(long - second) as isize {
                        let long = tile.long.wrapping_offset(next * tile.of_long);
                        let c = tile.c.wrapping_offset(next * c_long);
                        rows_of_few::<K, V, 1>(&LineTile { long, c, ..tile }, rows);
                    }
                }
            }
            first += rows;
        }
    }
}

/// # Safety
/// As for [`multiply_lines`], for rows of the tile.
#[inline(always)]
unsafe fn rows_of_few<K: PanelKernel, const V: usize, const N: usize>(tile: &LineTile<K::Lane>, rows: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        match rows {
            1 => sum_lines::<K, V, 1, N>(tile),
            2 => sum_lines::<K, V, 2, N>(tile),
            3 => sum_lines::<K, V, 3, N>(tile),
            _ => sum_lines::<K, V, 4, N>(tile),
        }
    }
}

/// # Safety
/// As for [`multiply_lines`], for `M` rows of one operand and `N` of the other.
#[inline(always)]
unsafe fn sum_lines<K: PanelKernel, const V: usize, const M: usize, const N: usize>(tile: &LineTile<K::Lane>) {
    let zero = K::Lane::default();
    let width = V * K::LANES;
    let whole = tile.terms / width * width;
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sums = [[[K::splat(zero); V]; N]; M];
        let few: [*const K::Lane; M] = std::array::from_fn(|row| tile.few.wrapping_offset(row as isize * tile.of_few));
        let long: [*const K::Lane; N] =
            std::array::from_fn(|row| tile.long.wrapping_offset(row as isize * tile.of_long));
        for at in (0..whole).step_by(width) {
            add_terms::<K, V, M, N>(&mut sums, few.map(|row| row.add(at)), long.map(|row| row.add(at)));
        }
        if whole < tile.terms {
            let mut last = ([[zero; MAX_LANES]; M], [[zero; MAX_LANES]; N]);
            let rows = last.0.iter_mut().zip(few).chain(last.1.iter_mut().zip(long));
            for (terms, row) in rows {
                terms.as_mut_ptr().copy_from_nonoverlapping(row.add(whole), tile.terms - whole);
            }
            let (few, long) = (last.0.each_ref().map(|row| row.as_ptr()), last.1.each_ref().map(|row| row.as_ptr()));
            add_terms::<K, V, M, N>(&mut sums, few, long);
        }
        let mut stored = [[zero; MAX_LANES]; MOST_SUMS];
        for (sums, stored) in sums.iter().zip(stored.chunks_exact_mut(N)) {
            for (sums, stored) in sums.iter().zip(stored) {
                for (v, &sum) in sums.iter().enumerate() {
                    K::store(stored.as_mut_ptr().add(v * K::LANES), sum);
                }
            }
        }
        // A vector has a lane of each of several sums.
        let mut lanes = [zero; MAX_LANES * MAX_LANES];
        let (lanes, size) = (lanes.as_mut_ptr(), size_of::<[K::Lane; MAX_LANES]>() as isize);
        for first in (0..M * N).step_by(K::LANES) {
            let count = (M * N - first).min(K::LANES);
            for v in 0..V {
                let from = stored[first].as_ptr().add(v * K::LANES);
                K::transpose(from.cast(), size, count, lanes.add(v * K::LANES * K::LANES), K::LANES);
            }
            let mut half = width / 2;
            while half > 0 {
                for at in 0..half {
                    let place = lanes.add(at * K::LANES);
                    K::store(place, K::add(K::load(place), K::load(place.add(half * K::LANES))));
                }
                half /= 2;
            }
            for at in 0..count {
                let [row, column] = [(first + at) / N, (first + at) % N].map(|at| at as isize);
                let place = tile.c.wrapping_offset(row * tile.c_few).wrapping_offset(column * tile.c_long);
                let sum = *lanes.add(at);
                *place = if tile.adds { (*place).plus(sum) } else { sum };
            }
        }
    }
}

/// Adds the products of the terms of a vector of lanes, or of `V` of them.
///
/// # Safety
/// The terms can be read.
#[inline(always)]
unsafe fn add_terms<K: PanelKernel, const V: usize, const M: usize, const N: usize>(
    sums: &mut [[[K::Vector; V]; N]; M],
    few: [*const K::Lane; M],
    long: [*const K::Lane; N],
) {
    for v in 0..V {
        // SAFETY: as promised by the caller.
        unsafe {
            let mut columns = [K::splat(K::Lane::default()); N];
            for (column, row) in columns.iter_mut().zip(long) {
                *column = K::load(row.add(v * K::LANES));
            }
            for (sums, row) in sums.iter_mut().zip(few) {
                let term = K::load(row.add(v * K::LANES));
                for (sums, &column) in sums.iter_mut().zip(&columns) {
                    sums[v] = K::multiply_add(sums[v], term, column);
                }
            }
        }
    }
}
