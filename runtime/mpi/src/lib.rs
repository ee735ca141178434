//! Moves bytes between the processes of a job, over an MPI library that is loaded at run time.
//!
//! A program is never linked with MPI. Started without a launcher it needs no library and looks for none. Under `mpirun`, `mpiexec` or
//! `srun` it finds its number in the variables of the launcher ([`Launched`]), loads the matching library ([`MpiLibrary`]) and joins the
//! others ([`World`]). So one executable runs under Open MPI 4 and 5, MPICH 4 and 5, and every library with the ABI of one of them. MPI
//! only sends and receives: the runtime itself computes reductions, so that results do not depend on the library.
//!
//! Errors are values. MPI's own handler, which would end the process, is replaced.

#![warn(missing_docs)]

#[cfg(not(all(unix, target_endian = "little", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("MPI handles of 32 bits are supported on x86-64 and aarch64 only");

mod launcher;
mod library;
mod world;

use std::fmt;

pub use launcher::{Launched, Launcher};
pub use library::{LIBRARY_VARIABLE, MpiLibrary};
pub use world::{MpiTransfer, World};

/// The reason why processes cannot be connected, or no longer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiError {
    /// The description of the error.
    pub message: String,
    /// The way out, if there is one.
    pub help: Option<String>,
}

impl MpiError {
    fn new(message: impl Into<String>) -> MpiError {
        MpiError { message: message.into(), help: None }
    }

    fn with_help(mut self, help: impl Into<String>) -> MpiError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for MpiError {}
