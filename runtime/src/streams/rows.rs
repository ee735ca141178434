//! The part of each row that a device reads, and how it is read from a file.

use std::sync::{Mutex, PoisonError};

use crate::data::inputs::Source;
use crate::errors::trap::RunError;
use crate::io::in_file::ElementsInFile;

/// Runs of a row shorter than this many bytes (64 KiB) are read several at a time, with the bytes between them.
const WINDOW: usize = 64 << 10;

/// Runs farther apart than this many bytes, from beginning to beginning, are read one by one: a call of the system takes less time than a
/// copy of the bytes between them.
const FAR: u64 = 4096;

/// Where the rows of a stream come from.
pub(crate) enum StreamSource {
    /// A file, read in parts.
    File(ElementsInFile),
    /// A generated argument, or one that was written in the command line.
    Made(Mutex<Source>),
}

/// Neighbouring bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowRun {
    /// The first byte in the row of the file.
    from: u64,
    /// The first byte in the row of the target.
    to: usize,
    /// The first byte among the bytes of all runs, packed.
    packed: usize,
    len: usize,
}

/// The part of each row that a device reads, and its place in a row of the target.
#[derive(Debug)]
pub(crate) struct RowShape {
    /// Bytes of a whole row in the file.
    bytes: u64,
    /// Bytes of the part.
    pub packed: usize,
    runs: Box<[RowRun]>,
    /// The part of each dimension of a row: the first index, and the length.
    first: Box<[usize]>,
    lens: Box<[usize]>,
    /// Whether the target has the bytes as they are packed.
    is_packed: bool,
    /// Whether runs are read with the bytes between them.
    is_dense: bool,
}

/// Memory for reading rows, kept from read to read.
#[derive(Debug, Default)]
pub(crate) struct RowScratch {
    window: Vec<u8>,
    /// The first byte of the window in the file.
    at: u64,
    row: Vec<u8>,
    start: Vec<usize>,
    lens: Vec<usize>,
}

/// The memory for a number of rows.
#[derive(Clone, Copy)]
pub(crate) struct RowTarget {
    pub base: *mut u8,
    /// The distance between rows, in bytes.
    pub stride: usize,
    /// Whether the bytes of each row are packed, rather than placed as in the program's memory.
    pub packed: bool,
}

impl RowShape {
    /// The part `first..first + lens` of rows of these sizes, in a target with these strides. Sizes and strides are in elements of `size`
    /// bytes.
    pub fn new(size: usize, sizes: &[usize], (first, lens): (&[usize], &[usize]), strides: &[usize]) -> RowShape {
        debug_assert!(sizes.len() == first.len() && sizes.len() == lens.len(), "a part has the rank of its row");
        debug_assert!(sizes.len() == strides.len(), "each dimension has a stride");
        let mut runs: Vec<RowRun> = Vec::new();
        let mut packed = 0;
        let mut index = vec![0; lens.len()];
        let mut has_more = !lens.contains(&0);
        while has_more {
            let (mut from, mut to) = (0, 0);
            for dim in 0..lens.len() {
                from = from * sizes[dim] + first[dim] + index[dim];
                to += index[dim] * strides[dim];
            }
            let run = RowRun { from: (from * size) as u64, to: to * size, packed, len: size };
            // Elements of the last dimension are neighbours, and often those of others.
            let inner = if strides.last() == Some(&1) { lens.last().copied().unwrap_or(1) } else { 1 };
            let len = inner * size;
            match runs.last_mut() {
                Some(last) if last.from + last.len as u64 == run.from && last.to + last.len == run.to => {
                    last.len += len
                }
                Some(_) | None => runs.push(RowRun { len, ..run }),
            }
            packed += len;
            if let Some(last) = index.last_mut() {
                *last += inner - 1;
            }
            has_more = advance(&mut index, lens);
        }
        let bytes = (sizes.iter().product::<usize>() * size) as u64;
        let is_packed = runs.iter().all(|run| run.to == run.packed);
        let is_dense = bytes <= FAR * runs.len() as u64;
        debug_assert_eq!(packed, lens.iter().product::<usize>() * size, "the runs have all elements of the part");
        RowShape { bytes, packed, runs: runs.into(), first: first.into(), lens: lens.into(), is_packed, is_dense }
    }

    /// Whether the part is the whole row.
    fn is_whole(&self) -> bool {
        self.packed as u64 == self.bytes
    }

    /// Whether the rows of the target follow each other, each as it is packed.
    fn fills(&self, target: RowTarget) -> bool {
        target.stride == self.packed && (target.packed || self.is_packed)
    }

    /// Reads `count` rows that follow each other.
    ///
    /// # Safety
    /// The target must have room for the rows, and no other thread may use it.
    pub unsafe fn read(
        &self,
        source: &StreamSource,
        (row, count): (u64, usize),
        target: RowTarget,
        scratch: &mut RowScratch,
    ) -> Result<(), RunError> {
        debug_assert!(self.packed > 0 && count > 0, "rows without elements are not read");
        match source {
            // SAFETY: as promised by the caller.
            StreamSource::File(file) => unsafe { self.read_file(file, (row, count), target, scratch) },
            StreamSource::Made(made) => {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                // SAFETY: as promised by the caller.
                unsafe { self.read_made(&mut made, (row, count), target, scratch) }
            }
        }
    }

    /// # Safety
    /// As for `read`.
    unsafe fn read_file(
        &self,
        file: &ElementsInFile,
        (row, count): (u64, usize),
        target: RowTarget,
        scratch: &mut RowScratch,
    ) -> Result<(), RunError> {
        if self.is_whole() && self.fills(target) {
            // SAFETY: as promised by the caller.
            let out = unsafe { std::slice::from_raw_parts_mut(target.base, count * self.packed) };
            return file.read_at(row * self.bytes, out);
        }
        let last = self.runs.last().map_or(0, |run| run.from + run.len as u64);
        let end = (row + count as u64 - 1) * self.bytes + last;
        // The file may have changed since the last read.
        scratch.window.clear();
        for at in 0..count {
            for run in &self.runs {
                let start = (row + at as u64) * self.bytes + run.from;
                let place = at * target.stride + if target.packed { run.packed } else { run.to };
                // SAFETY: as promised by the caller.
                let out = unsafe { std::slice::from_raw_parts_mut(target.base.add(place), run.len) };
                if run.len >= WINDOW || !self.is_dense {
                    file.read_at(start, out)?;
                } else {
                    scratch.read_window(file, start, end, out)?;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for `read`.
    unsafe fn read_made(
        &self,
        source: &mut Source,
        (row, count): (u64, usize),
        target: RowTarget,
        scratch: &mut RowScratch,
    ) -> Result<(), RunError> {
        let RowScratch { row: bytes, start, lens, .. } = scratch;
        let set = |list: &mut Vec<usize>, head: usize, tail: &[usize]| {
            list.clear();
            list.push(head);
            list.extend_from_slice(tail);
        };
        set(start, row as usize, &self.first);
        if self.fills(target) {
            set(lens, count, &self.lens);
            // SAFETY: as promised by the caller.
            let out = unsafe { std::slice::from_raw_parts_mut(target.base, count * self.packed) };
            return source.read_block(start, lens, out);
        }
        set(lens, 1, &self.lens);
        bytes.resize(self.packed, 0);
        for at in 0..count {
            start[0] = row as usize + at;
            source.read_block(start, lens, bytes)?;
            // SAFETY: as promised by the caller; these are the bytes of one row.
            unsafe { self.place(bytes, RowTarget { base: target.base.add(at * target.stride), ..target }) };
        }
        Ok(())
    }

    /// Copies packed rows to the target.
    ///
    /// # Safety
    /// As for `read`.
    pub unsafe fn place(&self, rows: &[u8], target: RowTarget) {
        debug_assert!(rows.len().is_multiple_of(self.packed.max(1)), "whole rows are copied");
        if self.fills(target) {
            // SAFETY: as promised by the caller; the rows are other memory than the program's.
            return unsafe { target.base.copy_from_nonoverlapping(rows.as_ptr(), rows.len()) };
        }
        for (at, row) in rows.chunks_exact(self.packed).enumerate() {
            for run in &self.runs {
                let place = at * target.stride + if target.packed { run.packed } else { run.to };
                let bytes = &row[run.packed..run.packed + run.len];
                // SAFETY: as above.
                unsafe { target.base.add(place).copy_from_nonoverlapping(bytes.as_ptr(), run.len) };
            }
        }
    }

    /// Tells the system that a row will be read soon.
    pub fn announce(&self, source: &StreamSource, row: u64) {
        if let (StreamSource::File(file), Some(first), Some(last)) = (source, self.runs.first(), self.runs.last()) {
            let len = last.from + last.len as u64 - first.from;
            file.announce(row * self.bytes + first.from, len as usize);
        }
    }
}

impl RowScratch {
    /// Memory for rows of this shape.
    pub fn for_rows(shape: &RowShape) -> RowScratch {
        RowScratch {
            window: if shape.is_dense && !shape.is_whole() { Vec::with_capacity(WINDOW) } else { Vec::new() },
            at: 0,
            row: Vec::new(),
            start: Vec::with_capacity(1 + shape.lens.len()),
            lens: Vec::with_capacity(1 + shape.lens.len()),
        }
    }

    /// Fills `out` with the bytes from `start` on, from a window of neighbouring bytes before `end`.
    fn read_window(&mut self, file: &ElementsInFile, start: u64, end: u64, out: &mut [u8]) -> Result<(), RunError> {
        debug_assert!(start + out.len() as u64 <= end, "no byte behind the last one is needed");
        let is_inside = start >= self.at && start + out.len() as u64 <= self.at + self.window.len() as u64;
        if !is_inside {
            self.window.resize((end - start).min(WINDOW as u64) as usize, 0);
            self.at = start;
            let read = file.read_at(start, &mut self.window);
            if read.is_err() {
                self.window.clear();
            }
            read?;
        }
        let first = (start - self.at) as usize;
        out.copy_from_slice(&self.window[first..first + out.len()]);
        Ok(())
    }
}

/// The next index in row-major order; false after the last.
fn advance(index: &mut [usize], lens: &[usize]) -> bool {
    for (at, &len) in index.iter_mut().zip(lens).rev() {
        *at += 1;
        if *at < len {
            return true;
        }
        *at = 0;
    }
    false
}
