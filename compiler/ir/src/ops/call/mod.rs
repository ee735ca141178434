//! Calls of shipped functions: their arguments, the terms of arguments during checking, and their errors.

pub mod args;
pub mod build;
pub mod errors;
pub mod signature;
pub mod term;
