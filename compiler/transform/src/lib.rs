//! Transformations of statements while a program is checked: `grad`, `jvp`, `vjp` and `vmap`.
//!
//! The rule of each op is in the op's file (`ir/rules/derivative.rs`, `ir/rules/batching.rs`); control flow and functions with a custom derivative
//! are handled here.
#![warn(missing_docs)]

pub mod batching;
pub mod derivatives;
