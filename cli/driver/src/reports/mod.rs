//! Descriptions of compiled programs as text: layouts, costs, stages.

pub mod dump;
pub mod meshes;
pub mod page;
pub mod plan;
pub mod shard;
pub mod timeline;
pub mod viz;
pub mod why;
