//! Factorizations of matrices, triangular systems, and determinants.

#![warn(missing_docs)]

pub mod blocks;
mod calls;
mod eigen;
mod eigen_tangents;
pub mod factorization;
pub mod minors;
pub mod reference;
mod stablehlo;
pub mod systems;
mod tangents;
