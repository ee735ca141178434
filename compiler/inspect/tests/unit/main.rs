//! Tests of the evaluator and the verifier.
#![allow(clippy::unwrap_used)]

mod eval;
mod testing;
mod verify;
