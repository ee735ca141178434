//! Calls of shipped functions: their arguments, what these are while checking, and what is wrong with them.

pub mod args;
pub mod build;
pub mod errors;
pub mod signature;
pub mod term;
