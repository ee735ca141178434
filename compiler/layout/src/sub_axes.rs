//! The parts of cut axes, which replace the whole axis in layouts and ops.

use crate::sharding::Sharding;
use spmdc_abi::AxisSet;

/// For each axis of a mesh, its parts in the cut mesh, major to minor; the axis itself if it is not cut.
pub struct SubAxes(pub Vec<Vec<u8>>);

impl SubAxes {
    /// A list of axes, each replaced by its parts; the order stays major to minor.
    pub fn axes(&self, axes: &[u8]) -> Vec<u8> {
        axes.iter().flat_map(|&axis| &self.0[axis as usize]).copied().collect()
    }

    /// A set of axes, each replaced by its parts.
    pub fn set(&self, axes: AxisSet) -> AxisSet {
        axes.iter().flat_map(|axis| &self.0[axis]).map(|&part| part as usize).collect()
    }

    /// A sharding with axes replaced by their parts.
    pub fn sharding(&self, sharding: &Sharding) -> Sharding {
        let mut cut = sharding.clone();
        cut.dims.iter_mut().for_each(|dim| dim.axes = self.axes(&dim.axes));
        cut.unreduced = self.set(cut.unreduced);
        cut.reduced = self.set(cut.reduced);
        cut
    }
}
