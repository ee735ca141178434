//! Compiles a program for a mesh, runs it by the JIT, and asks the reference evaluator what the answer must be.

use crate::races;
use spmdc_abi::{Binding, KernelFn, Kernels, Kind, Plane, Program};
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_check::{CheckOptions, MeshOverride};
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::{Compilation, HostOptions, Options, compile};
use spmdc_compiler::search::{SearchRequest, SearchResult, search_layouts};
use spmdc_compiler::sources;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::{Span, line_column};
use spmdc_inspect::eval::evaluate;
use spmdc_ir::array::Array;
use spmdc_ir::program::{Module, Stage};
use spmdc_kernel::backend::{Backend, CodegenError, LoadedCode};
use spmdc_kernel::loops::Kernel;
use spmdc_kernel::machine::Machine;
use spmdc_layout::cost::Levels;
use spmdc_layout::types::ArrayType;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::data::array::{ArrayView, ComplexArray, HostArray};
use spmdc_runtime::data::inputs::{Argument, Source, bind};
use spmdc_runtime::data::outputs::ResultArray;
use spmdc_runtime::errors::trap::RunError;
use spmdc_runtime::io::npy::write_npy;
use spmdc_runtime::io::npz::write_npz;
use spmdc_runtime::processes::Process;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Runs of neighbouring elements that are replayed of each plan of memory: all of most.
const REPLAYED: u64 = 1_000_000;

/// Why a program did not give results: a code, where, and the message.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub code: String,
    /// One-based; 0 without a place.
    pub line: usize,
    pub message: String,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub results: Vec<HostArray>,
    pub printed: String,
    /// The most bytes that a process received from others; 0 if it is alone.
    pub received: u64,
}

fn failures(text: &str, diagnostics: &[Diagnostic]) -> Vec<Failure> {
    let line = |span: Span| if span == Span::default() { 0 } else { line_column(text, span.start as usize).0 };
    let message = |d: &Diagnostic| format!("{} {}", d.message, d.help.as_deref().unwrap_or_default());
    let failure = |d: &Diagnostic| Failure { code: d.code.to_string(), line: line(d.span), message: message(d) };
    diagnostics.iter().map(failure).collect()
}

/// Compiles a text for a mesh (`""`: the program's own), as far as asked.
pub fn compiled(name: &str, text: &str, mesh: &str, stop_after: Option<Stage>) -> Result<Compilation, Vec<Failure>> {
    compiled_on(Machine::REAL, name, text, mesh, stop_after)
}

/// As [`compiled`] to the end, for devices that are dealt to so many hosts, if any.
pub fn compiled_for_hosts(hosts: Option<usize>, text: &str, mesh: &str) -> Result<Compilation, Vec<Failure>> {
    let hosts = hosts.map(|count| HostOptions { count, levels: Levels::DEFAULT, refuses: true });
    compiled_with(Options { hosts, verify: Some(REPLAYED), ..Options::default() }, ("hosts.spmd", text, mesh))
}

/// Compiles a dump. Its plan of memory is not replayed: that of the program has been.
pub fn compiled_dump(dump: &str) -> Result<Compilation, Vec<Failure>> {
    compiled_with(Options { verify: Some(0), ..Options::default() }, ("dump.spmd", dump, ""))
}

/// As [`compiled`], of a program whose plan of memory another test replays.
pub fn compiled_quickly(name: &str, text: &str, mesh: &str) -> Result<Compilation, Vec<Failure>> {
    compiled_with(Options { verify: Some(0), ..Options::default() }, (name, text, mesh))
}

/// As [`compiled`], for a mesh of such devices. The plan of memory is replayed.
pub fn compiled_on(
    machine: Machine,
    name: &str,
    text: &str,
    mesh: &str,
    stop_after: Option<Stage>,
) -> Result<Compilation, Vec<Failure>> {
    let check = CheckOptions { machine, ..CheckOptions::default() };
    compiled_with(Options { check, stop_after, verify: Some(REPLAYED), ..Options::default() }, (name, text, mesh))
}

/// Searches for the layouts of a program.
pub fn searched(text: &str, mesh: &str, request: SearchRequest) -> Result<SearchResult, Vec<Failure>> {
    let set = parsed("search.spmd", text)?;
    let mut options = Options::default();
    if !mesh.is_empty() {
        let parsed = MeshOverride::parse(mesh);
        options.check.mesh = Some(parsed.map_err(|diagnostic| failures(text, &[diagnostic]))?);
    }
    search_layouts(&set, &options, request, None).map_err(|diagnostics| failures(text, &diagnostics))
}

fn compiled_with(mut options: Options, (name, text, mesh): (&str, &str, &str)) -> Result<Compilation, Vec<Failure>> {
    let set = parsed(name, text)?;
    options.check.mesh = match mesh {
        "" => None,
        mesh => Some(MeshOverride::parse(mesh).map_err(|diagnostic| failures(text, &[diagnostic]))?),
    };
    compile(&set, &options).map_err(|diagnostics| failures(text, &diagnostics))
}

thread_local! {
    /// The program that this thread has read last. Most are compiled for several meshes.
    static LAST_READ: RefCell<Option<Rc<SourceSet>>> = const { RefCell::new(None) };
}

fn parsed(name: &str, text: &str) -> Result<Rc<SourceSet>, Vec<Failure>> {
    let is_same = |set: &&Rc<SourceSet>| set.files[0].name == name && set.files[0].text == text;
    if let Some(set) = LAST_READ.with_borrow(|last| last.as_ref().filter(is_same).cloned()) {
        return Ok(set);
    }
    let (set, diagnostics) = sources::load(name, text, &NoSources);
    if !diagnostics.is_empty() {
        return Err(failures(text, &diagnostics));
    }
    let set = Rc::new(set);
    LAST_READ.set(Some(set.clone()));
    Ok(set)
}

/// Runs a compiled program by the JIT, if no two devices can be in each other's way.
pub fn run(compilation: &Compilation, inputs: &[HostArray], workers: Option<usize>) -> Result<Outcome, Failure> {
    Loaded::new(compilation)?.run(inputs, workers)
}

/// Kernels of which a thread keeps the code; those of the last program may be more.
const MAX_KERNELS: usize = 2048;

/// The function of a kernel, and the code that it is in.
type LoadedKernel = (KernelFn, Rc<dyn LoadedCode>);

thread_local! {
    /// The kernels that this thread has loaded, until they are too many.
    static KNOWN: RefCell<HashMap<Kernel, LoadedKernel>> = RefCell::default();
}

/// The code of each kernel. On other meshes, and compiled from its dump, a program has many of the same kernels. Code generation takes a
/// third of the time of a test, so kernels that this thread knows are not compiled again.
fn code_of(kernels: &[Kernel]) -> Result<Vec<LoadedKernel>, CodegenError> {
    KNOWN.with_borrow_mut(|known| {
        if known.len() > MAX_KERNELS {
            known.clear();
        }
        let new: Vec<Kernel> = kernels.iter().filter(|kernel| !known.contains_key(kernel)).cloned().collect();
        let code: Rc<dyn LoadedCode> = backends::DEFAULT.load(&new)?.into();
        let functions = code.functions()?;
        known.extend(new.into_iter().zip(functions.iter().map(|&function| (function, code.clone()))));
        Ok(kernels.iter().map(|kernel| known[kernel].clone()).collect())
    })
}

/// A compiled program with its code, in which no two devices can be in each other's way.
pub struct Loaded {
    program: Program,
    kernels: Vec<LoadedKernel>,
}

impl Loaded {
    /// Loads the code by the JIT.
    pub fn new(compilation: &Compilation) -> Result<Loaded, Failure> {
        Ok(Loaded { program: raceless(compilation)?, kernels: code_of(&compilation.kernels).map_err(no_code)? })
    }

    /// The same program with the code of another back end; None if that one makes no functions.
    pub fn with_code_of(&self, backend: &dyn Backend, kernels: &[Kernel]) -> Result<Option<Loaded>, Failure> {
        let code: Rc<dyn LoadedCode> = backend.load(kernels).map_err(no_code)?.into();
        let Ok(functions) = code.functions() else { return Ok(None) };
        let kernels = functions.iter().map(|&function| (function, code.clone())).collect();
        Ok(Some(Loaded { program: self.program.clone(), kernels }))
    }

    /// The number of devices that are dealt to processes.
    pub fn devices(&self) -> usize {
        self.program.device_numbers().len()
    }

    fn functions(&self) -> Kernels {
        let functions = self.kernels.iter().map(|(function, _)| *function).collect();
        // SAFETY: these are the kernels of this very program, and their code outlives the sessions, which borrow this.
        unsafe { Kernels::new(functions) }
    }

    /// Runs it in one process.
    pub fn run(&self, inputs: &[HostArray], workers: Option<usize>) -> Result<Outcome, Failure> {
        run_once(None, (self.program.clone(), self.functions()), inputs, &options(workers))
    }

    /// Runs the part of this process of a job. The results are those of process 0; the results of others are zeros. All processes write
    /// files into this folder.
    pub fn run_as(&self, process: Process, inputs: &[HostArray], folder: &Path) -> Result<Outcome, Failure> {
        run_once(Some((process, folder)), (self.program.clone(), self.functions()), inputs, &options(None))
    }

    /// Runs it with the devices in so many processes, which are threads here, each with its own memory. The results are those of process
    /// 0; all processes must fail alike.
    pub fn run_in_processes(
        &self,
        inputs: &[HostArray],
        (processes, options): (usize, &RunOptions),
    ) -> Result<Outcome, Failure> {
        let kernels = self.functions();
        let folder = tempfile::tempdir().map_err(|error| internal(error.to_string()))?;
        let folder = folder.path();
        let outcomes: Vec<Result<Outcome, Failure>> = thread::scope(|scope| {
            let start = |process| {
                let loaded = (self.program.clone(), kernels.clone());
                scope.spawn(move || run_once(Some((process, folder)), loaded, inputs, options))
            };
            let threads: Vec<_> = Process::threads(processes).into_iter().map(start).collect();
            let panicked = |_| Err(internal("a process panicked".to_string()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        let failures: Vec<&Failure> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        let alike = failures.iter().all(|failure| *failure == failures[0]);
        if !alike || !failures.is_empty() && failures.len() < processes {
            return Err(internal(format!("processes fail in different ways: {failures:?}")));
        }
        let mut printed: Vec<String> = outcomes.iter().flatten().map(|outcome| outcome.printed.clone()).collect();
        printed.retain(|text| !text.is_empty());
        if printed.len() > 1 {
            return Err(internal("several processes print".to_string()));
        }
        let received = outcomes.iter().flatten().map(|outcome| outcome.received).max().unwrap_or(0);
        let first = outcomes.into_iter().next().expect("there is a process");
        first.map(|first| Outcome { printed: printed.pop().unwrap_or_default(), received, ..first })
    }
}

fn internal(message: String) -> Failure {
    Failure { code: "E0999".to_string(), line: 0, message }
}

fn no_code(error: CodegenError) -> Failure {
    internal(format!("{error:?}"))
}

/// The program, if no two devices can be in each other's way.
fn raceless(compilation: &Compilation) -> Result<Program, Failure> {
    let program = compilation.program.clone().ok_or_else(|| internal("no program was made".to_string()))?;
    match program.programs().into_iter().find_map(|program| races::race(program, &compilation.kernels)) {
        Some(race) => Err(internal(race)),
        None => Ok(program),
    }
}

/// The options of runs, with this maximum number of threads; None for the number of cores, which is counted once.
pub fn options(workers: Option<usize>) -> RunOptions {
    static CORES: LazyLock<Option<usize>> = LazyLock::new(|| thread::available_parallelism().ok().map(usize::from));
    RunOptions { timeout: Duration::from_secs(20), workers: workers.or(*CORES), ..RunOptions::default() }
}

/// Runs a program in the only process, or in one of several and with the folder that they share.
fn run_once(
    process: Option<(Process, &Path)>,
    (program, kernels): (Program, Kernels),
    inputs: &[HostArray],
    options: &RunOptions,
) -> Result<Outcome, Failure> {
    let shared = process.as_ref().map(|(process, folder)| (process.rank(), *folder));
    let process = process.map(|(process, _)| process);
    let stopped = |error: spmdc_runtime::errors::trap::RunError| Failure {
        code: error.code.to_string(),
        line: error.site.map_or(0, |site| site.line as usize),
        message: error.message,
    };
    let mut session = Session::load_in(process, program, in_process(kernels), options.clone()).map_err(stopped)?;
    let folder = TemporaryFiles::default();
    for (index, input) in inputs.iter().enumerate() {
        let source = folder.source(&session.program().params[index], input);
        session.give(index, source.map_err(stopped)?).map_err(stopped)?;
    }
    let mut printed = Vec::new();
    session.run(&mut printed).map_err(stopped)?;
    let count = session.program().results.len();
    let received = session.received_bytes();
    let results = (0..count)
        .map(|index| session.read_result(index).map(HostArray::with_one_nan))
        .collect::<Result<Vec<_>, _>>()
        .map_err(stopped)?;
    // The files of one process are those of `cli/tests/command/built.rs` and `files.rs`.
    if let Some((rank, folder)) = shared {
        let path = folder.join("results.npz");
        let members = members(&session.program().results);
        session.write_results(&path, &members).map_err(stopped)?;
        if rank == 0 {
            compare_file(&path, &members, &results)?;
        }
    }
    Ok(Outcome { results, printed: String::from_utf8_lossy(&printed).into_owned(), received })
}

/// The arrays of a file of all results.
fn members(results: &[Binding]) -> Vec<ResultArray> {
    let is_first = |index: &usize| results[*index].plane != Some(Plane::Imaginary);
    let member = |array: usize| {
        let imaginary = results[array].plane.is_some().then_some(array + 1);
        ResultArray { name: array.to_string(), array, imaginary }
    };
    (0..results.len()).filter(is_first).map(member).collect()
}

/// An error unless the file that the processes have written has the bytes of the gathered results.
fn compare_file(path: &Path, members: &[ResultArray], results: &[HostArray]) -> Result<(), Failure> {
    let complex = |member: &ResultArray| {
        member.imaginary.map(|imaginary| ComplexArray::new(&results[member.array], &results[imaginary]))
    };
    let complex: Vec<Option<ComplexArray>> = members.iter().map(complex).collect();
    let named: Vec<(&str, ArrayView<'_>)> = members
        .iter()
        .zip(&complex)
        .map(|(member, complex)| {
            let view = complex.as_ref().map_or(ArrayView::from(&results[member.array]), ArrayView::from);
            (member.name.as_str(), view)
        })
        .collect();
    let alone = path.with_file_name("alone.npz");
    write_npz(&alone, &named).map_err(|error| internal(error.message))?;
    let read = |path: &Path| fs::read(path).map_err(|error| internal(error.to_string()));
    if read(path)? == read(&alone)? { Ok(()) } else { Err(internal("the file of results has other bytes".to_string())) }
}

/// The files of streams.
#[derive(Default)]
struct TemporaryFiles(OnceCell<TempDir>);

impl TemporaryFiles {
    /// The argument of a parameter: of a stream in a file, in which its rows stay.
    fn source(&self, param: &Binding, input: &HostArray) -> Result<Source, RunError> {
        if param.place.is_some() {
            return Ok(Box::new(input.clone()));
        }
        let folder = self.0.get_or_init(|| tempfile::tempdir().expect("tests can write temporary files"));
        let path = folder.path().join(format!("{}.npy", param.name));
        write_npy(&path, input)?;
        let argument = Argument::parse(&format!("{}=@{}", param.name, path.display()))?;
        Ok(bind(std::slice::from_ref(param), &[argument])?.swap_remove(0))
    }
}

/// The evaluator's results for a module.
pub fn evaluated(text: &str, module: &Module, inputs: &[HostArray]) -> Result<Vec<HostArray>, Failure> {
    let args: Vec<Array> = inputs.iter().map(to_array).collect();
    match evaluate(module, &args) {
        Ok(output) => Ok(output.results.iter().map(to_host).collect()),
        Err(stopped) => Err(Failure {
            code: stopped.trap.code.to_string(),
            line: line_column(text, stopped.span.start as usize).0,
            message: stopped.trap.message,
        }),
    }
}

/// The arguments that a case names, and for its other parameters generated values: normal floats, small integers, bools.
pub fn inputs(compilation: &Compilation, args: &[String], root: &Path) -> Result<Vec<HostArray>, String> {
    let program = compilation.program.as_ref().ok_or("no program was made")?;
    let mut arguments = Vec::new();
    for arg in args {
        let arg = arg.replace("=@", &format!("=@{}/", root.display()));
        arguments.push(Argument::parse(&arg).map_err(|error| error.message)?);
    }
    // An argument gives a parameter its value, or all leaves of a struct.
    let is_given = |param: &Binding| {
        let rest = arguments.iter().filter_map(|argument| param.name.strip_prefix(argument.path.as_str()));
        rest.into_iter().any(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let given: Vec<Binding> = program.params.iter().filter(|param| is_given(param)).cloned().collect();
    // It refuses arguments without a parameter, which would leave a misspelt one to generated values.
    let mut sources = bind(&given, &arguments).map_err(|error| error.message)?.into_iter();
    let mut arrays = Vec::new();
    for param in &program.params {
        let sizes: Vec<usize> = param.layout.dims.iter().map(|dim| dim.size).collect();
        let mut array = HostArray::zeros(param.layout.dtype, &sizes);
        if is_given(param) {
            let mut source = sources.next().expect("every given parameter has a source");
            let start = vec![0; sizes.len()];
            source.read_block(&start, &sizes, &mut array.bytes).map_err(|error| error.message)?;
        } else {
            generate(&mut array, arrays.len() as u64);
        }
        arrays.push(array);
    }
    Ok(arrays)
}

/// Reproducible values for an array: floats between -2 and 2, integers from 0 to 6, bools.
pub fn generate(array: &mut HostArray, seed: u64) {
    let dtype = array.dtype;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
    for element in array.bytes.chunks_exact_mut(dtype.size()) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = (state >> 40) as f64 / (1u64 << 24) as f64;
        let bits = match dtype.kind() {
            Kind::Bool => u64::from(unit < 0.5),
            Kind::Float => dtype.narrow(4.0 * unit - 2.0),
            Kind::Signed | Kind::Unsigned | Kind::Key => (unit * 7.0) as u64,
        };
        element.copy_from_slice(&bits.to_le_bytes()[..dtype.size()]);
    }
}

pub fn to_array(host: &HostArray) -> Array {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    let bits = host.bytes.chunks_exact(host.dtype.size()).map(word).collect();
    Array::new(ArrayType::new(host.dtype, &host.shape), bits)
}

pub fn to_host(array: &Array) -> HostArray {
    let mut host = HostArray::zeros(array.dtype(), array.shape());
    let size = array.dtype().size();
    for (element, word) in host.bytes.chunks_exact_mut(size).zip(&array.bits) {
        element.copy_from_slice(&word.to_le_bytes()[..size]);
    }
    host.with_one_nan()
}
