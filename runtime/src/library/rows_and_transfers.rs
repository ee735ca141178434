//! Checks of reads of rows and of the ends of transfers. They have the form of library functions, and are operations of their own.

use super::{LibraryCheck, StepArrays, expect, other_function};
use spmdc_abi::{DType, LibraryArray, LibraryFunction};

/// Reads of rows of streams.
pub(crate) struct RowReads;

impl LibraryCheck for RowReads {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let step = arrays.step;
        let LibraryFunction::Rows(rows) = &step.function else { return Err(other_function()) };
        let ([index], [result]) = (step.operands.as_slice(), step.results.as_slice()) else {
            return Err("a read of rows requires indices and rows".to_string());
        };
        let (at, to) = (arrays.own(index), arrays.own(result));
        let indexed = (to.len() + 1).checked_sub(rows.first.len()).ok_or("rows of too few dimensions")?;
        arrays.are_own("a read of rows without indices")?;
        expect(index.dtype == DType::I64, "a read of rows without indices")?;
        expect(rows.has_several == (indexed > 0) && step.batch.is_empty(), "a read of other rows than it says")?;
        let is_one = rows.consecutive && at.is_empty() && indexed == 1;
        expect(is_one || !rows.consecutive && at == to[..indexed], "a read of rows with indices of another shape")
    }
}

/// The ends of transfers between meshes.
pub(crate) struct TransferEnds;

impl LibraryCheck for TransferEnds {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let (step, mesh) = (arrays.step, arrays.mesh);
        let Some(message) = step.message() else { return Err(other_function()) };
        let all: Vec<&LibraryArray> = step.operands.iter().chain(&step.results).collect();
        let [array] = all.as_slice() else { return Err("a transfer of several arrays".to_string()) };
        let sends = matches!(step.function, LibraryFunction::Send(_));
        expect(sends != step.operands.is_empty(), "an end of a transfer in the wrong direction")?;
        expect(step.owners.is_none() && step.batch.is_empty(), "a transfer of several blocks")?;
        expect(array.dtype == message.layout.dtype, "a transfer of another type")?;
        let block: Vec<usize> = mesh.blocks(&message.layout, arrays.device).iter().map(|range| range.len()).collect();
        expect(arrays.own(array) == block, "a transfer of another block")?;
        let stored = mesh.stored_shape(&message.layout);
        let strides = (0..stored.len()).map(|dim| stored[dim + 1..].iter().product::<usize>() as i64);
        expect(array.dims.iter().map(|dim| dim.stride).eq(strides), "a transfer of a block that is stored otherwise")
    }
}
