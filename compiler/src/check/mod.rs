//! From the syntax tree to the typed IR.

pub mod args;
pub mod term;
