//! The two ends of a transfer between meshes.
//!
//! A transfer has a mailbox: memory for the whole array. A sender copies what it holds there and goes on; several devices that hold the
//! same elements divide them. A receiver copies its block from there. So neither side knows the layout of the other, and every
//! element is copied once by those that have it and once for each block that it is in.

use std::ops::Range;

use super::cut;
use crate::boxes::{BoxCopy, Rows};
use crate::memory::Memory;
use spmdc_abi::mesh::{DeviceMesh, split_axes};
use spmdc_abi::{Channel, LibraryStep, Message, Place};

/// Where the mailbox of a transfer begins.
pub(crate) const MAILBOX: Place = Place { arena: 0, offset: 0 };

/// The mailbox of a transfer.
pub(crate) fn mailbox(channel: &Channel) -> Result<Memory, crate::trap::RunError> {
    let mesh = DeviceMesh::new(&[]).map_err(crate::trap::RunError::internal)?;
    let bytes = (channel.shape.iter().product::<usize>() * channel.dtype.size()) as u64;
    Memory::allocate(&mesh, 0, &[spmdc_abi::Arena { axes: spmdc_abi::AxisSet::EMPTY, bytes }])
}

/// What a device copies into the mailbox, of the block that it has at `place`.
pub(crate) fn sent(
    memory: &Memory,
    place: Place,
    message: &Message,
    channel: &Channel,
    device: usize,
    mailbox: &Memory,
) -> Option<BoxCopy> {
    let mesh = memory.mesh();
    let block = mesh.blocks(&message.layout, device);
    let mut range = block.clone();
    // The devices with the same block.
    let others = mesh.axes().minus(split_axes(&message.layout));
    let (rank, count) = (mesh.linear(device, others.iter()), mesh.count(others.iter()));
    if range.iter().any(Range::is_empty) || !cut(&mut range, rank, count) {
        return None;
    }
    let lens: Vec<usize> = range.iter().map(Range::len).collect();
    let within: Vec<usize> = range.iter().zip(&block).map(|(range, block)| range.start - block.start).collect();
    let start: Vec<usize> = range.iter().map(|range| range.start).collect();
    let size = message.layout.dtype.size();
    let rows = Rows::new(size, &lens, &mesh.stored_shape(&message.layout), &within, &channel.shape, &start);
    Some(BoxCopy::new(memory.address(place, device), mailbox.address(MAILBOX, 0), rows))
}

/// What a device copies out of the mailbox, into the block that it has at `place`.
pub(crate) fn received(
    memory: &Memory,
    step: &LibraryStep,
    message: &Message,
    channel: &Channel,
    device: usize,
    mailbox: &Memory,
) -> Option<BoxCopy> {
    let mesh = memory.mesh();
    let block = mesh.blocks(&message.layout, device);
    let mut range = block.clone();
    // The devices that share the memory of the block divide its first dimension.
    let own = step.share(mesh, device);
    match range.first_mut() {
        Some(first) => *first = first.start + own.start as usize..first.start + own.end as usize,
        None if own.is_empty() => return None,
        None => {}
    }
    if range.iter().any(Range::is_empty) {
        return None;
    }
    debug_assert!(range.first().is_none_or(|range| range.end <= block[0].end), "a device receives its own block");
    let lens: Vec<usize> = range.iter().map(Range::len).collect();
    let within: Vec<usize> = range.iter().zip(&block).map(|(range, block)| range.start - block.start).collect();
    let start: Vec<usize> = range.iter().map(|range| range.start).collect();
    let size = message.layout.dtype.size();
    let rows = Rows::new(size, &lens, &channel.shape, &start, &mesh.stored_shape(&message.layout), &within);
    Some(BoxCopy::new(mailbox.address(MAILBOX, 0), memory.address(step.results[0].place, device), rows))
}
