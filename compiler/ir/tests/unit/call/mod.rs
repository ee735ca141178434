//! Calls of functions.

mod errors;
