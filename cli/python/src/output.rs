//! The printed text of programs, on the standard output of Python.

use std::io::{self, Write};

use pyo3::prelude::*;

/// Writes whole lines to `sys.stdout`, which notebooks replace. Between lines it lets Python handle signals, so that a program that prints
/// can be interrupted.
#[derive(Default)]
pub struct PythonOutput {
    line: Vec<u8>,
    /// The exception that stopped the program.
    pub raised: Option<PyErr>,
}

impl PythonOutput {
    fn give(&mut self, end: usize) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.line[..end]).into_owned();
        let done = Python::attach(|py| {
            py.check_signals()?;
            py.import("sys")?.getattr("stdout")?.call_method1("write", (text,))?;
            Ok(())
        });
        self.line.drain(..end);
        done.map_err(|error: PyErr| {
            self.raised = Some(error);
            io::Error::other("the standard output of Python raised an exception")
        })
    }
}

impl Write for PythonOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|&byte| byte == b'\n') {
            self.give(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.line.is_empty() { Ok(()) } else { self.give(self.line.len()) }
    }
}
