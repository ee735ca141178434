//! Windows of a dimension as blocks of elements, and the elements that devices need for the windows that they have.
//!
//! ```text
//! windows of 3 elements of f32[8@Y], Y = 2        device 0 has windows 0, 1, 2 and needs elements 0..5;
//!                                                 device 1 has windows 3, 4, 5 and needs elements 3..8
//! ```
//!
//! The *ghosted block* of a device has the elements from the first to the last one that the device's windows read, so the blocks of
//! neighbours overlap. All ghosted blocks have room for equally many elements, and the windows of a device begin at the first one.

use crate::mesh::Mesh;
use crate::sharding::{DimSharding, block_range};
use crate::types::MAX_ELEMENTS;
use crate::window::DimMap;
use spmdc_abi::{FetchDim, FetchRun};
use std::ops::Range;

/// The windows along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchDim {
    /// The dimension of the operand.
    pub dim: usize,
    /// The number of windows.
    pub len: usize,
    /// The number of elements of a window, at least 1.
    pub size: usize,
    /// The distance between the first elements of neighbouring windows, at least 1.
    pub stride: usize,
    /// The distance between neighbouring elements of a window, at least 1.
    pub dilation: usize,
    /// The number of equal blocks, the last ones shorter, into which both the windows and the operand are divided.
    pub blocks: usize,
}

impl PatchDim {
    /// As many windows as a dimension of `extent` elements has.
    pub fn all(dim: usize, extent: usize, (size, stride, dilation): (usize, usize, usize)) -> PatchDim {
        let room = extent.checked_sub(PatchDim::span(size, dilation));
        PatchDim { dim, len: room.map_or(0, |room| room / stride + 1), size, stride, dilation, blocks: 1 }
    }

    /// The number of elements from the first to the last one of a window.
    pub fn span(size: usize, dilation: usize) -> usize {
        (size - 1) * dilation + 1
    }

    /// The number of elements from the first to the last one that `windows` neighbouring windows read.
    pub fn reach(&self, windows: usize) -> usize {
        windows.checked_sub(1).map_or(0, |steps| steps * self.stride + PatchDim::span(self.size, self.dilation))
    }

    /// The windows of a block.
    pub fn windows(&self, block: usize) -> Range<usize> {
        block_range(self.len, self.blocks, block)
    }

    /// The length of all blocks of windows but the last ones.
    pub fn block(&self) -> usize {
        self.len.div_ceil(self.blocks)
    }

    /// The index in an operand of `extent` elements of an element of a window.
    pub fn place(&self, extent: usize, window: usize, element: usize) -> usize {
        let block = window / self.block().max(1);
        let within = (window - block * self.block()) * self.stride + element * self.dilation;
        block * extent.div_ceil(self.blocks) + within
    }

    /// Whether each block of the windows begins at the first element of the same block of an operand of `extent` elements, as it does
    /// if both are one block.
    pub fn begins_with_blocks(&self, extent: usize) -> bool {
        self.len <= self.block() || self.block() * self.stride == extent.div_ceil(self.blocks)
    }

    /// Whether no element belongs to two windows.
    pub fn is_disjoint(&self) -> bool {
        self.stride >= PatchDim::span(self.size, self.dilation)
    }

    /// Whether all numbers are within the bounds of sizes.
    pub fn is_sound(&self) -> bool {
        let PatchDim { len, size, stride, dilation, blocks, .. } = *self;
        let positive = [size, stride, dilation, blocks].into_iter().all(|number| (1..=MAX_ELEMENTS).contains(&number));
        let bounded = |a: usize, b: usize| a.checked_mul(b).is_some_and(|product| product <= MAX_ELEMENTS);
        positive && len <= MAX_ELEMENTS && bounded(size - 1, dilation) && bounded(len.div_ceil(blocks), stride)
    }

    /// Whether the windows of each block are in the same block of an operand of `extent` elements.
    pub fn fits(&self, extent: usize) -> bool {
        // Blocks behind the last window read nothing.
        let blocks = 0..self.blocks.min(self.len);
        self.is_sound()
            && blocks
                .into_iter()
                .all(|at| self.reach(self.windows(at).len()) <= block_range(extent, self.blocks, at).len())
    }
}

/// Maximum number of pieces in which elements with gaps between them are fetched from other devices; otherwise the gaps are fetched,
/// too.
const MAX_PIECES: usize = 4096;

/// One dimension of the ghosted blocks of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GhostDim {
    /// The elements of the array that the windows read; padding counts as elements.
    pub map: DimMap,
    /// The windows, in as many blocks as there are devices; None for a dimension that stays as it is.
    pub patch: Option<PatchDim>,
}

impl GhostDim {
    /// The number of elements for which a ghosted block has room.
    fn room(patch: &PatchDim) -> usize {
        patch.reach(patch.block())
    }

    /// The size of the dimension in the array of all ghosted blocks.
    pub fn size(&self) -> usize {
        self.patch.map_or(self.map.size, |patch| patch.blocks * GhostDim::room(&patch))
    }

    /// Whether there are ghosted blocks of an array that is split as `from`, one for each position along the axes of `to`.
    pub fn fits(&self, from: &DimSharding, to: &DimSharding, mesh: &Mesh) -> bool {
        match &self.patch {
            None => self.map.is_identity() && from.has_blocks_of(to, self.map.size, mesh),
            Some(patch) => {
                let used = (0..patch.blocks).map(|block| self.places(patch, block)).filter(|places| !places.is_empty());
                let last = used.map(|places| places.end).max();
                from.axes == to.axes
                    && to.alignment.is_none()
                    && mesh.size_of(&to.axes) == patch.blocks
                    && last.is_none_or(|last| last <= self.map.result())
            }
        }
    }

    /// The places, padding included, that the windows of a block read, from the first to the last.
    fn places(&self, patch: &PatchDim, block: usize) -> Range<usize> {
        let windows = patch.windows(block);
        let start = windows.start * patch.stride;
        start..start + patch.reach(windows.len())
    }

    /// For each index in the array of all ghosted blocks, the index of the element in the array; None for padding, and for room that
    /// no window needs.
    pub fn sources(&self) -> Vec<Option<usize>> {
        let Some(patch) = &self.patch else { return (0..self.map.size).map(Some).collect() };
        let mut sources = Vec::with_capacity(self.size());
        for block in 0..patch.blocks {
            let places = self.places(patch, block);
            let unused = GhostDim::room(patch) - places.len();
            sources.extend(places.map(|place| self.map.place(place)));
            sources.extend((0..unused).map(|_| None));
        }
        sources
    }

    /// The padding in the ghosted block of each position, before the elements and after them: indices into the block.
    pub fn padding(&self) -> [Vec<Range<usize>>; 2] {
        let Some(patch) = &self.patch else { return [Vec::new(), Vec::new()] };
        let body = self.map.body();
        let blocks = || (0..patch.blocks).map(|block| self.places(patch, block));
        let before = |places: Range<usize>| 0..places.end.min(body.start).saturating_sub(places.start);
        let after = |places: Range<usize>| {
            let first = places.start.max(body.end).min(places.end);
            first - places.start..places.len()
        };
        [blocks().map(before).collect(), blocks().map(after).collect()]
    }

    /// The elements to copy into ghosted blocks: all from the first to the last one on the device itself, but exactly the needed ones of
    /// other devices.
    pub fn fetch(&self, from: &DimSharding, to: &DimSharding, mesh: &Mesh) -> FetchDim {
        let blocks = from.blocks(self.map.size, mesh);
        let from_len = blocks.iter().map(Range::len).max().unwrap_or(0);
        let (owners, axes) = (from.axes.clone(), to.axes.clone());
        let Some(patch) = &self.patch else {
            let own = |(owner, block): (usize, &Range<usize>)| {
                vec![FetchRun { owner: owner as u32, from: 0, step: 1, to: 0, len: block.len() }]
            };
            let runs = blocks.iter().enumerate().map(own).collect();
            return FetchDim { from_len, to_len: from_len, owners, axes, runs };
        };
        let mut runs: Vec<Vec<FetchRun>> = Vec::with_capacity(patch.blocks);
        for block in 0..patch.blocks {
            let places = self.places(patch, block);
            let all = self.map.fetched(&places, &blocks, 0);
            let (own, others): (Vec<FetchRun>, Vec<FetchRun>) =
                all.into_iter().partition(|run| run.owner as usize == block);
            let pieces = pieces(patch, patch.windows(block).len());
            let exact = others.into_iter().flat_map(|run| pieces.iter().filter_map(move |piece| part(&run, piece)));
            runs.push(own.into_iter().chain(exact).collect());
        }
        FetchDim { from_len, to_len: GhostDim::room(patch), owners, axes, runs }
    }
}

/// The elements that a number of neighbouring windows read, counted from the first one, in as few ranges as possible.
fn pieces(patch: &PatchDim, windows: usize) -> Vec<Range<usize>> {
    let all = 0..patch.reach(windows);
    if windows.saturating_mul(patch.size) > MAX_PIECES {
        return vec![all];
    }
    let mut read: Vec<usize> = (0..windows)
        .flat_map(|window| (0..patch.size).map(move |element| window * patch.stride + element * patch.dilation))
        .collect();
    read.sort_unstable();
    read.dedup();
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for at in read {
        match pieces.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            Some(_) | None => pieces.push(at..at + 1),
        }
    }
    debug_assert!(pieces.iter().all(|piece| piece.end <= all.end), "a piece lies among what the windows read");
    pieces
}

/// The part of a run whose elements are written to a range.
fn part(run: &FetchRun, to: &Range<usize>) -> Option<FetchRun> {
    let (start, end) = (run.to.max(to.start), (run.to + run.len).min(to.end));
    let skipped = start.checked_sub(run.to)? as i64;
    let from = usize::try_from(run.from as i64 + skipped * run.step).ok()?;
    (start < end).then(|| FetchRun { from, to: start, len: end - start, ..*run })
}
