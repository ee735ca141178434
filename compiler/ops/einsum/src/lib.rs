//! Sums of products, `einsum`, and diagonals.

#![warn(missing_docs)]

pub mod contract;
mod derivative;
pub mod diagonal;
pub mod einsum;
pub mod orient;
mod ring;
pub mod spec;
