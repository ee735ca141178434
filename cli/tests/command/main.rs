//! The command and the programs that it builds, from the outside. One binary, so that tests that wait for processes, launchers and time
//! limits run beside those that compute: `cargo test --test command launch` runs a part.
#![allow(clippy::unwrap_used)]

mod archives;
mod built;
mod cache;
mod callers;
#[allow(dead_code, reason = "the tests of the server use the rest of it")]
#[path = "../lsp/client.rs"]
mod client;
mod commands;
mod explained;
mod files;
mod first_steps;
mod fmt;
mod folder;
mod hosts;
mod jax_examples;
mod jobs;
mod known_answers;
mod launch;
mod outputs;
mod pages;
mod pieces;
mod plots;
mod report;
mod resume;
mod shard;
mod sizes;
mod stablehlo;
mod tests;
mod timeline;
mod tour;
mod trace;
mod watch;
