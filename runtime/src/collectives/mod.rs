//! Collectives: the copies and reductions of each device, planned when the program is loaded.
//!
//! The devices of a process are in one address space, so in a collective every device reads exactly the elements that it needs directly
//! from other devices' memory. No data is packed, sent or padded, and uneven and empty blocks need no special case. The bytes of devices in
//! other processes have arrived in a message before (see [`crate::processes`]), from which they are read in the same way. The barriers
//! around a collective (all source bytes written, all target bytes read) are separate steps, placed where the program needs them.
//!
//! A *piece* is the overlap of a device's new block with one existing block. Devices that share the memory of the target divide the pieces:
//! the holder of a piece writes it, and several holders divide it.

pub(crate) mod exchange;
pub(crate) mod fetch;
pub(crate) mod permute;
pub(crate) mod reduce;
pub(crate) mod transfer;

use std::ops::Range;

use crate::data::boxes::Rows;
use crate::errors::trap::RunError;
use crate::processes::reads::DeviceReads;
use spmdc_abi::mesh::{DeviceMesh, share, split_axes};
use spmdc_abi::{AxisSet, Layout, Shards, Site};

/// A part of a device's target block, and one device that holds it.
struct BlockBox {
    owner: usize,
    /// The position of the piece in the whole array.
    range: Vec<Range<usize>>,
}

/// The two sides of a collective, as one device sees them.
struct Sides<'a> {
    mesh: &'a DeviceMesh,
    device: usize,
    from: &'a Shards,
    to: &'a Shards,
    /// Axes along which several devices of the group share the target.
    sharing: AxisSet,
}

impl<'a> Sides<'a> {
    fn new(reads: &DeviceReads<'a>, device: usize, group: AxisSet, from: &'a Shards, to: &'a Shards) -> Sides<'a> {
        Sides { mesh: reads.mesh(), device, from, to, sharing: group.minus(reads.axes(to.place.arena)) }
    }

    /// The axes of a group along which devices have copies of the same block.
    fn copies(&self, group: AxisSet) -> AxisSet {
        group.minus(split_axes(&self.from.layout))
    }

    /// The pieces that this device has to write, each with an owner within `group`.
    fn pieces(&self, group: AxisSet, site: Site) -> Result<Vec<BlockBox>, RunError> {
        let mut pieces = self.whole_pieces(group, site)?;
        self.divide(&mut pieces);
        Ok(pieces)
    }

    /// The pieces of the device's target, each with an owner within `group`.
    fn whole_pieces(&self, group: AxisSet, site: Site) -> Result<Vec<BlockBox>, RunError> {
        let mesh = self.mesh;
        let target = mesh.blocks(&self.to.layout, self.device);
        if target.iter().any(Range::is_empty) {
            return Ok(Vec::new());
        }
        // Dimension by dimension: the owner so far, and the range.
        let mut pieces = vec![BlockBox { owner: self.device, range: Vec::new() }];
        for (dim, wanted) in self.from.layout.dims.iter().zip(&target) {
            let len = mesh.stored_len(dim);
            let axes = || dim.axes.iter().map(|&axis| axis as usize);
            let mut longer = Vec::new();
            for piece in &pieces {
                for position in wanted.start / len..=(wanted.end - 1) / len {
                    let mut range = piece.range.clone();
                    range.push(wanted.start.max(position * len)..wanted.end.min((position + 1) * len));
                    longer.push(BlockBox { owner: mesh.at(piece.owner, axes(), position), range });
                }
            }
            pieces = longer;
        }
        debug_assert_eq!(
            pieces.iter().map(|piece| piece.range.iter().map(Range::len).product::<usize>()).sum::<usize>(),
            target.iter().map(Range::len).product::<usize>(),
            "pieces make up the block"
        );
        if let Some(piece) = pieces.iter().find(|piece| !mesh.difference(piece.owner, self.device).is_subset_of(group))
        {
            let message = format!("device {} needs a block of device {}, outside its group", self.device, piece.owner);
            return Err(RunError::internal(message).at(site));
        }
        Ok(pieces)
    }

    /// Keeps the pieces that belong to the share of this device among the devices of its process that write them.
    fn divide(&self, pieces: &mut Vec<BlockBox>) {
        let mesh = self.mesh;
        // Among the devices of the process that share the target, the holders of a piece write it; all of them if no device does.
        let held = self.sharing.intersect(split_axes(&self.from.layout));
        let (rank, count) = mesh.rank(self.device, self.sharing.minus(held));
        let mates = if mesh.processes() == 1 { Vec::new() } else { mesh.mates(self.device, self.sharing) };
        pieces.retain_mut(|piece| {
            let holds = |device: usize| mesh.difference(piece.owner, device).intersect(held).is_empty();
            let is_near = mates.is_empty() || mates.iter().any(|&mate| holds(mate));
            match (holds(self.device), is_near) {
                (true, _) => cut(&mut piece.range, rank, count),
                (false, true) => false,
                (false, false) => {
                    let rank = mates.iter().position(|&mate| mate == self.device).unwrap_or(0);
                    cut(&mut piece.range, rank, mates.len())
                }
            }
        });
    }

    /// The position of the piece in its owner's block and in this device's block.
    fn rows(&self, piece: &BlockBox) -> Rows {
        let mesh = self.mesh;
        let lens: Vec<usize> = piece.range.iter().map(Range::len).collect();
        let offsets = |layout: &Layout, device: usize| -> Vec<usize> {
            let blocks = mesh.blocks(layout, device);
            let offset = |(range, block): (&Range<usize>, Range<usize>)| {
                debug_assert!(
                    block.start <= range.start && range.end <= block.end,
                    "{range:?} is no part of {block:?}"
                );
                range.start - block.start
            };
            piece.range.iter().zip(blocks).map(offset).collect()
        };
        Rows::new(
            self.to.layout.dtype.size(),
            &lens,
            &mesh.stored_shape(&self.from.layout),
            &offsets(&self.from.layout, piece.owner),
            &mesh.stored_shape(&self.to.layout),
            &offsets(&self.to.layout, self.device),
        )
    }
}

/// Cuts a box into `count` parts along its first dimension that is long enough, otherwise along its longest, and keeps part `rank`.
/// False if that part is empty.
fn cut(range: &mut [Range<usize>], rank: usize, count: usize) -> bool {
    debug_assert!(rank < count, "part {rank} of {count}");
    if count == 1 {
        return true;
    }
    let longest = (0..range.len()).rev().max_by_key(|&i| range[i].len());
    let Some(dim) = (0..range.len()).find(|&i| range[i].len() >= count).or(longest) else {
        // A scalar cannot be cut.
        return rank == 0;
    };
    keep(&mut range[dim], rank, count)
}

/// Cuts a box into `count` parts of nearly the same size and keeps part `rank`: along its first dimension whose parts differ by little,
/// otherwise along its longest. False if that part is empty.
fn cut_evenly(range: &mut [Range<usize>], rank: usize, count: usize) -> bool {
    debug_assert!(rank < count, "part {rank} of {count}");
    let is_even = |len: usize| len.is_multiple_of(count) || len >= 64 * count;
    let longest = (0..range.len()).rev().max_by_key(|&i| range[i].len());
    match (0..range.len()).find(|&i| is_even(range[i].len())).or(longest) {
        Some(dim) => keep(&mut range[dim], rank, count),
        // A scalar cannot be cut.
        None => rank == 0,
    }
}

/// Keeps part `rank` of `count`. False if it is empty.
fn keep(range: &mut Range<usize>, rank: usize, count: usize) -> bool {
    let part = share(range.len() as i64, rank, count);
    *range = range.start + part.start as usize..range.start + part.end as usize;
    range.start < range.end
}
