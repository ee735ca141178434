//! Writes arrays into one file, by all processes concurrently.
//!
//! ```text
//! first process                            others
//! makes a file with a temporary name       look whether they see it
//! in steps of 8 MiB: each process sends what others write of its elements, and writes its own chunks
//! writes headers, renames the file         know that it is complete
//! ```
//!
//! Only the data of a step is in memory. [`plan`] assigns the parts of the file to processes. If a process does not see the file because
//! its host has a separate disk, it sends its elements to the first process, which writes them. After each step the processes report to
//! each other whether they have written it, and while a disk is slow, that they are alive. So a wait is bounded for any size of file, and
//! an error ends the file everywhere at once.
//!
//! An `.npz` file has checksums of whole arrays. A checksum is linear in the bytes: each process computes the contribution of its own
//! chunks ([`shifted`]), and the first process joins the contributions. No data is read back.

mod plan;
mod target;
mod writers;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::array::with_one_nan;
use crate::data::boxes::BoxCopy;
use crate::errors::trap::{DeviceStop, RunError};
use crate::io::layout::{FileFormat, FileLayout, shifted, word_size};
use crate::io::unwritable;
use crate::processes::records::{FailureRecord, decode, encode};
use crate::run::memory::Memory;

pub(crate) use plan::{ArrayOnDevices, Grain, PlaneOnDevices, SharedFilePlan};
use plan::{AssignedChunk, ChunkOfBlock};
use target::{Closed, Visible, WriteTarget};
pub(crate) use writers::Writers;

/// Bytes of the record of a file that has begun: two paths, or an error.
const BEGINNING: usize = 10 << 10;

/// Where a process has the elements of its devices.
pub(crate) enum DeviceElements<'a> {
    /// In the memory of each part; no device may be running.
    Memories(&'a [Memory]),
    /// Packed: the output of [`SharedFilePlan::copy`].
    Copies(&'a [u8]),
}

/// The first process's message about a file.
#[derive(Serialize, Deserialize)]
enum Beginning {
    File {
        /// The name that it will have, for errors.
        path: PathBuf,
        format: FileFormat,
        /// None if only the first process can write it.
        visible: Option<Visible>,
    },
    Failed(FailureRecord),
}

/// A file that is being written.
struct Writing<'a> {
    plan: &'a SharedFilePlan,
    writers: &'a Writers<'a>,
    elements: &'a DeviceElements<'a>,
    path: PathBuf,
    format: FileFormat,
    layout: FileLayout,
    target: WriteTarget,
    /// Where the next elements of this process are in its copies, for the chunks of each process.
    copied: Vec<usize>,
    /// The parts of the checksums that the chunks of this process have.
    checksums: Vec<u32>,
}

/// Writes a file, together with the other processes of the writers, all of which must call this. The first one determines the name. An error
/// in one process is an error in all, and the file is then not created.
pub(crate) fn write(
    plan: &SharedFilePlan,
    writers: &Writers<'_>,
    path: Option<&Path>,
    elements: &DeviceElements<'_>,
) -> Result<(), RunError> {
    write_with(plan, writers, path, elements, &WriteTarget::find)
}

/// As [`write()`]; `find` is how another process than the first looks for the file.
fn write_with(
    plan: &SharedFilePlan,
    writers: &Writers<'_>,
    path: Option<&Path>,
    elements: &DeviceElements<'_>,
    find: &dyn Fn(&Visible) -> WriteTarget,
) -> Result<(), RunError> {
    debug_assert_eq!(path.is_some(), writers.is_first(), "the first process knows the name");
    let mut writing = Writing::begin(plan, writers, path, elements, find)?;
    let visible = writers.ask(writing.target.is_here())?;
    let lists = plan.lists(&visible);
    let mut next = vec![0; lists.len()];
    while (0..lists.len()).any(|process| next[process] < lists[process].len()) {
        let batches: Vec<&[AssignedChunk]> = lists
            .iter()
            .zip(&mut next)
            .map(|(list, next)| {
                let begin = *next;
                *next = plan.batch_end(list, begin);
                &list[begin..*next]
            })
            .collect();
        let received = writing.exchange(&batches)?;
        let written = writers.at_work(|| writing.write_batch(batches[writers.rank()], received))?;
        writers.agree(written)?;
    }
    writing.end()
}

impl<'a> Writing<'a> {
    /// Makes or finds the file.
    fn begin(
        plan: &'a SharedFilePlan,
        writers: &'a Writers<'a>,
        path: Option<&Path>,
        elements: &'a DeviceElements<'a>,
        find: &dyn Fn(&Visible) -> WriteTarget,
    ) -> Result<Writing<'a>, RunError> {
        let mut own = None;
        let said = match path {
            None => None,
            Some(path) => {
                let begun = Writing::create(path, writers.ranks.len() > 1);
                let beginning = match &begun {
                    Ok((beginning, _)) => encode(beginning, BEGINNING),
                    Err(error) => {
                        let stop = DeviceStop { clock: 0, device: 0, error: error.clone() };
                        encode(&Beginning::Failed(FailureRecord::new(&stop)), BEGINNING)
                    }
                };
                own = Some(begun);
                Some(beginning?)
            }
        };
        let (beginning, target) = match (own, said) {
            (Some(begun), said) => {
                writers.announce(said, BEGINNING)?;
                let (beginning, target) = begun?;
                (beginning, Some(target))
            }
            (None, _) => (decode(&writers.announce(None, BEGINNING)?)?, None),
        };
        match beginning {
            Beginning::Failed(record) => Err(record.stop().error),
            Beginning::File { path, format, visible } => {
                let found = || visible.as_ref().map_or(WriteTarget::Elsewhere, find);
                let target = target.unwrap_or_else(found);
                let checksums = vec![0; plan.forms().len()];
                let layout = FileLayout::new(format, plan.forms(), &checksums);
                let layout = layout.map_err(|error| unwritable(&path, &error))?;
                debug_assert_eq!(layout.begins.len(), plan.forms().len(), "each array has its place");
                let copied = plan.copied().to_vec();
                Ok(Writing { plan, writers, elements, path, format, layout, target, copied, checksums })
            }
        }
    }

    fn create(path: &Path, is_shared: bool) -> Result<(Beginning, WriteTarget), RunError> {
        let Some(format) = FileFormat::of(path) else { return Err(RunError::internal("a file has no format")) };
        let (target, visible) = WriteTarget::create(path, is_shared).map_err(|error| unwritable(path, &error))?;
        Ok((Beginning::File { path: path.to_path_buf(), format, visible }, target))
    }

    /// Sends the elements of this process that others write in a step, and receives the elements of others that it writes.
    fn exchange(&mut self, batches: &[&[AssignedChunk]]) -> Result<Vec<(usize, Vec<u8>)>, RunError> {
        debug_assert_eq!(batches.len(), self.copied.len(), "each process has a batch");
        let own = self.writers.rank();
        let mut sent: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut received: Vec<(usize, usize)> = Vec::new();
        for (writer, batch) in batches.iter().enumerate() {
            let mut message = Vec::new();
            for &assigned in batch.iter().filter(|assigned| assigned.is_mixed) {
                let (_, pieces) = self.plan.pieces(assigned);
                for piece in pieces {
                    match (piece.source.process, writer == own) {
                        (source, true) if source != own => {
                            match received.iter_mut().find(|(other, _)| *other == source) {
                                Some((_, bytes)) => *bytes += piece.bytes(),
                                None => received.push((source, piece.bytes())),
                            }
                        }
                        (source, false) if source == own => {
                            let begin = message.len();
                            message.resize(begin + piece.bytes(), 0);
                            // SAFETY: the piece is in the elements of this process, and the message has room for it.
                            unsafe { self.take(assigned, &piece, message.as_mut_ptr().add(begin), true) };
                        }
                        (_, _) => {}
                    }
                }
            }
            sent.extend((!message.is_empty()).then_some((writer, message)));
        }
        self.writers.swap(sent, received)
    }

    /// Copies a piece of this process: packed, or to its rows of the chunk.
    ///
    /// # Safety
    /// The target must have room for it.
    unsafe fn take(&mut self, assigned: AssignedChunk, piece: &ChunkOfBlock, to: *mut u8, is_packed: bool) {
        let (pack, unpack) = piece.rows.packed();
        // SAFETY: as promised by the caller; blocks lie within their arenas, which were checked, and copies have all pieces.
        unsafe {
            match self.elements {
                DeviceElements::Memories(memories) => {
                    let from = memories[piece.part].address(piece.place, piece.source.device);
                    BoxCopy::new(from, to, if is_packed { pack } else { piece.rows.clone() }).run();
                }
                DeviceElements::Copies(copies) => {
                    let at = &mut self.copied[assigned.nearest as usize];
                    let from = copies[*at..*at + piece.bytes()].as_ptr();
                    *at += piece.bytes();
                    if is_packed {
                        to.copy_from_nonoverlapping(from, piece.bytes());
                    } else {
                        BoxCopy::new(from, to, unpack).run();
                    }
                }
            }
        }
    }

    /// Writes the chunks of this process in a step, with the elements of others that it has received.
    fn write_batch(&mut self, batch: &[AssignedChunk], received: Vec<(usize, Vec<u8>)>) -> Result<(), RunError> {
        let own = self.writers.rank();
        let mut used = vec![0; received.len()];
        let mut content = Vec::new();
        for &assigned in batch {
            let (chunk, pieces) = self.plan.pieces(assigned);
            content.resize(chunk.bytes, 0);
            for piece in &pieces {
                if piece.source.process == own {
                    // SAFETY: the piece is in the elements of this process; its rows are those of the chunk.
                    unsafe { self.take(assigned, piece, content.as_mut_ptr(), false) };
                    continue;
                }
                let message = received.iter().position(|(other, _)| *other == piece.source.process);
                let message = message.ok_or_else(|| RunError::internal("elements of a file were not sent"))?;
                let from = &received[message].1[used[message]..used[message] + piece.bytes()];
                used[message] += piece.bytes();
                // SAFETY: as above; the slice has all bytes of the piece.
                unsafe { BoxCopy::new(from.as_ptr(), content.as_mut_ptr(), piece.rows.packed().1).run() };
            }
            with_one_nan(chunk.dtype, &mut content);
            if self.format.swaps() {
                content.chunks_exact_mut(word_size(chunk.dtype)).for_each(<[u8]>::reverse);
            }
            if self.format == FileFormat::Npz {
                self.checksums[chunk.array] ^= shifted(crc32fast::hash(&content), chunk.after);
            }
            let at = self.layout.begins[chunk.array] + chunk.begin;
            self.target.write_at(at, &content).map_err(|error| unwritable(&self.path, &error))?;
        }
        debug_assert!(used.iter().zip(&received).all(|(used, (_, bytes))| *used == bytes.len()), "all is used");
        Ok(())
    }

    /// Completes the file and gives it its name.
    fn end(mut self) -> Result<(), RunError> {
        let (writers, path) = (self.writers, self.path.clone());
        let failed = |error: io::Error| unwritable(&path, &error);
        if !writers.is_first() {
            let target = self.target;
            let closed = writers.at_work(|| target.close())?;
            let closed = writers.agree(closed.map_err(failed))?;
            let checksums = self.checksums.iter().flat_map(|checksum| checksum.to_le_bytes()).collect();
            writers.swap(vec![(writers.ranks[0], checksums)], Vec::new())?;
            // What this process knows of the file is kept until it has its name, or has been removed.
            writers.at_work(|| ())?;
            writers.agree(Ok(closed))?;
            return Ok(());
        }
        writers.at_work(|| ())?;
        writers.agree(Ok(()))?;
        let others = writers.ranks.iter().copied().filter(|&other| other != writers.rank());
        for (_, heard) in writers.swap(Vec::new(), others.map(|other| (other, 4 * self.checksums.len())).collect())? {
            for (checksum, part) in self.checksums.iter_mut().zip(heard.as_chunks::<4>().0) {
                *checksum ^= u32::from_le_bytes(*part);
            }
        }
        let appear = || -> io::Result<Closed> {
            for (at, text) in FileLayout::new(self.format, self.plan.forms(), &self.checksums)?.texts {
                self.target.write_at(at, &text)?;
            }
            let closed = self.target.close()?;
            closed.appear(&self.path)?;
            Ok(closed)
        };
        let appeared = writers.at_work(appear)?;
        writers.agree(appeared.map_err(failed)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::errors::trap::RunCode;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::data::array::{ArrayView, ComplexArray, HostArray};
    use crate::data::blocks::scatter;
    use crate::io::layout::file_of;
    use crate::processes::{Process, tags};
    use spmdc_abi::mesh::DeviceMesh;
    use spmdc_abi::{Arena, AxisSet, DType, Layout, LayoutDim, MeshAxis, Place};

    struct Draw(u64);

    impl Draw {
        /// A number below this one.
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize) % end
        }

        fn of<T: Copy>(&mut self, all: &[T]) -> T {
            all[self.below(all.len())]
        }
    }

    /// Arrays on a mesh, each plane with the elements that it should have in a file.
    struct Example {
        axes: Vec<MeshAxis>,
        processes: usize,
        /// The planes of each array.
        arrays: Vec<Vec<(Layout, HostArray)>>,
        grain: Grain,
    }

    impl Example {
        fn draw(seed: u64) -> Example {
            let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let sizes: Vec<usize> = (0..1 + draw.below(3)).map(|_| 1 + draw.below(3)).collect();
            let axes = sizes.iter().map(|&size| MeshAxis { name: String::new(), size }).collect();
            let devices: usize = sizes.iter().product();
            let fitting: Vec<usize> = (1..=devices).filter(|&count| devices.is_multiple_of(count)).collect();
            let processes = draw.of(&fitting);
            let most = 1 + draw.below(64);
            let grain = Grain { most, long: 1 + draw.below(24), step: 1 + draw.below(200) };
            let arrays = (0..1 + draw.below(3)).map(|_| Example::array(&mut draw, sizes.len())).collect();
            Example { axes, processes, arrays, grain }
        }

        fn array(draw: &mut Draw, axes: usize) -> Vec<(Layout, HostArray)> {
            let dtype =
                draw.of(&[DType::F32, DType::F64, DType::Bf16, DType::F8e5m2, DType::U8, DType::I16, DType::Key]);
            let shape: Vec<usize> =
                (0..draw.below(4)).map(|_| draw.below(9) + usize::from(draw.below(3) > 0)).collect();
            let is_complex = dtype == DType::F32 && draw.below(2) == 0;
            let plane = |draw: &mut Draw| {
                let mut free: Vec<u8> = (0..axes as u8).collect();
                let dim = |size: usize, draw: &mut Draw, free: &mut Vec<u8>| {
                    let count = draw.below(free.len() + 1).min(2);
                    LayoutDim { size, axes: (0..count).map(|_| free.remove(draw.below(free.len()))).collect() }
                };
                let dims = shape.iter().map(|&size| dim(size, draw, &mut free)).collect();
                let mut array = HostArray::zeros(dtype, &shape);
                // Some of them are numbers that are none.
                array.bytes.iter_mut().for_each(|byte| *byte = draw.of(&[0xff, 0x7f, 0x7c, 0x80, 1, 2, 3, 0, 17, 99]));
                (Layout { dtype, dims }, array)
            };
            (0..1 + usize::from(is_complex)).map(|_| plane(draw)).collect()
        }

        /// The result of each process that writes the arrays into this file, together with the others.
        fn written(
            &self,
            path: &Path,
            is_copied: bool,
            find: &(dyn Fn(usize, &Visible) -> WriteTarget + Sync),
        ) -> Vec<Result<(), RunError>> {
            let mesh = DeviceMesh::new(&self.axes).unwrap().assigned(self.processes).unwrap();
            let place = |number: usize| Place { arena: number as u16, offset: 0 };
            let planes: Vec<&(Layout, HostArray)> = self.arrays.iter().flatten().collect();
            let of_process = |process: Option<Process>| {
                let rank = process.as_ref().map_or(0, Process::rank);
                let arena = |(layout, _): &&(Layout, HostArray)| Arena {
                    axes: AxisSet::all(self.axes.len()),
                    bytes: (mesh.stored_shape(layout).iter().product::<usize>() * layout.dtype.size()) as u64,
                };
                let memory = Memory::allocate(&mesh, rank, &planes.iter().map(arena).collect::<Vec<_>>()).unwrap();
                for (number, (layout, array)) in planes.iter().enumerate() {
                    scatter(&memory, place(number), layout, &mut array.clone()).unwrap();
                }
                let mut number = 0;
                let arrays = self.arrays.iter().enumerate().map(|(at, planes)| ArrayOnDevices {
                    name: format!("a{at}"),
                    planes: planes
                        .iter()
                        .map(|(layout, _)| {
                            number += 1;
                            PlaneOnDevices { mesh: &mesh, part: 0, place: place(number - 1), layout }
                        })
                        .collect(),
                });
                let plan = SharedFilePlan::new(arrays.collect(), (rank, self.processes), self.grain).unwrap();
                let memories = [memory];
                let mut copies = vec![0; plan.copied_bytes()];
                plan.copy(&memories[0], &mut copies);
                let elements =
                    if is_copied { DeviceElements::Copies(&copies) } else { DeviceElements::Memories(&memories) };
                let ranks: Vec<usize> = (0..self.processes).collect();
                let (process, limit) = (process.as_ref(), Duration::from_secs(20));
                let writers = Writers { process, ranks: &ranks, tag: tags::RESULT, limit, expects: &|| true };
                write_with(&plan, &writers, (rank == 0).then_some(path), &elements, &|visible| find(rank, visible))
            };
            if self.processes == 1 {
                return vec![of_process(None)];
            }
            thread::scope(|scope| {
                let of_process = &of_process;
                let start = |process| scope.spawn(move || of_process(Some(process)));
                let threads: Vec<_> = Process::threads(self.processes).into_iter().map(start).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        }

        /// The bytes of the file.
        fn expected(&self, format: FileFormat) -> Vec<u8> {
            let complex: Vec<Option<ComplexArray>> = self
                .arrays
                .iter()
                .map(|planes| {
                    let plane = |(_, array): &(Layout, HostArray)| array.clone().with_one_nan();
                    (planes.len() > 1).then(|| ComplexArray::new(&plane(&planes[0]), &plane(&planes[1])))
                })
                .collect();
            let real: Vec<HostArray> = self.arrays.iter().map(|planes| planes[0].1.clone().with_one_nan()).collect();
            let names: Vec<String> = (0..real.len()).map(|at| format!("a{at}")).collect();
            let view = |at: usize| complex[at].as_ref().map_or(ArrayView::from(&real[at]), ArrayView::from);
            file_of(format, &names.iter().enumerate().map(|(at, name)| (name.as_str(), view(at))).collect::<Vec<_>>())
        }

        /// A name for a file that can have all arrays.
        fn name(&self, seed: u64) -> &'static str {
            let is_real = self.arrays.iter().all(|planes| planes.len() == 1);
            match seed % 3 {
                0 if self.arrays.len() == 1 => "y.npy",
                1 if is_real => "y.safetensors",
                _ => "y.npz",
            }
        }
    }

    /// Over meshes, layouts, types, numbers of processes and sizes of chunks, from memory and from copies; also if some processes do not
    /// see the file.
    #[test]
    fn processes_write_the_file_of_one() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..400 {
            let example = Example::draw(seed);
            let path = folder.path().join(example.name(seed));
            let find = |rank: usize, visible: &Visible| match (seed as usize / 7 + rank) % 3 {
                0 => WriteTarget::Elsewhere,
                _ => WriteTarget::find(visible),
            };
            let written = example.written(&path, seed % 2 == 0, &find);
            assert!(written.iter().all(Result::is_ok), "{seed}: {written:?}");
            let (found, expected) = (std::fs::read(&path).unwrap(), example.expected(FileFormat::of(&path).unwrap()));
            assert!(found == expected, "{seed}: {} bytes instead of {}", found.len(), expected.len());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{seed}: no other file is left");
            std::fs::remove_file(path).unwrap();
        }
    }

    /// An error of any process is an error of all; the file is not created, and the older one remains.
    #[test]
    fn an_error_of_one_process_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.npz");
        let mut tried = 0;
        for (seed, example) in (0..60).map(|seed| (seed, Example::draw(seed))) {
            let has_elements = example.arrays.iter().flatten().any(|(_, array)| !array.is_empty());
            if example.processes == 1 || !has_elements {
                continue;
            }
            std::fs::write(&path, "older").unwrap();
            // The file of one process is closed for writing.
            let find =
                |rank: usize, visible: &Visible| match (WriteTarget::find(visible), rank == example.processes - 1) {
                    (WriteTarget::File { temporary, .. }, true) => {
                        WriteTarget::File { file: std::fs::File::open("/dev/null").unwrap(), temporary }
                    }
                    (found, _) => found,
                };
            let written = example.written(&path, seed % 2 == 0, &find);
            let failed = written.iter().filter(|written| written.is_err()).count();
            assert!([0, written.len()].contains(&failed), "{seed}: {written:?}");
            assert!(written.iter().all(|one| *one == written[0]), "{seed}: {written:?}");
            if failed > 0 {
                tried += 1;
                assert_eq!(written[0].as_ref().unwrap_err().code, RunCode::E0704);
                assert_eq!(std::fs::read(&path).unwrap(), b"older");
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{seed}: no other file is left");
        }
        assert!(tried > 10, "{tried} files fail");
        let example = (0..).map(Example::draw).find(|example| example.processes > 2).unwrap();
        let nowhere = folder.path().join("no/such/folder/y.npz");
        let written = example.written(&nowhere, false, &|_, visible| WriteTarget::find(visible));
        assert!(written.iter().all(|one| one.as_ref().is_err_and(|error| error.code == RunCode::E0704)), "{written:?}");
    }

    /// Output that can only be written in order, such as to a pipe, is written by the first process.
    #[test]
    fn a_device_is_written_through() {
        let example = (0..).map(Example::draw).find(|example| example.processes > 2).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("y.npz");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        let written = example.written(&link, true, &|_, visible| WriteTarget::find(visible));
        assert!(written.iter().all(Result::is_ok), "{written:?}");
        assert!(link.is_symlink());
    }
}
