//! The intermediate representation: programs between their text and their kernels.
//!
//! | module | has |
//! |---|---|
//! | `array` | whole arrays, for the evaluator |
//! | `program` | functions and statements, and the types of their results |
//! | `ops` | the operations, one file each, and how calls become operands and attributes (`ops::call`) |
//! | `lower` | from operations to kernels |
//! | `print`, `verify`, `eval` | the text, the contracts and the meaning of a module |
//!
//! A statement holds an op, and an op builds and lowers statements: `program`, `ops` and `lower` depend on each other. All other
//! modules use only modules above them in this list; a test checks that.
#![warn(missing_docs)]

pub mod array;
pub mod eval;
pub mod lower;
pub mod op;
pub mod ops;
pub mod print;
pub mod program;
pub mod verify;
