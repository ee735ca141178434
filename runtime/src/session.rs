//! A loaded program: takes parameters, runs any number of times, and returns results.
//!
//! ```no_run
//! # use spmdc_abi::{Kernels, Program};
//! # use spmdc_runtime::{array::HostArray, report::RunOptions, session::Session, trap::RunError};
//! # fn example(program: Program, kernels: Kernels, mut x: HostArray) -> Result<HostArray, RunError> {
//! let mut session = Session::load(program, kernels, RunOptions::default())?;
//! session.write_param(0, &mut x)?;
//! let report = session.run(&mut std::io::stdout())?;
//! println!("{} ms", report.run_ms);
//! session.read_result(0)
//! # }
//! ```

use std::io::Write;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use crate::array::{BlockSource, HostArray};
use crate::blocks::{self, FarBlocks};
use crate::check::check;
use crate::inputs::Source;
use crate::launch::{Staff, Workforce};
use crate::load::{Counted, Loaded, load};
use crate::memory::{ByteSize, Memory, check_fits};
use crate::processes::Process;
use crate::processes::crossings::{Crossings, Ending};
use crate::processes::results::collect;
use crate::progress::LoopProgress;
use crate::report::{CollectiveTotal, RunOptions, RunReport};
use crate::shared::Shared;
use crate::streams::Streams;
use crate::trap::RunError;
use spmdc_abi::{Binding, CollectiveKind, Kernels, Place, Program};

/// A program in memory, with its threads. Buffers and threads are kept from run to run.
pub struct Session {
    program: Program,
    workforce: Workforce,
    collectives: Vec<Counted>,
}

impl Session {
    /// Checks the program, allocates its memory, and prepares every device.
    pub fn load(program: Program, kernels: Kernels, options: RunOptions) -> Result<Session, RunError> {
        Session::load_in(None, program, kernels, options)
    }

    /// As [`Session::load`], for the devices of one process of a job. All processes must load the same program, and make the same
    /// calls of the session in the same order; each has its own part of the arguments and of the results.
    pub fn load_in(
        process: Option<Process>,
        program: Program,
        kernels: Kernels,
        options: RunOptions,
    ) -> Result<Session, RunError> {
        let whole = check(&program, kernels.functions().len())?;
        let (rank, count) = process.as_ref().map_or((0, 1), |process| (process.rank(), process.count()));
        let mesh = whole.dealt(count).ok_or_else(|| undealt(whole.devices(), count))?;
        check_fits(&program, &mesh, rank, options.memory_limit)?;
        let memory = Memory::allocate(&mesh, rank, &program.arenas)?;
        blocks::write_constants(&memory, &program.constants);
        let cores = options.workers.or_else(|| available_parallelism().ok().map(usize::from)).unwrap_or(1);
        let staff = Staff::new(memory.devices(), cores);
        let Loaded { devices, barriers, prints, ahead, outline, collectives, messages } =
            load(&program, kernels.functions(), &memory, &staff)?;
        check_messages(messages.bytes(), options.memory_limit)?;
        let crossings = process.filter(|process| process.count() > 1).map(|process| {
            Crossings::new(process, messages.groups, messages.crossings, messages.messages, collectives.len())
        });
        let shared = {
            let streams = Streams::new(program.params.len(), ahead);
            Shared::new(memory, barriers, prints, streams, crossings, outline, (options.timeout, staff.workers))
        };
        let workforce = Workforce::new(shared, staff, devices)?;
        Ok(Session { program, workforce, collectives })
    }

    /// The loaded program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Fills a parameter; every block is read once. A run leaves parameters unchanged.
    pub fn write_param(&mut self, index: usize, source: &mut dyn BlockSource) -> Result<(), RunError> {
        let param = binding(&self.program.params, index)?;
        check_source(param, source)?;
        blocks::scatter(self.memory(), in_memory(param)?, &param.layout, source)
    }

    /// Gives a parameter its argument: fills it, or keeps the source of a stream, of which every run reads rows.
    pub fn give(&mut self, index: usize, mut source: Source) -> Result<(), RunError> {
        let param = binding(&self.program.params, index)?;
        if param.place.is_some() {
            return self.write_param(index, &mut *source);
        }
        check_source(param, &*source)?;
        self.workforce.shared().streams.open(index, source)
    }

    /// A whole result, assembled from the blocks of the devices. Of several processes, the first one gets the result, and the others an
    /// array of zeros.
    pub fn read_result(&self, index: usize) -> Result<HostArray, RunError> {
        let result = binding(&self.program.results, index)?;
        let array = (in_memory(result)?, &result.layout);
        match &self.workforce.shared().crossings {
            Some(crossings) => collect(crossings.process(), self.memory(), array, self.workforce.shared().timeout),
            None => Ok(blocks::gather(self.memory(), &FarBlocks::default(), array.0, array.1, 0)),
        }
    }

    /// The block of a result on each device of this process, in the order of their numbers.
    pub fn read_blocks(&self, index: usize) -> Result<Vec<HostArray>, RunError> {
        let result = binding(&self.program.results, index)?;
        Ok(blocks::each_block(self.memory(), in_memory(result)?, &result.layout))
    }

    /// Runs the program; its printed text goes to `out`. After an error the session can be run again.
    pub fn run(&mut self, out: &mut dyn Write) -> Result<RunReport, RunError> {
        let start = Instant::now();
        self.workforce.shared().streams.begin();
        let ending = self.workforce.run(out);
        // Files that were begun are completed, even if the program stopped afterwards.
        let saved = self.workforce.shared().saver.finish();
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
            peak_bytes_per_device: self.program.bytes_per_device(self.memory().mesh()),
        })
    }

    /// How far the outermost loop of a run is.
    pub(crate) fn progress(&self) -> Arc<LoopProgress> {
        self.workforce.shared().progress.clone()
    }

    /// Whether this process reports that a run has failed: one of all processes does.
    pub fn reports(&self) -> bool {
        self.workforce.shared().crossings.as_ref().is_none_or(Crossings::reports)
    }

    fn memory(&self) -> &Memory {
        &self.workforce.shared().memory
    }
}

/// E0803 if the messages alone take more memory than is allowed; without a limit the system decides when they are used.
fn check_messages(bytes: u64, limit: Option<u64>) -> Result<(), RunError> {
    match limit {
        Some(limit) if bytes > limit => {
            let (bytes, limit) = (ByteSize(bytes), ByteSize(limit));
            Err(RunError::new(
                "E0803",
                format!("messages between processes need {bytes} of memory, but {limit} are allowed"),
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// The devices cannot be dealt to so many processes; jobs are not started so.
fn undealt(devices: usize, processes: usize) -> RunError {
    RunError::internal(format!("{devices} devices cannot be dealt to {processes} processes, equally many to each"))
}

/// E0701 unless the source has the type and the shape of the parameter.
fn check_source(param: &Binding, source: &dyn BlockSource) -> Result<(), RunError> {
    let sizes = param.layout.dims.iter().map(|dim| dim.size);
    if source.dtype() == param.layout.dtype && sizes.eq(source.shape().iter().copied()) {
        return Ok(());
    }
    let given = source.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let message = format!("`{}` is {}, but {}[{given}] was given", param.name, param.ty, source.dtype().name());
    Err(RunError::new("E0701", message))
}

/// The place of a binding that is in memory.
fn in_memory(binding: &Binding) -> Result<Place, RunError> {
    binding.place.ok_or_else(|| RunError::internal(format!("`{}` is a stream, which is in no memory", binding.name)))
}

fn binding(bindings: &[Binding], index: usize) -> Result<&Binding, RunError> {
    bindings.get(index).ok_or_else(|| RunError::internal(format!("there is no binding {index}")))
}
