//! The intermediate representation: programs between their text and their kernels.
//!
//! | module | has |
//! |---|---|
//! | `array` | whole arrays, for the reference evaluator |
//! | `program` | functions and statements, and the types of their results |
//! | `op`, `rules` | the operation of a statement, and everything that it owes; no operation is defined here |
//! | `call` | how calls become statements: arguments, signatures, and the builder, which infers types |
//! | `lower` | from operations to kernels |
//! | `stablehlo` | from operations to StableHLO text |
//!
//! A statement holds an op, and an op builds and lowers statements: `program`, `op`, `rules`, the builder and `lower` depend on each other.
#![warn(missing_docs)]

pub mod array;
pub mod call;
pub mod lower;
pub mod mismatch;
pub mod op;
pub mod program;
pub mod rules;
pub mod shape;
pub mod stablehlo;
