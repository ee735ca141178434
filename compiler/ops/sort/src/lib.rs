//! Lines in order, above the op `sort`: sorted blocks and their merge, `lexsort`, `top_k`, quantiles, `unique`, `searchsorted`.

#![warn(missing_docs)]

pub mod blocks;
pub mod calls;
pub mod merge;
pub mod searchsorted;
pub mod select;
pub mod selection;
