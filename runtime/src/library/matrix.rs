//! Factorizations of matrices and triangular systems, by `spmdc_matrix`: each call copies its operands into scratch memory of f64, and rounds
//! the results.

use super::{LibraryCall, LibraryCheck, LibraryCode, OwnCalls, PreparedFunction, StepArrays, View, other_function};
use spmdc_abi::{DType, LibraryArray, LibraryFunction, LibraryStep, MatrixFunction, TriangularSystem, trap};
use spmdc_matrix::MatMut;
use std::cmp::Ordering;
use std::ops::Range;

/// Factorizations and triangular systems.
pub(crate) struct MatrixCalls;

impl LibraryCheck for MatrixCalls {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let LibraryFunction::Matrix(function) = &arrays.step.function else { return Err(other_function()) };
        arrays.are_own("a function of matrices of other devices")?;
        let first = function.first().map(|first| arrays.mesh.resolve(first, arrays.device));
        check(function, arrays.step, first, |array| arrays.own(array))
    }
}

impl LibraryCode for MatrixCalls {
    fn prepare(&self, step: &LibraryStep, _: OwnCalls) -> Box<dyn PreparedFunction> {
        let LibraryFunction::Matrix(function) = &step.function else { unreachable!("the step has been checked") };
        Box::new(PreparedMatrix(function.clone()))
    }
}

#[derive(Debug)]
struct PreparedMatrix(MatrixFunction);

impl PreparedFunction for PreparedMatrix {
    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { run(call, &self.0, call.step.block.first().map_or(0, |&first| first as usize)) };
        trap::NONE
    }
}

/// Whether the arrays of a device's calls are those that the function expects; otherwise the difference.
fn check(
    function: &MatrixFunction,
    step: &LibraryStep,
    first: Option<i64>,
    lens: impl Fn(&LibraryArray) -> Vec<usize>,
) -> Result<(), String> {
    let own = |array: &LibraryArray| (array.dtype, lens(array));
    let operands: Vec<(DType, Vec<usize>)> = step.operands.iter().map(own).collect();
    let Some((scratch, results)) = step.results.split_last() else {
        return Err("a matrix function without results".to_string());
    };
    let results: Vec<(DType, Vec<usize>)> = results.iter().map(own).collect();
    if shapes(function, &operands).as_ref() != Some(&results) {
        return Err(format!("{function:?} of {operands:?} that gives {results:?}"));
    }
    let (rows, columns) = (operands[0].1[0], operands[0].1[1]);
    let other = operands.get(1).map_or([0; 2], |(_, sizes)| [sizes[0], sizes[1]]);
    if first.is_some_and(|first| first < 0 || first as u64 + rows as u64 > columns as u64 && rows > 0) {
        return Err(format!("rows from {first:?} on of a matrix with {columns} columns"));
    }
    let least = function.scratch(rows, columns, other);
    let slots = lens(scratch);
    let fits = scratch.dtype == DType::F64
        && matches!(slots[..], [count, len] if count > 0 && len >= least)
        && scratch.dims[1].stride == 1
        && scratch.dims[0].stride >= slots[1] as i64;
    if fits && needed(function, rows, columns) <= least {
        Ok(())
    } else {
        Err(format!("{function:?} of {operands:?} with the wrong scratch memory"))
    }
}

/// The types and shapes of the results; None if the operands do not fit the function.
fn shapes(function: &MatrixFunction, operands: &[(DType, Vec<usize>)]) -> Option<Vec<(DType, Vec<usize>)>> {
    let (dtype, [rows, columns]) = (operands.first()?.0, <[usize; 2]>::try_from(operands[0].1.clone()).ok()?);
    let (least, is_square) = (rows.min(columns), rows == columns);
    let known = matches!(dtype, DType::F32 | DType::F64) && i32::try_from(rows).is_ok();
    let own = |sizes: &[usize]| (dtype, sizes.to_vec());
    let (count, fits, results) = match function {
        MatrixFunction::Cholesky => (1, is_square, vec![own(&[rows, rows])]),
        MatrixFunction::TriangularSolve(system) => {
            let (other, sides) = operands.get(1)?;
            let fits = sides.len() == 2 && sides[usize::from(!system.left)] == rows && *other == dtype;
            (2, is_square && fits, vec![own(sides)])
        }
        MatrixFunction::Solve => {
            let (other, sides) = operands.get(1)?;
            let fits = sides.len() == 2 && sides[0] == rows && *other == dtype;
            (2, is_square && fits, vec![own(sides)])
        }
        MatrixFunction::Lu => {
            (1, true, vec![own(&[rows, columns]), (DType::I32, vec![least]), (DType::I32, vec![rows])])
        }
        MatrixFunction::LuDiagonal => (1, is_square, vec![own(&[rows]), (DType::I32, vec![rows])]),
        MatrixFunction::LuComplete => {
            (1, is_square, vec![own(&[rows, rows]), (DType::I32, vec![rows]), (DType::I32, vec![rows])])
        }
        MatrixFunction::Qr { full, q } => {
            let made = if *full { rows } else { least };
            let q = q.then(|| own(&[rows, made]));
            (1, true, q.into_iter().chain([own(&[made, columns])]).collect())
        }
        MatrixFunction::QrBlock { width } => (1, *width >= least, vec![own(&[rows, *width]), own(&[*width, columns])]),
        MatrixFunction::QrSigns => (1, is_square, vec![own(&[1, rows]), own(&[rows, 1])]),
        MatrixFunction::CholeskyRows { .. } => {
            let fits = operands.get(1).is_none_or(|(other, sizes)| {
                *other == dtype && matches!(sizes[..], [width, end] if width <= end && end <= columns)
            });
            (operands.len().max(1), fits && operands.len() <= 2, vec![own(&[rows, columns])])
        }
        MatrixFunction::CholeskyChecked { .. } => {
            let (other, sizes) = operands.get(1)?;
            (2, *other == dtype && sizes[..] == [1, 1], vec![own(&[rows, columns])])
        }
        MatrixFunction::TriangularRows { own: solved, system, .. } => {
            let (other, sides) = operands.get(1)?;
            let is_known = |sizes: &[usize]| match (sizes, system.is_of_rows()) {
                ([width, _], true) if system.is_forward() => *width <= solved.start,
                ([width, _], true) => *width <= columns - solved.end,
                ([width, _], false) => *width == solved.len(),
                _ => false,
            };
            let fits = system.left
                && solved.start <= solved.end
                && solved.end <= columns
                && *other == dtype
                && matches!(sides[..], [own_rows, _] if own_rows == rows)
                && operands
                    .get(2)
                    .is_none_or(|(other, sizes)| *other == dtype && is_known(sizes) && sizes.get(1) == sides.get(1));
            (operands.len().clamp(2, 3), fits, vec![own(sides)])
        }
        MatrixFunction::TriangularSums { own: next, system, .. } => {
            let (other, sides) = operands.get(1)?;
            let fits = system.left
                && next.start <= next.end
                && next.end <= columns
                && *other == dtype
                && sides.first() == Some(&rows);
            (2, fits, vec![own(&[next.len(), *sides.get(1)?])])
        }
        MatrixFunction::Product => {
            let (other, sides) = operands.get(1)?;
            let fits = sides.len() == 2 && sides[0] == columns && *other == dtype;
            (2, fits, vec![own(&[rows, *sides.get(1)?])])
        }
        MatrixFunction::Eigh { .. } => (1, is_square, vec![own(&[rows]), own(&[rows, rows])]),
        MatrixFunction::Eig { vectors } => {
            let fits = operands.get(1).is_none_or(|(other, sizes)| *other == dtype && sizes[..] == [rows, rows]);
            let made = [own(&[rows]), own(&[rows, rows])].into_iter().take(if *vectors { 2 } else { 1 });
            (operands.len().clamp(1, 2), is_square && fits, made.flat_map(|plane| [plane.clone(), plane]).collect())
        }
        MatrixFunction::Svd { vectors: None } => (1, true, vec![own(&[least])]),
        MatrixFunction::Svd { vectors: Some(full) } => {
            let of = |size: usize| if *full { size } else { least };
            (1, true, vec![own(&[rows, of(rows)]), own(&[least]), own(&[of(columns), columns])])
        }
    };
    (known && fits && operands.len() == count).then_some(results)
}

/// The scratch memory that the factorization itself needs.
fn needed(function: &MatrixFunction, rows: usize, columns: usize) -> usize {
    match function {
        MatrixFunction::Cholesky
        | MatrixFunction::TriangularSolve(_)
        | MatrixFunction::Solve
        | MatrixFunction::Lu
        | MatrixFunction::LuDiagonal
        | MatrixFunction::LuComplete
        | MatrixFunction::QrSigns
        | MatrixFunction::CholeskyRows { .. }
        | MatrixFunction::CholeskyChecked { .. }
        | MatrixFunction::TriangularRows { .. }
        | MatrixFunction::TriangularSums { .. }
        | MatrixFunction::Product => 0,
        MatrixFunction::Qr { .. } | MatrixFunction::QrBlock { .. } => {
            spmdc_matrix::qr_scratch(rows.min(columns), rows, rows.max(columns)) + rows * columns
        }
        MatrixFunction::Eigh { .. } => spmdc_matrix::eigh_scratch(rows) + 2 * rows * rows + rows,
        MatrixFunction::Eig { .. } => {
            let planes = [1, 2].map(|planes| spmdc_matrix::eig_scratch(rows, planes) + planes * rows * rows);
            planes[0].max(planes[1]) + 2 * rows + 2 * rows * rows
        }
        MatrixFunction::Svd { vectors } => {
            let (least, matrix) = (rows.min(columns), rows * columns);
            let of = |size: usize| if *vectors == Some(true) { size } else { least };
            let made = if vectors.is_some() { rows * of(rows) + columns * of(columns) } else { 0 };
            spmdc_matrix::svd_scratch(rows, columns, *vectors) + matrix + least + made
        }
    }
}

/// Makes one call; `first` is the index of the block's first row, for functions of blocks.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn run(call: &LibraryCall<'_>, function: &MatrixFunction, first: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if call.operand(0, 0).dtype == DType::F64 {
            run_as::<f64>(call, function, first);
        } else {
            run_as::<f32>(call, function, first);
        }
    }
}

/// An element type of the operands and results.
trait MatrixElement: Copy {
    /// The distance from 1 to the next number.
    const EPSILON: f64;
    fn wide(self) -> f64;
    fn rounded(value: f64) -> Self;
}

impl MatrixElement for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;

    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn rounded(value: f64) -> f32 {
        value as f32
    }
}

impl MatrixElement for f64 {
    const EPSILON: f64 = f64::EPSILON;

    fn wide(self) -> f64 {
        self
    }

    fn rounded(value: f64) -> f64 {
        value
    }
}

/// A matrix or vector of the call.
struct MatrixArray<'a, T> {
    view: View<'a>,
    element: std::marker::PhantomData<T>,
}

impl<'a, T: MatrixElement> MatrixArray<'a, T> {
    fn new(view: View<'a>) -> MatrixArray<'a, T> {
        MatrixArray { view, element: std::marker::PhantomData }
    }

    fn size(&self, dim: usize) -> usize {
        self.view.dims[dim].len
    }

    /// # Safety
    /// As for `run`, as for all functions here.
    unsafe fn get(&self, row: usize, column: usize) -> f64 {
        // SAFETY: the loader has checked that all elements lie within the program's memory.
        unsafe { self.view.at::<T>(row, column).read() }.wide()
    }

    unsafe fn set(&self, row: usize, column: usize, value: f64) {
        // SAFETY: as in `get`.
        unsafe { self.view.at::<T>(row, column).write(T::rounded(value)) }
    }

    /// Copies the matrix to the first elements of a slice, and returns it with the other elements of the slice.
    unsafe fn load<'s>(&self, scratch: &'s mut [f64]) -> (MatMut<'s, f64>, &'s mut [f64]) {
        // SAFETY: as promised by the caller.
        unsafe { self.load_columns(0..self.size(1), scratch) }
    }

    /// As [`MatrixArray::load`], of these columns alone.
    unsafe fn load_columns<'s>(
        &self,
        columns: Range<usize>,
        scratch: &'s mut [f64],
    ) -> (MatMut<'s, f64>, &'s mut [f64]) {
        let rows = self.size(0);
        let (mut own, rest) = matrix(scratch, rows, columns.len());
        for (to, column) in columns.enumerate() {
            for row in 0..rows {
                // SAFETY: as promised by the caller.
                own[(row, to)] = unsafe { self.get(row, column) };
            }
        }
        (own, rest)
    }

    unsafe fn store(&self, from: impl Fn(usize, usize) -> f64) {
        let columns = self.view.dims.get(1).map_or(1, |dim| dim.len);
        for row in 0..self.size(0) {
            for column in 0..columns {
                // SAFETY: as promised by the caller.
                unsafe { self.set(row, column, from(row, column)) }
            }
        }
    }
}

/// A matrix in the first elements of a slice, and the others.
fn matrix(scratch: &mut [f64], rows: usize, columns: usize) -> (MatMut<'_, f64>, &mut [f64]) {
    let (own, rest) = scratch.split_at_mut(rows * columns);
    (MatMut::from_column_major_slice_mut(own, rows, columns), rest)
}

/// # Safety
/// As for `run`.
unsafe fn run_as<T: MatrixElement>(call: &LibraryCall<'_>, function: &MatrixFunction, first: usize) {
    let a = MatrixArray::<T>::new(call.operand(0, 0));
    let result = |number: usize| MatrixArray::<T>::new(call.result(number));
    let (rows, columns) = (a.size(0), a.size(1));
    let least = rows.min(columns);
    debug_assert!(call.owners() == 1, "matrices are the device's own");
    // SAFETY: as promised by the caller.
    unsafe {
        let scratch = call.slot();
        match function {
            MatrixFunction::Cholesky => {
                let (mut own, _) = a.load(scratch);
                let found = spmdc_matrix::cholesky(own.as_mut());
                let factor = |row: usize, column: usize| match row.cmp(&column) {
                    Ordering::Less => 0.0,
                    Ordering::Equal | Ordering::Greater if found => own[(row, column)],
                    Ordering::Equal | Ordering::Greater => f64::NAN,
                };
                result(0).store(factor);
            }
            MatrixFunction::TriangularSolve(system) => {
                triangular_solve(system, &a, &MatrixArray::new(call.operand(1, 0)), &result(0), scratch);
            }
            MatrixFunction::Solve => {
                let (mut own, scratch) = a.load(scratch);
                let (mut sides, _) = MatrixArray::<T>::new(call.operand(1, 0)).load(scratch);
                spmdc_matrix::lu(own.as_mut(), |step, pivot| {
                    for side in 0..if pivot == step { 0 } else { sides.ncols() } {
                        let (upper, lower) = (sides[(step, side)], sides[(pivot, side)]);
                        (sides[(step, side)], sides[(pivot, side)]) = (lower, upper);
                    }
                });
                spmdc_matrix::solve_triangular(own.as_ref(), true, true, sides.as_mut());
                spmdc_matrix::solve_triangular(own.as_ref(), false, false, sides.as_mut());
                result(0).store(|row, side| sides[(row, side)]);
            }
            MatrixFunction::Lu => {
                let (mut own, _) = a.load(scratch);
                let (pivots, sources) = (call.result(1), call.result(2));
                for row in 0..rows {
                    sources.at::<i32>(row, 0).write(row as i32);
                }
                spmdc_matrix::lu(own.as_mut(), |step, pivot| {
                    pivots.at::<i32>(step, 0).write(pivot as i32);
                    std::ptr::swap(sources.at::<i32>(step, 0), sources.at::<i32>(pivot, 0));
                });
                result(0).store(|row, column| own[(row, column)]);
            }
            MatrixFunction::LuDiagonal => {
                let (mut own, _) = a.load(scratch);
                let pivots = call.result(1);
                spmdc_matrix::lu(own.as_mut(), |step, pivot| pivots.at::<i32>(step, 0).write(pivot as i32));
                result(0).store(|at, _| own[(at, at)]);
            }
            MatrixFunction::LuComplete => {
                let (mut own, _) = a.load(scratch);
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
                result(0).store(|row, column| own[(row, column)]);
            }
            MatrixFunction::Qr { full, q } => {
                let made = if *full { rows } else { least };
                let product = q.then(|| result(0));
                qr(&a, (product, made), &result(usize::from(*q)), scratch);
            }
            MatrixFunction::QrBlock { .. } => qr(&a, (Some(result(0)), least), &result(1), scratch),
            MatrixFunction::QrSigns => {
                let (own, _) = a.load(scratch);
                let (row, column) = (result(0), result(1));
                spmdc_matrix::qr_signs(own, T::EPSILON, |at, sign| {
                    row.set(0, at, sign);
                    column.set(at, 0, sign);
                });
            }
            MatrixFunction::CholeskyRows { .. } => {
                let (mut own, scratch) = a.load(scratch);
                if call.operands() == 2 {
                    let (known, _) = MatrixArray::<T>::new(call.operand(1, 0)).load(scratch);
                    spmdc_matrix::cholesky_rows(own.as_mut(), first, known.as_ref());
                } else {
                    let (none, _) = matrix(scratch, 0, 0);
                    spmdc_matrix::cholesky_rows(own.as_mut(), first, none.as_ref());
                }
                result(0).store(|row, column| own[(row, column)]);
            }
            MatrixFunction::CholeskyChecked { .. } => {
                let found = !MatrixArray::<T>::new(call.operand(1, 0)).get(0, 0).is_nan();
                let element = |row: usize, column: usize| {
                    if found || column > first + row { a.get(row, column) } else { f64::NAN }
                };
                result(0).store(element);
            }
            MatrixFunction::TriangularRows { own, system, .. } => {
                let known = (call.operands() == 3).then(|| MatrixArray::<T>::new(call.operand(2, 0)));
                let arrays = [&a, &MatrixArray::new(call.operand(1, 0)), &result(0)];
                triangular_rows((system, own, first), arrays, known.as_ref(), scratch);
            }
            MatrixFunction::TriangularSums { own, system, .. } => {
                let arrays = [&a, &MatrixArray::new(call.operand(1, 0)), &result(0)];
                triangular_sums((system, own, first), arrays, scratch);
            }
            MatrixFunction::Product => {
                let (own, scratch) = a.load(scratch);
                let (other, scratch) = MatrixArray::<T>::new(call.operand(1, 0)).load(scratch);
                let (mut product, _) = matrix(scratch, rows, other.ncols());
                spmdc_matrix::multiply(product.as_mut(), own.as_ref(), other.as_ref());
                result(0).store(|row, column| product[(row, column)]);
            }
            MatrixFunction::Eigh { lower } => {
                let (mut own, scratch) = a.load(scratch);
                if !lower {
                    for column in 0..rows {
                        for row in column..rows {
                            own[(row, column)] = a.get(column, row);
                        }
                    }
                }
                let (values, scratch) = scratch.split_at_mut(rows);
                let (mut vectors, scratch) = matrix(scratch, rows, rows);
                spmdc_matrix::eigh(own, values, vectors.as_mut(), scratch);
                result(0).store(|at, _| values[at]);
                result(1).store(|row, column| vectors[(row, column)]);
            }
            MatrixFunction::Eig { vectors } => {
                let (re, scratch) = a.load(scratch);
                let is_complex = call.operands() == 2;
                // A real matrix has no second plane.
                let other = MatrixArray::<T>::new(call.operand(usize::from(is_complex), 0));
                let (im, scratch) = other.load_columns(0..if is_complex { rows } else { 0 }, scratch);
                let mut planes = [re, im];
                let planes = &mut planes[..if is_complex { 2 } else { 1 }];
                let (first, scratch) = scratch.split_at_mut(rows);
                let (second, scratch) = scratch.split_at_mut(rows);
                let (mut left, scratch) = matrix(scratch, rows, rows);
                let (mut right, scratch) = matrix(scratch, rows, rows);
                let made = vectors.then(|| [left.as_mut(), right.as_mut()]);
                spmdc_matrix::eig(planes, [first, second], made, scratch);
                result(0).store(|at, _| first[at]);
                result(1).store(|at, _| second[at]);
                if *vectors {
                    result(2).store(|row, column| left[(row, column)]);
                    result(3).store(|row, column| right[(row, column)]);
                }
            }
            MatrixFunction::Svd { vectors } => {
                let (own, scratch) = a.load(scratch);
                let (values, scratch) = scratch.split_at_mut(least);
                let Some(full) = vectors else {
                    spmdc_matrix::svd(own, values, None, scratch);
                    result(0).store(|at, _| values[at]);
                    return;
                };
                let of = |size: usize| if *full { size } else { least };
                let (mut u, scratch) = matrix(scratch, rows, of(rows));
                let (mut v, scratch) = matrix(scratch, columns, of(columns));
                spmdc_matrix::svd(own, values, Some((u.as_mut(), v.as_mut())), scratch);
                result(0).store(|row, column| u[(row, column)]);
                result(1).store(|at, _| values[at]);
                result(2).store(|row, column| v[(column, row)]);
            }
        }
    }
}

/// Q with this number of columns, if it is requested, and R, padded with zeros if the results are larger.
///
/// # Safety
/// As for `run`.
unsafe fn qr<T: MatrixElement>(
    a: &MatrixArray<'_, T>,
    (q, made): (Option<MatrixArray<'_, T>>, usize),
    r: &MatrixArray<'_, T>,
    scratch: &mut [f64],
) {
    let (rows, columns) = (a.size(0), a.size(1));
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut own, scratch) = a.load(scratch);
        let found = spmdc_matrix::is_finite(own.as_ref());
        let (tau, scratch) = scratch.split_at_mut(rows.min(columns));
        let (mut product, scratch) = matrix(scratch, rows, if q.is_some() { made } else { 0 });
        if found {
            spmdc_matrix::qr(own.as_mut(), tau, scratch);
        }
        if let Some(q) = q {
            spmdc_matrix::form_q(own.as_ref(), tau, product.as_mut(), scratch);
            q.store(|row, column| match column < made {
                true if found => product[(row, column)],
                true => f64::NAN,
                false => 0.0,
            });
        }
        r.store(|row, column| match row.cmp(&column) {
            Ordering::Equal | Ordering::Less if row >= rows => 0.0,
            Ordering::Equal | Ordering::Less if found => own[(row, column)],
            Ordering::Equal | Ordering::Less => f64::NAN,
            Ordering::Greater => 0.0,
        });
    }
}

/// # Safety
/// As for `run`.
unsafe fn triangular_solve<T: MatrixElement>(
    system: &TriangularSystem,
    a: &MatrixArray<'_, T>,
    b: &MatrixArray<'_, T>,
    x: &MatrixArray<'_, T>,
    scratch: &mut [f64],
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let (matrix, scratch) = a.load(scratch);
        let (mut sides, _) = b.load(scratch);
        let own = if system.left { sides.as_mut() } else { sides.as_mut().transpose_mut() };
        let matrix = if system.is_of_rows() { matrix.as_ref() } else { matrix.transpose() };
        spmdc_matrix::solve_triangular(matrix, system.is_forward(), system.unit, own);
        x.store(|row, column| sides[(row, column)]);
    }
}

/// A step of a system whose rows are split; see [`MatrixFunction::TriangularRows`].
///
/// # Safety
/// As for `run`.
unsafe fn triangular_rows<T: MatrixElement>(
    (system, own, first): (&TriangularSystem, &Range<usize>, usize),
    [a, b, x]: [&MatrixArray<'_, T>; 3],
    known: Option<&MatrixArray<'_, T>>,
    scratch: &mut [f64],
) {
    let rows = a.size(0);
    let is_own = first == own.start && rows == own.len();
    let is_forward = system.is_forward();
    let is_later = if is_forward { first >= own.start } else { first + rows <= own.end };
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut sides, scratch) = b.load(scratch);
        if let Some(known) = known {
            let (known, scratch) = known.load(scratch);
            if !system.is_of_rows() && is_own {
                sides -= known;
            } else if system.is_of_rows() && is_later {
                let width = known.nrows();
                let start = if is_forward { own.start - width } else { own.end };
                let (part, _) = a.load_columns(start..start + width, scratch);
                spmdc_matrix::subtract_product(sides.as_mut(), part.as_ref(), known.as_ref());
            }
        }
        if is_own {
            let (diagonal, _) = a.load_columns(own.clone(), scratch);
            let diagonal = if system.is_of_rows() { diagonal.as_ref() } else { diagonal.transpose() };
            spmdc_matrix::solve_triangular(diagonal, is_forward, system.unit, sides.as_mut());
        }
        x.store(|row, column| sides[(row, column)]);
    }
}

/// The products of the solved rows with the rows that are solved next; see [`MatrixFunction::TriangularSums`].
///
/// # Safety
/// As for `run`.
unsafe fn triangular_sums<T: MatrixElement>(
    (system, own, first): (&TriangularSystem, &Range<usize>, usize),
    [a, b, result]: [&MatrixArray<'_, T>; 3],
    scratch: &mut [f64],
) {
    let is_solved = if system.is_forward() { first + a.size(0) <= own.start } else { first >= own.end };
    // SAFETY: as promised by the caller.
    unsafe {
        if !is_solved {
            return result.store(|_, _| 0.0);
        }
        let (solved, scratch) = b.load(scratch);
        let (mut product, scratch) = matrix(scratch, own.len(), solved.ncols());
        let (part, _) = a.load_columns(own.clone(), scratch);
        spmdc_matrix::multiply(product.as_mut(), part.transpose(), solved.as_ref());
        result.store(|row, column| product[(row, column)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planned_scratch_memory_suffices() {
        let sizes = [0, 1, 2, 3, 7, 16, 31, 64, 127, 128, 129, 300, 513, 1025, 2100, 5000, 20000];
        let svds = [None, Some(false), Some(true)].map(|vectors| MatrixFunction::Svd { vectors });
        let qrs = [false, true].map(|full| MatrixFunction::Qr { full, q: true });
        for rows in sizes {
            for columns in sizes {
                for function in svds.iter().chain(&qrs) {
                    let planned = function.scratch(rows, columns, [0; 2]);
                    let made = if let MatrixFunction::Qr { full: true, .. } = function { rows * rows } else { 0 };
                    assert!(needed(function, rows, columns) + made <= planned, "{function:?} of {rows} x {columns}");
                }
            }
            for function in [MatrixFunction::Eigh { lower: true }, MatrixFunction::Eig { vectors: true }] {
                assert!(
                    needed(&function, rows, rows) <= function.scratch(rows, rows, [0; 2]),
                    "{function:?} of {rows}"
                );
            }
        }
    }
}
