//! Arrays of the host, and their ways into and out of the memory of the devices.

pub(crate) mod archive;
pub mod array;
pub(crate) mod blocks;
pub(crate) mod boxes;
pub mod inputs;
pub mod literal;
pub mod outputs;
pub mod process_files;
pub mod random;
pub mod results;
pub(crate) mod second_names;
