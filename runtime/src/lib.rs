//! The runtime of compiled programs: devices on worker threads, collectives, input and output files. It knows no IR.

#![warn(missing_docs)]

pub mod args;
pub mod array;
mod barrier;
mod blocks;
mod boxes;
pub mod call;
mod check;
mod collectives;
pub mod components;
mod cpu;
mod crew;
mod deal;
mod device;
pub mod exhausted;
mod failure;
mod gemm;
pub mod inputs;
pub mod io;
mod joint;
mod json;
mod kernels;
mod launch;
mod library;
pub mod literal;
mod load;
pub mod memory;
pub mod outputs;
pub mod pieces;
mod print;
pub mod processes;
mod progress;
pub mod random;
pub mod report;
mod save;
pub mod session;
mod shared;
pub mod show;
pub mod start;
pub mod stats;
mod streams;
pub mod suggest;
mod team;
pub mod trace;
mod trace_file;
pub mod trap;
