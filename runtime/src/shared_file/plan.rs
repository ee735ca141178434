//! The assignment of parts of a file to processes, and the devices that hold their elements.
//!
//! The elements of each array are divided into *chunks*: ranges of the file without gaps, of at most 1 MiB. One process writes a chunk in
//! one call: the process with most of it. If the elements of a process are consecutive in the file for 32 KiB, chunks end where its
//! elements end, and no element is sent:
//!
//! ```text
//! f32[16384@X, 16384] over 2 processes    chunks of 16 rows, each of one process
//! f32[16384, 16384@X] over 2 processes    chunks of half a row, each of one process
//! f32[16384, 64@X]    over 2 processes    chunks of 4096 rows: half of each is sent
//! ```
//!
//! In the last case a call for each part of a row would write 128 bytes. If several processes have a value, each writes a part.

use std::ops::Range;

use crate::data::boxes::{BoxCopy, Rows, WalkDim};
use crate::errors::trap::RunError;
use crate::io::layout::ArrayForm;
use crate::run::memory::Memory;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{DType, Layout, Place};

/// The sizes by which files are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grain {
    /// Maximum size of a chunk, so that it stays in the cache between being collected, looked through, and written.
    pub most: usize,
    /// Minimum bytes for which the cost of a system call is small compared with writing them.
    pub long: usize,
    /// Bytes that a process writes between two agreements, approximately.
    pub step: usize,
}

impl Grain {
    /// 1 MiB, 32 KiB, and 8 MiB.
    pub const USUAL: Grain = Grain { most: 1 << 20, long: 32 << 10, step: 8 << 20 };
}

/// An array of a file, as devices have it.
pub(crate) struct ArrayOnDevices<'a> {
    pub name: String,
    /// One, or the real and the imaginary one.
    pub planes: Vec<PlaneOnDevices<'a>>,
}

/// An array of numbers on the devices of a mesh, which must have been divided among the processes.
#[derive(Clone, Copy)]
pub(crate) struct PlaneOnDevices<'a> {
    pub mesh: &'a DeviceMesh,
    /// The part of the program.
    pub part: usize,
    pub place: Place,
    pub layout: &'a Layout,
}

/// The plan of a file that the processes of a job write together. All make the same one.
#[derive(Debug)]
pub(crate) struct SharedFilePlan {
    /// The number of this process.
    process: usize,
    grain: Grain,
    forms: Vec<ArrayForm>,
    arrays: Vec<ChunkedArray>,
    /// The chunks of each process, in the order of the file.
    lists: Vec<Vec<AssignedChunk>>,
    /// The start of the elements for each process's chunks, within the copied data of this process's devices.
    copied: Vec<usize>,
    copied_bytes: usize,
}

/// A chunk of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AssignedChunk {
    chunk: u32,
    /// The process that has most of it.
    pub nearest: u32,
    /// Whether other processes have elements of it that the one that writes it lacks.
    pub is_mixed: bool,
}

#[derive(Debug)]
struct ChunkedArray {
    /// Of a scalar one dimension of size 1.
    shape: Vec<usize>,
    dtype: DType,
    planes: Vec<ChunkedPlane>,
    /// The dimension that is cut, and the cuts; of outer ones a chunk has one index each, of inner ones all.
    dim: usize,
    cuts: Vec<Range<usize>>,
    /// The number of the first chunk.
    first: usize,
    chunks: usize,
}

#[derive(Debug)]
struct ChunkedPlane {
    part: usize,
    place: Place,
    /// The stored length of a block in each dimension.
    stored: Vec<usize>,
    /// The number of blocks in each dimension.
    counts: Vec<usize>,
    /// For each block, row-major: one device of each process that has it.
    holders: Vec<Vec<Holder>>,
}

/// A device that has a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Holder {
    pub process: usize,
    pub device: usize,
}

/// A range of the elements of an array.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub array: usize,
    pub dtype: DType,
    /// Its first byte, counted from the first element of the array.
    pub begin: u64,
    pub bytes: usize,
    /// The bytes of the array that come after it.
    pub after: u64,
    start: Vec<usize>,
    len: Vec<usize>,
}

/// The elements of a chunk that come from one block.
#[derive(Debug)]
pub(crate) struct ChunkOfBlock {
    pub part: usize,
    pub place: Place,
    pub source: Holder,
    /// From the block in its place to the chunk.
    pub rows: Rows,
}

impl ChunkOfBlock {
    pub fn bytes(&self) -> usize {
        self.rows.count() * self.rows.row
    }
}

impl SharedFilePlan {
    /// The plan for a file of these arrays, in one of this number of processes.
    pub fn new(
        arrays: Vec<ArrayOnDevices<'_>>,
        (process, processes): (usize, usize),
        grain: Grain,
    ) -> Result<SharedFilePlan, RunError> {
        let mut plan = SharedFilePlan {
            process,
            grain,
            forms: Vec::new(),
            arrays: Vec::new(),
            lists: vec![Vec::new(); processes],
            copied: Vec::new(),
            copied_bytes: 0,
        };
        let mut first = 0;
        for array in arrays {
            let Some(plane) = array.planes.first() else { return Err(RunError::internal("an array has no elements")) };
            let shape = |plane: &PlaneOnDevices<'_>| plane.layout.dims.iter().map(|dim| dim.size).collect::<Vec<_>>();
            let (dtype, whole) = (plane.layout.dtype, shape(plane));
            if array.planes.iter().any(|other| other.layout.dtype != dtype || shape(other) != whole) {
                return Err(RunError::internal("the planes of complex numbers differ"));
            }
            let complex = array.planes.len() > 1;
            plan.forms.push(ArrayForm { name: array.name, dtype, shape: whole, complex });
            let planes = array.planes.iter().map(ChunkedPlane::new).collect();
            plan.arrays.push(ChunkedArray::new((dtype, shape(plane)), planes, first, grain));
            first += plan.arrays.last().map_or(0, |array| array.chunks);
        }
        let chunks = u32::try_from(first).map_err(|_| RunError::internal("a file has too many chunks"))?;
        let mut load = vec![0u64; processes];
        let mut has = vec![0usize; processes];
        for number in 0..chunks {
            let chunk = plan.chunk(number);
            has.fill(0);
            let array = &plan.arrays[chunk.array];
            array.pieces(&chunk, &mut |_, holders, rows| {
                holders.iter().for_each(|holder| has[holder.process] += rows.count() * rows.row);
            });
            // Of those that have most, the one that has the least to write.
            let nearest = (0..processes).min_by_key(|&process| (usize::MAX - has[process], load[process])).unwrap_or(0);
            debug_assert!(has[nearest] > 0, "every element is on a device");
            load[nearest] += chunk.bytes as u64;
            let is_mixed = has[nearest] < chunk.bytes;
            plan.lists[nearest].push(AssignedChunk { chunk: number, nearest: nearest as u32, is_mixed });
        }
        debug_assert_eq!(plan.lists.iter().map(Vec::len).sum::<usize>(), first, "each chunk is in one list");
        for list in 0..processes {
            plan.copied.push(plan.copied_bytes);
            let mut bytes = 0;
            plan.own_pieces(list, &mut |piece| bytes += piece.bytes());
            plan.copied_bytes += bytes;
        }
        Ok(plan)
    }

    /// The descriptions of the arrays in the file.
    pub fn forms(&self) -> &[ArrayForm] {
        &self.forms
    }

    /// The bytes that this process copies of its devices.
    pub fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// Where, in these bytes, the elements in the chunks of each process begin.
    pub fn copied(&self) -> &[usize] {
        &self.copied
    }

    /// The chunks of each process if only these processes write: the first of these also writes the chunks of the others.
    pub fn lists(&self, writers: &[usize]) -> Vec<Vec<AssignedChunk>> {
        debug_assert!(writers.iter().all(|&writer| writer < self.lists.len()), "those that write are processes");
        let mut lists = self.lists.clone();
        let Some(&first) = writers.first() else { return lists };
        for process in (0..lists.len()).filter(|process| !writers.contains(process)) {
            let moved = std::mem::take(&mut lists[process]);
            lists[first].extend(moved.into_iter().map(|assigned| AssignedChunk { is_mixed: true, ..assigned }));
        }
        lists
    }

    /// Copies the elements that this process has to write or to send, packed, in the order in which they are needed.
    ///
    /// No device may be writing the arrays, which must be in this memory.
    pub fn copy(&self, memory: &Memory, copies: &mut [u8]) {
        assert_eq!(copies.len(), self.copied_bytes, "there is room for the elements");
        let mut to = copies.as_mut_ptr();
        for list in 0..self.lists.len() {
            self.own_pieces(list, &mut |piece| {
                let from = memory.address(piece.place, piece.source.device);
                // SAFETY: the block lies within its arena, which was checked; the copies have room for all pieces.
                unsafe {
                    BoxCopy::new(from, to, piece.rows.packed().0).run();
                    to = to.add(piece.bytes());
                }
            });
        }
    }

    /// The pieces in the chunks of a process that come from this one.
    fn own_pieces(&self, list: usize, visit: &mut impl FnMut(&ChunkOfBlock)) {
        for &assigned in self.lists[list].iter().filter(|assigned| list == self.process || assigned.is_mixed) {
            let (_, pieces) = self.pieces(assigned);
            pieces.iter().filter(|piece| piece.source.process == self.process).for_each(&mut *visit);
        }
    }

    /// A chunk, and its pieces.
    pub fn pieces(&self, assigned: AssignedChunk) -> (Chunk, Vec<ChunkOfBlock>) {
        let chunk = self.chunk(assigned.chunk);
        let mut pieces = Vec::new();
        self.arrays[chunk.array].pieces(&chunk, &mut |plane, holders, rows| {
            let near = holders.iter().find(|holder| holder.process == assigned.nearest as usize);
            // Several that have it send it in turn.
            let source = *near.unwrap_or(&holders[assigned.chunk as usize % holders.len()]);
            pieces.push(ChunkOfBlock { part: plane.part, place: plane.place, source, rows });
        });
        debug_assert_eq!(
            pieces.iter().map(ChunkOfBlock::bytes).sum::<usize>(),
            chunk.bytes,
            "pieces make up the chunk"
        );
        (chunk, pieces)
    }

    /// The end of the chunks that are written in a step, from `begin` in a list: they have at most this number of bytes, or are one chunk.
    pub fn batch_end(&self, list: &[AssignedChunk], begin: usize) -> usize {
        debug_assert!(begin <= list.len(), "a step begins where the one before has ended");
        let mut bytes = 0;
        let more = list[begin..].iter().take_while(|assigned| {
            let is_first = bytes == 0;
            bytes += self.chunk(assigned.chunk).bytes;
            is_first || bytes <= self.grain.step
        });
        begin + more.count()
    }

    fn chunk(&self, number: u32) -> Chunk {
        let number = number as usize;
        let array = self.arrays.partition_point(|array| array.first + array.chunks <= number);
        self.arrays[array].chunk(array, number - self.arrays[array].first)
    }
}

impl ChunkedPlane {
    fn new(plane: &PlaneOnDevices<'_>) -> ChunkedPlane {
        let PlaneOnDevices { mesh, part, place, layout } = *plane;
        let axes = |dim: usize| layout.dims[dim].axes.iter().map(|&axis| axis as usize);
        let (mut stored, mut counts) = (mesh.stored_shape(layout), Vec::new());
        counts.extend((0..layout.dims.len()).map(|dim| mesh.count(axes(dim))));
        let mut holders: Vec<Vec<Holder>> = vec![Vec::new(); counts.iter().product()];
        for device in 0..mesh.devices() {
            let position =
                (0..counts.len()).fold(0, |position, dim| position * counts[dim] + mesh.linear(device, axes(dim)));
            let process = mesh.process(device);
            if !holders[position].iter().any(|holder| holder.process == process) {
                holders[position].push(Holder { process, device });
            }
        }
        debug_assert!(holders.iter().all(|holders| !holders.is_empty()), "each block is on a device");
        if layout.dims.is_empty() {
            (stored, counts) = (vec![1], vec![1]);
        }
        ChunkedPlane { part, place, stored, counts, holders }
    }

    /// The last dimension in which processes have different blocks.
    fn last_split(&self) -> Option<usize> {
        (0..self.counts.len()).rev().find(|&dim| self.is_split(dim))
    }

    /// Whether different processes have different blocks of a dimension.
    fn is_split(&self, dim: usize) -> bool {
        let stride: usize = self.counts[dim + 1..].iter().product();
        let processes = |block: usize| self.holders[block].iter().map(|holder| holder.process);
        (0..self.holders.len())
            .filter(|block| block / stride % self.counts[dim] + 1 < self.counts[dim])
            .any(|block| !processes(block).eq(processes(block + stride)))
    }
}

impl ChunkedArray {
    fn new(
        (dtype, mut shape): (DType, Vec<usize>),
        planes: Vec<ChunkedPlane>,
        first: usize,
        Grain { most, long, .. }: Grain,
    ) -> ChunkedArray {
        if shape.is_empty() {
            shape.push(1);
        }
        let size = dtype.size() * planes.len();
        let step = |dim: usize| shape[dim + 1..].iter().product::<usize>() * size;
        let is_empty = shape.contains(&0);
        let mut dim = (0..shape.len()).find(|&dim| step(dim) <= most).unwrap_or(shape.len() - 1);
        let mut cuts = Vec::new();
        if !is_empty {
            let plane = &planes[0];
            if let Some(split) = plane.last_split()
                && plane.stored[split] * step(split) >= long
            {
                dim = dim.max(split);
            }
            let most = (most / step(dim)).max(1);
            let is_cut_by_blocks = plane.is_split(dim) && plane.stored[dim] * step(dim) >= long;
            let block = if is_cut_by_blocks { plane.stored[dim] } else { shape[dim] };
            for begin in (0..shape[dim]).step_by(block) {
                let end = (begin + block).min(shape[dim]);
                cuts.extend((begin..end).step_by(most).map(|at| at..(at + most).min(end)));
            }
        }
        debug_assert!(is_empty || cuts.iter().map(Range::len).sum::<usize>() == shape[dim], "cuts leave nothing out");
        let chunks = if is_empty { 0 } else { shape[..dim].iter().product::<usize>() * cuts.len() };
        ChunkedArray { shape, dtype, planes, dim, cuts, first, chunks }
    }

    fn chunk(&self, array: usize, number: usize) -> Chunk {
        debug_assert!(number < self.chunks, "there is no chunk {number}");
        let (mut start, mut len) = (vec![0; self.shape.len()], self.shape.clone());
        let mut outer = number / self.cuts.len();
        for dim in (0..self.dim).rev() {
            (start[dim], len[dim]) = (outer % self.shape[dim], 1);
            outer /= self.shape[dim];
        }
        let cut = &self.cuts[number % self.cuts.len()];
        (start[self.dim], len[self.dim]) = (cut.start, cut.len());
        let size = self.dtype.size() * self.planes.len();
        let first = (0..start.len()).fold(0, |first, dim| first * self.shape[dim] + start[dim]);
        let bytes = len.iter().product::<usize>() * size;
        let begin = first as u64 * size as u64;
        let whole = self.shape.iter().product::<usize>() as u64 * size as u64;
        Chunk { array, dtype: self.dtype, begin, bytes, after: whole - begin - bytes as u64, start, len }
    }

    /// Visits the pieces of a chunk: their planes, the devices that have them, and the rows from there to the chunk.
    fn pieces(&self, chunk: &Chunk, visit: &mut impl FnMut(&ChunkedPlane, &[Holder], Rows)) {
        let size = self.dtype.size();
        for (number, plane) in self.planes.iter().enumerate() {
            let range = |dim: usize| {
                let (start, end) = (chunk.start[dim], chunk.start[dim] + chunk.len[dim]);
                start / plane.stored[dim]..end.div_ceil(plane.stored[dim])
            };
            let ranges: Vec<Range<usize>> = (0..chunk.len.len()).map(range).collect();
            let mut block: Vec<usize> = ranges.iter().map(|range| range.start).collect();
            loop {
                let mut walk = vec![WalkDim { count: 0, from: 0, to: 0 }; block.len()];
                let (mut from, mut to) = (size, size * self.planes.len());
                let (mut from_offset, mut to_offset) = (0, number * size);
                for dim in (0..block.len()).rev() {
                    let stored = plane.stored[dim];
                    let begin = chunk.start[dim].max(block[dim] * stored);
                    let end = (chunk.start[dim] + chunk.len[dim]).min((block[dim] + 1) * stored);
                    walk[dim] = WalkDim { count: end - begin, from: from as isize, to };
                    from_offset += (begin - block[dim] * stored) * from;
                    to_offset += (begin - chunk.start[dim]) * to;
                    from *= stored;
                    to *= chunk.len[dim];
                }
                let position = (0..block.len()).fold(0, |position, dim| position * plane.counts[dim] + block[dim]);
                visit(plane, &plane.holders[position], Rows::strided(size, &walk, from_offset, to_offset));
                let next = (0..block.len()).rev().find(|&dim| block[dim] + 1 < ranges[dim].end);
                let Some(next) = next else { break };
                block[next] += 1;
                (next + 1..block.len()).for_each(|dim| block[dim] = ranges[dim].start);
            }
        }
    }
}
