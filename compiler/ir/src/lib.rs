//! The intermediate representation: programs between their text and their kernels.
//!
//! | module | has |
//! |---|---|
//! | `cost` | the cost model: constants with unit and source, and the formulas that combine them |
//! | `layout` | meshes, shardings, types, blocks, windows and factors: values with an algebra, free of programs |
//! | `array` | whole arrays, for the evaluator |
//! | `reshard` | the cheapest steps from one layout to another |
//! | `program` | functions and statements, and the types of their results |
//! | `ops` | the operations, one file each, and how calls become operands and attributes (`ops::call`) |
//! | `lower` | from operations to kernels |
//! | `derivatives` | derivatives of functions, by the rules of their ops |
//! | `print`, `verify`, `eval` | the text, the contracts and the meaning of a module |
//!
//! A statement holds an op, and an op builds and lowers statements: `program`, `ops` and `lower` depend on each other. All other
//! modules use only modules above them in this list; a test checks that.
#![warn(missing_docs)]

pub mod array;
pub mod batching;
pub mod cost;
pub mod derivatives;
pub mod eval;
pub mod layout;
pub mod lower;
pub mod ops;
pub mod print;
pub mod program;
pub mod reshard;
pub mod verify;
