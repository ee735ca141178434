//! Who sends what to whom in a collective.
//!
//! The messages are those of a schedule that meets the lower bound of each device's bytes. In the runtime all devices of a process read the
//! blocks of the others directly, in the same parts.

use super::{BlockRange, block_of_each, is_empty};
use serde::Serialize;
use spmdc_abi::{AxisSet, FetchDim};
use spmdc_ir::rules::group::{GroupCollective, GroupMessage};
use spmdc_ir::rules::{FetchedBoxes, SentMessages};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::block_range;
use spmdc_layout::types::Type;
use std::collections::BTreeMap;
use std::ops::Range;

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
    /// In each dimension the first index and the end, and the distance between indices if it is not 1.
    range: Vec<Vec<usize>>,
}

impl SentPart {
    /// All elements of a part.
    fn of_range((from, to): (usize, usize), range: &[[usize; 2]], size: u64) -> SentPart {
        let elements: u64 = range.iter().map(|[start, end]| (end - start) as u64).product();
        SentPart { from, to, bytes: elements * size, range: range.iter().map(|ends| ends.to_vec()).collect() }
    }
}

/// The messages of a statement; none if there are too many, or if they depend on values.
pub fn phases(messages: &SentMessages<'_>, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Vec<MessagePhase> {
    let phases = match messages {
        SentMessages::Layouts => {
            // Combined collectives have several arrays, whose messages go the same ways.
            let mut all = Vec::new();
            args.iter().zip(results).for_each(|(from, to)| join(&mut all, relaid(from, to, mesh)));
            all
        }
        SentMessages::Boxes(fetches) => {
            let parts = |device: usize| {
                let parts = |fetch: &FetchedBoxes| {
                    let operand = args[fetch.operand];
                    boxes(&fetch.dims, operand, device, mesh)
                };
                fetches.iter().flat_map(parts).collect()
            };
            received(&parts, mesh)
        }
        SentMessages::Group(group) => args.first().map_or(Vec::new(), |operand| grouped(*group, operand, mesh)),
        SentMessages::OfValues => Vec::new(),
    };
    let moves: usize = phases.iter().map(|phase| phase.moves.len()).sum();
    if moves > MOST_MOVES { Vec::new() } else { phases }
}

/// Adds the messages of another array to each phase.
fn join(all: &mut Vec<MessagePhase>, more: Vec<MessagePhase>) {
    for (at, phase) in more.into_iter().enumerate() {
        match all.get_mut(at) {
            Some(earlier) => earlier.moves.extend(phase.moves),
            None => all.push(phase),
        }
    }
}

/// The phases in which every device receives its parts.
fn received(parts: &dyn Fn(usize) -> Vec<SentPart>, mesh: &Mesh) -> Vec<MessagePhase> {
    let count = mesh.device_count();
    let mut phases: Vec<MessagePhase> = Vec::new();
    for to in 0..count {
        let mut moves = parts(to);
        // Neighbours first, so that in each phase all devices have different partners where that is possible.
        moves.sort_by_key(|sent| (sent.from + count - to) % count);
        for (at, sent) in moves.into_iter().enumerate() {
            if at == phases.len() {
                let title = format!("Devices receive part {} of the elements that others send them.", at + 1);
                phases.push(MessagePhase { title, moves: Vec::new() });
            }
            phases[at].moves.push(sent);
        }
    }
    phases
}

/// The messages of a change of layout.
fn relaid(from: &Type, to: &Type, mesh: &Mesh) -> Vec<MessagePhase> {
    debug_assert_eq!(from.array, to.array, "a change of layout keeps the array");
    let (before, after) = (block_of_each(from, mesh), block_of_each(to, mesh));
    let summed = from.sharding.unreduced.minus(to.sharding.unreduced);
    let size = from.dtype().size() as u64;
    if !summed.is_empty() && before == after {
        return reduced(&before, size, &|device| mates(device, summed, mesh));
    }
    exchanged((&before, &after), (summed, from.varying.union(to.varying)), size, mesh)
}

/// The devices that differ from one only along these axes, itself too.
fn mates(device: usize, axes: AxisSet, mesh: &Mesh) -> Vec<usize> {
    let own = mesh.coordinates(device);
    let is_mate = |other: &usize| {
        let other = mesh.coordinates(*other);
        (0..own.len()).all(|axis| axes.contains(axis) || own[axis] == other[axis])
    };
    (0..mesh.device_count()).filter(is_mate).collect()
}

/// The elements in both parts; None if there are none.
fn overlap(one: &[[usize; 2]], other: &[[usize; 2]]) -> Option<BlockRange> {
    let both: BlockRange =
        one.iter().zip(other).map(|(one, other)| [one[0].max(other[0]), one[1].min(other[1])]).collect();
    (!is_empty(&both)).then_some(both)
}

/// The position of a device along the axes of a sum, and the indices of its block.
type HeldPart<'b> = (Vec<usize>, &'b [[usize; 2]]);

/// Every device gets the elements of its new block that its old one lacks, each from the device that is most like it. Of parts of a sum over
/// some axes it gets those of all devices along them. In a `manual` function, devices along the axes `varying` have different arrays.
fn exchanged(
    (before, after): (&[BlockRange], &[BlockRange]),
    (summed, varying): (AxisSet, AxisSet),
    size: u64,
    mesh: &Mesh,
) -> Vec<MessagePhase> {
    let along = |axes: AxisSet, device: usize| -> Vec<usize> {
        let coordinates = mesh.coordinates(device);
        axes.iter().map(|axis| coordinates[axis]).collect()
    };
    // For each array the devices that have a part of it.
    let mut holders: BTreeMap<Vec<usize>, BTreeMap<HeldPart<'_>, Vec<usize>>> = BTreeMap::new();
    for (device, block) in before.iter().enumerate().filter(|(_, block)| !is_empty(block)) {
        let of_array = holders.entry(along(varying, device)).or_default();
        of_array.entry((along(summed, device), block)).or_default().push(device);
    }
    let count = before.len();
    let parts = |to: usize| {
        let own = mesh.coordinates(to);
        let differing = |device: &usize| {
            let other = mesh.coordinates(*device);
            (own.iter().zip(&other).filter(|(own, other)| own != other).count(), (device + count - to) % count)
        };
        let held = (along(summed, to), before[to].as_slice());
        let of_array = holders.get(&along(varying, to)).into_iter().flatten();
        let missing = of_array.filter(|(other, _)| **other != held);
        let moves = missing.filter_map(|((_, block), devices)| {
            let range = overlap(block, &after[to])?;
            let from = *devices.iter().min_by_key(|device| differing(device))?;
            Some(SentPart::of_range((from, to), &range, size))
        });
        moves.collect()
    };
    received(&parts, mesh)
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
                let sent = SentPart::of_range((mates[other], to), &range, size);
                add(&mut adding, distance - 1, "Each device adds a part of the sums of its partner in round", sent);
            }
            if let Some(range) = share(other) {
                let sent = SentPart::of_range((mates[other], to), &range, size);
                add(&mut sharing, distance - 1, "Each device receives finished sums of its partner in round", sent);
            }
        }
    }
    adding.into_iter().chain(sharing).collect()
}

/// The boxes of an operand that a device fetches from others.
fn boxes(dims: &[FetchDim], operand: &Type, device: usize, mesh: &Mesh) -> Vec<SentPart> {
    let own = mesh.coordinates(device);
    let size = operand.dtype().size() as u64;
    let mut boxes = vec![(own.clone(), size, Vec::<Vec<usize>>::new())];
    for (at, dim) in dims.iter().enumerate() {
        let blocks: Vec<Range<usize>> = operand.sharding.dims[at].blocks(operand.shape()[at], mesh);
        let runs = dim.runs[mesh.position(&dim.axes, &own)].iter().filter(|run| run.len > 0);
        let runs: Vec<_> = runs
            .map(|run| {
                let (step, first) = (run.step.unsigned_abs() as usize, blocks[run.owner as usize].start + run.from);
                let way = (run.len - 1) * step;
                let first = if run.step < 0 { first - way } else { first };
                let mut range = vec![first, first + way + 1];
                if run.len > 1 && step > 1 {
                    range.push(step);
                }
                (run, range)
            })
            .collect();
        let longer = boxes.iter().flat_map(|&(ref owner, bytes, ref known)| {
            runs.iter().map(move |(run, range)| {
                let (mut owner, mut known) = (owner.clone(), known.clone());
                mesh.set_position(&dim.owners, run.owner as usize, &mut owner);
                known.push(range.clone());
                (owner, bytes * run.len as u64, known)
            })
        });
        boxes = longer.collect();
    }
    let axes: Vec<u8> = (0..mesh.axes.len() as u8).collect();
    let others = boxes.into_iter().filter(|(owner, _, _)| *owner != own);
    others
        .map(|(owner, bytes, range)| SentPart { from: mesh.position(&axes, &owner), to: device, bytes, range })
        .collect()
}

/// The messages of a collective of a `manual` function. Indices are those of the sender's value.
fn grouped(group: &dyn GroupCollective, operand: &Type, mesh: &Mesh) -> Vec<MessagePhase> {
    let axes = group.axes();
    let along: AxisSet = axes.iter().map(|&axis| usize::from(axis)).collect();
    let (blocks, size) = (block_of_each(operand, mesh), operand.dtype().size() as u64);
    let position = |device: usize| mesh.position(axes, &mesh.coordinates(device));
    let members = mesh.size_of(axes);
    if members > 1 && group.message(0, 1) == GroupMessage::Summands {
        return reduced(&blocks, size, &|device| mates(device, along, mesh));
    }
    let parts = |to: usize| {
        let others = mates(to, along, mesh).into_iter().filter(|&from| from != to);
        let part = |from: usize| {
            let mut range = blocks[from].clone();
            match group.message(position(from), position(to)) {
                GroupMessage::Whole => {}
                GroupMessage::Share(dim) => {
                    let [start, end] = range[dim];
                    let share = block_range(end - start, members, position(to));
                    range[dim] = [start + share.start, start + share.end];
                }
                GroupMessage::Summands | GroupMessage::Nothing => return None,
            }
            (!is_empty(&range)).then(|| SentPart::of_range((from, to), &range, size))
        };
        others.filter_map(part).collect()
    };
    received(&parts, mesh)
}
