//! Fetches parts of other devices' blocks: the neighbouring rows that a stencil needs, a block in reverse, a single row for all.
//!
//! Cost: each device reads exactly the elements that it lacks, as listed by the compiler.

use crate::data::boxes::{BoxCopy, Rows, WalkDim};
use crate::errors::trap::RunError;
use crate::processes::reads::DeviceReads;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, FetchBoxes, FetchRun, FetchStep};

/// The copies of the device, given the axes of all participating devices (`group`).
pub(crate) fn plan(
    reads: &mut DeviceReads<'_>,
    step: &FetchStep,
    group: AxisSet,
    device: usize,
) -> Result<Vec<BoxCopy>, RunError> {
    let mut moves = Vec::new();
    for part in &step.parts {
        // Devices that share the target fetch the same elements, and divide them.
        let sharing = group.minus(reads.axes(part.to.arena));
        let (rank, count) = reads.mesh().rank(device, sharing);
        for (at, runs) in boxes(reads.mesh(), part, device).into_iter().enumerate() {
            if at % count == rank && runs.iter().all(|run| run.len > 0) {
                moves.extend(fetched(reads, step, part, (group, device), &runs)?);
            }
        }
    }
    Ok(moves)
}

/// Every combination of one run for each dimension.
fn boxes(mesh: &DeviceMesh, part: &FetchBoxes, device: usize) -> Vec<Vec<FetchRun>> {
    let mut boxes: Vec<Vec<FetchRun>> = vec![Vec::new()];
    for dim in &part.dims {
        let position = mesh.linear(device, dim.axes.iter().map(|&axis| axis as usize));
        let runs = &dim.runs[position];
        boxes = boxes.iter().flat_map(|known| runs.iter().map(|run| [known.as_slice(), &[*run]].concat())).collect();
    }
    boxes
}

fn fetched(
    reads: &mut DeviceReads<'_>,
    step: &FetchStep,
    part: &FetchBoxes,
    (group, device): (AxisSet, usize),
    runs: &[FetchRun],
) -> Result<Option<BoxCopy>, RunError> {
    let mesh = reads.mesh();
    let size = part.dtype.size();
    debug_assert_eq!(runs.len(), part.dims.len(), "a box has a run for each dimension");
    let mut owner = device;
    let mut walk = vec![WalkDim { count: 0, from: 0, to: 0 }; runs.len()];
    let (mut from, mut to) = (size, size);
    let (mut from_start, mut to_start) = (0, 0);
    for (at, (run, dim)) in runs.iter().zip(&part.dims).enumerate().rev() {
        owner = mesh.at(owner, dim.owners.iter().map(|&axis| axis as usize), run.owner as usize);
        debug_assert!(
            run.len == 0 || run.from < dim.from_len && run.to + run.len <= dim.to_len,
            "a run lies within its blocks"
        );
        from_start += run.from * from;
        to_start += run.to * to;
        walk[at] = WalkDim { count: run.len, from: run.step as isize * from as isize, to };
        from *= dim.from_len;
        to *= dim.to_len;
    }
    if !mesh.difference(owner, device).is_subset_of(group) {
        let message = format!("device {device} fetches from device {owner}, outside its group");
        return Err(RunError::internal(message).at(step.site));
    }
    let rows = Rows::strided(size, &walk, from_start, to_start);
    let to = reads.own(part.to, device);
    Ok(reads.copy(owner, part.from, rows, to))
}
