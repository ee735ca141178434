//! Where devices must wait for each other.
//!
//! Devices do not keep in step. Between two meetings of a group, what one device does to memory can come before or after anything
//! another one does. So for each arena we note which of its bytes have been read and written, and how far that *reaches*: the
//! axes along which other devices see the same bytes (they share the arena) or take them (a collective reads the blocks of a
//! group). Two accesses of which one writes are ordered if the devices along the reach of either have met in between.
//!
//! Meetings add up: who has met along X and then along Y has met, through others, everybody along X and Y. So each access keeps
//! the axes along which devices have met since, provided that one meeting is over before the next is posted.
//!
//! A meeting has two halves. A device can *post* that it is there as soon as it has done what the others wait for, and *await*
//! them where it needs them, with work in between that nobody waits for.
//!
//! Two accesses of one step never collide: devices divide what a step writes, and a step that writes in place of an operand reads
//! only the elements that the same device writes.

use spmdc_ir::layout::types::AxisSet;
use std::ops::Range;

/// What has happened that somebody may have to wait for, per arena.
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
    /// The axes along which devices have met since.
    met: AxisSet,
    /// How many steps of the present list had been emitted when it was done.
    at: usize,
}

/// Bytes of an arena that a step reads or writes.
#[derive(Clone, Debug)]
pub struct Access {
    pub arena: usize,
    pub bytes: Range<u64>,
    pub written: bool,
    /// The axes along which other devices' accesses to these bytes are meant, or theirs to the same bytes of this one.
    pub reach: AxisSet,
}

/// A meeting that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    pub group: AxisSet,
    /// How many steps there were when the last of what it is for was done.
    pub since: usize,
}

impl Pending {
    pub fn new(arenas: usize, several: AxisSet) -> Pending {
        Pending { arenas: vec![Vec::new(); arenas], several }
    }

    /// The devices of each group, who differ along `group` only, have met, each after its first `since` steps.
    pub fn met(&mut self, group: AxisSet, since: usize) {
        let several = self.several;
        for arena in &mut self.arenas {
            arena.retain_mut(|noted| {
                if noted.at <= since {
                    noted.met = noted.met.union(group);
                }
                !several.is_subset_of(noted.met)
            });
        }
    }

    /// The meeting without which a step must not make these accesses.
    pub fn conflicts(&self, step: &[Access]) -> Needed {
        let mut needed = Needed { group: AxisSet::EMPTY, since: 0 };
        for access in step {
            debug_assert!(access.bytes.start <= access.bytes.end, "an access ends before it begins");
            for noted in &self.arenas[access.arena] {
                let touches = noted.bytes.start < access.bytes.end && access.bytes.start < noted.bytes.end;
                let group = noted.reach.union(access.reach).minus(noted.met);
                if touches && (noted.written || access.written) && !group.is_empty() {
                    needed.group = needed.group.union(group);
                    needed.since = needed.since.max(noted.at);
                }
            }
        }
        debug_assert!(needed.group.is_subset_of(self.several), "devices meet along an axis of one device");
        needed
    }

    /// A step with these accesses has been done; now there are `at` steps.
    pub fn add(&mut self, step: &[Access], at: usize) {
        for access in step {
            let Access { arena, ref bytes, written, reach } = *access;
            let list = &mut self.arenas[arena];
            debug_assert!(list.iter().all(|noted| noted.at <= at), "steps are noted in order");
            // Whoever has to wait for what is overwritten has to wait for this.
            list.retain(|noted| {
                let covered = bytes.start <= noted.bytes.start && noted.bytes.end <= bytes.end;
                !(covered && (written || !noted.written && noted.reach.is_subset_of(reach)))
            });
            // Nobody else writes what a device has for itself.
            if written && !self.several.is_empty() || !reach.is_empty() {
                list.push(Noted { bytes: bytes.clone(), written, reach, met: AxisSet::EMPTY, at });
            }
        }
    }

    /// A step has been put in front of all but the first `at`.
    pub fn inserted(&mut self, at: usize) {
        self.arenas.iter_mut().flatten().filter(|noted| noted.at > at).for_each(|noted| noted.at += 1);
    }

    /// The same at the beginning of another list of steps.
    pub fn elsewhere(&self) -> Pending {
        let mut other = self.clone();
        other.arenas.iter_mut().flatten().for_each(|noted| noted.at = 0);
        other
    }

    /// What may have happened on either of two ways to a step.
    pub fn join(&mut self, other: &Pending) {
        debug_assert_eq!(self.arenas.len(), other.arenas.len(), "both ways are ways of one program");
        for (list, others) in self.arenas.iter_mut().zip(&other.arenas) {
            for noted in others {
                let same = |known: &&mut Noted| {
                    known.bytes == noted.bytes && known.written == noted.written && known.reach == noted.reach
                };
                match list.iter_mut().find(same) {
                    Some(known) => {
                        known.met = known.met.intersect(noted.met);
                        known.at = known.at.max(noted.at);
                    }
                    None => list.push(noted.clone()),
                }
            }
        }
    }

    /// As [`Pending::join`], for what a trip leaves; false if the next trip then begins as this one did, so that it does the same. Loops
    /// in loops would double the work at every level if each was looked at twice always.
    pub fn grows_by(&mut self, trip: &Pending) -> bool {
        let before = self.elsewhere();
        self.join(trip);
        self.elsewhere() != before
    }

    /// The axes along which devices have to meet before the devices along `varying` may go different ways.
    pub fn before_parting(&self, varying: AxisSet) -> AxisSet {
        let open = self.arenas.iter().flatten().map(|noted| noted.reach.minus(noted.met));
        open.filter(|open| !open.intersect(varying).is_empty()).fold(AxisSet::EMPTY, AxisSet::union)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: AxisSet = AxisSet(0b01);
    const Y: AxisSet = AxisSet(0b10);
    const OWN: AxisSet = AxisSet::EMPTY;

    fn access(bytes: Range<u64>, written: bool, reach: AxisSet) -> Access {
        Access { arena: 0, bytes, written, reach }
    }

    fn needed(pending: &Pending, bytes: Range<u64>, written: bool, reach: AxisSet) -> AxisSet {
        pending.conflicts(&[access(bytes, written, reach)]).group
    }

    #[test]
    fn what_others_wrote_is_read_after_a_meeting() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, true, Y)], 1);
        assert_eq!(needed(&pending, 0..8, false, Y), Y);
        assert_eq!(needed(&pending, 64..72, false, Y), OWN);
        pending.met(X, 1);
        assert_eq!(needed(&pending, 0..8, false, Y), Y);
        pending.met(Y, 1);
        assert_eq!(needed(&pending, 0..8, false, Y), OWN);
    }

    #[test]
    fn what_others_read_is_overwritten_after_a_meeting() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, false, Y)], 1);
        assert_eq!(needed(&pending, 0..64, false, Y), OWN);
        assert_eq!(needed(&pending, 0..64, true, Y), Y);
        // Among devices that meet, reading again changes nothing.
        pending.met(Y, 1);
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
        // Who has met along both axes, one after the other, has met everybody.
        pending.met(X, 1);
        assert_eq!(needed(&pending, 0..64, false, X.union(Y)), Y);
        pending.add(&[access(0..64, false, X)], 2);
        assert_eq!(needed(&pending, 32..40, true, OWN), X);
    }

    #[test]
    fn a_meeting_is_for_what_was_done_before_it_was_posted() {
        let mut pending = Pending::new(1, X);
        pending.add(&[access(0..64, true, OWN)], 1);
        pending.add(&[access(64..128, true, OWN)], 3);
        let first = pending.conflicts(&[access(0..64, false, X)]);
        assert_eq!(first, Needed { group: X, since: 1 });
        pending.met(X, first.since);
        pending.inserted(1);
        assert_eq!(needed(&pending, 0..64, false, X), OWN);
        assert_eq!(pending.conflicts(&[access(64..128, false, X)]), Needed { group: X, since: 4 });
    }

    #[test]
    fn what_one_of_two_ways_leaves_open_is_open() {
        let mut pending = Pending::new(1, X.union(Y));
        pending.add(&[access(0..64, true, X)], 1);
        let mut other = pending.elsewhere();
        pending.met(X, 1);
        assert_eq!(needed(&pending, 0..64, false, X), OWN);
        other.add(&[access(64..72, false, Y)], 1);
        pending.join(&other);
        assert_eq!(needed(&pending, 0..64, false, X), X);
        assert_eq!(needed(&pending, 64..72, true, OWN), Y);
        assert_eq!(pending.before_parting(Y), Y);
    }
}
