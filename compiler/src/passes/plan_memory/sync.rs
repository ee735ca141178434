//! Where devices that share memory must wait for each other.
//!
//! Devices do not keep in step. Between two meetings of a group, what one device does to memory that it shares with another can
//! come before or after anything the other one does. So for each arena that devices share we note which of its bytes have been
//! read and written since they last met; a step that reads bytes which have been written, or writes bytes which have been read
//! or written, needs a meeting first.
//!
//! Two accesses of one step never collide: devices divide what a step writes, and a step that writes in place of an operand reads
//! only the elements that the same device writes.

use crate::ir::types::AxisSet;
use std::ops::Range;

/// What has happened since the last meeting, per arena.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    arenas: Vec<Accesses>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Accesses {
    reads: Vec<Range<u64>>,
    writes: Vec<Range<u64>>,
}

/// Bytes of an arena that a step reads or writes.
#[derive(Clone, Debug)]
pub struct Access {
    pub arena: usize,
    pub bytes: Range<u64>,
    pub written: bool,
}

impl Pending {
    pub fn new(arenas: usize) -> Pending {
        Pending { arenas: vec![Accesses::default(); arenas] }
    }

    /// The devices of each group, who differ along `group` only, have met. `shared` says for each arena along which axes devices
    /// share it.
    pub fn met(&mut self, group: AxisSet, shared: &[AxisSet]) {
        for (accesses, shared) in self.arenas.iter_mut().zip(shared) {
            if shared.is_subset_of(group) {
                *accesses = Accesses::default();
            }
        }
    }

    /// The axes along which devices have to meet before a step with these accesses.
    pub fn conflicts(&self, step: &[Access], shared: &[AxisSet]) -> AxisSet {
        let mut group = AxisSet::EMPTY;
        for access in step {
            let before = &self.arenas[access.arena];
            let touches = |others: &[Range<u64>]| {
                others.iter().any(|other| other.start < access.bytes.end && access.bytes.start < other.end)
            };
            if touches(&before.writes) || access.written && touches(&before.reads) {
                group = group.union(shared[access.arena]);
            }
        }
        group
    }

    /// A step with these accesses has been done.
    pub fn add(&mut self, step: &[Access], shared: &[AxisSet]) {
        for access in step.iter().filter(|access| !shared[access.arena].is_empty()) {
            let Accesses { reads, writes } = &mut self.arenas[access.arena];
            let list = if access.written { writes } else { reads };
            if !list.contains(&access.bytes) {
                list.push(access.bytes.clone());
            }
        }
    }

    /// What may have happened on either of two ways to a step.
    pub fn join(&mut self, other: &Pending) {
        for (accesses, other) in self.arenas.iter_mut().zip(&other.arenas) {
            for (list, others) in [(&mut accesses.reads, &other.reads), (&mut accesses.writes, &other.writes)] {
                for bytes in others {
                    if !list.contains(bytes) {
                        list.push(bytes.clone());
                    }
                }
            }
        }
    }

    /// The axes along which devices have to meet before the devices along `varying` may go different ways.
    pub fn before_parting(&self, varying: AxisSet, shared: &[AxisSet]) -> AxisSet {
        let mut group = AxisSet::EMPTY;
        for (accesses, &shared) in self.arenas.iter().zip(shared) {
            let any = !accesses.reads.is_empty() || !accesses.writes.is_empty();
            if any && !shared.intersect(varying).is_empty() {
                group = group.union(shared);
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arena 0 is shared along axis 1, arena 1 by nobody.
    const SHARED: [AxisSet; 2] = [AxisSet(0b10), AxisSet(0)];

    fn access(arena: usize, bytes: Range<u64>, written: bool) -> Access {
        Access { arena, bytes, written }
    }

    #[test]
    fn what_others_wrote_is_read_after_a_meeting() {
        let mut pending = Pending::new(2);
        pending.add(&[access(0, 0..64, true), access(1, 0..64, true)], &SHARED);
        let conflict = |pending: &Pending, step| pending.conflicts(&[step], &SHARED);
        assert_eq!(conflict(&pending, access(0, 0..8, false)), AxisSet::of(1));
        assert_eq!(conflict(&pending, access(0, 64..72, false)), AxisSet::EMPTY);
        assert_eq!(conflict(&pending, access(1, 0..8, false)), AxisSet::EMPTY);
        pending.met(AxisSet::of(0), &SHARED);
        assert_eq!(conflict(&pending, access(0, 0..8, false)), AxisSet::of(1));
        pending.met(AxisSet::all(2), &SHARED);
        assert_eq!(conflict(&pending, access(0, 0..8, false)), AxisSet::EMPTY);
    }

    #[test]
    fn what_others_read_is_overwritten_after_a_meeting() {
        let mut pending = Pending::new(2);
        pending.add(&[access(0, 0..64, false)], &SHARED);
        assert_eq!(pending.conflicts(&[access(0, 0..64, false)], &SHARED), AxisSet::EMPTY);
        assert_eq!(pending.conflicts(&[access(0, 0..64, true)], &SHARED), AxisSet::of(1));
    }
}
