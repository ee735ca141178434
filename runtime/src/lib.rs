//! What a compiled program runs on: devices as threads, collectives, files in and out. It knows no IR.

pub mod abi;
pub mod args;
pub mod array;
pub mod inputs;
pub mod io;
pub mod literal;
pub mod mesh;
pub mod outputs;
pub mod random;
pub mod report;
pub mod show;
pub mod stats;
pub mod suggest;
pub mod trap;
