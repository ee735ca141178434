//! Errors of the command line and of a run.

pub mod exhausted;
pub(crate) mod failure;
pub mod suggest;
pub mod trap;
