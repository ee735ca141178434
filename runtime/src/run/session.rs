//! A loaded program: takes parameters, runs any number of times, and returns results.
//!
//! ```no_run
//! # use spmdc_abi::{Kernels, Program};
//! # use spmdc_runtime::data::array::HostArray;
//! # use spmdc_runtime::errors::trap::RunError;
//! # use spmdc_runtime::run::{report::RunOptions, session::Session};
//! # fn example(program: Program, kernels: Kernels, mut x: HostArray) -> Result<HostArray, RunError> {
//! let mut session = Session::load(program, kernels, RunOptions::default())?;
//! session.write_param(0, &mut x)?;
//! let report = session.run(&mut std::io::stdout())?;
//! println!("{} ms", report.run_ms);
//! session.read_result(0)
//! # }
//! ```

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use crate::check::check;
use crate::components::ProgramCode;
use crate::data::array::{BlockSource, HostArray};
use crate::data::blocks::{self, FarBlocks};
use crate::data::inputs::{Argument, Source, sized};
use crate::data::outputs::ResultArray;
use crate::data::process_files::LocalBlocks;
use crate::errors::trap::{RunCode, RunError};
use crate::load::{Counted, Loaded, PlacedProgram, load};
use crate::processes::Process;
use crate::processes::assignment::{assigned, label};
use crate::processes::crossings::{Crossings, Ending};
use crate::processes::results::collect;
use crate::processes::tags;
use crate::run::launch::{Staff, Workforce};
use crate::run::memory::{ByteSize, Memory, check_fits};
use crate::run::pages::ArrayPages;
use crate::run::report::{CollectiveTotal, RunOptions, RunReport};
use crate::run::shared::Shared;
use crate::shared_file::{self, ArrayOnDevices, DeviceElements, Grain, PlaneOnDevices, SharedFilePlan, Writers};
use crate::streams::Streams;
use crate::text::progress::LoopProgress;
use crate::text::trace::{Recorder, StatementNames, Trace};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::sorted::order;
use spmdc_abi::{Binding, CollectiveKind, Layout, MeshProgram, Place, Program};

/// A program in memory, with its threads. Buffers and threads are kept from run to run.
pub struct Session {
    program: Program,
    workforce: Workforce,
    collectives: Vec<Counted>,
    /// Set if runs are recorded.
    recording: Option<Recording>,
}

/// The component of arguments: how they become the elements of parameters.
#[derive(Clone, Copy)]
pub(crate) struct InputsCode {
    /// See [`inputs::bind_all`](crate::data::inputs::bind_all).
    pub bind: BindFn,
    /// See [`Session::give`].
    pub give: fn(&mut Session, usize, Source) -> Result<(), RunError>,
}

type BindFn = fn(&[Binding], &[Argument], Option<&Path>, Option<&LocalBlocks>) -> Result<Vec<Source>, RunError>;

/// The times of a recorded run.
struct Recording {
    /// The time from which devices count.
    epoch: Instant,
    /// Nanoseconds from then to the beginning of the last run.
    start: u64,
    /// The number of the process.
    process: usize,
}

impl Session {
    /// Loads a program: checks it, allocates its memory, and prepares every device, or those of one process of a job. All processes must load the same program, and make the same
    /// calls of the session in the same order; each has its own part of the arguments and of the results.
    pub fn load_in(
        process: Option<Process>,
        program: Program,
        code: ProgramCode,
        options: RunOptions,
    ) -> Result<Session, RunError> {
        let wholes = check(&program, &code)?;
        let (rank, count) = process.as_ref().map_or((0, 1), |process| (process.rank(), process.count()));
        let meshes = assigned(&program, wholes, count)?;
        let needed = check_fits(&program, &meshes, rank, options.memory_limit)?;
        let programs = program.programs();
        let memories: Vec<Memory> = programs
            .iter()
            .zip(&meshes)
            .map(|(program, mesh)| Memory::allocate(mesh, rank, &program.arenas))
            .collect::<Result<_, _>>()?;
        for (program, memory) in programs.iter().zip(&memories) {
            blocks::write_constants(memory, &program.constants);
        }
        let (labels, numbers) = numbered(&program, &meshes);
        let cores = options.workers.or_else(|| available_parallelism().ok().map(usize::from)).unwrap_or(1);
        let own = of_process(&meshes, &numbers, rank);
        let first = own.start;
        let staff = Staff::new(first, &labels[own], cores);
        let params = programs.iter().map(|program| program.params.len()).sum();
        let parts: Vec<PlacedProgram<'_>> = programs
            .iter()
            .zip(&memories)
            .zip(numbers)
            .map(|((program, memory), numbers)| PlacedProgram { program, memory, numbers })
            .collect();
        let Loaded { mut devices, barriers, prints, ahead, outlines, collectives, messages, mailboxes } =
            load(&parts, &program.channels, &code, &staff, &options)?;
        check_messages((needed, messages.bytes()), options.memory_limit)?;
        let epoch = options.records.then(Instant::now);
        if let Some(epoch) = epoch {
            let count = devices.len();
            devices.iter_mut().for_each(|device| device.recorder = Some(Box::new(Recorder::new(epoch, count))));
        }
        let crossings = process.filter(|process| process.count() > 1).map(|process| {
            Crossings::new(process, messages.groups, messages.crossings, messages.messages, collectives.len())
        });
        let shared = {
            let streams = Streams::new(params, ahead);
            let memories = (memories, mailboxes);
            let limits = (options.timeout, staff.workers);
            Shared::new(memories, barriers, prints, streams, crossings, (outlines, labels, first), limits)
        };
        let workforce = Workforce::new(shared, staff, devices)?;
        let recording = epoch.map(|epoch| Recording { epoch, start: 0, process: rank });
        Ok(Session { program, workforce, collectives, recording })
    }

    /// The loaded program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Fills a parameter; every block is read once. A run leaves parameters unchanged.
    pub fn write_param(&mut self, index: usize, source: &mut dyn BlockSource) -> Result<(), RunError> {
        let param = binding(&self.program.params, index)?;
        check_source(param, source)?;
        for (part, own) in self.bindings(index, param, |part| (&part.params, &part.program.params)) {
            blocks::scatter(&self.memories()[part], in_memory(own)?, &own.layout, source)?;
        }
        Ok(())
    }

    /// Sets the argument of a parameter: fills it, or keeps the source of a stream, whose rows every run reads.
    pub fn give(&mut self, index: usize, mut source: Source) -> Result<(), RunError> {
        let param = binding(&self.program.params, index)?;
        if param.place.is_some() {
            return self.write_param(index, &mut *source);
        }
        check_source(param, &*source)?;
        // The streams of all parts are numbered one after the other.
        let mut numbers = Vec::new();
        let mut before = 0;
        for part in &self.program.mesh_programs {
            let own = part.params.iter().position(|&whole| whole as usize == index);
            numbers.extend(own.map(|own| before + own));
            before += part.params.len();
        }
        if self.program.mesh_programs.is_empty() {
            numbers.push(index);
        }
        self.workforce.shared().streams.open(&numbers, source)
    }

    /// A whole result, assembled from the blocks of the devices. Of several processes, the first one gets the result, and the others an
    /// array of zeros.
    pub fn read_result(&self, index: usize) -> Result<HostArray, RunError> {
        let result = binding(&self.program.results, index)?;
        let (part, own) = self.result(index, result)?;
        let (memory, array) = (&self.memories()[part], (in_memory(own)?, &own.layout));
        match &self.workforce.shared().crossings {
            Some(crossings) => collect(crossings.process(), memory, array, self.workforce.shared().timeout),
            None => Ok(blocks::gather(memory, &FarBlocks::default(), array.0, array.1, 0)),
        }
    }

    /// A large whole result in memory that the caller gets. It is not copied if one device has all of it, in one piece that nothing else
    /// needs; until the next run, the result is zeros then. None for a small one, and of several processes.
    pub fn take_result(&mut self, index: usize) -> Result<Option<ArrayPages>, RunError> {
        let result = binding(&self.program.results, index)?;
        let (part, own) = self.result(index, result)?;
        let (memory, place) = (&self.memories()[part], in_memory(own)?);
        let Some(&device) = memory.devices().first().filter(|_| self.workforce.shared().crossings.is_none()) else {
            return Ok(None);
        };
        let bytes = bytes(&own.layout);
        let is_own = blocks::is_whole(memory.mesh(), &own.layout) && is_alone(self.program.programs()[part], own);
        // SAFETY: the place was checked when the program was loaded, and `&mut self` says that no device runs.
        if let Some(moved) = is_own.then(|| unsafe { ArrayPages::take(memory, place, device, bytes) }).flatten() {
            return Ok(Some(moved));
        }
        let pages = ArrayPages::new(bytes);
        if let Some(pages) = &pages {
            // SAFETY: as above; the pages have room for the array.
            unsafe {
                blocks::gather_into(memory, &FarBlocks::default(), (place, &own.layout), device, pages.as_ptr());
            }
        }
        Ok(pages)
    }

    /// Writes results into a file, together with the other processes, each the elements that its devices have. The file appears when it is
    /// complete, or not at all; an error (E0704) of one process is one of all.
    pub fn write_results(&self, path: &Path, results: &[ResultArray]) -> Result<(), RunError> {
        let plane = |index: usize| -> Result<PlaneOnDevices<'_>, RunError> {
            let (part, own) = self.result(index, binding(&self.program.results, index)?)?;
            Ok(PlaneOnDevices { mesh: self.memories()[part].mesh(), part, place: in_memory(own)?, layout: &own.layout })
        };
        let array = |ResultArray { name, array, imaginary }: &ResultArray| {
            let planes = [Some(*array), *imaginary].into_iter().flatten().map(plane).collect::<Result<_, _>>()?;
            Ok(ArrayOnDevices { name: name.clone(), planes })
        };
        let arrays = results.iter().map(array).collect::<Result<Vec<_>, RunError>>()?;
        let shared = self.workforce.shared();
        let process = shared.crossings.as_ref().map(Crossings::process);
        let (rank, count) = process.map_or((0, 1), |process| (process.rank(), process.count()));
        let plan = SharedFilePlan::new(arrays, (rank, count), Grain::USUAL)?;
        let ranks: Vec<usize> = (0..count).collect();
        let writers = Writers { process, ranks: &ranks, tag: tags::RESULT, limit: shared.timeout, expects: &|| true };
        shared_file::write(&plan, &writers, (rank == 0).then_some(path), &DeviceElements::Memories(self.memories()))
    }

    /// The block of a result on each device of this process, in the order of their numbers.
    pub fn read_blocks(&self, index: usize) -> Result<Vec<HostArray>, RunError> {
        let result = binding(&self.program.results, index)?;
        let (part, own) = self.result(index, result)?;
        Ok(blocks::each_block(&self.memories()[part], in_memory(own)?, &own.layout))
    }

    /// Runs the program; its printed text goes to `out`. After an error the session can be run again.
    pub fn run(&mut self, out: &mut dyn Write) -> Result<RunReport, RunError> {
        let start = Instant::now();
        if let Some(recording) = &mut self.recording {
            recording.start = start.duration_since(recording.epoch).as_nanos() as u64;
        }
        self.workforce.shared().streams.begin();
        let ending = self.workforce.run(out);
        // Files that were begun are completed, even if the program stopped afterwards.
        let saved = self.workforce.shared().saver.finish(ending.as_ref().err());
        let Ending { run_ms, counts } = ending?;
        saved?;
        debug_assert_eq!(counts.len(), self.collectives.len(), "every collective is counted");
        let is_alone = self.workforce.shared().crossings.is_none();
        let run_ms = if is_alone { start.elapsed().as_secs_f64() * 1e3 } else { run_ms };
        let total = |kind: CollectiveKind| {
            let mut total = CollectiveTotal { kind, count: 0, bytes: 0 };
            for (count, counted) in counts.iter().zip(&self.collectives).filter(|(_, counted)| counted.kind == kind) {
                total.count += if counted.counts { *count } else { 0 };
                total.bytes += count * counted.bytes;
            }
            total
        };
        Ok(RunReport {
            run_ms,
            collectives: CollectiveKind::ALL.into_iter().map(total).filter(|total| total.count > 0).collect(),
            peak_bytes_per_device: self.peak_bytes(),
        })
    }

    /// The record of the last run; None unless [`RunOptions::records`].
    pub fn trace(&self) -> Option<Trace> {
        let recording = self.recording.as_ref()?;
        let (programs, shared) = (self.program.programs(), self.workforce.shared());
        let names: Vec<StatementNames<'_>> = programs
            .iter()
            .zip(&shared.outlines)
            .map(|(program, outline)| StatementNames::new(outline, &program.buffers))
            .collect();
        let mut tracks = Vec::new();
        self.workforce.each_device(&mut |device| {
            let label = shared.labels[device.number];
            let name = match self.program.mesh_programs.get(device.part) {
                Some(part) => format!("device {label} on {}", part.name),
                None => format!("device {label}"),
            };
            let recorder = device.recorder.as_ref();
            tracks.extend(
                recorder.map(|recorder| recorder.track(device.number, name, &names[device.part], recording.start)),
            );
        });
        Some(Trace { process: recording.process, tracks })
    }

    /// Bytes that this process received from others in the last run, apart from results; 0 if it is alone.
    pub fn received_bytes(&self) -> u64 {
        self.workforce.shared().crossings.as_ref().map_or(0, Crossings::received_bytes)
    }

    /// How far the outermost loop of a run is.
    pub(crate) fn progress(&self) -> Arc<LoopProgress> {
        self.workforce.shared().progress.clone()
    }

    /// Whether this process reports that a run has failed: one of all processes does.
    pub fn reports(&self) -> bool {
        self.workforce.shared().crossings.as_ref().is_none_or(Crossings::reports)
    }

    fn memories(&self) -> &[Memory] {
        &self.workforce.shared().memories
    }

    /// The most bytes that a device uses, in all parts together.
    fn peak_bytes(&self) -> u64 {
        let mut of_device: BTreeMap<usize, u64> = BTreeMap::new();
        let programs = self.program.programs();
        for (part, (program, memory)) in programs.iter().zip(self.memories()).enumerate() {
            let bytes = program.bytes_per_device(memory.mesh());
            for place in 0..memory.mesh().devices() {
                *of_device.entry(label(&self.program, part, place)).or_default() += bytes;
            }
        }
        of_device.into_values().max().unwrap_or(0)
    }

    /// A parameter or result in each part that has it, with the number of the part.
    fn bindings<'a>(
        &'a self,
        index: usize,
        whole: &'a Binding,
        of: impl Fn(&'a MeshProgram) -> (&'a Vec<u32>, &'a Vec<Binding>),
    ) -> Vec<(usize, &'a Binding)> {
        if self.program.mesh_programs.is_empty() {
            return vec![(0, whole)];
        }
        let mut found = Vec::new();
        for (part, own) in self.program.mesh_programs.iter().enumerate() {
            let (wholes, bindings) = of(own);
            let own = wholes.iter().zip(bindings).filter(|(whole, _)| **whole as usize == index);
            found.extend(own.map(|(_, binding)| (part, binding)));
        }
        found
    }

    /// The part that computes a result, and its binding there.
    fn result<'a>(&'a self, index: usize, whole: &'a Binding) -> Result<(usize, &'a Binding), RunError> {
        let found = self.bindings(index, whole, |part| (&part.results, &part.program.results));
        found.first().copied().ok_or_else(|| RunError::internal(format!("no part computes result {index}")))
    }
}

/// The numbers of the devices of a process, which follow each other as their labels do.
fn of_process(meshes: &[DeviceMesh], numbers: &[Vec<usize>], process: usize) -> Range<usize> {
    let mut own = Vec::new();
    let mut before = 0;
    for (mesh, numbers) in meshes.iter().zip(numbers) {
        own.extend(mesh.devices_of(process).into_iter().map(|place| numbers[place]));
        before += (0..process).map(|other| mesh.devices_of(other).len()).sum::<usize>();
    }
    own.sort_unstable();
    debug_assert!(own.iter().copied().eq(before..before + own.len()), "devices of one process are neighbours");
    before..before + own.len()
}

/// The labels of all devices of all parts, in ascending order, and for each part the position of each of its devices in this order.
fn numbered(program: &Program, meshes: &[DeviceMesh]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let places = |(part, mesh): (usize, &DeviceMesh)| {
        (0..mesh.devices()).map(move |place| (label(program, part, place), part, place)).collect::<Vec<_>>()
    };
    let all: Vec<(usize, usize, usize)> = meshes.iter().enumerate().flat_map(places).collect();
    let labels: Vec<u64> = all.iter().map(|(label, ..)| *label as u64).collect();
    let all: Vec<(usize, usize, usize)> = order(&labels).into_iter().map(|at| all[at]).collect();
    let mut numbers: Vec<Vec<usize>> = meshes.iter().map(|mesh| vec![0; mesh.devices()]).collect();
    for (number, &(_, part, place)) in all.iter().enumerate() {
        numbers[part][place] = number;
    }
    (all.into_iter().map(|(label, ..)| label).collect(), numbers)
}

/// E0803 if the messages and the other memory of the process exceed the limit. Without a limit the system decides when the messages are
/// used.
fn check_messages((needed, bytes): (u64, u64), limit: Option<u64>) -> Result<(), RunError> {
    match limit {
        Some(limit) if bytes.saturating_add(needed) > limit => {
            let text = format!(
                "messages between processes need {} of memory in addition to {} of the program, but only {} is allowed",
                ByteSize(bytes),
                ByteSize(needed),
                ByteSize(limit)
            );
            Err(RunError::new(RunCode::E0803, text))
        }
        Some(_) | None => Ok(()),
    }
}

/// E0701 unless the source has the type and the shape of the parameter.
fn check_source(param: &Binding, source: &dyn BlockSource) -> Result<(), RunError> {
    let sizes = param.layout.dims.iter().map(|dim| dim.size);
    if source.dtype() == param.layout.dtype && sizes.eq(source.shape().iter().copied()) {
        return Ok(());
    }
    Err(refused(param, &sized(source.dtype().name(), source.shape())))
}

/// E0701 for an argument of another type, such as `f32[2, 3]`.
pub fn refused(param: &Binding, given: &str) -> RunError {
    let message = format!("`{}` has type {}, but {given} was given", param.name, param.ty);
    RunError::new(RunCode::E0701, message)
}

/// Bytes of a whole array.
fn bytes(layout: &Layout) -> usize {
    layout.dims.iter().map(|dim| dim.size).product::<usize>() * layout.dtype.size()
}

/// Whether nothing else that outlives a run is in the memory of a result: constants and parameters are written before, and equal results may
/// have one place. The result is in one piece.
fn is_alone(program: &Program, result: &Binding) -> bool {
    let end = |place: Place, bytes: usize| place.offset + bytes as u64;
    let overlaps = |other: Place, len: usize| {
        result.place.is_some_and(|own| {
            let (own_end, other_end) = (end(own, bytes(&result.layout)), end(other, len));
            other.arena == own.arena && own.offset < other_end && other.offset < own_end
        })
    };
    let others = program.results.iter().filter(|other| !ptr::eq(*other, result)).chain(&program.params);
    // The block of a device is no larger than the whole array.
    let mut others = others.filter_map(|other| Some((other.place?, bytes(&other.layout))));
    let mut constants = program.constants.iter().map(|constant| (constant.place, constant.bytes.len()));
    !others.any(|(place, len)| overlaps(place, len)) && !constants.any(|(place, len)| overlaps(place, len))
}

/// The place of a binding that is in memory.
fn in_memory(binding: &Binding) -> Result<Place, RunError> {
    binding.place.ok_or_else(|| RunError::internal(format!("the stream `{}` is not in memory", binding.name)))
}

fn binding(bindings: &[Binding], index: usize) -> Result<&Binding, RunError> {
    bindings.get(index).ok_or_else(|| RunError::internal(format!("unknown binding {index}")))
}
