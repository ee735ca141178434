//! From loop nests to machine code.
//!
//! `kernel` emits the loops of a nest (`tile` those of tiles, `strip` those of strips), `access` loads and stores, `reduction` what is
//! combined over the loops, `arithmetic`, `half_lanes` and `lanes` the operations inside, all on the bundles of `vector`.
//! `machine` compiles; `jit` and `object` say where the code goes.

mod access;
mod arithmetic;
mod half_lanes;
pub mod jit;
mod kernel;
mod lanes;
pub mod machine;
mod math_calls;
pub mod object;
mod reduction;
mod strip;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod throughput;
mod tile;
mod vector;
