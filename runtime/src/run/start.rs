//! From a command line to results: the main function of a built executable, and of `spmdc run` after compilation.
//!
//! The program is decoded, its arguments are read, it runs, and its results are printed or written. Standard output gets the program's
//! printed text, the results, and the line of `--bench`; standard error gets errors and `--stats`.
//!
//! | exit status | meaning |
//! |---|---|
//! | 0 | success |
//! | 2 | an error in the command line, or in a file that it names |
//! | 3 | an error at run time |
//! | 65 | the processes of a job have different programs, options or versions |
//! | 75 | another process of a job does not answer |

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::components::{Components, ProgramCode};
use crate::data::array::HostArray;
use crate::data::inputs::{self, Source};
use crate::data::outputs::{self, Outputs, ProcessOutput};
use crate::data::process_files::{LocalBlocks, Placeholder};
pub use crate::errors::failure::{Failure, FailureReport, JsonMessage};
use crate::errors::trap::{RunCode, RunError};
use crate::io::unwritable_output;
use crate::processes::devices;
use crate::processes::job::{self, JoinedJob};
use crate::run::args::{ErrorFormat, RunArgs};
use crate::run::cpu;
use crate::run::session::{InputsCode, Session};
use crate::text::progress::ShowFn;
use crate::text::stats::Stats;
use crate::text::trace_file::TraceFile;
use spmdc_abi::{Binding, Component, EncodedProgram, Image, Kernels, Plane, Program};

/// Encodes a program for [`start`] and [`call`](crate::run::call::call).
pub fn encode(program: &Program) -> Result<EncodedProgram, RunError> {
    let encoded = EncodedProgram::new(program);
    encoded.map_err(|error| RunError::internal(format!("the program cannot be encoded: {error}")))
}

/// The program of an image and its code.
///
/// # Safety
/// The image must be as the compiler made it.
pub(crate) unsafe fn decode(image: &Image) -> Result<(Program, ProgramCode), Failure> {
    cpu::check(image.features).map_err(Failure::new)?;
    let is_wide = image.wide_features != 0 && cpu::has_all(image.wide_features);
    let table = if is_wide { image.wide_kernels } else { image.kernels };
    // SAFETY: the compiler put the program, `program_len` bytes, and its kernels, two tables of `kernel_count` functions, into one
    // object; they stay in memory as long as the process.
    let (program, kernels) = unsafe {
        let program = std::slice::from_raw_parts(image.program, image.program_len as usize);
        let kernels = std::slice::from_raw_parts(table, image.kernel_count as usize);
        (program, Kernels::new(kernels.to_vec()))
    };
    let undecodable = |error| Failure::new(RunError::internal(format!("the program cannot be decoded: {error}")));
    let program = Program::decode(program).map_err(undecodable)?;
    // SAFETY: as promised by the caller.
    let components = unsafe { Components::of_image(image, &program) }.map_err(Failure::new)?;
    Ok((program, ProgramCode { kernels, components }))
}

/// Runs the program of an image with the words of the command line, the first of which is the command itself. Returns the exit status.
///
/// # Safety
/// The compiler must have made the image.
pub unsafe fn start(image: &Image, words: impl Iterator<Item = OsString>) -> u8 {
    let mut words: Vec<OsString> = words.collect();
    let command = if words.is_empty() { OsString::from("program") } else { words.remove(0) };
    let format = RunArgs::error_format_of(&words);
    let done = without_panic(|| {
        // SAFETY: as promised by the caller.
        let (program, code) = unsafe { decode(image)? };
        let args = RunArgs::parse(words).map_err(Failure::new)?;
        if args.help {
            let _ = io::stdout().write_all(help(&command.to_string_lossy(), &program).as_bytes());
            return Ok(());
        }
        execute(program, code, &args)
    });
    let failure = done.err();
    if let Some(failure) = failure.as_ref().filter(|failure| failure.report != FailureReport::ByAnother) {
        let _ = io::stderr().write_all(failure.render(format).as_bytes());
    }
    job::leave(failure.as_ref());
    failure.map_or(0, |failure| failure.status)
}

/// A use of whole results that only the command has, such as pictures. Executables do not contain it.
pub trait Viewer {
    /// Checks that the results can be viewed, before the program runs. Returns the numbers of the arrays to view. `is_writer` is whether
    /// this process views them.
    fn plan(&mut self, results: &[Binding], is_writer: bool) -> Result<Vec<usize>, RunError>;

    /// Views the results, after the run. Arrays that were not asked for are None.
    fn view(&self, results: &[Binding], arrays: &[Option<HostArray>]) -> Result<(), RunError>;
}

/// Runs a program with its arguments and writes its results.
pub fn execute(program: Program, code: ProgramCode, args: &RunArgs) -> Result<(), Failure> {
    execute_with(program, code, args, None)
}

/// As [`execute`], for results that are also viewed.
pub fn execute_with(
    program: Program,
    code: ProgramCode,
    args: &RunArgs,
    mut viewer: Option<&mut dyn Viewer>,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let job = JoinedJob::join(&program, args)?;
    if args.shows_devices {
        return show_devices(&program.device_numbers(), job.as_deref(), args.format);
    }
    let job = job.as_deref();
    // Of several processes the first one prints and writes.
    let is_writer = job.is_none_or(|job| job.process().rank() == 0);
    let bound = bind(&program, &code.components, args, job).and_then(|bound| {
        let viewed = viewer.as_mut().map(|viewer| viewer.plan(&program.results, is_writer)).transpose()?;
        Ok((bound, viewed.unwrap_or_default()))
    });
    let (bound, viewed) = agree(job, bound.map_err(Failure::new))?;
    let BoundArguments { sources, blocks, outputs, pieces, trace } = bound;
    let compile_ms = program.compile_ms;
    let files = program.files.clone();
    let of_program = |error| Failure::of_program(error, &files);
    let process = job.map(|job| job.process().clone());
    // Only a program with loops whose progress is known has that component.
    let show = code.components.code::<ShowFn>(Component::Progress).ok();
    let inputs = code.components.code::<InputsCode>(Component::Inputs);
    keep_freed_memory();
    let loaded = Session::load_in(process, program, code, args.options.clone()).and_then(|mut session| {
        if !sources.is_empty() {
            let give = inputs?.give;
            for (index, source) in sources.into_iter().enumerate() {
                give(&mut session, index, source)?;
            }
        }
        Ok(session)
    });
    let mut session = agree(job, loaded.map_err(of_program))?;
    let load_ms = begin.elapsed().as_secs_f64() * 1e3;

    let mut out = QuietOutput { out: io::stdout().lock(), is_closed: false };
    let while_running = |error| Failure::of_run(error, &files);
    let progress = session.progress();
    let first = match show {
        Some(show) => show(args.progress && is_writer, &progress, &mut out, &mut |out| session.run(out)),
        None => session.run(&mut out),
    };
    let mut reports = vec![agree(job, first.map_err(while_running))?];
    if let Some(runs) = args.bench {
        // The first run was the warm-up. The timed runs would print the same text again, and printing would be timed.
        reports.clear();
        for _ in 0..runs {
            reports.push(agree(job, session.run(&mut io::sink()).map_err(while_running))?);
        }
    }

    if let Some(file) = trace {
        agree(job, write_trace(&file, &session, args.error_format))?;
    }
    let results = session.program().results.clone();
    let written = write_pieces(&session, &results, blocks.as_ref(), &pieces);
    agree(job, written.map_err(while_running))?;
    // From here on errors are those of the machine, not of the command line.
    let written = outputs.whole_files().try_for_each(|(path, arrays)| session.write_results(path, &arrays));
    agree(job, written.map_err(while_running))?;
    let is_gathered = |index: usize| outputs.is_printed() || viewed.contains(&index);
    let arrays = match outputs.is_printed() || !viewed.is_empty() {
        true => agree(job, gather(&session, &results, is_gathered).map_err(of_program))?,
        false => Vec::new(),
    };
    if let Some(viewer) = viewer {
        let done = if is_writer { viewer.view(&results, &arrays) } else { Ok(()) };
        agree(job, done.map_err(while_running))?;
    }
    let stats = Stats::new(compile_ms, load_ms, &reports);
    let written = match is_writer {
        true => write(&mut out, &results, outputs.is_printed().then_some(&arrays), &stats, args),
        // The devices that print may be in another process than the first.
        false => flushed(&mut out),
    };
    agree(job, written)
}

/// The inputs and outputs of the command line.
struct BoundArguments {
    sources: Vec<Source>,
    /// For files of one process or device, if there are any.
    blocks: Option<LocalBlocks>,
    outputs: Outputs,
    pieces: Vec<ProcessOutput>,
    trace: Option<TraceFile>,
}

fn bind(
    program: &Program,
    components: &Components,
    args: &RunArgs,
    job: Option<&JoinedJob>,
) -> Result<BoundArguments, RunError> {
    let (rank, count) = job.map_or((0, 1), |job| (job.process().rank(), job.process().count()));
    let texts = args.arguments.iter().map(|argument| &argument.text).chain(&args.archive).chain(&args.outputs);
    let blocks = Placeholder::is_in(texts).then(|| LocalBlocks::new(program, rank, count)).transpose()?;
    let archive = args.archive.as_deref().map(Path::new);
    let sources = match (program.params.as_slice(), components.code::<InputsCode>(Component::Inputs)) {
        // The executable of a program without parameters has no code that reads files.
        ([], Err(_)) => inputs::bind_none(&args.arguments, archive)?,
        (params, code) => (code?.bind)(params, &args.arguments, archive, blocks.as_ref())?,
    };
    // Of several processes the first one prints and writes what is not a file of one process.
    let outputs = Outputs::plan(&program.results, &args.outputs, rank == 0)?;
    let pieces =
        blocks.as_ref().map(|blocks| outputs.pieces(&program.results, blocks)).transpose()?.unwrap_or_default();
    let trace = args.trace.as_deref().map(|name| TraceFile::plan(name, (rank, count), &outputs)).transpose()?;
    Ok(BoundArguments { sources, blocks, outputs, pieces, trace })
}

/// Writes the record of the last run, and says if it is not complete.
fn write_trace(file: &TraceFile, session: &Session, format: ErrorFormat) -> Result<(), Failure> {
    let Some(trace) = session.trace() else {
        return Err(Failure::new(RunError::internal("the run was not recorded")));
    };
    // As for results: what stops a program that runs is an error of its run.
    file.write(&trace, session.program()).map_err(|error| Failure { status: 3, ..Failure::new(error) })?;
    let _ = io::stderr().write_all(incomplete(trace.dropped(), format).as_bytes());
    Ok(())
}

/// The warning about an incomplete record.
fn incomplete(dropped: u64, format: ErrorFormat) -> String {
    if dropped == 0 {
        return String::new();
    }
    let message = format!("the trace is incomplete: the last {dropped} spans of the run did not fit");
    let help = "trace a run with fewer trips";
    match format {
        ErrorFormat::Text => format!("warning[E0704]: {message}\n  help: {help}\n"),
        ErrorFormat::Json => {
            let (file, line, column) = (None, None, None);
            let severity = "warning";
            JsonMessage {
                code: RunCode::E0704.name(),
                severity,
                message: &message,
                file,
                line,
                column,
                help: Some(help),
            }
            .to_line()
        }
    }
}

/// Writes the files of this process and its devices. The blocks of each result are read once.
fn write_pieces(
    session: &Session,
    results: &[Binding],
    blocks: Option<&LocalBlocks>,
    pieces: &[ProcessOutput],
) -> Result<(), RunError> {
    let Some(blocks) = blocks else { return Ok(()) };
    let mut read = BTreeMap::new();
    for index in pieces.iter().flat_map(ProcessOutput::arrays) {
        if let Entry::Vacant(vacant) = read.entry(index) {
            let own = session.read_blocks(index)?.into_iter().map(HostArray::with_one_nan).collect();
            vacant.insert(blocks.ranged(index, own));
        }
    }
    pieces.iter().try_for_each(|piece| piece.write(results, &read))
}

/// Ends a part of the work: in a job, an error in one process is one in all.
fn agree<T>(job: Option<&JoinedJob>, outcome: Result<T, Failure>) -> Result<T, Failure> {
    match job {
        Some(job) => job.agree(outcome),
        None => outcome,
    }
}

/// Prints the results, if they are printed, and any additional requested output.
fn write(
    out: &mut impl Write,
    results: &[Binding],
    arrays: Option<&Vec<Option<HostArray>>>,
    stats: &Stats,
    args: &RunArgs,
) -> Result<(), Failure> {
    let printed = arrays.map(|arrays| outputs::print(out, results, arrays));
    let benched = args.bench.map(|_| writeln!(out, "{}", stats.bench_line()));
    if let Some(error) = printed.into_iter().chain(benched).chain([out.flush()]).find_map(Result::err) {
        return Err(Failure { status: 3, ..Failure::new(unwritable_output(&error)) });
    }
    if args.stats {
        let _ = writeln!(io::stderr(), "{}", stats.to_json());
    }
    Ok(())
}

fn flushed(out: &mut impl Write) -> Result<(), Failure> {
    out.flush().map_err(|error| Failure { status: 3, ..Failure::new(unwritable_output(&error)) })
}

/// Prints which process has which devices, once.
fn show_devices(numbers: &[usize], job: Option<&JoinedJob>, format: ErrorFormat) -> Result<(), Failure> {
    let hosts = job.map_or_else(|| vec![devices::host_name()], |job| job.hosts().to_vec());
    let processes = devices::assigned(numbers, &hosts);
    let text = match format {
        ErrorFormat::Text => devices::table(&processes),
        ErrorFormat::Json => devices::json(&processes),
    };
    let printed = match job {
        Some(job) if job.process().rank() > 0 => Ok(()),
        Some(_) | None => {
            let mut out = QuietOutput { out: io::stdout().lock(), is_closed: false };
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            written.map_err(|error| Failure { status: 3, ..Failure::new(unwritable_output(&error)) })
        }
    };
    agree(job, printed)
}

fn gather(
    session: &Session,
    results: &[Binding],
    is_gathered: impl Fn(usize) -> bool,
) -> Result<Vec<Option<HostArray>>, RunError> {
    let result = |index| match is_gathered(index) {
        true => session.read_result(index).map(|array| Some(array.with_one_nan())),
        false => Ok(None),
    };
    (0..results.len()).map(result).collect()
}

/// Turns a panic, which is a bug of ours, into an E0999 with its message.
pub fn without_panic<T>(action: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let message = Arc::new(Mutex::new(String::new()));
    let hooked = Arc::clone(&message);
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        *hooked.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let done = catch_unwind(AssertUnwindSafe(action));
    std::panic::set_hook(previous);
    done.unwrap_or_else(|_| {
        let message = message.lock().unwrap_or_else(PoisonError::into_inner).replace('\n', " ");
        Err(Failure::new(RunError::internal(message)))
    })
}

/// Standard output that may be closed early, as in `program | head`: further output is dropped silently.
struct QuietOutput<W> {
    out: W,
    is_closed: bool,
}

impl<W: Write> QuietOutput<W> {
    fn unless_closed<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for QuietOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let done = self.out.write(bytes);
        self.unless_closed(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let done = self.out.flush();
        self.unless_closed(done, ())
    }
}

/// The `--help` text of a built program.
fn help(command: &str, program: &Program) -> String {
    let meshes: Vec<String> = program.mesh_programs.iter().map(|part| format!("`{}`", part.name)).collect();
    let place = match meshes.as_slice() {
        [] => format!("on the mesh ({})", devices::mesh_text(program)),
        meshes => format!("on the meshes {}", meshes.join(", ")),
    };
    let mut text = format!("Usage: {command} [OPTIONS]\n\n`{}` {place}\n", program.entry);
    for (title, bindings) in [("Arguments", &program.params), ("Results", &program.results)] {
        if !bindings.is_empty() {
            let _ = writeln!(text, "\n{title}:");
            // Both planes of complex numbers are one argument.
            bindings.iter().filter(|binding| binding.plane != Some(Plane::Imaginary)).for_each(|binding| {
                let _ = writeln!(text, "  {}: {}", binding.name, binding.ty);
            });
        }
    }
    let _ = write!(text, "\nOptions:\n{}", RunArgs::options_help());
    text
}
/// Lets the memory that products allocate and free in each call stay with the process. By default glibc returns large blocks to the system,
/// which then clears every page of the next ones: that took an eighth of the time of attention.
fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// The largest value that glibc takes for a threshold of mapped blocks.
        const LARGEST: libc::c_int = 32 << 20;
        // SAFETY: the calls only set numbers of the allocator, which is the process's own: this is the main function of a program.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 8 * LARGEST);
        }
    }
}
