//! Loops that are cut into parts.

mod peel;
mod split;
mod unroll;
