//! Tests of layouts, in a file for each tested one, of costs and of reshards.
#![allow(clippy::unwrap_used)]

mod blocks;
mod cost;
mod draw;
mod halo_flow;
mod hosts;
mod margin;
mod patch;
mod projection;
mod reshard;
mod sharding;
mod testing;
mod window;
