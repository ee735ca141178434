//! Fourier transforms of lines.

#![warn(missing_docs)]

pub mod fft;
