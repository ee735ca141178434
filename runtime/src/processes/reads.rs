//! What the devices of one process read from others: the plan of one message from each other process.
//!
//! Every process makes the plans of all, from the mesh and the layouts alone, so that the sender of a message packs it as its receiver
//! expects it. An element that several devices of a process read is in its message once, if they read the same box.

use std::collections::BTreeMap;

use crate::boxes::{BoxCopy, Rows};
use crate::memory::Memory;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, Place};

/// The alignment of boxes in a message, and of spans, which stand for memory of the program.
const BOX: usize = 16;
const SPAN: usize = 64;

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
    known: BTreeMap<BoxKey, usize>,
    boxes: Vec<PlannedBox>,
    bytes: usize,
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
}

impl MessagePlan {
    /// Adds a box, unless it is there. Returns its offset in the message.
    ///
    /// An element of so many bytes in memory has another size in the message if it is a combined value.
    fn add(
        &mut self,
        memory: &Memory,
        (owners, place): (&[usize], Place),
        rows: &Rows,
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
            return known;
        }
        let offset = self.bytes.next_multiple_of(align);
        self.known.insert(key, offset);
        let rows = Rows { to: offset, ..rows.packed().0 };
        self.boxes.push(PlannedBox { owners: owners.to_vec(), place, rows: rows.clone() });
        debug_assert!(owners.len() > 1 || sizes.0 == sizes.1, "a value is sent as it is");
        self.bytes = offset + rows.count() * (rows.row / sizes.0 * sizes.1);
        debug_assert!(self.bytes > offset, "a box without bytes is not sent");
        offset
    }

    /// Bytes of the message.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where the bytes of the message are in this memory as they are sent: it is one box of a device, contiguous there, so that no copy
    /// packs it. The devices of the group do not write it before the crossing is complete.
    pub fn in_place(&self, memory: &Memory) -> Option<*const u8> {
        let [PlannedBox { owners, place, rows }] = self.boxes.as_slice() else { return None };
        let &[owner] = owners.as_slice() else { return None };
        let is_contiguous = rows.dims.iter().all(|dim| dim.from == dim.to as isize);
        debug_assert_eq!(rows.to, 0, "the first box is at the beginning of its message");
        is_contiguous.then(|| memory.address(*place, owner).wrapping_add(rows.from).cast_const())
    }

    /// The copies that pack the message, apart from combined values; all its boxes are in this memory.
    pub fn packing(&self, memory: &Memory, message: *mut u8) -> Box<[BoxCopy]> {
        let copies = self.boxes.iter().filter(|planned| planned.owners.len() == 1);
        let copy = |planned: &PlannedBox| {
            BoxCopy::new(memory.address(planned.place, planned.owners[0]), message, planned.rows.clone())
        };
        copies.map(copy).collect()
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
    /// The addresses at which the messages arrive; None while they are not known.
    arrivals: Option<&'a [*mut u8]>,
}

impl<'a> DeviceReads<'a> {
    /// The reads of a process, whose messages are to be planned.
    pub fn plan(memory: &'a Memory, process: usize) -> DeviceReads<'a> {
        let messages = (0..memory.mesh().processes()).map(|_| MessagePlan::default()).collect();
        DeviceReads { memory, process, messages, arrivals: None }
    }

    /// The reads of the process of this memory, whose messages arrive at these addresses.
    pub fn resolve(memory: &'a Memory, arrivals: &'a [*mut u8]) -> DeviceReads<'a> {
        DeviceReads { arrivals: Some(arrivals), ..DeviceReads::plan(memory, memory.process()) }
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

    /// The address of a place on a device of the process; none while its messages are planned.
    pub fn own(&self, place: Place, device: usize) -> *mut u8 {
        debug_assert_eq!(self.mesh().process(device), self.process, "a process has memory of its own devices");
        if self.arrivals.is_some() { self.memory.address(place, device) } else { std::ptr::null_mut() }
    }

    /// Whether the devices of the process read the memory of this one directly.
    fn is_near(&self, owner: usize) -> bool {
        self.mesh().process(owner) == self.process
    }

    /// Of the devices that have the same bytes as this one, because they differ from it along these axes only, one that is in the
    /// process of the reader; otherwise one in the process that sends them to the reader.
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

    /// The place of a box of another device, and the rows from there to its target.
    pub fn rows(&mut self, owner: usize, place: Place, rows: Rows) -> (*const u8, Rows) {
        if self.is_near(owner) {
            return (self.own(place, owner), rows);
        }
        let (base, is_packed) = self.source(&[owner], place, &rows, (1, 1));
        debug_assert!(is_packed, "a box of another process is packed");
        (base, rows.packed().1)
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
        (self.arrival(owners, place, rows, (sizes, BOX)), true)
    }

    /// The address that stands for a buffer of another device, of which `len` bytes from byte `begin` on are read.
    pub fn span(&mut self, owner: usize, place: Place, (begin, len): (i64, usize)) -> *mut u8 {
        if self.is_near(owner) {
            return self.own(place, owner);
        }
        if len == 0 {
            return std::ptr::null_mut();
        }
        let first = Place { offset: place.offset.wrapping_add_signed(begin), ..place };
        self.arrival(&[owner], first, &Rows::contiguous(len), ((1, 1), SPAN)).wrapping_offset(-begin as isize)
    }

    fn arrival(&mut self, owners: &[usize], place: Place, rows: &Rows, sizes: ((usize, usize), usize)) -> *mut u8 {
        let from = self.mesh().process(owners[0]);
        debug_assert!(owners.iter().all(|&owner| self.mesh().process(owner) == from), "one process combines");
        debug_assert_ne!(from, self.process, "bytes of the process itself need no message");
        let offset = self.messages[from].add(self.memory, (owners, place), rows, sizes);
        self.arrivals.map_or(std::ptr::null_mut(), |arrivals| arrivals[from].wrapping_add(offset))
    }
}
