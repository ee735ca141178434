//! From loop nests to machine code.

pub mod builder;
pub mod interpret;
pub mod loops;
pub mod lower;
pub mod schedule;
mod split;
