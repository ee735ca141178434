//! Transfers between meshes: the source and target of each element, and the copies of each device.
//!
//! ```text
//! first (a = 2), 6@a:   0 1 2 | 3 4 5        boxes:  0 1 | 2 | 3 | 4 5, packed one after another
//! second (b = 3), 6@b:  0 1 | 2 3 | 4 5
//! ```
//!
//! A *box* is the overlap of a block of the sender with a block of the receiver. The boxes for the devices of one process are packed into
//! one message from each process that has them: in the memory of the process, or to be sent to another one. A sender copies its part of
//! each box into the message, several senders with the same block divide it, and a receiver copies its block out of the messages. So every
//! element reaches every process that needs it once. Uneven, replicated and overlapping blocks need no special case.

use std::collections::BTreeMap;
use std::ops::Range;

use super::cut;
use crate::data::boxes::{BoxCopy, Rows};
use crate::run::memory::Memory;
use spmdc_abi::mesh::{DeviceMesh, split_axes};
use spmdc_abi::sorted::distinct;
use spmdc_abi::{Channel, Layout, LibraryStep, Place};

/// The alignment of boxes in a message.
const BOX: usize = 16;

/// All boxes of a transfer, and the messages that they are in.
pub(crate) struct TransferPlan {
    boxes: Vec<TransferBox>,
    /// The length of the message from one process to another, or to itself.
    bytes: BTreeMap<(usize, usize), usize>,
    size: usize,
}

struct TransferBox {
    /// The elements, as positions in the whole array.
    range: Vec<Range<usize>>,
    /// The processes that send and receive.
    from: usize,
    to: usize,
    /// The first device with the block of the sender, and of the receiver.
    sender: usize,
    receiver: usize,
    /// Its offset in the message.
    offset: usize,
}

/// The different blocks of a layout: for each one its devices, represented by the first.
fn blocks(mesh: &DeviceMesh, layout: &Layout) -> Vec<(Vec<Range<usize>>, Vec<usize>)> {
    let (split, copies) = (split_axes(layout), mesh.axes().minus(split_axes(layout)));
    let block = |first: usize| (mesh.blocks(layout, first), mesh.group(first, copies));
    mesh.group(0, split.intersect(mesh.axes())).into_iter().map(block).collect()
}

/// The first of the devices that have the same block as this one.
fn first_copy(mesh: &DeviceMesh, layout: &Layout, device: usize) -> usize {
    let copies = mesh.axes().minus(split_axes(layout));
    mesh.group(device, copies)[0]
}

impl TransferPlan {
    /// The plan for a transfer between these meshes, which is the same in all processes.
    pub fn new(channel: &Channel, from: &DeviceMesh, to: &DeviceMesh) -> TransferPlan {
        debug_assert_eq!(from.processes(), to.processes(), "both meshes are assigned to the processes of the job");
        let size = channel.sent.dtype.size();
        let (sent, received) = (blocks(from, &channel.sent), blocks(to, &channel.received));
        let mut plan = TransferPlan { boxes: Vec::new(), bytes: BTreeMap::new(), size };
        for (wanted, readers) in &received {
            let receiving = distinct(readers.iter().map(|&device| to.process(device)));
            for (held, owners) in &sent {
                let overlap = |(a, b): (&Range<usize>, &Range<usize>)| a.start.max(b.start)..a.end.min(b.end);
                let range: Vec<Range<usize>> = held.iter().zip(wanted).map(overlap).collect();
                if range.iter().any(Range::is_empty) {
                    continue;
                }
                let sending = distinct(owners.iter().map(|&device| from.process(device)));
                for &to in &receiving {
                    let near = sending.contains(&to).then_some(to);
                    // Readers in different processes read different copies.
                    let far = || sending.get(to % sending.len()).copied();
                    let from = near.or_else(far).expect("a device has the block");
                    plan.add(range.clone(), (from, to), (owners[0], readers[0]));
                }
            }
        }
        plan
    }

    fn add(&mut self, range: Vec<Range<usize>>, (from, to): (usize, usize), (sender, receiver): (usize, usize)) {
        let bytes = self.bytes.entry((from, to)).or_default();
        let offset = bytes.next_multiple_of(BOX);
        *bytes = offset + range.iter().map(Range::len).product::<usize>() * self.size;
        self.boxes.push(TransferBox { range, from, to, sender, receiver, offset });
    }

    /// Bytes of the message from one process to another, or to itself.
    pub fn bytes(&self, from: usize, to: usize) -> usize {
        self.bytes.get(&(from, to)).copied().unwrap_or(0)
    }

    /// The copies of a device into messages, from its block at `place`; `messages` are the messages from its process, by the process that
    /// receives them.
    pub fn sent(
        &self,
        memory: &Memory,
        (place, layout): (Place, &Layout),
        device: usize,
        messages: &[*mut u8],
    ) -> Box<[BoxCopy]> {
        let mesh = memory.mesh();
        let (block, stored) = (mesh.blocks(layout, device), mesh.stored_shape(layout));
        let first = first_copy(mesh, layout, device);
        let (rank, count) = mesh.rank(device, mesh.axes().minus(split_axes(layout)));
        let own = self.boxes.iter().filter(|each| each.from == mesh.process(device) && each.sender == first);
        let copy = |each: &TransferBox| {
            let mut range = each.range.clone();
            if !cut(&mut range, rank, count) {
                return None;
            }
            let (lens, whole) = (lengths(&range), lengths(&each.range));
            let (within, start) = (starts(&range, &block), starts(&range, &each.range));
            let rows = Rows::new(self.size, &lens, &stored, &within, &whole, &start);
            Some(BoxCopy::new(memory.address(place, device), messages[each.to].wrapping_add(each.offset), rows))
        };
        own.filter_map(copy).collect()
    }

    /// The copies of a device from messages into the block of the step; `messages` are the messages to its process, by the process that
    /// sends them.
    pub fn received(
        &self,
        memory: &Memory,
        (step, layout): (&LibraryStep, &Layout),
        device: usize,
        messages: &[*mut u8],
    ) -> Box<[BoxCopy]> {
        let mesh = memory.mesh();
        let (block, stored) = (mesh.blocks(layout, device), mesh.stored_shape(layout));
        let first = first_copy(mesh, layout, device);
        // The devices that share the memory of the block divide its first dimension.
        let share = step.share(mesh, device);
        if share.is_empty() {
            return Box::new([]);
        }
        let own = self.boxes.iter().filter(|each| each.to == mesh.process(device) && each.receiver == first);
        let copy = |each: &TransferBox| {
            let mut range = each.range.clone();
            if let (Some(range), Some(block)) = (range.first_mut(), block.first()) {
                let own = block.start + share.start as usize..block.start + share.end as usize;
                *range = range.start.max(own.start)..range.end.min(own.end);
            }
            if range.iter().any(Range::is_empty) {
                return None;
            }
            let (lens, whole) = (lengths(&range), lengths(&each.range));
            let (within, start) = (starts(&range, &block), starts(&range, &each.range));
            let rows = Rows::new(self.size, &lens, &whole, &start, &stored, &within);
            let to = memory.address(step.results[0].place, device);
            Some(BoxCopy::new(messages[each.from].wrapping_add(each.offset), to, rows))
        };
        own.filter_map(copy).collect()
    }
}

fn lengths(range: &[Range<usize>]) -> Vec<usize> {
    range.iter().map(Range::len).collect()
}

/// Where a box begins within another one.
fn starts(range: &[Range<usize>], within: &[Range<usize>]) -> Vec<usize> {
    range.iter().zip(within).map(|(range, within)| range.start - within.start).collect()
}
