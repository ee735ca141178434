//! The loops over blocks of a product, and the innermost one: a tile of accumulators in registers.
//!
//! ```text
//! for 512 columns of c            panels of b: up to 1 MiB, in the second or third cache
//!   for 512 groups of terms
//!     for 96 rows                 panels of a: up to 192 KiB, in the second cache
//!       for a panel of b          up to 64 KiB
//!         for a panel of a        a tile of c: sums in registers
//! ```

use std::cell::Cell;
use std::mem::size_of;

use super::kernel::{PanelKernel, PanelLane};
use super::panels::{FLIP, flips, pack, sums_of_rows};
use super::{LaneFormat, PackedProduct};

/// Groups of terms, rows and columns of a block. Rows and columns are multiples of those of all tiles.
const DEPTH: usize = 512;
const ROWS: usize = 96;
const COLUMNS: usize = 512;

/// The most columns of a tile.
const MAX_COLUMNS: usize = 32;

/// Memory for panels and corrections, in units that are aligned like cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine(#[allow(dead_code)] [u8; 64]);

thread_local! {
    /// The panels of the thread's product: at most about 1.3 MiB, kept for the next one.
    static PANELS: Cell<Vec<CacheLine>> = const { Cell::new(Vec::new()) };
}

/// Where a tile of the result is.
#[derive(Clone, Copy)]
struct ResultTile<L> {
    first: *mut L,
    /// From one row to the next, and from one column to the next, in elements.
    rows: isize,
    columns: isize,
    adds: bool,
}

/// The panels of a tile, and the corrections of its rows and columns.
#[derive(Clone, Copy)]
struct TileSource<L> {
    groups: usize,
    a: *const L,
    b: *const L,
    of_rows: *const L,
    of_columns: *const L,
}

/// Computes a product with tiles of `R` rows and `2 * K::LANES = W` columns; the last rows are tiles of `FEW` rows, then of one.
///
/// # Safety
/// As for [`PackedKernel::run`](super::PackedKernel::run); there are rows and columns.
#[inline(always)]
pub(super) unsafe fn multiply<K: PanelKernel, const R: usize, const FEW: usize, const W: usize>(
    product: &PackedProduct,
) {
    debug_assert!(W == 2 * K::LANES && W <= MAX_COLUMNS && ROWS.is_multiple_of(R) && COLUMNS.is_multiple_of(W));
    // Tiles store rows.
    let mut product = *product;
    if product.c_columns.unsigned_abs() > product.c_rows.unsigned_abs() && product.c_rows != 0 {
        std::mem::swap(&mut product.m, &mut product.n);
        std::mem::swap(&mut product.a, &mut product.b);
        std::mem::swap(&mut product.c_rows, &mut product.c_columns);
    }
    let depth = product.k.div_ceil(K::GROUP).clamp(1, DEPTH);
    let rows = product.m.min(ROWS).next_multiple_of(R);
    let columns = product.n.min(COLUMNS).next_multiple_of(W);
    let lanes = [rows * depth, columns * depth, rows, columns];
    let lines = lanes.map(|lanes| (lanes * size_of::<K::Lane>()).div_ceil(size_of::<CacheLine>()));
    let mut panels = PANELS.take();
    let needed = lines.iter().sum();
    if panels.len() < needed {
        panels.resize(needed, CacheLine([0; 64]));
    }
    let mut next = panels.as_mut_ptr().cast::<K::Lane>();
    let [a, b, of_rows, of_columns] = lines.map(|lines| {
        let first = next;
        next = next.wrapping_byte_add(lines * size_of::<CacheLine>());
        first
    });
    // Not in a closure, which would be compiled without the instructions of the kernel.
    // SAFETY: as promised by the caller; each part has the room that was computed for it.
    unsafe { blocks::<K, R, FEW, W>(&product, [a, b], [of_rows, of_columns]) };
    PANELS.set(panels);
}

/// # Safety
/// As for [`multiply`]; there is room for the panels of `a` and `b`, and the corrections of rows and columns.
#[inline(always)]
unsafe fn blocks<K: PanelKernel, const R: usize, const FEW: usize, const W: usize>(
    product: &PackedProduct,
    [a, b]: [*mut K::Lane; 2],
    [of_rows, of_columns]: [*mut K::Lane; 2],
) {
    let PackedProduct { m, n, k, .. } = *product;
    let is_bytes = K::FORMAT == LaneFormat::Bytes;
    let moved_a = is_bytes && flips(product.a.element, false);
    let moved_b = is_bytes && flips(product.b.element, true);
    let c = product.c.cast::<K::Lane>();
    for column in (0..n).step_by(COLUMNS) {
        let columns = COLUMNS.min(n - column);
        // An empty sum is zero.
        for term in (0..k.max(1)).step_by(DEPTH * K::GROUP) {
            let terms = (DEPTH * K::GROUP).min(k - term);
            let groups = terms.div_ceil(K::GROUP);
            let adds = product.adds || term > 0;
            // SAFETY: as promised by the caller.
            unsafe {
                pack::<K, W>(&product.b, true, (column, columns), (term, terms), b);
                for panel in (0..columns).step_by(W) {
                    for half in [0, K::LANES] {
                        let mut sums = K::splat(K::Lane::default());
                        if moved_a {
                            // Four unsigned bytes of 128.
                            let factor = K::splat(K::Lane::of(FLIP));
                            for group in 0..groups {
                                let lanes = b.add(panel * groups + group * W + half);
                                sums = K::multiply_add(sums, factor, K::load(lanes));
                            }
                        }
                        K::store(of_columns.add(panel + half), sums);
                    }
                    for column in panel..panel + W {
                        let sum = of_columns.add(column);
                        sum.write(sum.read().negated());
                    }
                }
            }
            for row in (0..m).step_by(ROWS) {
                let rows = ROWS.min(m - row);
                // SAFETY: as promised by the caller.
                unsafe {
                    pack::<K, R>(&product.a, false, (row, rows), (term, terms), a);
                    if moved_b {
                        let padded = (groups * K::GROUP) as i32;
                        let constant = if moved_a { padded.wrapping_mul(-128 * 128) } else { 0 };
                        sums_of_rows::<R>(a.cast(), (rows, groups), (128, constant), of_rows.cast());
                    } else {
                        (0..rows.next_multiple_of(R)).for_each(|row| of_rows.add(row).write(K::Lane::default()));
                    }
                }
                for panel in (0..columns).step_by(W) {
                    for tile in (0..rows).step_by(R) {
                        let first = c
                            .wrapping_offset((row + tile) as isize * product.c_rows)
                            .wrapping_offset((column + panel) as isize * product.c_columns);
                        let size = (R.min(rows - tile), W.min(columns - panel));
                        let to = ResultTile { first, rows: product.c_rows, columns: product.c_columns, adds };
                        let from = TileSource {
                            groups,
                            a: a.wrapping_add(tile * groups),
                            b: b.wrapping_add(panel * groups),
                            of_rows: of_rows.wrapping_add(tile),
                            of_columns: of_columns.wrapping_add(panel),
                        };
                        // SAFETY: as promised by the caller.
                        unsafe { sized::<K, R, FEW, W>(from, to, size) };
                    }
                }
            }
        }
    }
}

/// Computes some rows and columns of a tile.
///
/// # Safety
/// As for [`multiply`]; the panels have the groups of all rows and columns of a tile.
#[inline(always)]
unsafe fn sized<K: PanelKernel, const R: usize, const FEW: usize, const W: usize>(
    from: TileSource<K::Lane>,
    to: ResultTile<K::Lane>,
    (rows, columns): (usize, usize),
) {
    // SAFETY: as promised by the caller.
    unsafe {
        if rows == R && columns > K::LANES {
            return tile::<K, R, R, 2>(from, to, columns);
        }
        let mut row = 0;
        while row < rows {
            let from = TileSource { a: from.a.wrapping_add(row), of_rows: from.of_rows.wrapping_add(row), ..from };
            let to = ResultTile { first: to.first.wrapping_offset(row as isize * to.rows), ..to };
            row += match (rows - row, columns <= K::LANES) {
                (left, true) if left >= R => {
                    tile::<K, R, R, 1>(from, to, columns);
                    R
                }
                (left, true) if left >= FEW => {
                    tile::<K, R, FEW, 1>(from, to, columns);
                    FEW
                }
                (_, true) => {
                    tile::<K, R, 1, 1>(from, to, columns);
                    1
                }
                (left, false) if left >= FEW => {
                    tile::<K, R, FEW, 2>(from, to, columns);
                    FEW
                }
                (_, false) => {
                    tile::<K, R, 1, 2>(from, to, columns);
                    1
                }
            };
        }
    }
}

/// Computes `rows` rows and `V` vectors of columns, of which some may be after the end.
///
/// # Safety
/// As for [`sized`]; the panel of `a` has `R` rows.
#[inline(always)]
unsafe fn tile<K: PanelKernel, const R: usize, const M: usize, const V: usize>(
    from: TileSource<K::Lane>,
    to: ResultTile<K::Lane>,
    columns: usize,
) {
    debug_assert!(columns <= V * K::LANES && M <= R, "a tile has rows and columns of its panels");
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sums = [[K::splat(K::Lane::default()); V]; M];
        for (row, sums) in sums.iter_mut().enumerate() {
            let of_row = K::splat(*from.of_rows.add(row));
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = K::add(of_row, K::load(from.of_columns.add(v * K::LANES)));
            }
        }
        let (mut a, mut b) = (from.a, from.b);
        let mut columns_of_b = [K::splat(K::Lane::default()); V];
        for _ in 0..from.groups {
            for (v, column) in columns_of_b.iter_mut().enumerate() {
                *column = K::load(b.add(v * K::LANES));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let term = K::splat(*a.add(row));
                for (sum, &column) in sums.iter_mut().zip(&columns_of_b) {
                    *sum = K::multiply_add(*sum, term, column);
                }
            }
            a = a.add(R);
            b = b.add(2 * K::LANES);
        }
        if to.columns == 1 && columns == V * K::LANES {
            for (row, sums) in sums.iter().enumerate() {
                let row = to.first.offset(row as isize * to.rows);
                for (v, &sum) in sums.iter().enumerate() {
                    let place = row.add(v * K::LANES);
                    K::store(place, if to.adds { K::add(K::load(place), sum) } else { sum });
                }
            }
            return;
        }
        let mut row_of_sums = [K::Lane::default(); MAX_COLUMNS];
        for (row, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                K::store(row_of_sums.as_mut_ptr().add(v * K::LANES), sum);
            }
            let row = to.first.offset(row as isize * to.rows);
            for (column, &sum) in row_of_sums[..columns].iter().enumerate() {
                let place = row.offset(column as isize * to.columns);
                *place = if to.adds { (*place).plus(sum) } else { sum };
            }
        }
    }
}
