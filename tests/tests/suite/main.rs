//! The tests of the whole, in one executable: they are linked once, and run at the same time.
//!
//! `cargo test --workspace --test suite programs::` runs those of `programs.rs`.

#![allow(clippy::unwrap_used)]

mod backends;
mod batching;
mod cases;
mod draws;
mod edits;
mod failures;
mod functions;
mod fuzz;
mod golden;
mod layouts;
mod lies;
mod math;
mod ops;
mod processes;
mod programs;
mod reshards;
mod stencils;
mod tidy;
mod transfers;
mod worked_examples;
mod xla;
