//! Errors as exceptions of the package.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use spmdc_driver::errors::CommandError;
use spmdc_driver::render::Reporter;
use spmdc_driver::sources::SourceTexts;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::args::ErrorFormat;
use spmdc_runtime::run::start::Failure;

/// The reporter of messages in Python: without colours, as notebooks and log files have them, too.
pub fn reporter(format: ErrorFormat) -> Reporter {
    Reporter::new(format, false, false)
}

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &CommandError, texts: &SourceTexts) -> PyErr {
    let raised = match error {
        CommandError::Program(diagnostics) => {
            described(py, diagnostics, texts).and_then(|list| raise(py, "CompileError", (list,)))
        }
        CommandError::Failure(failure) => failed(py, failure, texts),
    };
    raised.unwrap_or_else(|error| error)
}

fn failed(py: Python<'_>, failure: &Failure, texts: &SourceTexts) -> PyResult<PyErr> {
    let name = match failure.error.code {
        RunCode::E0701 | RunCode::E0702 => "ArgumentError",
        RunCode::E0703
        | RunCode::E0704
        | RunCode::E0801
        | RunCode::E0802
        | RunCode::E0803
        | RunCode::E0804
        | RunCode::E0805
        | RunCode::E0806
        | RunCode::E0807
        | RunCode::E0808
        | RunCode::E0809
        | RunCode::E0901
        | RunCode::E0999 => "ProgramError",
    };
    let text = reporter(ErrorFormat::Text).render_failure(failure, texts);
    let json = reporter(ErrorFormat::Json).render_failure(failure, texts);
    raise(py, name, (fields(py, &json, &text)?,))
}

/// An E0701 or another error in an argument.
pub fn refused(py: Python<'_>, error: RunError) -> PyErr {
    exception(py, &error.into(), &SourceTexts::default())
}

/// A class of the package for an error with these arguments.
fn raise<'py>(py: Python<'py>, name: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyResult<PyErr> {
    let class = py.import("spmdc._errors")?.getattr(name)?;
    Ok(PyErr::from_value(class.call1(arguments)?))
}

/// Each diagnostic as a dictionary: the fields of `--error-format json`, and `rendered`.
pub fn described<'py>(
    py: Python<'py>,
    diagnostics: &[Diagnostic],
    texts: &SourceTexts,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for diagnostic in diagnostics {
        let text = reporter(ErrorFormat::Text).render(diagnostic, texts);
        let json = reporter(ErrorFormat::Json).render(diagnostic, texts);
        let fields = fields(py, &json, &text)?;
        debug_assert!(matches!(diagnostic.severity, Severity::Error | Severity::Warning), "both have a name in JSON");
        list.append(fields)?;
    }
    Ok(list)
}

fn fields<'py>(py: Python<'py>, json: &str, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let fields = py.import("json")?.call_method1("loads", (json,))?.cast_into::<PyDict>()?;
    fields.set_item("rendered", text.trim_end())?;
    Ok(fields)
}
