//! The syntax of the spmd language: tokens, tree, parser and printer. It knows no types.
//!
//! ```
//! use spmdc_grammar::span::FileId;
//!
//! let (program, diagnostics) = spmdc_grammar::parse("fn relu(x) { maximum(x, 0) }", FileId::default());
//! assert!(diagnostics.is_empty());
//! assert_eq!(spmdc_grammar::print(&program), "fn relu(x) { maximum(x, 0) }\n");
//! ```
//!
//! Tokens are like characters: code that looks for a few of them ignores the others, so it may end in a wildcard arm.
#![warn(missing_docs)]

mod actions;
pub mod ast;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
mod brackets;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
pub mod classify;
pub mod codes;
pub mod diagnostic;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
mod division;
pub mod elsewhere;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
pub mod format;
pub mod habits;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
mod lexer;
mod nodes;
mod parse;
pub mod print;
pub mod sentences;
pub mod span;
pub mod strip_spans;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
mod syntax_error;
#[allow(clippy::wildcard_enum_match_arm, reason = "tokens")]
mod token;
pub mod walk;
mod wrap;

pub use parse::parse;
pub use print::program as print;
pub use wrap::wrap;

/// Generated from `grammar.lalrpop` by `build.rs`.
#[allow(clippy::all, clippy::unwrap_used, clippy::wildcard_enum_match_arm, unused)]
mod grammar {
    lalrpop_util::lalrpop_mod!(parser, "/grammar.rs");
    pub use parser::*;
}
