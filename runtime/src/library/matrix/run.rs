//! The functions of matrices, on copies of their operands.

use super::arrays::{MatrixArray, matrix};
use crate::library::LibraryCall;
use spmdc_abi::{DType, MatrixFunction, TriangularSystem};
use spmdc_matrix::{MatMut, MatrixElement, RIGHT, Reflections, SMALL, Workers};
use std::cmp::Ordering;
use std::ops::Range;

/// Makes one call; `first` is the index of the block's first row, for functions of blocks.
///
/// # Safety
/// As for [`PreparedFunction::call`](crate::library::PreparedFunction::call).
pub(super) unsafe fn run(call: &LibraryCall<'_>, function: &MatrixFunction, first: usize, workers: &mut dyn Workers) {
    let a = call.operand(0, 0);
    let precision = function.precision(a.dtype, a.dims[0].len, a.dims[1].len);
    // SAFETY: as promised by the caller.
    unsafe {
        if a.dtype == DType::F64 {
            run_as::<f64, f64>(call, function, first, workers);
        } else if precision == DType::F64 {
            run_as::<f32, f64>(call, function, first, workers);
        } else {
            run_as::<f32, f32>(call, function, first, workers);
        }
    }
}

/// The rows exchanged in each step, in scratch memory, and the other elements.
fn places(scratch: &mut [f64], steps: usize) -> (&mut [usize], &mut [f64]) {
    const { assert!(size_of::<usize>() <= size_of::<f64>() && align_of::<usize>() <= align_of::<f64>()) };
    let (own, rest) = scratch.split_at_mut(steps);
    // SAFETY: the bytes of the slice, which is borrowed for as long; any bytes are integers.
    (unsafe { std::slice::from_raw_parts_mut(own.as_mut_ptr().cast(), steps) }, rest)
}

/// Right sides as columns. Those of a system of more than a few rows, `solved`, are in whole groups, with zeros in the last one: so their
/// bits do not depend on their number.
///
/// # Safety
/// As for `run`.
unsafe fn load_sides<'s, T: MatrixElement, W: MatrixElement>(
    b: &MatrixArray<'_, T>,
    (turned, solved): (bool, usize),
    scratch: &'s mut [W],
    workers: &mut dyn Workers,
) -> (MatMut<'s, W>, &'s mut [W]) {
    let (n, count) = if turned { (b.size(1), b.size(0)) } else { (b.size(0), b.size(1)) };
    let all = if solved <= SMALL { count } else { count.next_multiple_of(RIGHT) };
    let (mut own, rest) = matrix(scratch, n, all);
    let place = |row: usize, column: usize| if turned { (column, row) } else { (row, column) };
    own.as_mut().subcols_mut(count, all - count).fill(W::of(0.0));
    // SAFETY: as promised by the caller.
    unsafe { b.copy_to(own.as_mut().subcols_mut(0, count), place, workers) };
    (own, rest)
}

/// A step of a Cholesky factorization of split rows. It loads only the columns that it uses, and computes on them.
///
/// # Safety
/// As for `run`.
unsafe fn cholesky_rows<T: MatrixElement, W: MatrixElement>(
    first: usize,
    [a, result]: [&MatrixArray<'_, T>; 2],
    known: Option<&MatrixArray<'_, T>>,
    scratch: &mut [W],
    workers: &mut dyn Workers,
) {
    let (rows, columns) = (a.size(0), a.size(1));
    let (width, end) = known.map_or((0, 0), |known| (known.size(0), known.size(1)));
    let (start, used) = match first.cmp(&end) {
        Ordering::Less => (0, 0),
        Ordering::Equal => (end - width, end + rows),
        Ordering::Greater => (end - width, end),
    };
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut own, scratch) = a.load_columns(0..used, scratch, workers);
        let (known, scratch) = match known.filter(|_| used > 0) {
            Some(known) => known.load(scratch, workers),
            None => matrix(scratch, 0, 0),
        };
        if used > 0 {
            spmdc_matrix::cholesky_rows(own.as_mut(), first, known.as_ref(), scratch, workers);
        }
        result.store_columns(start..used, |row, column| own[(row, column)], workers);
        result.copy_columns(a, 0..start);
        match used > end {
            // Above the diagonal of a block that is complete.
            true => result.store_columns(used..columns, |_, _| W::of(0.0), workers),
            false => result.copy_columns(a, used..columns),
        }
    }
}

/// # Safety
/// As for `run`.
unsafe fn run_as<T: MatrixElement, W: MatrixElement>(
    call: &LibraryCall<'_>,
    function: &MatrixFunction,
    first: usize,
    workers: &mut dyn Workers,
) {
    let a = MatrixArray::<T>::new(call.operand(0, 0));
    let operand = |number: usize| MatrixArray::<T>::new(call.operand(number, 0));
    let result = |number: usize| MatrixArray::<T>::new(call.result(number));
    let (rows, columns) = (a.size(0), a.size(1));
    let least = rows.min(columns);
    debug_assert!(call.owners() == 1, "matrices are the device's own");
    // SAFETY: as promised by the caller.
    unsafe {
        let slot = call.slot();
        match function {
            MatrixFunction::Cholesky => {
                let (mut own, _) = a.load(W::memory(slot), workers);
                let found = spmdc_matrix::cholesky(own.as_mut(), workers);
                let factor = |row: usize, column: usize| match row.cmp(&column) {
                    Ordering::Less => W::of(0.0),
                    Ordering::Equal | Ordering::Greater if found => own[(row, column)],
                    Ordering::Equal | Ordering::Greater => W::of(f64::NAN),
                };
                result(0).store(factor, workers);
            }
            MatrixFunction::TriangularSolve(system) => {
                triangular_solve::<T, W>(system, [&a, &operand(1), &result(0)], W::memory(slot), workers);
            }
            MatrixFunction::Solve => {
                let (pivots, scratch) = places(slot, rows);
                let (mut own, scratch) = a.load(W::memory(scratch), workers);
                let (mut sides, _) = load_sides(&operand(1), (false, rows), scratch, workers);
                spmdc_matrix::lu(own.as_mut(), sides.as_mut(), pivots, workers);
                spmdc_matrix::solve_triangular(own.as_ref(), (false, false), sides.as_mut(), workers);
                result(0).store(|row, side| sides[(row, side)], workers);
            }
            MatrixFunction::Lu => {
                let (pivots, scratch) = places(slot, least);
                let (mut own, rest) = a.load(W::memory(scratch), workers);
                spmdc_matrix::lu(own.as_mut(), matrix(rest, rows, 0).0, pivots, workers);
                result(0).store(|row, column| own[(row, column)], workers);
                let sources = call.result(2);
                for row in 0..rows {
                    sources.at::<i32>(row, 0).write(row as i32);
                }
                for (step, &pivot) in pivots.iter().enumerate() {
                    call.result(1).at::<i32>(step, 0).write(pivot as i32);
                    std::ptr::swap(sources.at::<i32>(step, 0), sources.at::<i32>(pivot, 0));
                }
            }
            MatrixFunction::LuDiagonal => {
                let (pivots, scratch) = places(slot, rows);
                let (mut own, rest) = a.load(W::memory(scratch), workers);
                spmdc_matrix::lu(own.as_mut(), matrix(rest, rows, 0).0, pivots, workers);
                result(0).store(|at, _| own[(at, at)], workers);
                for (step, &pivot) in pivots.iter().enumerate() {
                    call.result(1).at::<i32>(step, 0).write(pivot as i32);
                }
            }
            MatrixFunction::LuComplete => {
                let (mut own, _) = a.load::<f64>(slot, workers);
                let sources = [call.result(1), call.result(2)];
                for source in &sources {
                    for at in 0..rows {
                        source.at::<i32>(at, 0).write(at as i32);
                    }
                }
                spmdc_matrix::lu_complete(own.as_mut(), |step, pivot| {
                    for (source, other) in sources.iter().zip(pivot) {
                        std::ptr::swap(source.at::<i32>(step, 0), source.at::<i32>(other, 0));
                    }
                });
                result(0).store(|row, column| own[(row, column)], workers);
            }
            MatrixFunction::Qr { full, q } => {
                let made = if *full { rows } else { least };
                let product = q.then(|| result(0));
                qr::<T, W>(&a, (product, made), &result(usize::from(*q)), W::memory(slot), workers);
            }
            MatrixFunction::QrBlock { .. } => {
                qr::<T, W>(&a, (Some(result(0)), least), &result(1), W::memory(slot), workers);
            }
            MatrixFunction::QrSigns => {
                let (own, _) = a.load::<f64>(slot, workers);
                let (row, column) = (result(0), result(1));
                spmdc_matrix::qr_signs(own, T::EPSILON, |at, sign| {
                    row.set(0, at, T::of(sign));
                    column.set(at, 0, T::of(sign));
                });
            }
            MatrixFunction::CholeskyRows { .. } => {
                let known = (call.operands() == 2).then(|| operand(1));
                cholesky_rows::<T, W>(first, [&a, &result(0)], known.as_ref(), W::memory(slot), workers);
            }
            MatrixFunction::CholeskyChecked { .. } => {
                let found = !operand(1).get(0, 0).wide().is_nan();
                let element = |row: usize, column: usize| {
                    if found || column > first + row { a.get(row, column) } else { T::of(f64::NAN) }
                };
                result(0).store(element, workers);
            }
            MatrixFunction::TriangularRows { own, system, .. } => {
                let known = (call.operands() == 3).then(|| operand(2));
                let arrays = [&a, &operand(1), &result(0)];
                triangular_rows::<T, W>((system, own, first), arrays, known.as_ref(), W::memory(slot), workers);
            }
            MatrixFunction::TriangularSums { own, system, .. } => {
                let arrays = [&a, &operand(1), &result(0)];
                triangular_sums::<T, W>((system, own, first), arrays, W::memory(slot), workers);
            }
            MatrixFunction::Product => {
                let (own, scratch) = a.load(W::memory(slot), workers);
                let (other, scratch) = operand(1).load(scratch, workers);
                let (mut product, _) = matrix(scratch, rows, other.ncols());
                spmdc_matrix::multiply(product.as_mut(), own.as_ref(), other.as_ref());
                result(0).store(|row, column| product[(row, column)], workers);
            }
            MatrixFunction::Eigh { lower } => {
                let scratch = W::memory(slot);
                let (own, scratch) =
                    if *lower { a.load(scratch, workers) } else { a.load_turned(0..columns, scratch, workers) };
                let (values, scratch) = scratch.split_at_mut(rows);
                let (mut vectors, scratch) = matrix(scratch, rows, rows);
                spmdc_matrix::eigh(own, values, vectors.as_mut(), scratch, workers);
                result(0).store(|at, _| values[at], workers);
                result(1).store(|row, column| vectors[(row, column)], workers);
            }
            MatrixFunction::Eig { vectors } => {
                let (re, scratch) = a.load::<f64>(slot, workers);
                let is_complex = call.operands() == 2;
                // A real matrix has no second plane.
                let other = operand(usize::from(is_complex));
                let (im, scratch) = other.load_columns(0..if is_complex { rows } else { 0 }, scratch, workers);
                let mut planes = [re, im];
                let planes = &mut planes[..if is_complex { 2 } else { 1 }];
                let (first, scratch) = scratch.split_at_mut(rows);
                let (second, scratch) = scratch.split_at_mut(rows);
                let (mut left, scratch) = matrix(scratch, rows, rows);
                let (mut right, scratch) = matrix(scratch, rows, rows);
                let made = vectors.then(|| [left.as_mut(), right.as_mut()]);
                spmdc_matrix::eig(planes, [first, second], made, scratch);
                result(0).store(|at, _| first[at], workers);
                result(1).store(|at, _| second[at], workers);
                if *vectors {
                    result(2).store(|row, column| left[(row, column)], workers);
                    result(3).store(|row, column| right[(row, column)], workers);
                }
            }
            MatrixFunction::Svd { vectors } => {
                let (own, scratch) = a.load(W::memory(slot), workers);
                let (values, scratch) = scratch.split_at_mut(least);
                let Some(full) = vectors else {
                    spmdc_matrix::svd(own, values, None, scratch, workers);
                    result(0).store(|at, _| values[at], workers);
                    return;
                };
                let of = |size: usize| if *full { size } else { least };
                let (mut u, scratch) = matrix(scratch, rows, of(rows));
                let (mut v, scratch) = matrix(scratch, columns, of(columns));
                spmdc_matrix::svd(own, values, Some((u.as_mut(), v.as_mut())), scratch, workers);
                result(0).store(|row, column| u[(row, column)], workers);
                result(1).store(|at, _| values[at], workers);
                result(2).store(|row, column| v[(column, row)], workers);
            }
        }
    }
}

/// Q with this number of columns, if it is requested, and R, padded with zeros if the results are larger.
///
/// # Safety
/// As for `run`.
unsafe fn qr<T: MatrixElement, W: MatrixElement>(
    a: &MatrixArray<'_, T>,
    (q, made): (Option<MatrixArray<'_, T>>, usize),
    r: &MatrixArray<'_, T>,
    scratch: &mut [W],
    workers: &mut dyn Workers,
) {
    let rows = a.size(0);
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut own, scratch) = a.load(scratch, workers);
        let (mut product, scratch) = matrix(scratch, rows, if q.is_some() { made } else { 0 });
        let found = spmdc_matrix::is_finite(own.as_ref());
        if !found {
            // The factors of zeros are not used.
            own.fill(W::of(0.0));
        }
        let mut factors = Reflections::of(own, scratch, workers);
        if let Some(q) = q {
            factors.form_q(product.as_mut(), workers);
            let element = |row: usize, column: usize| match column < made {
                true if found => product[(row, column)],
                true => W::of(f64::NAN),
                false => W::of(0.0),
            };
            q.store(element, workers);
        }
        let element = |row: usize, column: usize| match row.cmp(&column) {
            Ordering::Equal | Ordering::Less if row >= rows => W::of(0.0),
            Ordering::Equal | Ordering::Less if found => factors.r(row, column),
            Ordering::Equal | Ordering::Less => W::of(f64::NAN),
            Ordering::Greater => W::of(0.0),
        };
        r.store(element, workers);
    }
}

/// # Safety
/// As for `run`.
unsafe fn triangular_solve<T: MatrixElement, W: MatrixElement>(
    system: &TriangularSystem,
    [a, b, x]: [&MatrixArray<'_, T>; 3],
    scratch: &mut [W],
    workers: &mut dyn Workers,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let (matrix, scratch) =
            if system.is_of_rows() { a.load(scratch, workers) } else { a.load_turned(0..a.size(1), scratch, workers) };
        let (mut sides, _) = load_sides(b, (!system.left, a.size(0)), scratch, workers);
        spmdc_matrix::solve_triangular(matrix.as_ref(), (system.is_forward(), system.unit), sides.as_mut(), workers);
        x.store(|row, column| if system.left { sides[(row, column)] } else { sides[(column, row)] }, workers);
    }
}

/// A step of a system whose rows are split; see [`MatrixFunction::TriangularRows`].
///
/// # Safety
/// As for `run`.
unsafe fn triangular_rows<T: MatrixElement, W: MatrixElement>(
    (system, own, first): (&TriangularSystem, &Range<usize>, usize),
    [a, b, x]: [&MatrixArray<'_, T>; 3],
    known: Option<&MatrixArray<'_, T>>,
    scratch: &mut [W],
    workers: &mut dyn Workers,
) {
    let rows = a.size(0);
    let is_own = first == own.start && rows == own.len();
    let is_forward = system.is_forward();
    let is_later = if is_forward { first >= own.start } else { first + rows <= own.end };
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut sides, scratch) = load_sides(b, (false, rows), scratch, workers);
        if let Some(known) = known {
            let (known, scratch) = load_sides(known, (false, rows), scratch, workers);
            if !system.is_of_rows() && is_own {
                sides -= known;
            } else if system.is_of_rows() && is_later {
                let width = known.nrows();
                let start = if is_forward { own.start - width } else { own.end };
                let (part, _) = a.load_columns(start..start + width, scratch, workers);
                spmdc_matrix::subtract_product(sides.as_mut(), part.as_ref(), known.as_ref());
            }
        }
        if is_own {
            let (diagonal, _) = if system.is_of_rows() {
                a.load_columns(own.clone(), scratch, workers)
            } else {
                a.load_turned(own.clone(), scratch, workers)
            };
            let form = (is_forward, system.unit);
            spmdc_matrix::solve_triangular(diagonal.as_ref(), form, sides.as_mut(), workers);
        }
        x.store(|row, column| sides[(row, column)], workers);
    }
}

/// The products of the solved rows with the rows that are solved next; see [`MatrixFunction::TriangularSums`].
///
/// # Safety
/// As for `run`.
unsafe fn triangular_sums<T: MatrixElement, W: MatrixElement>(
    (system, own, first): (&TriangularSystem, &Range<usize>, usize),
    [a, b, result]: [&MatrixArray<'_, T>; 3],
    scratch: &mut [W],
    workers: &mut dyn Workers,
) {
    let is_solved = if system.is_forward() { first + a.size(0) <= own.start } else { first >= own.end };
    // SAFETY: as promised by the caller.
    unsafe {
        if !is_solved {
            return result.store(|_, _| W::of(0.0), workers);
        }
        let (solved, scratch) = b.load(scratch, workers);
        let (mut product, scratch) = matrix(scratch, own.len(), solved.ncols());
        let (part, _) = a.load_columns(own.clone(), scratch, workers);
        spmdc_matrix::multiply(product.as_mut(), part.transpose(), solved.as_ref());
        result.store(|row, column| product[(row, column)], workers);
    }
}
