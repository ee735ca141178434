//! Expansion: expressions and statements become terms and statements of the IR, and calls the bodies of the called functions.

pub mod calls;
pub mod expander;
pub mod exprs;
pub mod indexing;
pub mod operators;
pub mod patterns;
pub mod prelude;
pub mod scopes;
pub mod stmts;
pub mod windows;
