//! Tests of the passes, in a file for each tested one.
#![allow(clippy::unwrap_used)]

mod combine_collectives;
mod commute_reshapes;
mod cse;
mod dce;
mod exchange_ghosts;
mod hoist;
mod inline_loops;
mod insert_reshards;
mod overlap;
mod project;
mod propagate;
mod share_halos;
mod simplify;
mod sink;
mod testing;
mod unroll_loops;
