//! Who sends what to whom in a collective: its messages, as they follow from the layouts of its operand and its result.
//!
//! The messages are those of a schedule that meets the lower bound of each device's bytes. In the runtime all devices of a process read the
//! blocks of the others directly, in the same parts.

use super::{BlockRange, block_of_each, is_empty};
use serde::Serialize;
use spmdc_abi::{AxisSet, CollectiveKind};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::block_range;
use spmdc_layout::types::Type;
use std::collections::BTreeMap;

/// Maximum number of messages of a collective that are listed.
const MOST_MOVES: usize = 20_000;

/// Messages that devices send at the same time.
#[derive(Debug, Serialize)]
pub struct MessagePhase {
    title: String,
    moves: Vec<SentPart>,
}

/// A part of an array that one device sends to another; devices are positions.
#[derive(Debug, Serialize)]
struct SentPart {
    from: usize,
    to: usize,
    bytes: u64,
    range: BlockRange,
}

/// The messages of a collective of arrays, each from one layout to another; none if an array is another one afterwards.
pub fn phases(kind: CollectiveKind, arrays: &[(&Type, &Type)], mesh: &Mesh) -> Vec<MessagePhase> {
    let mut all: Vec<MessagePhase> = Vec::new();
    for (from, to) in arrays {
        let own = phases_of(kind, from, to, mesh);
        if own.is_empty() {
            return Vec::new();
        }
        for (at, phase) in own.into_iter().enumerate() {
            match all.get_mut(at) {
                Some(earlier) => earlier.moves.extend(phase.moves),
                None => all.push(phase),
            }
        }
    }
    all
}

fn phases_of(kind: CollectiveKind, from: &Type, to: &Type, mesh: &Mesh) -> Vec<MessagePhase> {
    if from.array != to.array || !from.varying.is_empty() || !to.varying.is_empty() {
        return Vec::new();
    }
    let (before, after) = (block_of_each(from, mesh), block_of_each(to, mesh));
    let summed = from.sharding.unreduced.minus(to.sharding.unreduced);
    let size = from.dtype().size() as u64;
    let phases = match kind {
        CollectiveKind::AllReduce if before == after => {
            // The devices of a group have parts of the same sums.
            let group = |device: usize| -> Vec<usize> {
                let own = mesh.coordinates(device);
                let is_mate = |other: &usize| {
                    let other = mesh.coordinates(*other);
                    (0..own.len()).all(|axis| summed.contains(axis) || own[axis] == other[axis])
                };
                (0..mesh.device_count()).filter(is_mate).collect()
            };
            reduced(&before, size, &group)
        }
        CollectiveKind::AllReduce
        | CollectiveKind::ReduceScatter
        | CollectiveKind::AllGather
        | CollectiveKind::AllToAll
        | CollectiveKind::CollectivePermute
        | CollectiveKind::Transfer => exchanged((&before, &after), summed, size, mesh),
    };
    let moves: usize = phases.iter().map(|phase| phase.moves.len()).sum();
    if moves > MOST_MOVES { Vec::new() } else { phases }
}

/// The elements in both parts; None if there are none.
fn overlap(one: &[[usize; 2]], other: &[[usize; 2]]) -> Option<BlockRange> {
    let both: BlockRange =
        one.iter().zip(other).map(|(one, other)| [one[0].max(other[0]), one[1].min(other[1])]).collect();
    (!is_empty(&both)).then_some(both)
}

fn elements(range: &[[usize; 2]]) -> u64 {
    range.iter().map(|[start, end]| (end - start) as u64).product()
}

/// The position of a device along the axes of a sum, and the indices of its block.
type HeldPart<'b> = (Vec<usize>, &'b [[usize; 2]]);

/// Every device gets the elements of its new block that its old one lacks, each from the device that is most like it. Of parts of a sum over
/// some axes it gets those of all devices along them.
fn exchanged(
    (before, after): (&[BlockRange], &[BlockRange]),
    summed: AxisSet,
    size: u64,
    mesh: &Mesh,
) -> Vec<MessagePhase> {
    // The part of the sum that a device has.
    let part = |device: usize| -> Vec<usize> {
        let coordinates = mesh.coordinates(device);
        summed.iter().map(|axis| coordinates[axis]).collect()
    };
    let mut holders: BTreeMap<HeldPart<'_>, Vec<usize>> = BTreeMap::new();
    for (device, block) in before.iter().enumerate().filter(|(_, block)| !is_empty(block)) {
        holders.entry((part(device), block)).or_default().push(device);
    }
    let count = before.len();
    let mut phases: Vec<MessagePhase> = Vec::new();
    for (to, wanted) in after.iter().enumerate() {
        let own = mesh.coordinates(to);
        let differing = |device: &usize| {
            let other = mesh.coordinates(*device);
            (own.iter().zip(&other).filter(|(own, other)| own != other).count(), (device + count - to) % count)
        };
        let held = (part(to), before[to].as_slice());
        let missing = holders.iter().filter(|(other, _)| **other != held);
        let mut moves: Vec<SentPart> = missing
            .filter_map(|((_, block), devices)| {
                let range = overlap(block, wanted)?;
                let from = *devices.iter().min_by_key(|device| differing(device))?;
                Some(SentPart { from, to, bytes: elements(&range) * size, range })
            })
            .collect();
        // Neighbours first, so that in each phase all devices have different partners where that is possible.
        moves.sort_by_key(|sent| (sent.from + count - to) % count);
        for (at, sent) in moves.into_iter().enumerate() {
            if at == phases.len() {
                let title = format!("Each device receives its part {} from another device.", at + 1);
                phases.push(MessagePhase { title, moves: Vec::new() });
            }
            phases[at].moves.push(sent);
        }
    }
    phases
}

/// Every device of a group adds up a share of the sums, and distributes it to all others.
fn reduced(before: &[BlockRange], size: u64, group: &dyn Fn(usize) -> Vec<usize>) -> Vec<MessagePhase> {
    let (mut adding, mut sharing) = (Vec::<MessagePhase>::new(), Vec::<MessagePhase>::new());
    let add = |phases: &mut Vec<MessagePhase>, at: usize, title: &str, sent: SentPart| {
        while phases.len() <= at {
            phases.push(MessagePhase { title: format!("{title} {}.", phases.len() + 1), moves: Vec::new() });
        }
        phases[at].moves.push(sent);
    };
    for (to, block) in before.iter().enumerate() {
        let mates = group(to);
        let rank = mates.iter().position(|&mate| mate == to).unwrap_or(0);
        // Shares are cut along the longest dimension. A number has none: the first device adds all of them.
        let share = |rank: usize| -> Option<BlockRange> {
            let mut share = block.clone();
            let Some(longest) = (0..share.len()).max_by_key(|&dim| share[dim][1] - share[dim][0]) else {
                return (rank == 0).then_some(share);
            };
            let [start, end] = share[longest];
            let part = block_range(end - start, mates.len(), rank);
            share[longest] = [start + part.start, start + part.end];
            (!is_empty(&share)).then_some(share)
        };
        for distance in 1..mates.len() {
            let other = (rank + distance) % mates.len();
            if let Some(range) = share(rank) {
                let sent = SentPart { from: mates[other], to, bytes: elements(&range) * size, range };
                add(&mut adding, distance - 1, "Each device adds a part of the sums of its partner in round", sent);
            }
            if let Some(range) = share(other) {
                let sent = SentPart { from: mates[other], to, bytes: elements(&range) * size, range };
                add(&mut sharing, distance - 1, "Each device receives finished sums of its partner in round", sent);
            }
        }
    }
    adding.into_iter().chain(sharing).collect()
}
