//! The reads of the devices of one process from others: the plan of one message from each other process.
//!
//! Every process makes the plans of all, from the mesh and the layouts alone, so that the sender of a message packs it as its receiver
//! expects it. If several devices of a process read the same box, its elements are in the message once.

use std::collections::BTreeMap;

use crate::data::boxes::{BoxCopy, Rows};
use crate::run::memory::Memory;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, Place};

/// The alignment of boxes in a message, and of spans, which represent memory of the program.
const BOX: usize = 16;
const SPAN: usize = 64;

/// Minimum size in bytes of a box that gets its own part of the message when that saves a copy. A part costs as much as copying some KiB.
const ALONE: usize = 32 << 10;

/// A box in the memory of an instance of an arena, by which reads of the same elements are recognized.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BoxKey {
    arena: u16,
    /// Several for values that are combined.
    instances: Vec<usize>,
    offset: u64,
    dims: Vec<(usize, isize)>,
    row: usize,
}

/// The boxes that one process receives from another in one message, packed.
#[derive(Debug, Default)]
pub(crate) struct MessagePlan {
    /// The numbers of boxes.
    known: BTreeMap<BoxKey, usize>,
    boxes: Vec<PlannedBox>,
    bytes: usize,
}

/// The receiver's use of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoxUse {
    /// One device copies it as it is to this address, which only its process knows: the box can be received there.
    Landed(*mut u8),
    /// It is read from the message.
    Read,
}

/// Bytes of a message that are sent by themselves, one after another in memory on both sides.
pub(crate) struct DirectMessage {
    /// The offset in the packed message.
    pub offset: usize,
    pub bytes: usize,
    /// The number of the box, if it is a single one.
    single: Option<usize>,
}

/// A box of a message.
#[derive(Debug)]
pub(crate) struct PlannedBox {
    /// The device that has it; several for partial values that their process combines.
    pub owners: Vec<usize>,
    /// Its buffer.
    pub place: Place,
    /// The rows that pack it; of combined values that are longer than their elements, its rows are one after another from `rows.to` on.
    pub rows: Rows,
    /// Bytes of the message that it takes.
    bytes: usize,
    use_of: BoxUse,
}

impl PlannedBox {
    /// Whether its bytes are in the message as they are on the device.
    fn is_contiguous(&self) -> bool {
        self.owners.len() == 1 && is_packed(&self.rows)
    }
}

/// Whether the rows are consecutive in both the source and the target of the copy.
fn is_packed(rows: &Rows) -> bool {
    rows.dims.iter().all(|dim| dim.from == dim.to as isize)
}

impl MessagePlan {
    /// Adds a box, unless it already exists. Returns its number.
    ///
    /// An element with this number of bytes in memory has another size in the message if it is a combined value.
    fn add(
        &mut self,
        memory: &Memory,
        (owners, place): (&[usize], Place),
        (rows, use_of): (&Rows, BoxUse),
        (sizes, align): ((usize, usize), usize),
    ) -> usize {
        let key = BoxKey {
            arena: place.arena,
            instances: owners.iter().map(|&owner| memory.instance(place.arena, owner)).collect(),
            offset: place.offset + rows.from as u64,
            dims: rows.dims.iter().map(|dim| (dim.count, dim.from)).collect(),
            row: rows.row,
        };
        debug_assert!(align.is_power_of_two(), "boxes are aligned to {align} bytes");
        if let Some(&known) = self.known.get(&key) {
            // What several devices read is read from the message.
            self.boxes[known].use_of = BoxUse::Read;
            return known;
        }
        let (offset, number) = (self.bytes.next_multiple_of(align), self.boxes.len());
        self.known.insert(key, number);
        let rows = Rows { to: offset, ..rows.packed().0 };
        let bytes = rows.count() * (rows.row / sizes.0 * sizes.1);
        self.bytes = offset + bytes;
        self.boxes.push(PlannedBox { owners: owners.to_vec(), place, rows, bytes, use_of });
        debug_assert!(owners.len() > 1 || sizes.0 == sizes.1, "a value is sent as it is");
        debug_assert!(self.bytes > offset, "a box without bytes is not sent");
        number
    }

    /// Bytes of the message.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The parts of the message, in the order in which they are sent, which follows from the plan alone; a single empty part if it has
    /// none. A large box is a part if it can then be sent from its place, or received in its destination.
    pub fn parts(&self) -> Vec<DirectMessage> {
        let mut parts: Vec<DirectMessage> = Vec::new();
        let is_only = self.boxes.len() == 1;
        for (number, planned) in self.boxes.iter().enumerate() {
            let (offset, bytes) = (planned.rows.to, planned.bytes);
            let saves = planned.is_contiguous() || planned.use_of != BoxUse::Read;
            let is_single = is_only || saves && bytes >= ALONE;
            match parts.last_mut() {
                Some(last) if !is_single && last.single.is_none() => last.bytes = offset + bytes - last.offset,
                _ => parts.push(DirectMessage { offset, bytes, single: is_single.then_some(number) }),
            }
        }
        if parts.is_empty() {
            parts.push(DirectMessage { offset: 0, bytes: 0, single: None });
        }
        debug_assert!(
            parts.is_sorted_by(|one, next| one.offset + one.bytes <= next.offset),
            "the parts of a message are apart"
        );
        parts
    }

    /// Where the bytes of a part are in this memory as they are sent: it is one box of a device, contiguous there, so that no copy packs
    /// it. The devices of the group do not write it before the crossing is complete.
    pub fn in_place(&self, memory: &Memory, part: &DirectMessage) -> Option<*const u8> {
        let planned = &self.boxes[part.single?];
        let from = || memory.address(planned.place, planned.owners[0]).wrapping_add(planned.rows.from).cast_const();
        planned.is_contiguous().then(from)
    }

    /// The destination of a part of a message to this process, if one device copies it there unchanged, so that it can be received there.
    /// The memory has no other use from the arrival of the group's devices until they continue, because the device would write it then.
    pub fn landing(&self, part: &DirectMessage) -> Option<*mut u8> {
        match self.boxes[part.single?].use_of {
            BoxUse::Landed(to) => Some(to),
            BoxUse::Read => None,
        }
    }

    /// The boxes that are received where they are needed.
    fn landed(&self) -> Vec<bool> {
        let mut landed = vec![false; self.boxes.len()];
        for part in self.parts() {
            if let (Some(number), Some(_)) = (part.single, self.landing(&part)) {
                landed[number] = true;
            }
        }
        landed
    }

    /// The copies that pack these parts of the message, apart from combined values; all its boxes are in this memory.
    pub fn packing(&self, memory: &Memory, parts: &[DirectMessage], message: *mut u8) -> Box<[BoxCopy]> {
        let is_packed = |planned: &&PlannedBox| {
            let is_in = |part: &DirectMessage| (part.offset..part.offset + part.bytes).contains(&planned.rows.to);
            planned.owners.len() == 1 && parts.iter().any(is_in)
        };
        let copy = |planned: &PlannedBox| {
            BoxCopy::new(memory.address(planned.place, planned.owners[0]), message, planned.rows.clone())
        };
        self.boxes.iter().filter(is_packed).map(copy).collect()
    }

    /// The combined values of the message.
    pub fn combined(&self) -> impl Iterator<Item = &PlannedBox> {
        self.boxes.iter().filter(|planned| planned.owners.len() > 1)
    }
}

/// Where the devices of one process read the bytes of others: in the memory of the process, or in the messages of other processes.
pub(crate) struct DeviceReads<'a> {
    memory: &'a Memory,
    /// The process whose devices read.
    process: usize,
    /// By the process from which they come.
    messages: Vec<MessagePlan>,
    /// Where the messages arrive; None while it is not known.
    arrivals: Option<Arrivals<'a>>,
    /// The number of boxes of other processes that are received where this process needs them.
    landed: usize,
}

/// Where the messages to a process arrive.
struct Arrivals<'a> {
    /// By the process from which they come.
    addresses: &'a [*mut u8],
    /// The boxes of each that are received elsewhere, where they are needed.
    landed: Vec<Vec<bool>>,
}

impl<'a> DeviceReads<'a> {
    /// The reads of a process, whose messages are to be planned.
    pub fn plan(memory: &'a Memory, process: usize) -> DeviceReads<'a> {
        let messages = (0..memory.mesh().processes()).map(|_| MessagePlan::default()).collect();
        DeviceReads { memory, process, messages, arrivals: None, landed: 0 }
    }

    /// The reads of the process of this memory, whose messages arrive at these addresses, by these plans of them.
    pub fn resolve(memory: &'a Memory, addresses: &'a [*mut u8], planned: &[MessagePlan]) -> DeviceReads<'a> {
        let landed = planned.iter().map(MessagePlan::landed).collect();
        let arrivals = Some(Arrivals { addresses, landed });
        DeviceReads { arrivals, ..DeviceReads::plan(memory, memory.process()) }
    }

    /// The number of boxes so far that need no copy, as they are received where they are needed.
    pub fn landed(&self) -> usize {
        self.landed
    }

    /// The plans of the messages.
    pub fn messages(self) -> Vec<MessagePlan> {
        self.messages
    }

    pub fn mesh(&self) -> &'a DeviceMesh {
        self.memory.mesh()
    }

    /// The axes along which devices have their own instance of the arena.
    pub fn axes(&self, arena: u16) -> AxisSet {
        self.memory.axes(arena)
    }

    /// The address of a place on a device of the process; none if the messages of another process are planned.
    pub fn own(&self, place: Place, device: usize) -> *mut u8 {
        debug_assert_eq!(self.mesh().process(device), self.process, "a process has memory of its own devices");
        let is_here = self.process == self.memory.process();
        if is_here { self.memory.address(place, device) } else { std::ptr::null_mut() }
    }

    /// Whether the devices of the process read the memory of this one directly.
    fn is_near(&self, owner: usize) -> bool {
        self.mesh().process(owner) == self.process
    }

    /// A device with the same bytes as this one, because it differs from it along these axes only. It is in the process of the reader, or
    /// otherwise in the process that sends them to the reader.
    pub fn nearest(&self, owner: usize, copies: AxisSet) -> usize {
        let mesh = self.mesh();
        if self.is_near(owner) {
            return owner;
        }
        let group = mesh.group(owner, copies);
        if let Some(&near) = group.iter().find(|&&other| self.is_near(other)) {
            return near;
        }
        let mut processes: Vec<usize> = group.iter().map(|&other| mesh.process(other)).collect();
        processes.dedup();
        processes.sort_unstable();
        processes.dedup();
        // Readers in different processes read different copies.
        let from = processes[self.process % processes.len()];
        group.into_iter().find(|&other| mesh.process(other) == from).unwrap_or(owner)
    }

    /// The copy of a box of another device to `to`; none if it is received there.
    pub fn copy(&mut self, owner: usize, place: Place, rows: Rows, to: *mut u8) -> Option<BoxCopy> {
        if self.is_near(owner) {
            return Some(BoxCopy::new(self.own(place, owner), to, rows));
        }
        if rows.row == 0 {
            return None;
        }
        let unpack = rows.packed().1;
        let use_of = if is_packed(&unpack) { BoxUse::Landed(to.wrapping_add(rows.to)) } else { BoxUse::Read };
        let (from, number, offset) = self.arrival(&[owner], place, (&rows, use_of), ((1, 1), BOX));
        let Some(arrivals) = &self.arrivals else { return None };
        if arrivals.landed[from][number] {
            self.landed += 1;
            return None;
        }
        Some(BoxCopy::new(arrivals.addresses[from].wrapping_add(offset), to, unpack))
    }

    /// The place of a box of another device: the buffer that has it, or the memory in which it is packed, as the second value says. Of
    /// several devices of another process it is the combination of their boxes. `sizes`: bytes of an element in memory and in a message.
    pub fn source(&mut self, owners: &[usize], place: Place, rows: &Rows, sizes: (usize, usize)) -> (*const u8, bool) {
        if let [owner] = owners
            && self.is_near(*owner)
        {
            return (self.own(place, *owner), false);
        }
        if rows.row == 0 {
            return (std::ptr::null(), true);
        }
        (self.message(owners, place, rows, (sizes, BOX)), true)
    }

    /// The address that represents a buffer of another device, whose `len` bytes from byte `begin` on are read.
    pub fn span(&mut self, owner: usize, place: Place, (begin, len): (i64, usize)) -> *mut u8 {
        if self.is_near(owner) {
            return self.own(place, owner);
        }
        if len == 0 {
            return std::ptr::null_mut();
        }
        let first = Place { offset: place.offset.wrapping_add_signed(begin), ..place };
        self.message(&[owner], first, &Rows::contiguous(len), ((1, 1), SPAN)).wrapping_offset(-begin as isize)
    }

    /// The address of a box in its message; none while that is unknown.
    fn message(&mut self, owners: &[usize], place: Place, rows: &Rows, sizes: ((usize, usize), usize)) -> *mut u8 {
        let (from, _, offset) = self.arrival(owners, place, (rows, BoxUse::Read), sizes);
        let arrives = |arrivals: &Arrivals<'_>| arrivals.addresses[from].wrapping_add(offset);
        self.arrivals.as_ref().map_or(std::ptr::null_mut(), arrives)
    }

    /// The process that sends a box, and the number and offset of the box in the message.
    fn arrival(
        &mut self,
        owners: &[usize],
        place: Place,
        rows: (&Rows, BoxUse),
        sizes: ((usize, usize), usize),
    ) -> (usize, usize, usize) {
        let from = self.mesh().process(owners[0]);
        debug_assert!(owners.iter().all(|&owner| self.mesh().process(owner) == from), "one process combines");
        debug_assert_ne!(from, self.process, "bytes of the process itself need no message");
        let number = self.messages[from].add(self.memory, (owners, place), rows, sizes);
        (from, number, self.messages[from].boxes[number].rows.to)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::boxes::WalkDim;
    use spmdc_abi::{Arena, MeshAxis};

    const TO: usize = 1 << 20;

    /// Two processes with two devices each, whose memory is apart.
    fn memory() -> Memory {
        let mesh = DeviceMesh::new(&[MeshAxis { name: "X".into(), size: 4 }]).unwrap().assigned(2).unwrap();
        Memory::allocate(&mesh, 0, &[Arena { axes: AxisSet::all(1), bytes: 1 << 21 }]).unwrap()
    }

    /// The plan of the message from the second process to the first one if these devices copy these boxes of device 2. Also returns the
    /// remaining copies, and the places at which its parts are received, as offsets in the memory of device 0.
    fn received(boxes: &[(usize, Rows)]) -> (Vec<(usize, Option<usize>)>, usize) {
        let memory = memory();
        let place = Place { arena: 0, offset: 0 };
        let all = |reads: &mut DeviceReads<'_>| {
            let to = |device| memory.address(place, device).wrapping_add(TO);
            boxes.iter().filter_map(|(device, rows)| reads.copy(2, place, rows.clone(), to(*device))).count()
        };
        let mut reads = DeviceReads::plan(&memory, 0);
        assert_eq!(all(&mut reads), 0, "no copy is known yet");
        let planned = reads.messages();
        let base = memory.address(place, 0).addr();
        let part = |part: DirectMessage| (part.bytes, planned[1].landing(&part).map(|to| to.addr() - base - TO));
        let parts = planned[1].parts().into_iter().map(part).collect();
        let message = [std::ptr::null_mut(); 2];
        let mut reads = DeviceReads::resolve(&memory, &message, &planned);
        let left = all(&mut reads);
        assert_eq!(left + reads.landed(), boxes.len(), "each box is copied or received in its place");
        (parts, left)
    }

    #[test]
    fn boxes_are_received_where_one_device_needs_them() {
        let at = |from: usize, bytes: usize| Rows { from, to: 64 + from, ..Rows::contiguous(bytes) };
        // A message of one box, of any size.
        assert_eq!(received(&[(0, at(0, 8))]), (vec![(8, Some(64))], 0));
        // Large boxes have parts of their own, small ones are together.
        let boxes = [at(0, 8), at(16, 8), at(4096, ALONE), at(1 << 18, ALONE - 1), at(1 << 19, 24)];
        let expected = vec![(24, None), (ALONE, Some(64 + 4096)), (ALONE - 1 + 1 + 24, None)];
        assert_eq!(received(&boxes.map(|rows| (0, rows))), (expected, 4));
        // Both devices need it.
        assert_eq!(received(&[(0, at(0, ALONE)), (1, at(0, ALONE))]), (vec![(ALONE, None)], 2));
        // It is in several rows where it is needed; then where it comes from, too.
        let rows = |from, to| {
            Rows::strided(1, &[WalkDim { count: 2, from, to }, WalkDim { count: ALONE, from: 1, to: 1 }], 0, 0)
        };
        assert_eq!(received(&[(0, rows(ALONE as isize, 2 * ALONE))]), (vec![(2 * ALONE, None)], 1));
        assert_eq!(received(&[(0, rows(2 * ALONE as isize, ALONE))]), (vec![(2 * ALONE, Some(0))], 0));
        assert_eq!(received(&[]), (vec![(0, None)], 0));
    }
}
