//! A compiled program, as the Python half uses it.

use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use spmdc_abi::{Binding, Plane};
use spmdc_check::sources::SourceSet;
use spmdc_check::{CheckOptions, MeshOverride};
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::{Compilation, MemoryLimit, Options};
use spmdc_compiler::report::kept::checkpoints;
use spmdc_compiler::report::lints::Policy;
use spmdc_driver::cache::{CachePlace, CachedProgram};
use spmdc_driver::compile::compile as compile_sources;
use spmdc_driver::errors::{CommandError, absent, no_code};
use spmdc_driver::reports;
use spmdc_driver::sources::{SourceTexts, parse};
use spmdc_ir::program::Stage;
use spmdc_kernel::backend::{Destination, TextForm};
use spmdc_layout::draw::Style;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session;

use crate::buffers::{ArgumentBytes, ResultBuffer};
use crate::errors::{described, exception, refused};
use crate::layouts;
use crate::output::PythonOutput;
use crate::panics::caught;
use crate::session::{LoadedProgram, PassedValue};

/// A program that was compiled for a mesh and constants.
#[pyclass(frozen, module = "spmdc._native")]
pub struct NativeProgram {
    set: SourceSet,
    texts: SourceTexts,
    check: CheckOptions,
    memory: Option<MemoryLimit>,
    entry: String,
    params: Vec<Binding>,
    results: Vec<Binding>,
    devices: usize,
    loaded: Mutex<LoadedProgram>,
}

/// Compiles the text of a program, which messages call `name`; one that ends in `.mlir` is StableHLO. Returns the program and its warnings.
///
/// `mesh` is as after `--mesh`, `sets` has names and values, `timeout` is in seconds and `memory_limit` in bytes.
#[pyfunction]
#[pyo3(signature = (name, text, *, mesh, entry, sets, cache, timeout, workers, memory_limit))]
#[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn compile<'py>(
    py: Python<'py>,
    name: String,
    text: String,
    mesh: Option<String>,
    entry: Option<String>,
    sets: Vec<(String, String)>,
    cache: bool,
    timeout: Option<f64>,
    workers: Option<usize>,
    memory_limit: Option<u64>,
) -> PyResult<(NativeProgram, Bound<'py, PyList>)> {
    let limits = RunOptions::default();
    let timeout = timeout.map_or(Ok(limits.timeout), Duration::try_from_secs_f64);
    let timeout = timeout.map_err(|_| PyValueError::new_err("`timeout` is a number of seconds"))?;
    let limits = RunOptions { timeout, workers, memory_limit, ..limits };
    let (texts, done) = py.detach(|| {
        let mut texts = SourceTexts::default();
        let done = caught(|| {
            let mesh = mesh.as_deref().map(MeshOverride::parse).transpose();
            let mesh = mesh.map_err(|error| CommandError::Program(vec![error]))?;
            let set = parse(&name, &text, &mut texts)?;
            let check = CheckOptions { entry, mesh, sets, ..CheckOptions::default() };
            let memory = memory_limit.map(|bytes| MemoryLimit { bytes, processes: 1 });
            let options = Options { check: check.clone(), memory, ..Options::default() };
            let CachedProgram { program, code, warnings } = code(&set, &options, cache)?;
            let kernels = code.into_kernels().map_err(|error| no_code(&error))?;
            Ok((set, check, memory, program, kernels, warnings.concat()))
        });
        (texts, done)
    });
    let (set, check, memory, program, kernels, warnings) = done.map_err(|error| exception(py, &error, &texts))?;
    let warnings = described(py, &warnings, &texts)?;
    let compiled = NativeProgram {
        set,
        texts,
        check,
        memory,
        entry: program.entry.clone(),
        params: program.params.clone(),
        results: program.results.clone(),
        devices: program.device_count(),
        loaded: Mutex::new(LoadedProgram::new(program, kernels, limits)),
    };
    Ok((compiled, warnings))
}

/// The machine code of a program, from the cache if it is there, and its warnings.
fn code(set: &SourceSet, options: &Options, cache: bool) -> Result<CachedProgram, CommandError> {
    let policy = Policy::default();
    let place = LIBRARY.as_deref().filter(|_| cache).and_then(|file| CachePlace::of(set, options, &policy, file));
    if let Some(cached) = place.as_ref().and_then(CachePlace::read) {
        return Ok(cached);
    }
    let (compilation, warnings) = compile_sources(set, options, &policy, &mut |_| ())?;
    let program = compilation.program.ok_or_else(|| absent("program"))?;
    let code = backends::DEFAULT.load(&compilation.kernels).map_err(|error| no_code(&error))?;
    if let Some(place) = place {
        place.write(&program, &*code, &warnings);
    }
    Ok(CachedProgram { program, code, warnings })
}

/// The file of this library, which identifies the build of the compiler.
static LIBRARY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    use std::os::unix::ffi::OsStrExt;
    let address: fn() = marker;
    // SAFETY: `dladdr` fills the structure, whose text belongs to the loader.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(std::ffi::CStr::from_ptr(info.dli_fname).to_bytes())))
    }
});

/// A function of this library.
fn marker() {}

#[pymethods]
impl NativeProgram {
    /// The name of the entry function.
    #[getter]
    fn entry(&self) -> &str {
        &self.entry
    }

    /// The text of the program.
    #[getter]
    fn source(&self) -> &str {
        &self.set.file(SourceSet::ROOT).text
    }

    /// The number of devices.
    #[getter]
    fn devices(&self) -> usize {
        self.devices
    }

    /// For each parameter its path, its second path, its type as text, the name of its element type, its shape, and whether it is a stream.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(py, &self.params)
    }

    /// As `params`.
    #[getter]
    fn results<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(py, &self.results)
    }

    /// Runs the program once. `arguments` has an object with the buffer protocol for each parameter, or the name of a file for a stream.
    /// Returns a buffer for each result.
    fn run(&self, py: Python<'_>, arguments: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<ResultBuffer>> {
        let mut values = Vec::with_capacity(arguments.len());
        for (param, argument) in self.params.iter().filter(|param| is_whole(param)).zip(&arguments) {
            values.push(match argument.cast::<PyString>() {
                Ok(file) if param.place.is_none() => PassedValue::File(file.to_string()),
                Ok(_) | Err(_) => PassedValue::Elements(ArgumentBytes::of(argument, bytes(param))?),
            });
        }
        let mut out = PythonOutput::default();
        let done = py.detach(|| {
            // A panic leaves no state that the next run does not reset.
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            caught(|| loaded.run(&values, &mut out))
        });
        match (out.raised, done) {
            (Some(raised), _) => Err(raised),
            (None, Ok(memories)) => Ok(memories.into_iter().map(ResultBuffer::new).collect()),
            (None, Err(error)) => Err(exception(py, &error, &self.texts)),
        }
    }

    /// The exception for an argument of another type, such as `f32[2, 3]`, for a parameter.
    fn refused(&self, py: Python<'_>, param: usize, given: &str) -> PyResult<Py<PyAny>> {
        let param = self.params.iter().filter(|param| is_whole(param)).nth(param);
        let param = param.ok_or_else(|| PyValueError::new_err("no such parameter"))?;
        Ok(refused(py, session::refused(param, given)).into_value(py).into_any())
    }

    /// The costs as JSON, and as tables.
    fn plan(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.report(py, None, |compilation, options| {
            let trials = checkpoints(compilation, &self.set, options);
            let tables = reports::plan::show(compilation, &trials, false, &self.texts)?;
            Ok((reports::plan::json(compilation, &trials, &self.texts)?, tables))
        })
    }

    /// The report on a line of the program, from 1, and on its values or only one of them.
    fn why(&self, py: Python<'_>, line: usize, value: Option<&str>) -> PyResult<String> {
        self.report(py, None, |compilation, options| {
            Ok(reports::why::why(compilation, (&self.set, options), (line, value), &self.texts)?)
        })
    }

    /// The program after a stage; None for an unknown name.
    fn dump(&self, py: Python<'_>, stage: &str) -> PyResult<Option<String>> {
        let code = |form| {
            self.report(py, None, |compilation, _| reports::dump::code(compilation, form, Destination::Memory))
                .map(Some)
        };
        match stage {
            "ast" => Ok(Some(spmdc_grammar::print(&self.set.file(SourceSet::ROOT).program))),
            "clif" => code(TextForm::Intermediate),
            "asm" => code(TextForm::Assembly),
            name => match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
                None => Ok(None),
                Some(stage) => {
                    let show =
                        |compilation: &Compilation, _: &Options| reports::dump::stage(compilation, stage, &self.texts);
                    self.report(py, Some(stage), show).map(Some)
                }
            },
        }
    }

    /// The drawings of `spmdc viz` as text.
    fn drawings(&self, py: Python<'_>, values: Vec<String>) -> PyResult<String> {
        self.report(py, Some(Stage::Propagated), |compilation, _| {
            reports::viz::viz(compilation, &values, Style::Unicode)
        })
    }

    /// For each parameter, named value and result its mesh, name, type, the tables of its blocks, and remarks.
    fn layouts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        layouts::listed(py, self.report(py, Some(Stage::Propagated), |compilation, _| layouts::layouts(compilation))?)
    }

    /// The program as one of the language, if it was StableHLO.
    fn imported(&self, py: Python<'_>) -> PyResult<String> {
        let imported = spmdc_compiler::sources::import(self.source());
        let imported = imported.map_err(|error| exception(py, &CommandError::Program(vec![error]), &self.texts))?;
        Ok(spmdc_grammar::wrap(&spmdc_grammar::print(&imported), COLUMNS))
    }
}

/// Maximum length of a line of an imported program, where it can be broken.
const COLUMNS: usize = 120;

impl NativeProgram {
    /// A description of the program, which is compiled again up to a stage.
    fn report<T: Send>(
        &self,
        py: Python<'_>,
        stop_after: Option<Stage>,
        show: impl FnOnce(&Compilation, &Options) -> Result<T, CommandError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            caught(|| {
                let (check, memory) = (self.check.clone(), self.memory);
                let options = Options { check, stop_after, memory, ..Options::default() };
                let (compilation, _) = compile_sources(&self.set, &options, &Policy::default(), &mut |_| ())?;
                show(&compilation, &options)
            })
        });
        done.map_err(|error| exception(py, &error, &self.texts))
    }
}

/// Whether it is not the second plane of complex numbers.
fn is_whole(binding: &Binding) -> bool {
    binding.plane != Some(Plane::Imaginary)
}

/// Bytes of the whole array, with both planes.
fn bytes(binding: &Binding) -> usize {
    let planes = if binding.plane.is_some() { 2 } else { 1 };
    planes * binding.layout.dims.iter().map(|dim| dim.size).product::<usize>() * binding.layout.dtype.size()
}

fn listed<'py>(py: Python<'py>, bindings: &[Binding]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for binding in bindings.iter().filter(|binding| is_whole(binding)) {
        let dtype = binding.layout.dtype;
        let complex = binding.plane.and_then(|_| dtype.complex_name());
        let entry = PyDict::new(py);
        entry.set_item("path", &binding.name)?;
        entry.set_item("second_path", &binding.second_name)?;
        entry.set_item("type", &binding.ty)?;
        entry.set_item("dtype", complex.unwrap_or(dtype.name()))?;
        entry.set_item("shape", binding.layout.dims.iter().map(|dim| dim.size).collect::<Vec<_>>())?;
        entry.set_item("is_stream", binding.place.is_none())?;
        list.append(entry)?;
    }
    Ok(list)
}
