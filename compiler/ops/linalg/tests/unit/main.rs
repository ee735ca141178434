//! Factorizations of one matrix.
#![allow(clippy::unwrap_used)]

mod reference;
