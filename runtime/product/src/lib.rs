//! Products of matrices in the caller's memory, on one thread, with the widest instructions of the processor.
#![warn(missing_docs)]

pub mod packed;
