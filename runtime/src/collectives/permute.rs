//! Permutations of whole local buffers between the members of a group: `ppermute` and `pshift`.
//!
//! Cost: one copy per device. A device without a source fills its buffer with zeros.

use crate::data::boxes::{BoxCopy, Rows};
use crate::errors::trap::RunError;
use crate::processes::reads::DeviceReads;
use spmdc_abi::mesh::share;
use spmdc_abi::{AxisSet, PermuteStep};

/// The part of one device in a permutation.
#[derive(Clone, Debug)]
pub(crate) enum Receive {
    Copy(BoxCopy),
    /// The bytes arrive in their destination by a message, or there are none.
    Landed,
    Zeros {
        to: *mut u8,
        bytes: usize,
    },
}

/// The part of the device, given the axes of all participating devices (`group`). The step's axes exist, and `source` has an entry
/// for every position along them.
pub(crate) fn plan(
    reads: &mut DeviceReads<'_>,
    step: &PermuteStep,
    group: AxisSet,
    device: usize,
) -> Result<Receive, RunError> {
    let mesh = reads.mesh();
    let axes = || step.axes.iter().map(|&axis| axis as usize);
    // Devices outside the permuted axes that share the target receive the same bytes; they divide them, by whole cache lines.
    let sharing = group.minus(reads.axes(step.to.arena));
    if !sharing.intersect(axes().collect()).is_empty() {
        let message = "devices that receive different values share the memory for them";
        return Err(RunError::internal(message).at(step.site));
    }
    let lines = step.bytes.div_ceil(64) as i64;
    let (rank, count) = mesh.rank(device, sharing);
    let part = share(lines, rank, count);
    let begin = (part.start as usize * 64).min(step.bytes as usize);
    let bytes = (part.end as usize * 64).min(step.bytes as usize) - begin;
    debug_assert!((begin + bytes) as u64 <= step.bytes, "a part of a buffer ends beyond it");
    let to = reads.own(step.to, device).wrapping_add(begin);
    match step.source[mesh.linear(device, axes())] {
        None => Ok(Receive::Zeros { to, bytes }),
        Some(position) if (position as usize) < step.source.len() => {
            let owner = mesh.at(device, axes(), position as usize);
            let rows = Rows { from: begin, ..Rows::contiguous(bytes) };
            Ok(reads.copy(owner, step.from, rows, to).map_or(Receive::Landed, Receive::Copy))
        }
        Some(position) => Err(RunError::internal(format!("position {position} is outside the group")).at(step.site)),
    }
}
