//! Tests of the intermediate representation, in a file for each tested one: operations, lowering, verifier and evaluator.
#![allow(clippy::unwrap_used)]

mod array;
mod eval;
mod lower;
mod ops;
mod program;
mod testing;
mod verify;
