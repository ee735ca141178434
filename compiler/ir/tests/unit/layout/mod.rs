//! Layouts: blocks, windows, margins, hosts and drawings.

mod blocks;
mod draw;
mod halo_flow;
mod hosts;
mod margin;
mod patch;
mod projection;
mod sharding;
mod window;
