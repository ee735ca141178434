//! The commands, each in its own file.

pub mod check;
pub mod dump;
pub mod explain;
