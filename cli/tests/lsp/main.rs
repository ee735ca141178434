//! The language server from the outside: an editor's part of the protocol, spoken to the real `spmdc lsp`.
#![allow(clippy::unwrap_used)]

mod client;
mod edits;
mod features;
mod fields;
mod protocol;
mod stablehlo;
