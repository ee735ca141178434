//! Reshards of small arrays: their steps, the figures of the steps, and their distance from the fewest bytes.

use crate::testing::mesh;
use spmdc_abi::ReduceOp;
use spmdc_layout::blocks::exchange_axes;
use spmdc_layout::cost::Levels;
use spmdc_layout::crossings;
use spmdc_layout::hosts::Hosts;
use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use spmdc_layout::reshard::flow::{ReshardFlow, SAMPLE, flow, is_even, pattern};
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::reshard::{MAX_COMPARED, MAX_PRICED, Plan, Planner, Plans, bound, group, plan, traffic};
use spmdc_layout::sharding::{Sharding, block_range};
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};

fn mesh_of(sizes: &[usize]) -> Mesh {
    let axes = sizes.iter().zip(["X", "Y", "Z", "U", "V", "W"]);
    let axes = axes.map(|(&size, name)| Axis::new(name, size, AxisKind::Auto));
    Mesh { axes: axes.collect(), ..Mesh::default() }
}

const X: u8 = 0;
const Y: u8 = 1;

fn layout(dims: &[&[u8]]) -> Sharding {
    Sharding::closed(dims.iter().map(|axes| axes.to_vec()).collect())
}

fn partial(dims: &[&[u8]], axes: &[u8]) -> Sharding {
    layout(dims).with_unreduced(axes.iter().map(|&axis| axis as usize).collect(), ReduceOp::Sum)
}

/// The steps for an f32 array, each with the bytes of its operand, and the maximum bytes received by any device in all steps.
fn steps_of(shape: &[usize], from: &Sharding, to: &Sharding, mesh: &Mesh) -> (Vec<String>, u64) {
    let array = ArrayType::new(DType::F32, shape);
    let ty = |sharding: &Sharding| Type { sharding: sharding.clone(), ..Type::open(array.clone()) };
    let (mut at, mut received) = (from.clone(), 0);
    let mut shown = Vec::new();
    for step in plan(&array, from, to, mesh).steps {
        match step.step {
            ReshardStep::Collective(kind) => {
                let traffic = traffic(kind, &ty(&at), &ty(&step.to), mesh);
                received += traffic.received;
                shown.push(format!("{} {}", kind.name(), traffic.operand.iter().product::<usize>() * 4));
            }
            ReshardStep::Request | ReshardStep::Pin | ReshardStep::PinGradient | ReshardStep::Slice => {
                shown.push("slice".to_string())
            }
        }
        at = step.to;
    }
    assert_eq!(at, *to);
    (shown, received)
}

/// The steps for `f32[16,32]`, 2048 bytes, on X = 2, Y = 4.
fn steps(from: Sharding, to: Sharding) -> Vec<String> {
    steps_of(&[16, 32], &from, &to, &mesh()).0
}

#[test]
fn one_step_where_one_has_a_name() {
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[X], &[]])), Vec::<String>::new());
    assert_eq!(steps(layout(&[&[], &[]]), layout(&[&[X], &[Y]])), ["slice"]);
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[X, Y], &[]])), ["slice"]);
    assert_eq!(steps(layout(&[&[X], &[Y]]), layout(&[&[], &[]])), ["all_gather 256"]);
    assert_eq!(steps(layout(&[&[X, Y], &[]]), layout(&[&[X], &[]])), ["all_gather 256"]);
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[], &[X]])), ["all_to_all 1024"]);
    assert_eq!(steps(layout(&[&[X, Y], &[]]), layout(&[&[X], &[Y]])), ["all_to_all 256"]);
    assert_eq!(steps(layout(&[&[X, Y], &[]]), layout(&[&[Y, X], &[]])), ["collective_permute 256"]);
    assert_eq!(steps(layout(&[&[X], &[Y]]), layout(&[&[Y], &[X]])), ["all_to_all 256"]);
}

#[test]
fn slices_come_with_the_step_that_needs_them() {
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[], &[Y]])), ["all_gather 256"]);
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[Y], &[]])), ["collective_permute 512"]);
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[], &[X, Y]])), ["all_to_all 256"]);
}

#[test]
fn blocks_are_joined_last() {
    assert_eq!(steps(layout(&[&[Y], &[]]), layout(&[&[X], &[]])), ["collective_permute 256", "all_gather 256"]);
    assert_eq!(steps(layout(&[&[X, Y], &[]]), layout(&[&[Y], &[]])), ["collective_permute 256", "all_gather 256"]);
}

#[test]
fn partial_values_are_combined_first() {
    assert_eq!(steps(partial(&[&[X], &[]], &[Y]), layout(&[&[X], &[]])), ["all_reduce 1024"]);
    assert_eq!(steps(partial(&[&[X], &[]], &[Y]), layout(&[&[X], &[Y]])), ["reduce_scatter 1024"]);
    assert_eq!(steps(partial(&[&[X], &[]], &[Y]), layout(&[&[], &[Y]])), ["reduce_scatter 1024", "all_gather 256"]);
    assert_eq!(steps(partial(&[&[], &[]], &[X, Y]), layout(&[&[X], &[Y]])), ["reduce_scatter 2048"]);
    assert_eq!(steps(partial(&[&[], &[]], &[X, Y]), layout(&[&[X], &[]])), ["reduce_scatter 2048", "all_reduce 1024"]);
    assert_eq!(steps(partial(&[&[], &[]], &[X, Y]), partial(&[&[], &[]], &[X])), ["all_reduce 2048"]);
    // Only the part that stays is summed.
    assert_eq!(steps(partial(&[&[], &[]], &[Y]), layout(&[&[X], &[]])), ["all_reduce 1024"]);
}

#[test]
fn partial_values_are_made_for_nothing() {
    assert_eq!(steps(layout(&[&[X], &[]]), partial(&[&[X], &[]], &[Y])), ["slice"]);
    assert_eq!(steps(layout(&[&[Y], &[]]), partial(&[&[X], &[]], &[Y])).last().unwrap(), "slice");
}

#[test]
fn axes_of_one_device_need_nothing() {
    let mesh = mesh_of(&[1, 4]);
    let steps = |from, to| steps_of(&[16, 32], &from, &to, &mesh).0;
    assert_eq!(steps(layout(&[&[X], &[]]), layout(&[&[], &[X]])), ["slice"]);
    assert_eq!(steps(partial(&[&[], &[]], &[X]), layout(&[&[], &[]])), ["slice"]);
    assert_eq!(steps(partial(&[&[], &[]], &[X, Y]), layout(&[&[], &[]])), ["all_reduce 2048"]);
}

#[test]
fn uneven_blocks_take_the_same_steps() {
    let steps = |from: &[u8], to: &[u8]| steps_of(&[10, 32], &layout(&[from, &[]]), &layout(&[to, &[]]), &mesh());
    // 2 rows become 5, of which a device has at least one, or none: two of three remain.
    assert_eq!(steps(&[X, Y], &[X]), (vec!["all_gather 256".to_string()], 640));
    // 5 rows become 2; the device that gets rows 6 and 7 has neither.
    assert_eq!(steps(&[X], &[X, Y]), (vec!["collective_permute 256".to_string()], 256));
    let (from, to) = (layout(&[&[X, Y], &[]]), layout(&[&[X], &[]]));
    assert_eq!(group(&ArrayType::new(DType::F32, &[10, 32]), &from, &to, &mesh()), AxisSet::all(2));
}

/// All shardings of an array of this rank over the axes of the mesh.
fn shardings(rank: usize, axes: usize) -> Vec<Sharding> {
    let mut found = vec![Sharding::replicated(rank)];
    let mut begin = 0;
    while begin < found.len() {
        for axis in (0..axes).filter(|&axis| !found[begin].used_axes().contains(axis)).collect::<Vec<_>>() {
            for dim in 0..rank {
                let mut next = found[begin].clone();
                next.dims[dim].axes.push(axis as u8);
                if !found.contains(&next) {
                    found.push(next);
                }
            }
        }
        begin += 1;
    }
    found
}

/// Counts element by element, on every device.
fn counted(shape: &[usize], from: &Sharding, to: &Sharding, mesh: &Mesh) -> ReshardFlow {
    let (mut worst, mut total) = (0, 0);
    for device in 0..mesh.device_count() {
        let at = mesh.coordinates(device);
        let place =
            |axes: &[u8]| axes.iter().fold(0, |sum, &axis| sum * mesh.axes[axis as usize].size + at[axis as usize]);
        let holds = |sharding: &Sharding, index: &[usize]| {
            index
                .iter()
                .zip(shape)
                .zip(&sharding.dims)
                .all(|((i, &size), dim)| block_range(size, mesh.size_of(&dim.axes), place(&dim.axes)).contains(i))
        };
        let indices = (0..shape.iter().product::<usize>()).map(|mut number| {
            let mut index = vec![0; shape.len()];
            for dim in (0..shape.len()).rev() {
                index[dim] = number % shape[dim];
                number /= shape[dim];
            }
            index
        });
        let received = indices.filter(|index| holds(to, index) && !holds(from, index)).count() as u64;
        worst = worst.max(received);
        total += received;
    }
    ReshardFlow { worst, total, exact: true }
}

#[test]
fn the_formula_counts_as_counting_does() {
    for (sizes, shape) in [
        (&[2, 4][..], &[8, 16][..]),
        (&[2, 4], &[7, 10]),
        (&[2, 4], &[3, 16]),
        (&[3, 2], &[6, 12]),
        (&[6, 2], &[12, 5]),
        (&[4, 4], &[16, 16]),
        (&[2, 3, 2], &[12, 12]),
    ] {
        let mesh = mesh_of(sizes);
        let all = shardings(2, sizes.len());
        // Three axes have too many pairs.
        for from in all.iter().step_by(sizes.len() * sizes.len() - 3) {
            for to in &all {
                let expected = counted(shape, from, to, &mesh);
                let found = flow(shape, &from.dims, &to.dims, &mesh, None);
                assert_eq!(found, expected, "{sizes:?} {shape:?} {from:?} {to:?}");
                if is_even(shape, &from.dims, &to.dims, &mesh) {
                    let group = exchange_axes(shape, from, to, &mesh);
                    let pattern = pattern(&from.dims, &to.dims, &mesh);
                    let agrees =
                        if pattern.odds.is_some() { group == pattern.group } else { group.is_subset_of(pattern.group) };
                    assert!(agrees, "{sizes:?} {from:?} {to:?}");
                }
            }
        }
    }
}

/// Bytes of the best plans relative to lower bounds: on average and at worst, of the device that receives most and of all.
fn compared(shape: &[usize], sizes: &[usize]) -> [f64; 4] {
    let (mesh, array) = (mesh_of(sizes), ArrayType::new(DType::F32, shape));
    let ty = |sharding: &Sharding| Type { sharding: sharding.clone(), ..Type::open(array.clone()) };
    let elements = |sharding: &Sharding| ty(sharding).block_bytes(&mesh);
    let (mut sums, mut worst) = ([0.0; 4], [0.0f64; 2]);
    let all = shardings(shape.len(), sizes.len());
    for from in all.iter().step_by(sizes.len() * 3 - 5) {
        for to in &all {
            let least = flow(shape, &from.dims, &to.dims, &mesh, None);
            let (mut at, mut received) = (from.clone(), [0.0; 2]);
            for step in plan(&array, from, to, &mesh).steps {
                assert!(elements(&step.to) <= elements(from).max(elements(to)), "{from:?} {to:?}");
                if let ReshardStep::Collective(kind) = step.step {
                    let traffic = traffic(kind, &ty(&at), &ty(&step.to), &mesh);
                    received = [received[0] + traffic.received as f64, received[1] + traffic.total as f64];
                }
                at = step.to;
            }
            assert_eq!(at, *to);
            for (i, (received, least)) in received.into_iter().zip([least.worst, least.total]).enumerate() {
                let least = least as f64 * 4.0;
                sums[i] += received;
                sums[i + 2] += least;
                assert!(least > 0.0 || received == 0.0, "{from:?} {to:?}");
                worst[i] = worst[i].max(if least > 0.0 { received / least } else { 1.0 });
            }
        }
    }
    [sums[0] / sums[2], worst[0], sums[1] / sums[3], worst[1]]
}

#[test]
fn plans_move_hardly_more_than_they_must() {
    assert_eq!(shardings(3, 2).len(), 19);
    for (shape, sizes, sum, worst) in [
        (&[64, 64, 64][..], &[2, 4][..], 1.02, 1.25),
        (&[64, 64], &[4, 2], 1.02, 1.3),
        (&[64, 64], &[8, 8], 1.02, 1.3),
        (&[36, 36], &[3, 2], 1.04, 1.4),
        (&[13, 22, 7], &[2, 4], 1.1, 2.0),
        (&[16, 16], &[2, 2, 2], 1.03, 1.5),
    ] {
        let [device, worst_device, all, worst_all] = compared(shape, sizes);
        let text = format!("{shape:?} on {sizes:?}: {device} {worst_device} {all} {worst_all}");
        assert!(device <= sum && all <= sum && worst_device <= worst && worst_all <= worst, "{text}");
    }
}

#[test]
fn no_way_costs_less_than_its_bound() {
    for (shape, sizes) in [
        (&[12, 8][..], &[2, 4][..]),
        (&[13, 7], &[2, 4]),
        (&[3, 1], &[3, 2]),
        (&[0, 4], &[2, 4]),
        (&[5, 6, 8], &[2, 3]),
        (&[8, 12], &[2, 1, 2]),
    ] {
        let (mesh, array) = (mesh_of(sizes), ArrayType::new(DType::F32, shape));
        let mut all = Vec::new();
        for layout in shardings(shape.len(), sizes.len()) {
            for bits in 0..1 << sizes.len() {
                let sums: AxisSet = (0..sizes.len()).filter(|axis| bits >> axis & 1 == 1).collect();
                if sums.intersect(layout.used_axes()).is_empty() {
                    all.push(layout.clone().with_unreduced(sums, ReduceOp::Sum));
                }
            }
        }
        let (mut pairs, mut tight) = (0, 0);
        for from in &all {
            for to in all.iter().filter(|to| *to != from) {
                let (bound, cost) = (bound(&array, from, to, &mesh), plan(&array, from, to, &mesh).cost);
                assert!(bound <= cost, "{shape:?} {from:?} {to:?}: {bound} {cost}");
                (pairs, tight) = (pairs + 1, tight + usize::from(2.0 * bound >= cost));
            }
        }
        assert!(4 * tight >= 3 * pairs, "{shape:?}: half of the cost for {tight} of {pairs}");
    }
}

#[test]
fn large_meshes_cost_no_more() {
    let mesh = mesh_of(&[64, 64]);
    for shape in [[4096, 4096], [4099, 1000]] {
        let array = ArrayType::new(DType::F32, &shape);
        for from in shardings(2, 2) {
            for to in shardings(2, 2) {
                let sampled = flow(&shape, &from.dims, &to.dims, &mesh, Some(SAMPLE));
                let exact = flow(&shape, &from.dims, &to.dims, &mesh, None);
                let near = sampled.worst as f64 >= 0.9 * exact.worst as f64 && sampled.worst <= exact.worst;
                assert!(near, "{from:?} {to:?} {sampled:?} {exact:?}");
                assert!(plan(&array, &from, &to, &mesh).steps.len() <= 2);
            }
        }
    }
}

#[test]
fn a_search_over_many_axes_and_dimensions_ends() {
    let large = mesh_of(&[2, 3, 2, 2, 2, 3]);
    let split = [&[0u8] as &[u8], &[1], &[2], &[3], &[4], &[5], &[], &[]];
    let moved = [&[] as &[u8], &[], &[5], &[4, 3], &[], &[2], &[1], &[0]];
    let (from, to, whole) = (layout(&split), layout(&moved), layout(&[&[] as &[u8]; 8]));
    let sum = partial(&[&[] as &[u8]; 8], &[0, 1, 2, 3, 4, 5]);
    let half = partial(&[&[5], &[], &[], &[3], &[], &[], &[], &[]], &[0, 1, 2]);
    for shape in [[12; 8], [7; 8]] {
        let array = ArrayType::new(DType::F32, &shape);
        for (from, to) in [(&from, &to), (&from, &whole), (&whole, &from), (&sum, &to), (&sum, &whole), (&half, &to)] {
            let Plan { steps, priced, .. } = plan(&array, from, to, &large);
            assert!(priced <= MAX_PRICED, "{priced} steps");
            assert_eq!(steps.last().map(|step| &step.to), Some(to));
            assert!(steps.len() <= 4, "{steps:?}");
        }
    }
    // The search ends by itself for arrays on 2x4 devices.
    let array = ArrayType::new(DType::F32, &[12; 3]);
    let (from, to) = (layout(&[&[X], &[Y], &[]]), layout(&[&[], &[Y, X], &[]]));
    let priced = plan(&array, &from, &to, &mesh()).priced;
    assert!(priced < MAX_PRICED / 8, "{priced} steps");
}

#[test]
fn comparisons_of_one_program_have_a_bound() {
    let mesh = mesh_of(&[2, 3, 2, 2, 2, 3]);
    let requests = |count: usize| {
        (0..count).map(|at| {
            let mut dims = vec![Vec::new(); 8];
            (0..6).for_each(|axis| dims[(axis + at) % 8].push(axis as u8));
            let (from, to) = (partial(&[&[] as &[u8]; 8], &[0, 1, 2, 3, 4, 5]), Sharding::closed(dims));
            (ArrayType::new(DType::F32, &[12 + at / 8; 8]), from, to)
        })
    };
    let plans = Plans::default();
    let compared = || -> Vec<f64> {
        let planner = Planner::new(&mesh, &plans);
        requests(80).map(|(array, from, to)| planner.cost(&array, &from, &to)).collect()
    };
    let costs = compared();
    let (known, priced) = (plans.count(), plans.priced());
    assert!((MAX_COMPARED..MAX_COMPARED + MAX_PRICED).contains(&priced), "{priced} steps for {known} ways");
    for (at, ((array, from, to), cost)) in requests(80).zip(&costs).enumerate() {
        let bound = bound(&array, &from, &to, &mesh);
        assert!(bound <= *cost && (at < known || bound == *cost), "{at}: {bound} {cost}");
    }
    // Plans found by others count in the same way.
    for (array, from, to) in requests(80).skip(known) {
        Planner::new(&mesh, &plans).plan(&array, &from, &to);
    }
    assert_eq!(compared(), costs);
}

/// X = 2, Y = 4 on two hosts, which differ along X.
fn mesh_on_hosts() -> Mesh {
    let hosts = Hosts::new(&[2, 4], &[0, 0, 0, 0, 1, 1, 1, 1], 2, Levels::DEFAULT);
    Mesh { hosts: Some(hosts), ..mesh() }
}

/// Bytes that a host receives in the steps that are planned for `planned`.
fn crossing_of(shape: &[usize], from: &Sharding, to: &Sharding, planned: &Mesh) -> u64 {
    let array = ArrayType::new(DType::F32, shape);
    let ty = |sharding: &Sharding| Type { sharding: sharding.clone(), ..Type::open(array.clone()) };
    let (mut at, mut crossing) = (from.clone(), 0);
    for step in plan(&array, from, to, planned).steps {
        if let ReshardStep::Collective(kind) = step.step {
            crossing += traffic(kind, &ty(&at), &ty(&step.to), &mesh_on_hosts()).crossing;
        }
        at = step.to;
    }
    crossing
}

#[test]
fn fewer_bytes_cross_hosts_that_are_known() {
    let lists: [&[u8]; 5] = [&[], &[X], &[Y], &[X, Y], &[Y, X]];
    let mut layouts = Vec::new();
    for (rows, columns) in lists.iter().flat_map(|rows| lists.iter().map(move |columns| (*rows, *columns))) {
        if !rows.iter().any(|axis| columns.contains(axis)) {
            let left: Vec<u8> =
                [X, Y].into_iter().filter(|axis| !rows.contains(axis) && !columns.contains(axis)).collect();
            layouts.push((layout(&[rows, columns]), partial(&[rows, columns], &left)));
        }
    }
    let (mesh, known) = (mesh(), mesh_on_hosts());
    let mut fewer = 0;
    for (whole, sums) in &layouts {
        for (to, from) in layouts.iter().flat_map(|(to, _)| [(to, whole), (to, sums)]) {
            for shape in [[1600, 3200], [1601, 3203]] {
                let [with, without] = [&known, &mesh].map(|planned| crossing_of(&shape, from, to, planned));
                assert!(with <= without, "{with} bytes and not {without}: {from:?} to {to:?}");
                fewer += usize::from(with < without);
                // At least what a host lacks.
                let lacks = crossings::moved(&shape, &from.dims, &to.dims, &known) * 4;
                assert!(with >= lacks, "{with} bytes of {lacks}: {from:?} to {to:?}");
            }
        }
    }
    assert!(fewer > 0, "hosts change no reshard");
}
