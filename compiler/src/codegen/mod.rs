//! From loop nests to machine code.

pub mod builder;
pub mod loops;
pub mod lower;
pub mod schedule;
mod split;
