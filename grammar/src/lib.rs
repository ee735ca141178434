//! The syntax of the spmd language: tokens, tree, parser and printer. It knows no types.
//!
//! ```
//! use spmdc_grammar::span::FileId;
//!
//! let (program, diagnostics) = spmdc_grammar::parse("fn relu(x) { maximum(x, 0) }", FileId::default());
//! assert!(diagnostics.is_empty());
//! assert_eq!(spmdc_grammar::print(&program), "fn relu(x) { maximum(x, 0) }\n");
//! ```

mod actions;
pub mod ast;
mod brackets;
pub mod codes;
pub mod diagnostic;
mod division;
pub mod habits;
mod lexer;
mod parse;
pub mod print;
pub mod span;
pub mod strip_spans;
mod syntax_error;
mod token;

pub use parse::parse;
pub use print::program as print;

/// Made from `grammar.lalrpop` by `build.rs`.
#[allow(clippy::all, clippy::unwrap_used, unused)]
mod grammar {
    lalrpop_util::lalrpop_mod!(parser, "/grammar.rs");
    pub use parser::*;
}
