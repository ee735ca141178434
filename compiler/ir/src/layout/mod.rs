//! Where the elements of arrays lie: meshes, shardings, types, the blocks of devices, windows and factors. Nothing here knows programs.

pub mod blocks;
pub mod draw;
pub mod factors;
pub mod margin;
pub mod mesh;
pub mod parts;
pub mod projection;
pub mod sharding;
pub mod types;
pub mod window;
