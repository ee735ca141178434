//! From operations to kernels.
//!
//! `builder` describes loop nests and `work` the steps around them; `peel` cuts nests where conditions change, `split` long reductions.

pub mod builder;
pub mod library;
pub mod peel;
pub mod split;
pub mod work;
