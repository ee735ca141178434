//! Factorizations of matrices and triangular systems, by `spmdc_matrix`: each call copies its operands into scratch memory of the type in
//! which it computes, and rounds the results. A large call divides its work over the threads of the worker.

mod arrays;
mod batch;
mod run;

use super::{LibraryCall, LibraryCheck, LibraryCode, OwnCalls, PreparedFunction, StepArrays, other_function};
use crate::run::team::Team;
use spmdc_abi::{DType, LibraryArray, LibraryFunction, LibraryStep, MatrixFunction, trap};
use spmdc_abi::{MATRICES_SIDE_BY_SIDE, RIGHT_SIDES, SIDE_BY_SIDE};
use spmdc_matrix::{Alone, BATCH, MatrixElement, RIGHT, SMALL, Workers};
use std::ops::Range;

const _: () = assert!(RIGHT as u128 == RIGHT_SIDES, "scratch memory has whole groups of right sides");
const _: () =
    assert!(SMALL as u128 == SIDE_BY_SIDE && BATCH as u128 == MATRICES_SIDE_BY_SIDE, "or several small matrices");

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
    fn prepare(&self, step: &LibraryStep, own: OwnCalls) -> Box<dyn PreparedFunction> {
        let LibraryFunction::Matrix(function) = &step.function else { unreachable!("the step has been checked") };
        let is_small = *function == MatrixFunction::Cholesky && own.len <= SMALL;
        Box::new(PreparedMatrix { function: function.clone(), together: if is_small { BATCH } else { 1 } })
    }
}

#[derive(Debug)]
struct PreparedMatrix {
    function: MatrixFunction,
    /// The calls that are made together.
    together: usize,
}

impl PreparedFunction for PreparedMatrix {
    fn together(&self) -> usize {
        self.together
    }

    fn gathers(&self) -> bool {
        true
    }

    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { self.call_with(call, &mut Alone) }
    }

    fn divides(&self) -> bool {
        true
    }

    unsafe fn call_divided(&self, call: &LibraryCall<'_>, team: &mut Team) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { self.call_with(call, &mut Helpers(team)) }
    }
}

impl PreparedMatrix {
    /// # Safety
    /// As for [`PreparedFunction::call`].
    unsafe fn call_with(&self, call: &LibraryCall<'_>, workers: &mut dyn Workers) -> i64 {
        let first = call.step.block.first().map_or(0, |&first| first as usize);
        // SAFETY: as promised by the caller.
        unsafe {
            if call.count > 1 {
                batch::cholesky(call);
            } else {
                run::run(call, &self.function, first, workers);
            }
        }
        trap::NONE
    }
}

/// A worker and its helpers.
struct Helpers<'a>(&'a mut Team);

impl Workers for Helpers<'_> {
    fn each(&mut self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        if count <= 1 {
            return (0..count).for_each(task);
        }
        let work = |begin: i64, end: i64| {
            (begin..end).for_each(|at| task(at as usize));
            trap::NONE
        };
        let code = self.0.run(0, count as i64, 1, &work);
        // The worker reports it like a panic of its own.
        assert!(code == trap::NONE, "a task of a factorization panicked");
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
    let dtype = operands[0].0;
    let least = function.scratch(dtype, rows, columns, other);
    let slots = lens(scratch);
    let fits = scratch.dtype == DType::F64
        && matches!(slots[..], [count, len] if count > 0 && len >= least)
        && scratch.dims[1].stride == 1
        && scratch.dims[0].stride >= slots[1] as i64;
    if fits && needed(function, dtype, rows, columns) <= least {
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

/// The scratch memory that the factorization itself needs, in elements of f64.
fn needed(function: &MatrixFunction, dtype: DType, rows: usize, columns: usize) -> usize {
    if function.precision(dtype, rows, columns) == DType::F32 {
        needed_in::<f32>(function, rows, columns).div_ceil(2)
    } else {
        needed_in::<f64>(function, rows, columns)
    }
}

/// The same in elements of the type in which is computed.
fn needed_in<W: MatrixElement>(function: &MatrixFunction, rows: usize, columns: usize) -> usize {
    let least = rows.min(columns);
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
        MatrixFunction::Qr { full, q } => {
            let made = if *q { if *full { rows } else { least } } else { 0 };
            spmdc_matrix::qr_scratch(rows, columns, made) + rows * (columns + made)
        }
        MatrixFunction::QrBlock { .. } => spmdc_matrix::qr_scratch(rows, columns, least) + rows * (columns + least),
        MatrixFunction::Eigh { .. } => spmdc_matrix::eigh_scratch::<W>(rows) + 2 * rows * rows + rows,
        MatrixFunction::Eig { .. } => {
            let planes = [1, 2].map(|planes| spmdc_matrix::eig_scratch(rows, planes) + planes * rows * rows);
            planes[0].max(planes[1]) + 2 * rows + 2 * rows * rows
        }
        MatrixFunction::Svd { vectors } => {
            let of = |size: usize| if *vectors == Some(true) { size } else { least };
            let made = if vectors.is_some() { rows * of(rows) + columns * of(columns) } else { 0 };
            spmdc_matrix::svd_scratch::<W>(rows, columns, *vectors) + rows * columns + least + made
        }
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
                    for dtype in [DType::F32, DType::F64] {
                        let planned = function.scratch(dtype, rows, columns, [0; 2]);
                        let needed = needed(function, dtype, rows, columns);
                        assert!(needed <= planned, "{function:?} of {rows} x {columns} in {dtype:?}");
                    }
                }
            }
            for function in [MatrixFunction::Eigh { lower: true }, MatrixFunction::Eig { vectors: true }] {
                for dtype in [DType::F32, DType::F64] {
                    let planned = function.scratch(dtype, rows, rows, [0; 2]);
                    assert!(needed(&function, dtype, rows, rows) <= planned, "{function:?} of {rows} in {dtype:?}");
                }
            }
        }
    }
}
