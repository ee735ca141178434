//! What a compiled program runs on: devices as threads, collectives, files in and out. It knows no IR.

pub mod abi;
pub mod array;
pub mod io;
pub mod mesh;
pub mod random;
pub mod report;
pub mod show;
pub mod trap;
