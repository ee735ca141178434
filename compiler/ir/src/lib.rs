//! The intermediate representation: what a program is between its text and its kernels.
//!
//! | module | has |
//! |---|---|
//! | `cost` | the cost model: constants with unit and source, and how they combine |
//! | `layout` | meshes, shardings, types, blocks, windows and factors: values with an algebra, free of programs |
//! | `array` | whole arrays, for the evaluator |
//! | `reshard` | the cheapest steps from one layout to another |
//! | `program` | functions and statements, and the types of their results |
//! | `ops` | the operations, one file each, and how calls become operands and attributes (`ops::call`) |
//! | `lower` | from operations to kernels |
//! | `print`, `verify`, `eval` | how a module is written, what holds for it, what it means |
//!
//! A statement holds an op, and an op builds and lowers statements: `program`, `ops` and `lower` need each other. Everything else
//! uses what stands above it in this list only; a test holds that.
#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod array;
pub mod cost;
pub mod eval;
pub mod layout;
pub mod lower;
#[allow(clippy::wildcard_enum_match_arm, reason = "a call takes a few kinds of terms and refuses all others")]
pub mod ops;
pub mod print;
pub mod program;
pub mod reshard;
pub mod verify;
