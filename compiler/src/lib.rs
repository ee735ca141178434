//! Typed intermediate representation, sharding propagation, partitioning and code generation.

pub mod math;
