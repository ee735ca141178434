//! The commands, each in its own file.

pub mod explain;
