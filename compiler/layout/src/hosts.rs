//! The hosts of a mesh's devices: the processes of a job, which have separate memory. Bytes between hosts are sent in messages, and cost
//! more than bytes that devices of one host copy from each other.
//!
//! ```text
//! mesh (X = 2, Y = 4), 2 hosts: devices 0 to 3 | 4 to 7
//!     f32[8@Y] -> f32[8]       each host has all blocks: no byte crosses
//!     f32[8@X] -> f32[8]       each host lacks half of the array: 16 bytes cross, whatever the number of its devices
//! ```
//!
//! A host receives every missing element once, for all of its devices. Sums are combined on each host first, so it sends one partial value
//! for all of its devices. These are the messages of the runtime if the devices of a host are a part of the tree in which values are
//! combined (`runtime/src/collectives/reduce.rs`); otherwise the figures are estimates.

use crate::cost::Levels;
use spmdc_abi::AxisSet;
use std::sync::Arc;

/// Maximum number of hosts whose bytes are counted for one change of layout: others are like them.
const COUNTED: usize = 8;

/// The host of each device of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The positions on the mesh of the devices of each host, in ascending order. A host may have none of them.
    pub(crate) places: Arc<[Vec<usize>]>,
    /// The axes along which neighbouring devices may be on different hosts.
    pub axes: AxisSet,
    /// The costs of communication inside a host and between hosts.
    pub levels: Levels,
}

impl Hosts {
    /// Hosts for the devices of a mesh with axes of these sizes, given the host of each position.
    pub fn new(sizes: &[usize], of: &[usize], count: usize, levels: Levels) -> Hosts {
        debug_assert_eq!(of.len(), sizes.iter().product::<usize>(), "every device is on a host");
        let mut places = vec![Vec::new(); count];
        of.iter().enumerate().for_each(|(place, &host)| places[host].push(place));
        let mut stride = 1;
        let mut axes = AxisSet::EMPTY;
        for (axis, &size) in sizes.iter().enumerate().rev() {
            let crosses = |place: usize| place / stride % size + 1 < size && of[place] != of[place + stride];
            if (0..of.len()).any(crosses) {
                axes = axes.union(AxisSet::of(axis));
            }
            stride *= size;
        }
        Hosts { places: places.into(), axes, levels }
    }

    /// The same devices on a mesh with other axes.
    pub fn on(&self, sizes: &[usize]) -> Hosts {
        Hosts::new(sizes, &self.of(), self.count(), self.levels)
    }

    /// The host of each position.
    pub(crate) fn of(&self) -> Vec<usize> {
        let mut of = vec![0; self.places.iter().map(Vec::len).sum()];
        for (host, places) in self.places.iter().enumerate() {
            places.iter().for_each(|&place| of[place] = host);
        }
        of
    }

    /// The number of hosts.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// A key that distinguishes plans for these hosts from plans for others.
    pub fn key(&self) -> impl Iterator<Item = usize> + '_ {
        let of = self.places.iter().flat_map(|places| std::iter::once(usize::MAX).chain(places.iter().copied()));
        of.chain(self.levels.key())
    }

    /// The hosts that are counted: some of those that have devices of the mesh.
    pub(crate) fn counted_hosts(&self) -> impl Iterator<Item = usize> {
        let used = || (0..self.places.len()).filter(|&host| !self.places[host].is_empty());
        used().step_by(used().count().div_ceil(COUNTED).max(1))
    }

    /// The devices of the hosts that are counted.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &[usize]> {
        self.counted_hosts().map(|host| self.places[host].as_slice())
    }
}
