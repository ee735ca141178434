//! Collects the blocks of an array in the first process.

use std::time::Duration;

use super::exchange::Mail;
use super::{Process, silent, tags};
use crate::data::array::HostArray;
use crate::data::blocks::{FarBlocks, gather, packing, unfilled};
use crate::data::boxes::BoxCopy;
use crate::errors::trap::RunError;
use crate::run::memory::Memory;
use spmdc_abi::mesh::split_axes;
use spmdc_abi::{Layout, Place};

/// The whole array in the first process; an array of zeros in the others, which send their blocks. All processes must call.
///
/// The layout and place must have been checked, and no device may be running.
pub(crate) fn collect(
    process: &Process,
    memory: &Memory,
    (place, layout): (Place, &Layout),
    limit: Duration,
) -> Result<HostArray, RunError> {
    let mesh = memory.mesh();
    let size_of = |device: usize| packing(mesh, layout, device).map_or(0, |rows| rows.count() * rows.row);
    debug_assert_eq!(mesh.processes(), process.count(), "the devices are assigned to the processes of the job");
    let owners: Vec<usize> = mesh.group(0, split_axes(layout));
    let of_process = |process: usize| owners.iter().copied().filter(move |&owner| mesh.process(owner) == process);
    let swap = |sent: &mut Mail, received: &mut Mail| {
        let missing = process.swap(tags::RESULT, (sent, received), |pending| process.wait(pending, limit))?;
        if missing.is_empty() { Ok(()) } else { Err(silent("a result", limit, &missing)) }
    };
    if process.rank() > 0 {
        let mut bytes = vec![0; of_process(process.rank()).map(size_of).sum()];
        let mut offset = 0;
        for owner in of_process(process.rank()) {
            if let Some(rows) = packing(mesh, layout, owner) {
                // SAFETY: the block lies within its arena, and the bytes have room for all blocks.
                unsafe { BoxCopy::new(memory.address(place, owner), bytes.as_mut_ptr().add(offset), rows).run() };
                offset += size_of(owner);
            }
        }
        if !bytes.is_empty() {
            swap(&mut vec![(0, bytes)], &mut Vec::new())?;
        }
        return Ok(unfilled(layout));
    }
    let sizes = (1..process.count()).map(|other| (other, of_process(other).map(size_of).sum()));
    let mut messages: Mail = sizes.filter(|&(_, size)| size > 0).map(|(other, size)| (other, vec![0; size])).collect();
    swap(&mut Vec::new(), &mut messages)?;
    let mut far = FarBlocks::default();
    for (other, bytes) in &messages {
        let mut offset = 0;
        for owner in of_process(*other) {
            far.0.insert((place, owner), bytes.as_ptr().wrapping_add(offset));
            offset += size_of(owner);
        }
    }
    Ok(gather(memory, &far, place, layout, 0))
}
