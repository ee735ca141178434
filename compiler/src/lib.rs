//! The compiler: typed IR, sharding propagation, partitioning and code generation. It does no IO.

#![warn(missing_docs)]

pub mod backends;
mod hosts;
pub mod pipeline;
pub mod report;
pub mod search;
pub mod sources;
pub mod totals;
