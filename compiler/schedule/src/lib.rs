//! From an optimized module to kernels, buffers and steps.
//!
//! - `fuse` decides which values exist in memory.
//! - `order` orders the work that computes them, under loops and branches.
//! - `alternate` lets the trips of a loop take turns with two places for its carried values.
//! - `tiles` finds products and kernels that run tile by tile.
//! - `sums` makes products part of the reductions that sum them.
//! - `repeats` finds loops that run in a kernel.
//! - `plan_memory` gives each of them a place, and makes the list of steps.
#![warn(missing_docs)]

mod alternate;
pub mod fuse;
mod last_uses;
pub mod order;
pub mod plan_memory;
mod repeats;
pub mod sums;
pub mod tiles;
mod uses;
