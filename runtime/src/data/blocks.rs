//! Moves whole arrays into and out of the memory of the devices, block by block.

use std::collections::BTreeMap;

use crate::data::array::{BlockSource, HostArray};
use crate::data::boxes::{BoxCopy, Rows};
use crate::errors::trap::RunError;
use crate::processes::reads::DeviceReads;
use crate::run::memory::Memory;
use spmdc_abi::mesh::{DeviceMesh, split_axes};
use spmdc_abi::{ConstantData, Layout, Place};

/// Approximate bytes of the rows read at a time when a block is stored differently from how it is read.
const SLAB: usize = 1 << 20;

/// Blocks of devices in other processes that have arrived in a message, each packed, by their place and device.
#[derive(Clone, Debug, Default)]
pub(crate) struct FarBlocks(pub BTreeMap<(Place, usize), *const u8>);

// SAFETY: the pointers lead to the memory of messages; whoever reads blocks from it promises that their message has arrived.
unsafe impl Send for FarBlocks {}
// SAFETY: as above.
unsafe impl Sync for FarBlocks {}

/// The whole array with layout `layout`, as seen from `device`: of replicated blocks, those at its coordinates.
///
/// The layout and place must have been checked, and no device may be writing the blocks. Blocks of other processes must have arrived.
pub(crate) fn gather(memory: &Memory, far: &FarBlocks, place: Place, layout: &Layout, device: usize) -> HostArray {
    let mut array = unfilled(layout);
    // SAFETY: the array has the size of the layout; the rest is promised by the caller.
    unsafe { gather_into(memory, far, (place, layout), device, array.bytes.as_mut_ptr()) };
    array
}

/// As [`gather`], into memory of the caller.
///
/// # Safety
/// As for [`gather`]; `to` must have room for the whole array.
pub(crate) unsafe fn gather_into(
    memory: &Memory,
    far: &FarBlocks,
    (place, layout): (Place, &Layout),
    device: usize,
    to: *mut u8,
) {
    let mesh = memory.mesh();
    let shape: Vec<usize> = layout.dims.iter().map(|dim| dim.size).collect();
    for owner in mesh.group(device, split_axes(layout)) {
        let (start, len) = block(mesh, layout, owner);
        if len.contains(&0) {
            continue;
        }
        let zeros = vec![0; shape.len()];
        let (from, stored) = match far.0.get(&(place, owner)) {
            Some(&packed) => (packed, len.clone()),
            None => (memory.address(place, owner).cast_const(), mesh.stored_shape(layout)),
        };
        let rows = Rows::new(layout.dtype.size(), &len, &stored, &zeros, &shape, &start);
        // SAFETY: the block lies within its arena, which was checked, or is packed; and within the array, which has the layout's shape.
        unsafe { BoxCopy::new(from, to, rows).run() };
    }
}

/// Whether each device has the whole array, in one piece.
pub(crate) fn is_whole(mesh: &DeviceMesh, layout: &Layout) -> bool {
    mesh.stored_shape(layout).into_iter().eq(layout.dims.iter().map(|dim| dim.size))
}

/// An array of the layout's type and shape.
pub(crate) fn unfilled(layout: &Layout) -> HostArray {
    let shape: Vec<usize> = layout.dims.iter().map(|dim| dim.size).collect();
    HostArray::zeros(layout.dtype, &shape)
}

/// The rows that pack the block of a device; None if it has no elements.
pub(crate) fn packing(mesh: &DeviceMesh, layout: &Layout, device: usize) -> Option<Rows> {
    let (_, len) = block(mesh, layout, device);
    let zeros = vec![0; len.len()];
    let rows = || Rows::new(layout.dtype.size(), &len, &mesh.stored_shape(layout), &zeros, &len, &zeros);
    (!len.contains(&0)).then(rows)
}

/// Adds the reads of the blocks of an array, as [`gather`] reads them from `device`.
pub(crate) fn read_blocks(
    reads: &mut DeviceReads<'_>,
    far: &mut FarBlocks,
    (place, layout): (Place, &Layout),
    device: usize,
) {
    let mesh = reads.mesh();
    for owner in mesh.group(device, split_axes(layout)) {
        if let Some(rows) = packing(mesh, layout, owner)
            && let (from, true) = reads.source(&[owner], place, &rows, (1, 1))
        {
            far.0.insert((place, owner), from);
        }
    }
}

/// The blocks of the devices of this process, each packed; for tests.
pub(crate) fn each_block(memory: &Memory, place: Place, layout: &Layout) -> Vec<HostArray> {
    let mesh = memory.mesh();
    let packed = |device| {
        let (_, len) = block(mesh, layout, device);
        let mut array = HostArray::zeros(layout.dtype, &len);
        let zeros = vec![0; len.len()];
        let rows = Rows::new(layout.dtype.size(), &len, &mesh.stored_shape(layout), &zeros, &len, &zeros);
        // SAFETY: as in `gather`.
        unsafe { BoxCopy::new(memory.address(place, device), array.bytes.as_mut_ptr(), rows).run() };
        array
    };
    memory.devices().iter().map(|&device| packed(device)).collect()
}

/// Writes the constants of a program into every instance of their places, which must have been checked.
pub(crate) fn write_constants(memory: &Memory, constants: &[ConstantData]) {
    for ConstantData { place, bytes } in constants {
        for &device in memory.devices() {
            let rows = Rows::contiguous(bytes.len());
            // SAFETY: the place was checked to hold these bytes, and no device runs yet.
            unsafe { BoxCopy::new(bytes.as_ptr().cast_mut(), memory.address(*place, device), rows).run() };
        }
    }
}

/// Fills every instance of a buffer in this process from the source. Each block is read once; blocks that no device of the process holds
/// are not read.
///
/// The layout and place must have been checked, and no device may be using the buffer.
pub(crate) fn scatter(
    memory: &Memory,
    place: Place,
    layout: &Layout,
    source: &mut dyn BlockSource,
) -> Result<(), RunError> {
    let mesh = memory.mesh();
    let stored = mesh.stored_shape(layout);
    let bytes = stored.iter().product::<usize>() * layout.dtype.size();
    let mut filled = BTreeMap::new();
    let mut read = BTreeMap::new();
    for &device in memory.devices() {
        let to = memory.address(place, device);
        if filled.insert(to.addr(), ()).is_some() {
            continue;
        }
        let (start, len) = block(mesh, layout, device);
        if len.contains(&0) {
            continue;
        }
        match read.get(&start) {
            // Devices that do not share memory may still hold the same block.
            // SAFETY: both are whole stored blocks of the same layout, within their arenas and distinct.
            Some(&same) => unsafe { to.copy_from_nonoverlapping(same, bytes) },
            None => {
                fill(to, &stored, &start, &len, layout, source)?;
                read.insert(start, to.cast_const());
            }
        }
    }
    Ok(())
}

/// Reads one block into its place.
fn fill(
    to: *mut u8,
    stored: &[usize],
    start: &[usize],
    len: &[usize],
    layout: &Layout,
    source: &mut dyn BlockSource,
) -> Result<(), RunError> {
    let size = layout.dtype.size();
    let packed = len.iter().product::<usize>() * size;
    debug_assert_eq!(len.len(), stored.len(), "a block has the rank of its layout");
    debug_assert!(!len.contains(&0), "a block without elements is not read");
    // If only the first dimension is shorter than the stored block, the block is packed in its place.
    if len.iter().zip(stored).skip(1).all(|(len, stored)| len == stored) {
        // SAFETY: the block lies within its arena, and no other code uses it.
        let out = unsafe { std::slice::from_raw_parts_mut(to, packed) };
        return source.read_block(start, len, out);
    }
    let row = packed / len[0];
    debug_assert_eq!(row * len[0], packed, "rows make up the block");
    let mut slab = vec![0; row * (SLAB / row).clamp(1, len[0])];
    let (mut start, mut part) = (start.to_vec(), len.to_vec());
    let zeros = vec![0; len.len()];
    let mut at = zeros.clone();
    while at[0] < len[0] {
        part[0] = (slab.len() / row).min(len[0] - at[0]);
        let slab = &mut slab[..part[0] * row];
        source.read_block(&start, &part, slab)?;
        let rows = Rows::new(size, &part, &part, &zeros, stored, &at);
        // SAFETY: these rows of the block lie within its arena, and no other code uses them; the slab has their size.
        unsafe { BoxCopy::new(slab.as_ptr(), to, rows).run() };
        start[0] += part[0];
        at[0] += part[0];
    }
    Ok(())
}

/// The start and the length of a device's block in the whole array, by dimension.
fn block(mesh: &DeviceMesh, layout: &Layout, device: usize) -> (Vec<usize>, Vec<usize>) {
    mesh.blocks(layout, device).into_iter().map(|range| (range.start, range.len())).unzip()
}
