//! Sorts of lines, merges of sorted lines, and selections: their checks and calls.

use super::select::{self, PreparedSelect};
use super::sort_line::LineParts;
use super::{
    LibraryCall, LibraryCheck, LibraryCode, OwnCalls, PreparedFunction, StepArrays, expect, first, merge,
    other_function,
};
use spmdc_abi::{DType, LibraryArray, LibraryFunction, LibraryStep, MergeLines, SortLines, TakenPlaces, trap};
use std::ops::Range;

/// Sorts, merges of sorted lines, and selections.
pub(crate) struct SortCalls;

impl LibraryCheck for SortCalls {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let step = arrays.step;
        match &step.function {
            LibraryFunction::Sort(order) => {
                arrays.are_lines("a sort of other arrays than lines")?;
                let len = step.operands.first().map_or(vec![], |operand| arrays.own(operand));
                expect(
                    step.operands.iter().all(|array| arrays.own(array) == len),
                    "a sort of lines of several lengths",
                )?;
                check_lines(order, arrays, len.first().copied().unwrap_or(0), 0)
            }
            LibraryFunction::Merge(merge) => check_merge(merge, arrays),
            LibraryFunction::Select(select) => select::check(select, arrays),
            LibraryFunction::Scatter(_)
            | LibraryFunction::Matrix(_)
            | LibraryFunction::Fft(_)
            | LibraryFunction::Rows(_)
            | LibraryFunction::Send(_)
            | LibraryFunction::Receive(_) => Err(other_function()),
        }
    }
}

impl LibraryCode for SortCalls {
    fn prepare(&self, step: &LibraryStep, _: OwnCalls) -> Box<dyn PreparedFunction> {
        match &step.function {
            LibraryFunction::Sort(order) => Box::new(PreparedSort(order.clone())),
            LibraryFunction::Merge(merge) => Box::new(PreparedMerge(merge.clone())),
            LibraryFunction::Select(select) => Box::new(PreparedSelect(select.clone())),
            LibraryFunction::Scatter(_)
            | LibraryFunction::Matrix(_)
            | LibraryFunction::Fft(_)
            | LibraryFunction::Rows(_)
            | LibraryFunction::Send(_)
            | LibraryFunction::Receive(_) => unreachable!("the step has been checked"),
        }
    }
}

fn check_merge(MergeLines { order, taken }: &MergeLines, arrays: &StepArrays<'_>) -> Result<(), String> {
    let (step, owners) = (arrays.step, &arrays.owners);
    let lines = step.operands.iter().chain(&step.results).all(|array| array.dims.len() == 1);
    expect(lines && !step.operands.is_empty(), "a merge of other arrays than lines")?;
    let mut total = 0;
    for &owner in owners {
        let len = arrays.lens(&step.operands[0], owner);
        let equal = step.operands.iter().all(|array| arrays.lens(array, owner) == len);
        expect(equal, "a merge of lines of several lengths")?;
        total += len[0];
    }
    let len = step.results.first().map_or(0, |result| arrays.own(result)[0]);
    let inside = match taken {
        TakenPlaces::From(_) => {
            let first = first(arrays.mesh, &step.function, arrays.device);
            first >= 0 && (first as u64).checked_add(len as u64).is_some_and(|end| end <= total as u64)
        }
        TakenPlaces::Places(places) => {
            places.len() == len && places.iter().all(|&place| (0..total as i64).contains(&place))
        }
    };
    expect(inside, "a merge of elements that do not exist")?;
    check_lines(order, arrays, len, MergeLines::SPLITS * owners.len())
}

/// Checks the lines of a sort whose results have this length, and its scratch memory, with an i64 for each of `splits`.
fn check_lines(order: &SortLines, arrays: &StepArrays<'_>, len: usize, splits: usize) -> Result<(), String> {
    let (step, lens) = (arrays.step, |array: &LibraryArray| arrays.own(array));
    let count = step.operands.len();
    expect(
        (1..=count).contains(&order.keys) && i32::try_from(len).is_ok(),
        "a sort without keys, or of too long lines",
    )?;
    expect(step.results.len() == count + 1 + usize::from(splits > 0), "a sort with other arrays than it needs")?;
    let (results, scratch) = step.results.split_at(count);
    let like =
        |(result, operand): (&LibraryArray, &LibraryArray)| result.dtype == operand.dtype && lens(result) == [len];
    expect(results.iter().zip(&step.operands).all(like), "a sort with other results than its operands")?;
    let dtypes: Vec<DType> = step.operands.iter().map(|operand| operand.dtype).collect();
    let mut wanted = vec![order.scratch(&dtypes, results[0].dims[0].stride == 1, len as u64)];
    wanted.extend((splits > 0).then_some((DType::I64, splits as u64)));
    let fits = |(array, &(dtype, least)): (&LibraryArray, &(DType, u64))| {
        array.dtype == dtype && lens(array)[0] as u64 >= least && array.dims[0].stride == 1
    };
    expect(scratch.iter().zip(&wanted).all(fits), "a sort with other scratch memory than it needs")
}

#[derive(Debug)]
struct PreparedSort(SortLines);

impl PreparedFunction for PreparedSort {
    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        let scratch = call.scratch_of_slot();
        // SAFETY: as promised by the caller.
        unsafe { LineParts::new((call, scratch), &[0], &[0], call.result(0).dims[0].len, 0).sort(&self.0) };
        trap::NONE
    }
}

#[derive(Debug)]
struct PreparedMerge(MergeLines);

impl PreparedFunction for PreparedMerge {
    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { merge::merge(call, &self.0, call.step.first as usize) };
        trap::NONE
    }
}
