//! The bytes that hosts receive from each other.

use spmdc_abi::CollectiveKind;
use spmdc_layout::cost::Levels;
use spmdc_layout::crossings::{beside_others, combined, moved, of_group, transferred};
use spmdc_layout::hosts::Hosts;
use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::types::AxisSet;

fn mesh(sizes: [usize; 2], count: usize) -> Mesh {
    let axes = ["X", "Y"].iter().zip(sizes).map(|(name, size)| Axis::new(name, size, AxisKind::Auto)).collect();
    let of: Vec<usize> = (0..sizes[0] * sizes[1]).map(|place| place * count / (sizes[0] * sizes[1])).collect();
    let hosts = Some(Hosts::new(&sizes, &of, count, Levels::DEFAULT));
    Mesh { axes, hosts, ..Mesh::default() }
}

fn dims(axes: &[&[u8]]) -> Vec<DimSharding> {
    axes.iter().map(|axes| DimSharding::closed(axes.to_vec())).collect()
}

const X: u8 = 0;
const Y: u8 = 1;

#[test]
fn elements_cross_once_for_all_devices_of_a_host() {
    let two = mesh([2, 4], 2);
    assert_eq!(moved(&[8], &dims(&[&[Y]]), &dims(&[&[]]), &two), 0, "a host has all blocks");
    assert_eq!(moved(&[8], &dims(&[&[X]]), &dims(&[&[]]), &two), 4);
    assert_eq!(moved(&[8], &dims(&[&[X, Y]]), &dims(&[&[]]), &two), 4);
    assert_eq!(moved(&[7], &dims(&[&[X]]), &dims(&[&[]]), &two), 4);
    // The second host has 1 of the first two rows.
    assert_eq!(moved(&[8, 8], &dims(&[&[X], &[]]), &dims(&[&[], &[X]]), &two), 16);
    assert_eq!(moved(&[8, 8], &dims(&[&[Y], &[]]), &dims(&[&[], &[Y]]), &two), 0);
    let four = mesh([2, 4], 4);
    assert_eq!(moved(&[8], &dims(&[&[Y]]), &dims(&[&[]]), &four), 4);
    assert_eq!(moved(&[8], &dims(&[&[X, Y]]), &dims(&[&[]]), &four), 6);
    let alone = Mesh { hosts: None, ..mesh([2, 4], 1) };
    assert_eq!(moved(&[8], &dims(&[&[X]]), &dims(&[&[]]), &alone), 0);
}

#[test]
fn sums_are_combined_on_each_host_first() {
    let (x, y) = (AxisSet::of(0), AxisSet::of(1));
    let sum = |shape: &[usize], to: &[&[u8]], along, mesh: &Mesh| {
        let none = vec![DimSharding::default(); shape.len()];
        combined((shape, 4), (&none, &dims(to)), (along, AxisSet::EMPTY), mesh)
    };
    let two = mesh([2, 4], 2);
    assert_eq!(sum(&[100], &[&[]], y, &two), 0);
    assert_eq!(sum(&[100], &[&[]], x.union(y), &two), 400);
    // Eight blocks of 50 bytes each, of which a host needs four.
    assert_eq!(sum(&[100], &[&[X]], x, &two), 200);
    let eight = mesh([2, 4], 8);
    assert_eq!(sum(&[100], &[&[]], x.union(y), &eight), 7 * 400, "small arrays in one round");
    assert_eq!(sum(&[80_000], &[&[]], x.union(y), &eight), 2 * 7 * 40_000);
    assert_eq!(sum(&[80_000], &[&[Y]], y, &eight), 3 * 80_000);
}

#[test]
fn groups_of_whole_blocks_follow_the_same_rules() {
    let (x, y) = (AxisSet::of(0), AxisSet::of(1));
    let two = mesh([2, 4], 2);
    let of = |kind, group| of_group(kind, (group, x.union(y)), 400, &two);
    assert_eq!(of(CollectiveKind::AllReduce, y), 0);
    assert_eq!(of(CollectiveKind::AllReduce, x), 1600);
    assert_eq!(of(CollectiveKind::AllGather, x.union(y)), 1600);
    assert_eq!(of(CollectiveKind::ReduceScatter, x.union(y)), 200);
    assert_eq!(of(CollectiveKind::AllToAll, x), 4 * 200);
    assert_eq!(of_group(CollectiveKind::AllReduce, (x, x), 400, &two), 400, "copies along Y");
    assert_eq!((beside_others(x, &two), beside_others(y, &two)), (4, 0));
    assert_eq!(beside_others(y, &mesh([2, 4], 4)), 1);
}

#[test]
fn a_host_receives_of_another_mesh_what_it_lacks() {
    // Eight devices on four hosts: a mesh of the devices 0 to 3 on two of them, and one of 2 to 5.
    let on = |hosts: [usize; 4]| {
        let axes = vec![Axis::new("X", 4, AxisKind::Auto)];
        Mesh { axes, hosts: Some(Hosts::new(&[4], &hosts, 4, Levels::DEFAULT)), ..Mesh::default() }
    };
    let (first, second) = (on([0, 0, 1, 1]), on([1, 1, 2, 2]));
    let (split, whole) = (dims(&[&[X]]), dims(&[&[]]));
    let moved = |from: &[DimSharding], to: &[DimSharding]| transferred(&[16], (from, &first), (to, &second));
    // Host 2 has nothing, host 1 the second half.
    assert_eq!((moved(&split, &split), moved(&split, &whole), moved(&whole, &whole)), (8, 16, 16));
    assert_eq!(transferred(&[16], (&whole, &first), (&split, &first)), 0);
    let unknown = Mesh { hosts: None, ..first.clone() };
    assert_eq!(transferred(&[16], (&split, &unknown), (&split, &second)), 0);
}

#[test]
fn hosts_without_devices_of_the_mesh_are_not_counted() {
    // Devices on the hosts 1, 3, 5 .. of sixteen, each of which lacks all other blocks.
    let of: Vec<usize> = (0..8).map(|place| 2 * place + 1).collect();
    let axes = vec![Axis::new("X", 8, AxisKind::Auto)];
    let mesh = Mesh { axes, hosts: Some(Hosts::new(&[8], &of, 16, Levels::DEFAULT)), ..Mesh::default() };
    assert_eq!(moved(&[16], &dims(&[&[X]]), &dims(&[&[]]), &mesh), 14);
}

#[test]
fn axes_in_parts_have_the_same_hosts() {
    let whole = mesh([1, 8], 2).hosts.map(|hosts| hosts.on(&[1, 2, 4]));
    assert_eq!(whole.map(|hosts| hosts.axes), Some(AxisSet::of(1)));
}
