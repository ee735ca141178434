//! The compiler: typed IR, sharding propagation, partitioning and code generation. It does no IO.

pub mod check;
pub mod codegen;
pub mod ir;
pub mod ops;
pub mod passes;
pub mod pipeline;
pub mod report;
