//! The syntax of the spmd language: tokens, tree, parser and printer. It knows no types.

pub mod ast;
pub mod codes;
pub mod diagnostic;
pub mod span;
