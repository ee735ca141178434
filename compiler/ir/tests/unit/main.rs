//! Tests of what every op is built on, in a file for each tested one.
#![allow(clippy::unwrap_used)]

mod array;
mod call;
mod lower;
mod program;
mod shape;
