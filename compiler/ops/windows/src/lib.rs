//! Windows of arrays: those of `conv` and `reduce_window`, side by side, and the halos that devices exchange for windows.

#![warn(missing_docs)]

pub mod ghosted;
pub mod halo;
pub mod patches;
pub mod windowed;
