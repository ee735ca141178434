//! The passes, in the order of the pipeline, each with what holds after it.
//!
//! - `simplify`, `cse`, `dce`: nothing is computed that need not be. They keep every contract.
//! - `commute_reshapes`: no reshape leads away and back around what does not depend on the shape.
//! - `propagate`: every sharding is decided; no dimension is open.
//! - `local_winners`: nothing is gathered to find the place of an extreme.
//! - `align_frames`: parts of arrays lie where these do, wherever that saves communication.
//! - `insert_reshards`: the operands of every op agree with its factor rule.
//! - `exchange_halos`: windows find all that they read on their own device.
//! - `partition`: all communication is explicit. It plans with `reshard`.
//! - `hoist`: no loop makes the same exchange in every trip.
//! - `share_halos`: windows on one value fetch what they lack once for each direction.
//! - `combine_collectives`: small exchanges between the same devices are one, where none waits for another.
//! - `overlap`: collectives stand behind work that does not need them.

pub mod align_frames;
pub mod combine_collectives;
pub mod commute_reshapes;
mod contract;
pub mod cse;
pub mod dce;
pub mod exchange_halos;
pub mod exchange_totals;
pub mod hoist;
pub mod insert_reshards;
pub mod local_winners;
pub mod overlap;
pub mod partition;
pub mod propagate;
pub mod share_halos;
pub mod simplify;

#[cfg(test)]
pub(crate) mod testing {
    #![allow(clippy::unwrap_used)]
    use spmdc_check::sources::{NoSources, SourceSet};
    use spmdc_check::{CheckOptions, check};
    use spmdc_ir::program::Module;

    /// A program as the checker leaves it.
    pub fn typed(source: &str) -> Module {
        let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        check(&set, &CheckOptions::default()).unwrap().0
    }
}
