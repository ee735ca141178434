//! From an optimized module to kernels, buffers and steps.
//!
//! - `fuse`: it is known which values exist in memory.
//! - `order`: the work that makes them, under loops and branches.
//! - `plan_memory`: each of them has a place, and the program is a list of steps.
#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod fuse;
pub mod order;
pub mod plan_memory;
