//! From operations to kernels.
//!
//! `builder` describes loop nests and `work` the steps around them. `peel` cuts nests where conditions change, and `split` cuts long
//! reductions. `unroll` writes a few results one after the other, and `terms` the terms of a short reduction.
//! `tiles` describes work that runs tile by tile.

pub mod builder;
pub mod calls;
pub mod cutout;
pub mod library;
pub mod peel;
pub mod product;
pub mod split;
pub mod terms;
pub mod tiles;
pub mod unroll;
pub mod work;
