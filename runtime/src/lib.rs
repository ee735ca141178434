//! The runtime of compiled programs: devices on worker threads, collectives, input and output files. It knows no IR.

#![warn(missing_docs)]

mod check;
mod collectives;
pub mod component_table;
pub mod components;
pub mod data;
pub mod errors;
pub mod io;
mod library;
mod load;
pub mod processes;
pub mod run;
mod shared_file;
mod streams;
pub mod text;
