//! Texts of a run: printed lines and arrays, progress, statistics and traces.

pub(crate) mod json;
pub mod picture;
pub(crate) mod print;
pub(crate) mod progress;
pub(crate) mod save;
pub mod show;
pub mod stats;
pub mod trace;
pub(crate) mod trace_file;
