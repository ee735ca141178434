//! The native half of the Python package: compiles programs and runs them in this process.
//!
//! The other half, in Python, turns arguments into arrays of the types of the parameters, and results into arrays and named tuples. It names
//! everything that users see. This half takes and gives bytes.

#![warn(missing_docs)]

mod buffers;
mod errors;
mod layouts;
mod output;
mod panics;
mod program;
mod session;

use pyo3::prelude::*;

/// The module `spmdc._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::buffers::ResultBuffer;
    #[pymodule_export]
    use crate::program::{NativeProgram, compile};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::panics::keep_messages();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
