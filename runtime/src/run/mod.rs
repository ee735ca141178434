//! Runs a program: from its command line to workers, devices and their memory.

pub mod args;
pub(crate) mod barrier;
pub mod call;
pub(crate) mod cpu;
pub(crate) mod crew;
pub(crate) mod device;
pub(crate) mod kernels;
pub(crate) mod launch;
pub mod memory;
pub mod pages;
pub mod report;
pub mod session;
pub(crate) mod shared;
pub mod start;
pub(crate) mod team;
pub(crate) mod tiles;
