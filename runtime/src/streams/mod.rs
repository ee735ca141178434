//! Streams: parameters that stay in their files.
//!
//! A step reads rows of a stream into the memory of the devices: each device reads its part of the rows, by reads at positions of the file
//! (`pread`). Files are never mapped, so a file that becomes shorter while the program runs is an error, not a signal. Consecutive rows are
//! read ahead (`ahead.rs`). Rows at indices are read when they are needed, one after the other. If that takes so long that they must come
//! from a disk, all of them are announced to the system before the next time, so that it reads them in parallel.

mod ahead;
mod rows;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::data::inputs::Source;
use crate::errors::trap::{RunCode, RunError};
use crate::run::memory::Memory;
use ahead::AheadReaders;
pub(crate) use ahead::AheadSlot;
use rows::{RowScratch, RowShape, RowTarget, StreamSource};
use spmdc_abi::{Layout, LibraryStep, StreamRows, out_of_bounds};

/// Reading a row that the system has in memory takes less time.
const TIME_OF_DISK: Duration = Duration::from_micros(20);

/// The files of all streams, by parameter.
#[derive(Default)]
pub(crate) struct StreamSources {
    sources: Box<[RwLock<Option<Arc<StreamSource>>>]>,
}

impl StreamSources {
    fn get(&self, param: usize) -> Option<Arc<StreamSource>> {
        self.sources[param].read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// All streams of a program.
pub(crate) struct Streams {
    sources: Arc<StreamSources>,
    readers: AheadReaders,
}

impl Streams {
    /// The streams among this number of parameters, without their files.
    pub fn new(params: usize, slots: Vec<AheadSlot>) -> Streams {
        let sources = (0..params).map(|_| RwLock::new(None)).collect();
        let sources = Arc::new(StreamSources { sources });
        Streams { sources: Arc::clone(&sources), readers: AheadReaders::new(slots, sources) }
    }

    /// Gives a stream its file. It has several numbers if several meshes read it, each the rows that it needs.
    pub fn open(&self, params: &[usize], mut source: Source) -> Result<(), RunError> {
        let source = Arc::new(match source.in_file()? {
            Some(file) => StreamSource::File(file),
            None => StreamSource::Made(Mutex::new(source)),
        });
        for &param in params {
            *self.sources.sources[param].write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&source));
        }
        Ok(())
    }

    /// Prepares a run, which reads everything again.
    pub fn begin(&self) {
        self.readers.reset();
    }
}

/// A dimension before the dimensions of a row.
#[derive(Clone, Copy, Debug)]
struct RowsDim {
    len: usize,
    /// Bytes of the target from index to index.
    stride: usize,
    /// Indices of rows from index to index.
    index: usize,
}

/// The reads of one step on one device.
#[derive(Debug)]
pub(crate) struct PreparedRead {
    /// The parameter.
    stream: usize,
    /// The index of the first row, or the indices of all rows.
    index: *const i64,
    /// The greatest index, which greater ones become.
    last: u64,
    /// Added to the indices.
    first: i64,
    /// The number of rows in the file.
    rows: u64,
    target: *mut u8,
    /// Empty for a single row.
    dims: Box<[RowsDim]>,
    /// The indices of the first dimension that this device reads.
    own: std::ops::Range<usize>,
    how: RowOrder,
}

#[derive(Debug)]
enum RowOrder {
    /// The rows follow each other; they are read ahead in this slot.
    Consecutive { slot: usize },
    /// Each row has an index.
    Indexed(Box<IndexedRows>),
}

#[derive(Debug)]
struct IndexedRows {
    shape: RowShape,
    scratch: Mutex<RowScratch>,
    /// Whether the rows came from a disk the last time.
    is_slow: AtomicBool,
}

/// The reads of a step on a device, and the slot in which they are read ahead, which will be number `slot`. The step has been checked.
pub(crate) fn plan(
    memory: &Memory,
    (step, function): (&LibraryStep, &StreamRows),
    layout: &Layout,
    (device, slot): (usize, usize),
) -> (PreparedRead, Option<AheadSlot>) {
    let mesh = memory.mesh();
    let (index, result) = (&step.operands[0], &step.results[0]);
    let size = result.dtype.size();
    let lens: Vec<usize> = result.dims.iter().map(|dim| mesh.resolve(&dim.extent, device) as usize).collect();
    let strides: Vec<usize> = result.dims.iter().map(|dim| dim.stride as usize).collect();
    let first: Vec<i64> = function.first.iter().map(|first| mesh.resolve(first, device)).collect();
    let sizes: Vec<usize> = layout.dims.iter().map(|dim| dim.size).collect();
    let indexed = lens.len() + 1 - sizes.len();
    let columns: Vec<usize> = first[1..].iter().map(|&first| first as usize).collect();
    let shape = RowShape::new(size, &sizes[1..], (&columns, &lens[indexed..]), &strides[indexed..]);
    let dims = (0..indexed).map(|dim| RowsDim {
        len: lens[dim],
        stride: strides[dim] * size,
        index: index.dims.get(dim).map_or(0, |dim| dim.stride as usize),
    });
    let own = step.share(mesh, device);
    let own = own.start as usize..own.end as usize;
    let rows = sizes[0] as u64;
    debug_assert!(function.consecutive || index.dims.len() == indexed, "each row has an index");
    let (how, ahead) = if function.consecutive {
        let ahead = AheadSlot::new(function.param as usize, shape, own.len(), rows);
        (RowOrder::Consecutive { slot }, Some(ahead))
    } else {
        let scratch = Mutex::new(RowScratch::for_rows(&shape));
        (RowOrder::Indexed(Box::new(IndexedRows { shape, scratch, is_slow: AtomicBool::new(false) })), None)
    };
    let read = PreparedRead {
        stream: function.param as usize,
        index: memory.address(index.place, device).cast_const().cast(),
        last: function.last,
        first: first[0],
        rows,
        target: memory.address(result.place, device),
        dims: dims.collect(),
        own,
        how,
    };
    (read, ahead)
}

/// Reads of one step on one device.
pub(crate) trait PreparedRows: fmt::Debug {
    /// Reads the rows.
    ///
    /// # Safety
    /// The memory of the step must be accessible, and no other thread may write it or read the rows meanwhile.
    unsafe fn run(&self, streams: &Streams) -> Result<(), RunError>;
}

impl PreparedRows for PreparedRead {
    unsafe fn run(&self, streams: &Streams) -> Result<(), RunError> {
        match &self.how {
            // SAFETY: as promised by the caller.
            RowOrder::Consecutive { slot } => unsafe { self.consecutive(streams, *slot) },
            // SAFETY: as promised by the caller.
            RowOrder::Indexed(rows) => unsafe { self.indexed(streams, rows) },
        }
    }
}

impl PreparedRead {
    fn source(&self, streams: &Streams) -> Result<Arc<StreamSource>, RunError> {
        streams.sources.get(self.stream).ok_or_else(|| RunError::internal("a stream has no file"))
    }

    /// The row of the file that is `own` rows after an index, which has been checked, if the file has `count` rows from there on.
    fn row(&self, index: i64, own: usize, count: usize) -> Result<u64, RunError> {
        let row = i128::from(index.cast_unsigned().min(self.last)) + i128::from(self.first) + own as i128;
        let (extent, len) = (i128::from(self.rows), count as i128);
        let is_inside = row >= 0 && row + len <= extent;
        if is_inside { Ok(row as u64) } else { Err(RunError::new(RunCode::E0801, out_of_bounds(row, extent, len))) }
    }

    /// # Safety
    /// As for `run`.
    unsafe fn consecutive(&self, streams: &Streams, number: usize) -> Result<(), RunError> {
        let slot = streams.readers.slot(number);
        if slot.count == 0 || slot.shape.packed == 0 {
            return Ok(());
        }
        // SAFETY: the caller promises that the index can be read; its place has been checked.
        let row = self.row(unsafe { *self.index }, self.own.start, slot.count)?;
        let stride = self.dims[0].stride;
        let base = self.target.wrapping_add(self.own.start * stride);
        let target = RowTarget { base, stride, packed: false };
        let mut state = slot.lock();
        match state.take(row) {
            // SAFETY: as promised by the caller; the block of the device has room for its rows.
            Some(rows) => unsafe { slot.shape.place(rows?, target) },
            None => {
                let source = self.source(streams)?;
                // SAFETY: as above.
                unsafe { slot.shape.read(&source, (row, slot.count), target, &mut state.scratch)? };
            }
        }
        let is_new = state.expect(row, (slot.count, slot.rows));
        drop(state);
        if is_new {
            streams.readers.list(number);
        }
        Ok(())
    }

    /// # Safety
    /// As for `run`.
    unsafe fn indexed(&self, streams: &Streams, rows: &IndexedRows) -> Result<(), RunError> {
        let inner: usize = self.dims.iter().skip(1).map(|dim| dim.len).product();
        let count = if self.dims.is_empty() { self.own.len() } else { self.own.len() * inner };
        if count == 0 || rows.shape.packed == 0 {
            return Ok(());
        }
        let begin = Instant::now();
        let source = self.source(streams)?;
        let shape = &rows.shape;
        if rows.is_slow.load(Ordering::Relaxed) {
            for at in 0..count {
                // SAFETY: as promised by the caller.
                let (row, _) = unsafe { self.place(at)? };
                shape.announce(&source, row);
            }
        }
        let mut scratch = rows.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        for at in 0..count {
            // SAFETY: as promised by the caller.
            let (row, base) = unsafe { self.place(at)? };
            // SAFETY: as promised by the caller; the block of the device has room for the row.
            unsafe {
                shape.read(&source, (row, 1), RowTarget { base, stride: shape.packed, packed: false }, &mut scratch)?
            };
        }
        rows.is_slow.store(begin.elapsed() > TIME_OF_DISK * count as u32, Ordering::Relaxed);
        Ok(())
    }

    /// The row of the file, and the destination of the row, for a position among the rows that the device reads.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn place(&self, mut at: usize) -> Result<(u64, *mut u8), RunError> {
        let (mut index, mut offset) = (0, 0);
        for (number, dim) in self.dims.iter().enumerate().rev() {
            let own = if number == 0 { self.own.start + at } else { at % dim.len };
            at /= dim.len;
            index += own * dim.index;
            offset += own * dim.stride;
        }
        // SAFETY: the caller promises that the index can be read; the places of all have been checked.
        let row = self.row(unsafe { *self.index.add(index) }, 0, 1)?;
        Ok((row, self.target.wrapping_add(offset)))
    }
}
