//! Decides where devices need a barrier.
//!
//! Between two barriers of a group, an access of one device to memory can come before or after any access of another device. So for each
//! arena the planner records the bytes that have been read and written, and the *reach* of each access. The reach is the axes along which
//! other devices see the same bytes (they share the arena) or read them (a collective reads the blocks of a group). Two accesses, at least
//! one of them a write, are ordered if a barrier along the reach of either separates them.
//!
//! Barriers are transitive: a barrier along X and then one along Y order a device with all devices along X and Y. So each access
//! keeps the axes of the barriers after it, provided that one barrier is complete before the next is posted.
//!
//! A barrier has two halves. A device *posts* its arrival as soon as it has made the accesses for which other devices wait, and *awaits*
//! the others where it needs them. In between it does work for which no other device waits.
//!
//! Two accesses of one step never conflict: devices divide the writes of a step, and a step that writes in place of an operand
//! reads only the elements that the same device writes.

use spmdc_layout::types::AxisSet;
use std::ops::Range;

/// For each arena, the accesses that a later step may have to wait for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    arenas: Vec<Vec<Noted>>,
    /// All axes along which there are several devices.
    several: AxisSet,
}

#[derive(Clone, Debug, PartialEq)]
struct Noted {
    bytes: Range<u64>,
    written: bool,
    reach: AxisSet,
    /// The axes of the barriers after the access.
    synced: AxisSet,
    /// The number of steps of the present list up to the access.
    at: usize,
}

/// Bytes of an arena that a step reads or writes.
#[derive(Clone, Debug)]
pub struct MemoryAccess {
    pub arena: usize,
    pub bytes: Range<u64>,
    pub written: bool,
    /// The axes along which this device accesses the bytes of other devices, or they access the bytes of this one.
    pub reach: AxisSet,
}

/// A barrier that is needed before a step; an empty group means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededBarrier {
    /// The axes along which the waiting devices differ.
    pub group: AxisSet,
    /// The number of steps up to the last access that the barrier orders: it may be posted after them.
    pub since: usize,
}

impl Pending {
    pub fn new(arenas: usize, several: AxisSet) -> Pending {
        Pending { arenas: vec![Vec::new(); arenas], several }
    }

    /// Records a barrier of devices that differ along `group` only, which each device posts after its first `since` steps.
    pub fn synced(&mut self, group: AxisSet, since: usize) {
        let several = self.several;
        for arena in &mut self.arenas {
            arena.retain_mut(|noted| {
                if noted.at <= since {
                    noted.synced = noted.synced.union(group);
                }
                !several.is_subset_of(noted.synced)
            });
        }
    }

    /// The barrier that a step with these accesses needs.
    pub fn conflicts(&self, step: &[MemoryAccess]) -> NeededBarrier {
        let mut needed = NeededBarrier { group: AxisSet::EMPTY, since: 0 };
        for access in step {
            debug_assert!(access.bytes.start <= access.bytes.end, "an access ends before it begins");
            for noted in &self.arenas[access.arena] {
                let touches = noted.bytes.start < access.bytes.end && access.bytes.start < noted.bytes.end;
                let group = noted.reach.union(access.reach).minus(noted.synced);
                if touches && (noted.written || access.written) && !group.is_empty() {
                    needed.group = needed.group.union(group);
                    needed.since = needed.since.max(noted.at);
                }
            }
        }
        debug_assert!(needed.group.is_subset_of(self.several), "a barrier along an axis of one device");
        needed
    }

    /// Records the accesses of a step, which is number `at` of its list, counted from 1.
    pub fn add(&mut self, step: &[MemoryAccess], at: usize) {
        for access in step {
            let MemoryAccess { arena, ref bytes, written, reach } = *access;
            let list = &mut self.arenas[arena];
            debug_assert!(list.iter().all(|noted| noted.at <= at), "steps are noted in order");
            // A step that has to wait for an overwritten access also has to wait for this one.
            list.retain(|noted| {
                let covered = bytes.start <= noted.bytes.start && noted.bytes.end <= bytes.end;
                !(covered && (written || !noted.written && noted.reach.is_subset_of(reach)))
            });
            // No other device writes private memory of a device.
            if written && !self.several.is_empty() || !reach.is_empty() {
                list.push(Noted { bytes: bytes.clone(), written, reach, synced: AxisSet::EMPTY, at });
            }
        }
    }

    /// Records that a step has been inserted after the first `at` steps.
    pub fn inserted(&mut self, at: usize) {
        self.arenas.iter_mut().flatten().filter(|noted| noted.at > at).for_each(|noted| noted.at += 1);
    }

    /// The same accesses at the beginning of another list of steps.
    pub fn elsewhere(&self) -> Pending {
        let mut other = self.clone();
        other.arenas.iter_mut().flatten().for_each(|noted| noted.at = 0);
        other
    }

    /// Adds the accesses that are pending on another path to the same step.
    pub fn join(&mut self, other: &Pending) {
        debug_assert_eq!(self.arenas.len(), other.arenas.len(), "both paths are paths of one program");
        for (list, others) in self.arenas.iter_mut().zip(&other.arenas) {
            for noted in others {
                let same = |known: &&mut Noted| {
                    known.bytes == noted.bytes && known.written == noted.written && known.reach == noted.reach
                };
                match list.iter_mut().find(same) {
                    Some(known) => {
                        known.synced = known.synced.intersect(noted.synced);
                        known.at = known.at.max(noted.at);
                    }
                    None => list.push(noted.clone()),
                }
            }
        }
    }

    /// As [`Pending::join`], for the accesses that are pending after a trip. False if the next trip begins as this one did, so that
    /// its steps are the same: a nest of loops would double the work at every level if every body were emitted twice.
    pub fn grows_by(&mut self, trip: &Pending) -> bool {
        let before = self.elsewhere();
        self.join(trip);
        self.elsewhere() != before
    }

    /// The axes of the barrier that is needed before the devices along `varying` may diverge.
    pub fn before_divergence(&self, varying: AxisSet) -> AxisSet {
        let open = self.arenas.iter().flatten().map(|noted| noted.reach.minus(noted.synced));
        open.filter(|open| !open.intersect(varying).is_empty()).fold(AxisSet::EMPTY, AxisSet::union)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: AxisSet = AxisSet(0b01);
    const Y: AxisSet = AxisSet(0b10);
    const OWN: AxisSet = AxisSet::EMPTY;

    fn access(bytes: Range<u64>, written: bool, reach: AxisSet) -> MemoryAccess {
        MemoryAccess { arena: 0, bytes, written, reach }
    }

    fn needed(pending: &Pending, bytes: Range<u64>, written: bool, reach: AxisSet) -> AxisSet {
        pending.conflicts(&[access(bytes, written, reach)]).group
    }

    #[test]
    fn a_write_of_another_device_is_read_after_a_barrier() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, true, Y)], 1);
        assert_eq!(needed(&pending, 0..8, false, Y), Y);
        assert_eq!(needed(&pending, 64..72, false, Y), OWN);
        pending.synced(X, 1);
        assert_eq!(needed(&pending, 0..8, false, Y), Y);
        pending.synced(Y, 1);
        assert_eq!(needed(&pending, 0..8, false, Y), OWN);
    }

    #[test]
    fn a_read_of_another_device_is_overwritten_after_a_barrier() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, false, Y)], 1);
        assert_eq!(needed(&pending, 0..64, false, Y), OWN);
        assert_eq!(needed(&pending, 0..64, true, Y), Y);
        // A second read after the barrier needs another one before the next write.
        pending.synced(Y, 1);
        assert_eq!(needed(&pending, 0..64, true, Y), OWN);
        pending.add(&[access(0..64, false, Y)], 2);
        assert_eq!(needed(&pending, 0..64, true, OWN), Y);
    }

    #[test]
    fn collectives_reach_memory_of_other_devices() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, true, OWN)], 1);
        assert_eq!(needed(&pending, 0..64, true, OWN), OWN);
        assert_eq!(needed(&pending, 0..64, false, X), X);
        // Barriers along both axes, one after the other, order all devices.
        pending.synced(X, 1);
        assert_eq!(needed(&pending, 0..64, false, X.union(Y)), Y);
        pending.add(&[access(0..64, false, X)], 2);
        assert_eq!(needed(&pending, 32..40, true, OWN), X);
    }

    #[test]
    fn a_barrier_orders_the_accesses_before_its_post() {
        let mut pending = Pending::new(1, X);
        pending.add(&[access(0..64, true, OWN)], 1);
        pending.add(&[access(64..128, true, OWN)], 3);
        let first = pending.conflicts(&[access(0..64, false, X)]);
        assert_eq!(first, NeededBarrier { group: X, since: 1 });
        pending.synced(X, first.since);
        pending.inserted(1);
        assert_eq!(needed(&pending, 0..64, false, X), OWN);
        assert_eq!(pending.conflicts(&[access(64..128, false, X)]), NeededBarrier { group: X, since: 4 });
    }

    #[test]
    fn an_access_is_pending_if_it_is_on_one_of_two_paths() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, true, X)], 1);
        let mut other = pending.elsewhere();
        pending.synced(X, 1);
        assert_eq!(needed(&pending, 0..64, false, X), OWN);
        other.add(&[access(64..72, false, Y)], 1);
        pending.join(&other);
        assert_eq!(needed(&pending, 0..64, false, X), X);
        assert_eq!(needed(&pending, 64..72, true, OWN), Y);
        assert_eq!(pending.before_divergence(Y), Y);
    }
}
