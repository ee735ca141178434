//! Collectives that programs write in `manual` code: `psum`, `all_gather`, `psum_scatter`, `all_to_all`, `ppermute`.

#![warn(missing_docs)]

pub mod all_gather;
pub mod all_reduce;
pub mod all_to_all;
pub mod permute;
pub mod reduce_scatter;
