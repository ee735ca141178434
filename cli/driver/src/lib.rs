//! Programs from their files to machine code, for the command and other callers: reads sources, compiles them, keeps compiled
//! programs in a cache, renders diagnostics, and describes programs.
#![warn(missing_docs)]

pub mod cache;
pub mod compile;
pub mod disk;
pub mod errors;
pub mod render;
pub mod reports;
pub mod sources;
pub mod table;
