//! Distributions of arrays over devices: meshes, shardings, types, blocks, windows and factors. This module knows no programs.

pub mod blocks;
pub mod draw;
pub mod factors;
pub mod halo_flow;
pub mod hosts;
pub mod margin;
pub mod mesh;
pub mod parts;
pub mod patch;
pub mod projection;
pub mod sharding;
pub mod types;
pub mod window;
