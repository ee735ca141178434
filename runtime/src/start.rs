//! From a command line to results: the main function of a built executable, and of `spmdc run` after compilation.
//!
//! The program is decoded, its arguments are read, it runs, and its results are printed or written. Standard output gets the
//! program's printed text, the results, and the line of `--bench`; standard error gets errors and `--stats`.
//!
//! | exit status | meaning |
//! |---|---|
//! | 0 | done |
//! | 2 | the command line is wrong, or a file that it names |
//! | 3 | an error while running |

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::args::{ErrorFormat, RunArgs};
use crate::array::HostArray;
use crate::cpu;
use crate::inputs;
use crate::io::unwritable_output;
use crate::outputs::{self, Outputs};
use crate::progress;
use crate::session::Session;
use crate::stats::Stats;
use crate::trap::RunError;
use spmdc_abi::{Binding, Image, Kernels, Plane, Program};

/// An error as it is reported to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The error.
    pub error: RunError,
    /// The source file of the error, if it is known.
    pub file: Option<String>,
    /// The exit status.
    pub status: u8,
}

impl Failure {
    /// An error without a source position: of the command line and its files, or of the machine.
    pub fn new(error: RunError) -> Failure {
        let is_usage = error.code.starts_with("E07") || error.code == "E0901";
        Failure { error, file: None, status: if is_usage { 2 } else { 3 } }
    }

    /// An error of a program with these source files.
    pub(crate) fn of_program(error: RunError, files: &[String]) -> Failure {
        let site = error.site.filter(|site| site.line > 0);
        let file = site.and_then(|site| files.get(usize::from(site.file)).cloned());
        Failure { file, ..Failure::new(error) }
    }

    /// Several lines of text, or a JSON object; with a newline at the end.
    pub fn render(&self, format: ErrorFormat) -> String {
        let RunError { code, message, help, .. } = &self.error;
        let place = self.error.site.filter(|_| self.file.is_some());
        match format {
            ErrorFormat::Text => {
                let mut text = format!("error[{code}]: {message}\n");
                if let (Some(file), Some(site)) = (&self.file, place) {
                    let _ = writeln!(text, "  --> {file}:{}:{}", site.line, site.column);
                }
                if let Some(help) = help {
                    let _ = writeln!(text, "  help: {help}");
                }
                text
            }
            ErrorFormat::Json => {
                let object = JsonMessage {
                    code,
                    severity: "error",
                    message,
                    file: self.file.as_deref(),
                    line: place.map(|site| site.line),
                    column: place.map(|site| site.column),
                    help: help.as_deref(),
                };
                object.to_line()
            }
        }
    }
}

/// A message as one JSON object a line.
#[derive(Serialize)]
pub struct JsonMessage<'a> {
    /// The code, such as `E0801`.
    pub code: &'a str,
    /// `error` or `warning`.
    pub severity: &'a str,
    /// The message, without code and source position.
    pub message: &'a str,
    /// The source file, if it is known.
    pub file: Option<&'a str>,
    /// The source line, from 1.
    pub line: Option<u32>,
    /// The column of the source line, from 1.
    pub column: Option<u32>,
    /// The way out, if there is one.
    pub help: Option<&'a str>,
}

impl JsonMessage<'_> {
    /// The message as one line of JSON, with its line break.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts are JSON") + "\n"
    }
}

/// Encodes a program for [`start`] and [`call`](crate::call::call).
pub fn encode(program: &Program) -> Result<Vec<u8>, RunError> {
    postcard::to_stdvec(program).map_err(|error| RunError::internal(format!("the program cannot be encoded: {error}")))
}

/// The program of an image.
///
/// # Safety
/// The image must be as the compiler made it.
pub(crate) unsafe fn decode(image: &Image) -> Result<(Program, Kernels), Failure> {
    cpu::check(image.features).map_err(Failure::new)?;
    // SAFETY: the compiler put the program, `program_len` bytes, and its kernels, `kernel_count` functions, into one object; they
    // stay in memory as long as the process.
    let (program, kernels) = unsafe {
        let program = std::slice::from_raw_parts(image.program, image.program_len as usize);
        let kernels = std::slice::from_raw_parts(image.kernels, image.kernel_count as usize);
        (program, Kernels::new(kernels.to_vec()))
    };
    let undecodable = |error| Failure::new(RunError::internal(format!("the program cannot be decoded: {error}")));
    Ok((postcard::from_bytes(program).map_err(undecodable)?, kernels))
}

/// Runs the program of an image with the words of the command line, the first of which is the command itself. Returns the exit
/// status.
///
/// # Safety
/// The image must be as the compiler made it.
pub unsafe fn start(image: &Image, words: impl Iterator<Item = OsString>) -> u8 {
    let mut words: Vec<OsString> = words.collect();
    let command = if words.is_empty() { OsString::from("program") } else { words.remove(0) };
    let format = RunArgs::error_format_of(&words);
    let done = without_panic(|| {
        // SAFETY: as promised by the caller.
        let (program, kernels) = unsafe { decode(image)? };
        let args = RunArgs::parse(words).map_err(Failure::new)?;
        if args.help {
            let _ = io::stdout().write_all(help(&command.to_string_lossy(), &program).as_bytes());
            return Ok(());
        }
        execute(program, kernels, &args)
    });
    match done {
        Ok(()) => 0,
        Err(failure) => {
            let _ = io::stderr().write_all(failure.render(format).as_bytes());
            failure.status
        }
    }
}

/// Runs a program with its arguments and writes its results.
pub fn execute(program: Program, kernels: Kernels, args: &RunArgs) -> Result<(), Failure> {
    let begin = Instant::now();
    let sources = inputs::bind(&program.params, &args.arguments).map_err(Failure::new)?;
    let outputs = Outputs::plan(&program.results, &args.outputs).map_err(Failure::new)?;
    let compile_ms = program.compile_ms;
    let files = program.files.clone();
    let of_program = |error| Failure::of_program(error, &files);
    let mut session = Session::load(program, kernels, args.options.clone()).map_err(of_program)?;
    for (index, source) in sources.into_iter().enumerate() {
        session.give(index, source).map_err(of_program)?;
    }
    let load_ms = begin.elapsed().as_secs_f64() * 1e3;

    let mut out = QuietOutput { out: io::stdout().lock(), is_closed: false };
    // Whatever stops a running program is an error of its run, even a file that cannot be written.
    let while_running = |error| Failure { status: 3, ..of_program(error) };
    let progress = session.progress();
    let first = progress::shown(args.progress, &progress, &mut out, |out| session.run(out));
    let mut reports = vec![first.map_err(while_running)?];
    if let Some(runs) = args.bench {
        // The first run was the warm-up. The timed runs would print the same text again, and printing would be timed.
        reports.clear();
        for _ in 0..runs {
            reports.push(session.run(&mut io::sink()).map_err(while_running)?);
        }
    }

    let results = session.program().results.clone();
    let arrays = gather(&session, &results, &outputs).map_err(of_program)?;
    // From here on errors are those of the machine, not of the command line.
    outputs.write(&arrays).map_err(|error| Failure { status: 3, ..Failure::new(error) })?;
    let stats = Stats::new(compile_ms, load_ms, &reports);
    let printed = outputs.is_printed().then(|| outputs::print(&mut out, &results, &arrays));
    let benched = args.bench.map(|_| writeln!(out, "{}", stats.bench_line()));
    if let Some(error) = printed.into_iter().chain(benched).chain([out.flush()]).find_map(Result::err) {
        return Err(Failure { status: 3, ..Failure::new(unwritable_output(&error)) });
    }
    if args.stats {
        let _ = writeln!(io::stderr(), "{}", stats.to_json());
    }
    Ok(())
}

fn gather(session: &Session, results: &[Binding], outputs: &Outputs) -> Result<Vec<Option<HostArray>>, RunError> {
    let result = |index| session.read_result(index).map(HostArray::with_one_nan);
    (0..results.len()).map(|index| outputs.needs(index).then(|| result(index)).transpose()).collect()
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
    let mesh: Vec<String> = program.mesh.iter().map(|axis| format!("{} = {}", axis.name, axis.size)).collect();
    let mut text = format!("Usage: {command} [OPTIONS]\n\n`{}` on the mesh ({})\n", program.entry, mesh.join(", "));
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
