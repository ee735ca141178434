//! The program as a whole: files, names, meshes, constants, the entry function.

pub mod constants;
pub mod entry;
pub mod meshes;
pub mod names;
pub mod quotes;
pub mod sources;
pub mod stage;
