//! Tests of the intermediate representation, in a file for each tested one: layouts, reshards, operations, lowering, verifier and evaluator.
#![allow(clippy::unwrap_used)]

mod array;
mod cost;
mod eval;
mod layout;
mod lower;
mod ops;
mod program;
mod reshard;
mod testing;
mod verify;
