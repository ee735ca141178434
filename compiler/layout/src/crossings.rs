//! The bytes that cross between the hosts of a mesh.
//!
//! ```text
//! mesh (X = 2, Y = 4), 2 hosts: devices 0 to 3 | 4 to 7
//!     f32[8@Y] -> f32[8]       each host has all blocks: no byte crosses
//!     f32[8@X] -> f32[8]       each host lacks half of the array: 16 bytes cross, whatever the number of its devices
//! ```
//!
//! A host receives every element that it lacks once, for all of its devices. Sums are combined on each host first, so it sends one partial
//! value for all of its devices. These are the messages of the runtime, as long as the devices of a host are a part of the tree in which
//! values are combined (`runtime/src/collectives/reduce.rs`); otherwise the figures are estimates.

use crate::cost::{self};
use crate::hosts::Hosts;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, block_range};
use spmdc_abi::{AxisSet, CollectiveKind};
use std::collections::BTreeSet;
use std::ops::Range;

/// The hosts of a mesh, if devices that differ along some of these axes are on different ones.
fn crossed(mesh: &Mesh, axes: AxisSet) -> Option<&Hosts> {
    mesh.hosts.as_ref().filter(|hosts| !hosts.axes.intersect(axes).is_empty())
}

/// The blocks of a layout that these devices have, each once: the range of each dimension.
fn blocks(shape: &[usize], dims: &[DimSharding], places: &[usize], mesh: &Mesh) -> Vec<Vec<Range<usize>>> {
    let positions = |&place: &usize| {
        let at = mesh.coordinates(place);
        dims.iter().map(|dim| mesh.position(&dim.axes, &at)).collect::<Vec<usize>>()
    };
    let different: BTreeSet<Vec<usize>> = places.iter().map(positions).collect();
    let block = |positions: Vec<usize>| {
        let dims = shape.iter().zip(dims).zip(positions);
        dims.map(|((&size, dim), position)| block_range(size, mesh.size_of(&dim.axes), position)).collect()
    };
    different.into_iter().map(block).collect()
}

/// The elements of the blocks `wanted` that are in none of the blocks `held`, which have no element in common.
fn lacking(wanted: &[Vec<Range<usize>>], held: &[Vec<Range<usize>>]) -> u64 {
    let common = |a: &[Range<usize>], b: &[Range<usize>]| -> u64 {
        a.iter().zip(b).map(|(a, b)| a.end.min(b.end).saturating_sub(a.start.max(b.start)) as u64).product()
    };
    wanted.iter().map(|new| common(new, new) - held.iter().map(|old| common(new, old)).sum::<u64>()).sum()
}

/// The elements that a host lacks at most after a change of layout without sums.
pub fn moved(shape: &[usize], from: &[DimSharding], to: &[DimSharding], mesh: &Mesh) -> u64 {
    let changed = from.iter().zip(to).filter(|(from, to)| from.axes != to.axes);
    let axes = changed.flat_map(|(from, to)| from.axes.iter().chain(&to.axes)).map(|&axis| usize::from(axis)).collect();
    let Some(hosts) = crossed(mesh, axes) else { return 0 };
    let of_host = |places: &[usize]| lacking(&blocks(shape, to, places, mesh), &blocks(shape, from, places, mesh));
    hosts.counted().map(of_host).max().unwrap_or(0)
}

/// The elements that a host lacks at most when an array in a layout on one mesh goes to a layout on another one; 0 if no hosts are known.
pub fn transferred(shape: &[usize], from: (&[DimSharding], &Mesh), to: (&[DimSharding], &Mesh)) -> u64 {
    let (Some(before), Some(after)) = (&from.1.hosts, &to.1.hosts) else { return 0 };
    debug_assert_eq!(before.count(), after.count(), "the hosts are those of one program");
    let of_host = |host: usize| {
        lacking(&blocks(shape, to.0, &after.places[host], to.1), &blocks(shape, from.0, &before.places[host], from.1))
    };
    after.counted_hosts().map(of_host).max().unwrap_or(0)
}

/// The elements of all blocks of a layout that are on a host, at most; 0 if no hosts are known.
pub fn different_blocks(shape: &[usize], dims: &[DimSharding], mesh: &Mesh) -> u64 {
    let elements = |places: &[usize]| -> u64 {
        let blocks = blocks(shape, dims, places, mesh);
        blocks.iter().map(|block| block.iter().map(|range| range.len() as u64).product::<u64>()).sum()
    };
    mesh.hosts.iter().flat_map(Hosts::counted).map(elements).max().unwrap_or(0)
}

/// Bytes that a host receives at most while the values along `summed` are combined, and blocks of `to` are made of blocks of `from`; both
/// have elements of so many bytes. `partial`: the axes along which the results are partial.
pub fn combined(
    (shape, size): (&[usize], usize),
    (from, to): (&[DimSharding], &[DimSharding]),
    (summed, partial): (AxisSet, AxisSet),
    mesh: &Mesh,
) -> u64 {
    let Some(hosts) = crossed(mesh, summed) else { return 0 };
    let split = |dims: &[DimSharding]| -> AxisSet {
        dims.iter().flat_map(|dim| &dim.axes).map(|&axis| usize::from(axis)).collect()
    };
    let sources = split(from).union(partial);
    let results = sources.union(split(to));
    let is_scattered = !split(to).intersect(summed).is_empty();
    let values = mesh.size_of_set(summed) as u64;
    let along = |axes: AxisSet, at: &[usize]| axes.iter().map(|axis| at[axis]).collect::<Vec<usize>>();
    let received = |places: &[usize]| -> u64 {
        let coordinates: Vec<Vec<usize>> = places.iter().map(|&place| mesh.coordinates(place)).collect();
        let mut seen = BTreeSet::new();
        let (mut bytes, mut parties) = (0, 1);
        for at in coordinates.iter().filter(|at| seen.insert(along(results, at))) {
            let source = along(sources, at);
            let mates = coordinates.iter().filter(|other| along(sources, other) == source);
            let near = mates.map(|other| along(summed, other)).collect::<BTreeSet<_>>().len() as u64;
            let dims = shape.iter().zip(to);
            let lens = dims.map(|(&len, dim)| {
                block_range(len, mesh.size_of(&dim.axes), mesh.position(&dim.axes, at)).len() as u64
            });
            bytes += lens.product::<u64>() * size as u64;
            parties = parties.max(values.div_ceil(near));
        }
        if is_scattered { (parties - 1) * bytes } else { cost::all_reduce_between(parties, bytes) }
    };
    hosts.counted().map(received).max().unwrap_or(0)
}

/// Bytes that a host receives at most in a collective of this kind whose operand is whole blocks of this length on all devices. Its groups
/// are the devices that differ along the axes `group`; devices have different values along the axes `distinct`, and copies along others.
pub fn of_group(kind: CollectiveKind, (group, distinct): (AxisSet, AxisSet), bytes: u64, mesh: &Mesh) -> u64 {
    let Some(hosts) = crossed(mesh, group) else { return 0 };
    let n = mesh.size_of_set(group) as u64;
    let others = distinct.minus(group);
    let received = |places: &[usize]| -> u64 {
        let along = |axes: AxisSet| -> u64 {
            let positions = places.iter().map(|&place| {
                let at = mesh.coordinates(place);
                axes.iter().map(|axis| at[axis]).collect::<Vec<usize>>()
            });
            positions.collect::<BTreeSet<_>>().len() as u64
        };
        let (count, near) = (along(others), along(group).max(1));
        let parties = n.div_ceil(near);
        match kind {
            CollectiveKind::AllReduce => cost::all_reduce_between(parties, count * bytes),
            CollectiveKind::AllGather => count * (n - near) * bytes,
            CollectiveKind::ReduceScatter => count * (near * bytes).div_ceil(n) * (parties - 1),
            CollectiveKind::AllToAll => count * (near * (n - near) * bytes).div_ceil(n),
            CollectiveKind::CollectivePermute | CollectiveKind::Transfer => count * near * bytes,
        }
    };
    hosts.counted().map(received).max().unwrap_or(0)
}

/// The elements that a host takes from others at most, given for each position along these axes the boxes that its devices take, with the
/// positions of their owners. A host takes a box once for all of its devices, and none that one of them has.
pub fn taken<Taken: PartialEq>(
    axes: &[u8],
    boxes: &[Vec<(usize, Taken)>],
    elements: &dyn Fn(&Taken) -> usize,
    mesh: &Mesh,
) -> usize {
    let of_host = |places: &[usize]| -> usize {
        let position = |&place: &usize| mesh.position(axes, &mesh.coordinates(place));
        let here: BTreeSet<usize> = places.iter().map(position).collect();
        let mut known: Vec<&(usize, Taken)> = Vec::new();
        for each in here.iter().flat_map(|&position| &boxes[position]).filter(|(owner, _)| !here.contains(owner)) {
            if !known.contains(&each) {
                known.push(each);
            }
        }
        known.into_iter().map(|(_, each)| elements(each)).sum()
    };
    mesh.hosts.iter().flat_map(Hosts::counted).map(of_host).max().unwrap_or(0)
}

/// The most devices of one host that have a neighbour on another one along one of these axes.
pub fn beside_others(group: AxisSet, mesh: &Mesh) -> u64 {
    let Some(hosts) = crossed(mesh, group) else { return 0 };
    let of = hosts.of();
    let beside = |&&place: &&usize| {
        let at = mesh.coordinates(place);
        let mut stride = 1;
        (0..mesh.axes.len()).rev().any(|axis| {
            let (size, own) = (mesh.axes[axis].size, stride);
            stride *= size;
            group.contains(axis)
                && (at[axis] > 0 && of[place - own] != of[place] || at[axis] + 1 < size && of[place + own] != of[place])
        })
    };
    hosts.counted().map(|places| places.iter().filter(beside).count() as u64).max().unwrap_or(0)
}

/// The cost of an exchange in bytes, as [`cost::exchange`], and of the bytes that a host receives of it.
pub fn exchange(moves: bool, received: f64, crossing: f64, mesh: &Mesh) -> f64 {
    cost::exchange(moves, received) + between(crossing, mesh)
}

/// The cost, in bytes that a device receives, of bytes that a host receives from others in one collective.
pub fn between(crossing: f64, mesh: &Mesh) -> f64 {
    mesh.hosts.as_ref().map_or(0.0, |hosts| hosts.levels.between(crossing))
}
