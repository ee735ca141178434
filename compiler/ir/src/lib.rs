//! The intermediate representation: what a program is between its text and its kernels.
//!
//! | module | has |
//! |---|---|
//! | `layout` | meshes, shardings, types, blocks, windows and factors: values with an algebra, free of programs |
//! | `reshard` | the cheapest steps from one layout to another |
//! | `program` | functions, statements, their builder and the types of their results |
//! | `call` | the arguments of a call, before they are operands and attributes |
//! | `ops` | the operations, one file each |
//! | `lower` | from operations to kernels |
//! | `verify`, `eval`, `print` | what holds for a module, what it means, how it is written |
//!
//! A statement holds an op, and an op builds and lowers statements: `program`, `ops` and `lower` need each other. Nothing else does.

pub mod call;
pub mod eval;
pub mod layout;
pub mod lower;
pub mod ops;
pub mod print;
pub mod program;
pub mod reshard;
pub mod verify;
