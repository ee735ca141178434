//! Collects the blocks of an array in the first process.

use std::time::Duration;

use super::{Process, numbered_processes, tags};
use crate::array::HostArray;
use crate::blocks::{FarBlocks, gather, packing, unfilled};
use crate::boxes::BoxCopy;
use crate::memory::Memory;
use crate::trap::RunError;
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
    debug_assert_eq!(mesh.processes(), process.count(), "the devices are dealt to the processes of the job");
    let owners: Vec<usize> = mesh.group(0, split_axes(layout));
    let of_process = |process: usize| owners.iter().copied().filter(move |&owner| mesh.process(owner) == process);
    let late = |missing: &[usize]| {
        let text = format!("a result waited {limit:?} for {}", numbered_processes(missing));
        RunError::new("E0809", text).with_help("`--timeout` says how many seconds a wait may take")
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
            // SAFETY: the bytes live until the request is complete, or stay allocated.
            let request = unsafe { process.transport.send(0, tags::RESULT, bytes.as_ptr(), bytes.len())? };
            let mut pending = vec![(0, request)];
            process.wait(&mut pending, limit)?;
            if !pending.is_empty() {
                std::mem::forget(bytes);
                return Err(late(&[0]));
            }
        }
        return Ok(unfilled(layout));
    }
    let mut messages = Vec::new();
    let mut pending = Vec::new();
    for other in 1..process.count() {
        let mut bytes: Vec<u8> = vec![0; of_process(other).map(size_of).sum()];
        if !bytes.is_empty() {
            // SAFETY: as above.
            let request = unsafe { process.transport.receive(other, tags::RESULT, bytes.as_mut_ptr(), bytes.len())? };
            pending.push((other, request));
        }
        messages.push(bytes);
    }
    process.wait(&mut pending, limit)?;
    if !pending.is_empty() {
        std::mem::forget(messages);
        return Err(late(&pending.iter().map(|(other, _)| *other).collect::<Vec<_>>()));
    }
    let mut far = FarBlocks::default();
    for (bytes, other) in messages.iter().zip(1..) {
        let mut offset = 0;
        for owner in of_process(other) {
            far.0.insert((place, owner), bytes.as_ptr().wrapping_add(offset));
            offset += size_of(owner);
        }
    }
    Ok(gather(memory, &far, place, layout, 0))
}
