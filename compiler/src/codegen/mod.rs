//! From operations to loop nests.
//!
//! `builder` describes loop nests and `lower` the steps around them; `peel` cuts nests where conditions change, `split` long
//! reductions. `schedule` puts the steps of a program in order.

pub mod builder;
pub mod lower;
mod peel;
pub mod schedule;
mod split;
