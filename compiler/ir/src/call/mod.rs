//! Calls of shipped functions: their arguments, what these are while checking, and what is wrong with them.

pub mod args;
pub mod errors;
pub mod term;
