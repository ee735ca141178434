//! The loops over blocks of a product, and the innermost one: a tile of accumulators in registers.
//!
//! ```text
//! for 512 columns of c            panels of b: up to 1 MiB, in the second or third cache
//!   for 512 groups of terms
//!     for 96 rows                 panels of a: up to 192 KiB, in the second cache
//!       for a panel of b          up to 64 KiB
//!         for a panel of a        a tile of c: sums in registers
//! ```
//!
//! With few rows, a copy of `b` costs as much as the product. Rows of f32 and f64 are then read in place, four vectors of columns at a time;
//! other operands are copied one panel at a time, which stays in the nearest caches:
//!
//! ```text
//! for 512 groups of terms         panels of a, all of them
//!   for a panel of b              in place, or a copy
//!     for a panel of a
//! ```
//!
//! In all tiles, each element of the result is the sum over blocks of 512 groups, of which each is summed in order.

use std::cell::Cell;
use std::mem::size_of;

use super::kernel::{PanelKernel, PanelLane};
use super::panels::{FLIP, flips, pack, sums_of_rows};
use super::{LaneFormat, PackedProduct};

/// Groups of terms, rows and columns of a block. Rows and columns are multiples of those of all tiles.
const DEPTH: usize = 512;
const ROWS: usize = 96;
const COLUMNS: usize = 512;

/// The most rows that are copied as a whole, at most 384 KiB of lanes of 32 bits. So many do not pay for copies of rows of `b` that kernels
/// can read in place.
const FEW_ROWS: usize = 192;

/// The most columns of a tile.
const MAX_COLUMNS: usize = 128;

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
    /// From one group of `b` to the next, in lanes.
    step: usize,
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
    let few = product.m <= FEW_ROWS;
    let rows = product.m.min(if few { FEW_ROWS } else { ROWS }).next_multiple_of(R);
    let columns = product.n.min(if few { 4 * W } else { COLUMNS }).next_multiple_of(W);
    let lanes = [rows * depth + K::LANES, columns * depth + K::LANES, rows, columns];
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
    // Few rows are copied once for each block of terms, and each panel of `b` is used while it is in the first cache.
    let few = m <= FEW_ROWS;
    let in_place = few && product.b.across == 1 && matches!(K::FORMAT, LaneFormat::Singles | LaneFormat::Doubles);
    let (narrow, wide) = in_place_vectors(R);
    let width = match (in_place, few) {
        (true, _) => K::LANES * if m <= 3 { wide } else { narrow },
        (false, true) => W,
        (false, false) => COLUMNS,
    };
    let height = if few { m } else { ROWS };
    // An empty sum is zero.
    let (columns, passes) = (n.div_ceil(width), k.div_ceil(DEPTH * K::GROUP).max(1));
    let (outer, inner) = if few { (passes, columns) } else { (columns, passes) };
    for (block, next) in (0..outer).flat_map(|block| (0..inner).map(move |next| (block, next))) {
        let (column, pass) = if few { (next, block) } else { (block, next) };
        let (column, term) = (column * width, pass * DEPTH * K::GROUP);
        let columns = width.min(n - column);
        let terms = (DEPTH * K::GROUP).min(k - term);
        let groups = terms.div_ceil(K::GROUP);
        let adds = product.adds || term > 0;
        let (mut of_b, mut step) = (b.cast_const(), W);
        let in_place = in_place && columns == width;
        // SAFETY: as promised by the caller.
        unsafe {
            if in_place {
                let first = product.b.first.cast::<K::Lane>();
                of_b = first.wrapping_add(column).wrapping_offset(term as isize * product.b.along);
                step = product.b.along as usize;
            } else {
                pack::<K, W>(&product.b, true, (column, columns), (term, terms), b);
            }
            if is_bytes {
                correct_columns::<K, W>(b, (columns, groups), moved_a, of_columns);
            }
        }
        for row in (0..m).step_by(height) {
            let rows = height.min(m - row);
            // SAFETY: as promised by the caller.
            unsafe {
                if !few || next == 0 {
                    pack::<K, R>(&product.a, false, (row, rows), (term, terms), a);
                    if moved_b {
                        let padded = (groups * K::GROUP) as i32;
                        let constant = if moved_a { padded.wrapping_mul(-128 * 128) } else { 0 };
                        sums_of_rows::<R>(a.cast(), (rows, groups), (128, constant), of_rows.cast());
                    } else if is_bytes {
                        (0..rows.next_multiple_of(R)).for_each(|row| of_rows.add(row).write(K::Lane::default()));
                    }
                }
            }
            if in_place {
                let first = c
                    .wrapping_offset(row as isize * product.c_rows)
                    .wrapping_offset(column as isize * product.c_columns);
                let to = ResultTile { first, rows: product.c_rows, columns: product.c_columns, adds };
                // SAFETY: as promised by the caller.
                unsafe { in_place_rows::<K, R>(groups, a, (of_b, step), to, (rows, columns)) };
                continue;
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
                        b: of_b.wrapping_add(panel * groups),
                        step,
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

/// The correction of each column of panels of bytes.
///
/// # Safety
/// As for [`multiply`]; the panels of `b` have these columns and groups, and `into` has room for a lane for each column of them.
#[inline(always)]
unsafe fn correct_columns<K: PanelKernel, const W: usize>(
    b: *const K::Lane,
    (columns, groups): (usize, usize),
    moved: bool,
    into: *mut K::Lane,
) {
    for panel in (0..columns).step_by(W) {
        // SAFETY: as promised by the caller.
        unsafe {
            for half in [0, K::LANES] {
                let mut sums = K::splat(K::Lane::default());
                if moved {
                    // Four unsigned bytes of 128.
                    let factor = K::splat(K::Lane::of(FLIP));
                    for group in 0..groups {
                        sums = K::multiply_add(sums, factor, K::load(b.add(panel * groups + group * W + half)));
                    }
                }
                K::store(into.add(panel + half), sums);
            }
            for column in panel..panel + W {
                let sum = into.add(column);
                sum.write(sum.read().negated());
            }
        }
    }
}

/// Computes rows of four vectors of columns of `b`, which are in place.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn in_place_rows<K: PanelKernel, const R: usize>(
    groups: usize,
    a: *const K::Lane,
    (b, step): (*const K::Lane, usize),
    to: ResultTile<K::Lane>,
    (rows, columns): (usize, usize),
) {
    let mut row = 0;
    while row < rows {
        let in_panel = row % R;
        let from = TileSource {
            groups,
            a: a.wrapping_add((row - in_panel) * groups + in_panel),
            b,
            step,
            of_rows: a,
            of_columns: a,
        };
        let to = ResultTile { first: to.first.wrapping_offset(row as isize * to.rows), ..to };
        // SAFETY: as promised by the caller.
        unsafe {
            row += match (rows - row).min(R - in_panel) {
                1 => vectors_in_place::<K, R, 1>(from, to, columns),
                2 => vectors_in_place::<K, R, 2>(from, to, columns),
                3 => vectors_in_place::<K, R, 3>(from, to, columns),
                4 | 8 => vectors_in_place::<K, R, 4>(from, to, columns),
                5 | 9 | 10 => vectors_in_place::<K, R, 5>(from, to, columns),
                _ => vectors_in_place::<K, R, 6>(from, to, columns),
            }
        }
    }
}

/// The vectors of columns of a tile of `b` in place, and of one with up to three rows, by the rows of other tiles: so many that their sums
/// are in registers.
const fn in_place_vectors(rows: usize) -> (usize, usize) {
    if rows > 6 { (4, 8) } else { (2, 4) }
}

/// Computes `M` rows; returns their number.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn vectors_in_place<K: PanelKernel, const R: usize, const M: usize>(
    from: TileSource<K::Lane>,
    to: ResultTile<K::Lane>,
    columns: usize,
) -> usize {
    // SAFETY: as promised by the caller.
    unsafe {
        match (columns / K::LANES, R > 6) {
            (8, true) if M <= 3 => tile::<K, R, M, 8>(from, to, columns),
            (_, true) => tile::<K, R, M, 4>(from, to, columns),
            (4, false) if M <= 3 => tile::<K, R, M, 4>(from, to, columns),
            (_, false) => tile::<K, R, M, 2>(from, to, columns),
        }
    }
    M
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
        if K::FORMAT == LaneFormat::Bytes {
            for (row, sums) in sums.iter_mut().enumerate() {
                let of_row = K::splat(*from.of_rows.add(row));
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = K::add(of_row, K::load(from.of_columns.add(v * K::LANES)));
                }
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
            if from.step != 2 * K::LANES {
                (0..V).for_each(|v| K::fetch(b.wrapping_add(8 * from.step + v * K::LANES)));
            }
            a = a.add(R);
            b = b.wrapping_add(from.step);
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
        // The loop with a varying length does not index the sums, or they would be in memory during the multiplications.
        let mut stored = [[K::Lane::default(); MAX_COLUMNS]; M];
        for (sums, stored) in sums.iter().zip(&mut stored) {
            for (v, &sum) in sums.iter().enumerate() {
                K::store(stored.as_mut_ptr().add(v * K::LANES), sum);
            }
        }
        for (row, stored) in stored.iter().enumerate() {
            let row = to.first.offset(row as isize * to.rows);
            for (column, &sum) in stored[..columns].iter().enumerate() {
                let place = row.offset(column as isize * to.columns);
                *place = if to.adds { (*place).plus(sum) } else { sum };
            }
        }
    }
}
