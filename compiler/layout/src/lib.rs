//! Distributions of arrays over devices, independent of programs.
//!
//! | module | has |
//! |---|---|
//! | `mesh`, `hosts`, `sharding`, `types` | meshes, the machines of their devices, shardings, and types with an algebra |
//! | `blocks`, `parts`, `window`, `margin`, `patch`, `halo_flow` | the elements of each device, and the elements that it needs from others |
//! | `factors`, `projection` | the factor rules of ops, and shardings in terms of factors |
//! | `cost` | the cost model: constants with unit and source, and the formulas that combine them |
//! | `reshard` | the cheapest steps from one layout to another |
//! | `explicit` | the part of a layout that types decide |
//! | `draw` | drawings of layouts |
#![warn(missing_docs)]

pub mod blocks;
pub mod cost;
pub mod crossings;
pub mod draw;
pub mod explicit;
pub mod factors;
pub mod halo_flow;
pub mod hosts;
pub mod margin;
pub mod mesh;
pub mod patch;
pub mod projection;
pub mod reshard;
pub mod sharding;
pub mod sub_axes;
pub mod types;
pub mod window;
