//! Programs as others see them: their text, their contracts, and their meaning.
//!
//! | module | has |
//! |---|---|
//! | `print` | the text of a module, which reads back as the same module |
//! | `verify` | the contract of each stage |
//! | `eval` | the reference evaluator |
#![warn(missing_docs)]

pub mod eval;
pub mod print;
pub mod verify;
