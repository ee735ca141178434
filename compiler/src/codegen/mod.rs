//! From loop nests to machine code.
//!
//! `builder` describes loop nests (`loops`) and `lower` the steps around them; `peel` cuts nests where conditions change, `split`
//! long reductions, and `grain` says how finely a nest may be divided. `nest` and `cut` decide how a nest runs, by the `work` in it;
//! `kernel` emits its loops (`tile` those of tiles, `strip` those of strips), `access` loads and stores, `reduction` what is
//! combined over the loops, `arithmetic`, `half_lanes` and `lanes` the operations inside, all on the bundles of `vector`.
//! `machine` compiles; `jit` and `object` say where the code goes.

mod access;
mod arithmetic;
pub mod builder;
mod half_lanes;
pub mod jit;
mod kernel;
mod lanes;
pub mod lower;
pub mod machine;
mod math_calls;
pub mod object;
mod peel;
mod reduction;
pub mod schedule;
mod split;
mod strip;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod throughput;
mod tile;
mod vector;
