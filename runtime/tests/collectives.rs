//! Every collective on even, uneven and empty blocks, against a model that looks at single elements.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use proptest::prelude::*;
use spmdc_abi::*;
use spmdc_runtime::data::array::HostArray;

/// A layout change: from which arena axes to which.
#[derive(Clone, Debug)]
struct Change {
    mesh: Vec<usize>,
    from: Layout,
    to: Layout,
    from_axes: AxisSet,
    to_axes: AxisSet,
    group: AxisSet,
}

/// Exchanges with one, two and three workers, and checks every block of every device.
fn check_exchange(change: &Change) {
    let mut maker = Maker::new(&change.mesh);
    let from = maker.param(&change.from, change.from_axes);
    let to = maker.result(&change.to, change.to_axes);
    maker.step(Step::Exchange(ExchangeStep {
        kind: CollectiveKind::AllToAll,
        group: change.group,
        from: Shards { place: from, layout: change.from.clone() },
        to: Shards { place: to, layout: change.to.clone() },
        bytes: 3,
        counts: true,
        site: site(1),
    }));
    let mesh = maker.mesh();
    let array = counting(change.from.dtype, &shape(&change.from));
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut array.clone()).unwrap();
        let report = session.run(&mut Vec::new()).unwrap();
        // A device that is alone communicates with nobody.
        let counted: Vec<_> = report.collectives.iter().map(|counted| (counted.count, counted.bytes)).collect();
        assert_eq!(counted, if mesh.count(change.group.iter()) > 1 { vec![(1, 3)] } else { Vec::new() });
        for (device, block) in session.read_blocks(0).unwrap().iter().enumerate() {
            assert_eq!(block, &block_of(&array, &mesh, &change.to, device), "device {device} of {change:?}");
        }
        assert_eq!(session.read_result(0).unwrap(), array);
    }
}

fn change(mesh: &[usize], from: &[(usize, &[u8])], to: &[(usize, &[u8])]) -> Change {
    let (from, to) = (layout(DType::U32, from), layout(DType::U32, to));
    let (from_axes, to_axes) = (split(&from), split(&to));
    Change { mesh: mesh.to_vec(), from, to, from_axes, to_axes, group: AxisSet::all(mesh.len()) }
}

#[test]
fn gathering() {
    check_exchange(&change(&[4], &[(8, &[0]), (3, &[])], &[(8, &[]), (3, &[])]));
    check_exchange(&change(&[4], &[(10, &[0])], &[(10, &[])]));
    check_exchange(&change(&[4], &[(2, &[0])], &[(2, &[])]));
    check_exchange(&change(&[4], &[(0, &[0])], &[(0, &[])]));
    check_exchange(&change(&[2, 3], &[(3, &[]), (10, &[0, 1])], &[(3, &[]), (10, &[])]));
}

#[test]
fn slicing() {
    check_exchange(&change(&[2, 3], &[(7, &[]), (5, &[])], &[(7, &[1]), (5, &[0])]));
}

#[test]
fn turning() {
    check_exchange(&change(&[4], &[(8, &[0]), (12, &[])], &[(8, &[]), (12, &[0])]));
    check_exchange(&change(&[3], &[(8, &[0]), (7, &[])], &[(8, &[]), (7, &[0])]));
    check_exchange(&change(&[2, 2], &[(6, &[0]), (6, &[1])], &[(6, &[1]), (6, &[0])]));
}

#[test]
fn uneven_blocks_over_two_axes_shift() {
    for to in [&[0u8][..], &[1], &[1, 0], &[]] {
        check_exchange(&change(&[2, 4], &[(10, &[0, 1])], &[(10, to)]));
        check_exchange(&change(&[2, 4], &[(10, to)], &[(10, &[0, 1])]));
    }
}

#[test]
fn a_gather_in_place_copies_nothing() {
    // The blocks of the first dimension lie one after the other: producers have written where the whole is read.
    let mut maker = Maker::new(&[4]);
    let whole = layout(DType::U8, &[(64, &[])]);
    let place = maker.param(&whole, AxisSet::EMPTY);
    maker.program.results.push(Binding {
        name: "0".into(),
        second_name: None,
        ty: "?".into(),
        plane: None,
        layout: whole.clone(),
        place: Some(place),
    });
    let sides = |layout: &Layout| Shards { place, layout: layout.clone() };
    maker.step(Step::Exchange(ExchangeStep {
        kind: CollectiveKind::AllGather,
        group: AxisSet::of(0),
        from: sides(&whole),
        to: sides(&whole),
        bytes: 16,
        counts: true,
        site: site(1),
    }));
    let array = counting(DType::U8, &[64]);
    let mut session = maker.load(2).unwrap();
    session.write_param(0, &mut array.clone()).unwrap();
    session.run(&mut Vec::new()).unwrap();
    assert_eq!(session.read_result(0).unwrap(), array);
}

#[test]
fn an_exchange_may_not_overwrite_its_operand() {
    let mut maker = Maker::new(&[2]);
    let (from, to) = (layout(DType::U8, &[(64, &[0]), (2, &[])]), layout(DType::U8, &[(64, &[]), (2, &[0])]));
    let place = maker.param(&from, AxisSet::of(0));
    maker.step(Step::Exchange(ExchangeStep {
        kind: CollectiveKind::AllToAll,
        group: AxisSet::of(0),
        from: Shards { place, layout: from },
        to: Shards { place, layout: to },
        bytes: 64,
        counts: true,
        site: site(3),
    }));
    let error = maker.load(1).err().unwrap();
    assert_eq!((error.code, error.site), (RunCode::E0999, Some(site(3))));
    assert!(error.message.contains("overwrites its operand"), "{error}");
}

#[test]
fn a_block_outside_the_group_is_refused() {
    let mut bad = change(&[2, 2], &[(8, &[0])], &[(8, &[])]);
    bad.group = AxisSet::of(1);
    bad.to_axes = AxisSet::all(2);
    let mut maker = Maker::new(&bad.mesh);
    let from = maker.param(&bad.from, bad.from_axes);
    let to = maker.result(&bad.to, bad.to_axes);
    maker.step(Step::Exchange(ExchangeStep {
        kind: CollectiveKind::AllGather,
        group: bad.group,
        from: Shards { place: from, layout: bad.from },
        to: Shards { place: to, layout: bad.to },
        bytes: 16,
        counts: true,
        site: site(1),
    }));
    assert!(maker.load(1).err().unwrap().message.contains("outside its group"));
}

/// Meshes up to 16 devices, shapes up to rank 3, every axis on any dimension in any order on either side.
fn changes() -> impl Strategy<Value = Change> {
    let mesh = prop::collection::vec(1usize..=4, 0..=3)
        .prop_filter("at most 16 devices", |sizes| sizes.iter().product::<usize>() <= 16);
    (mesh, prop::collection::vec(0usize..=9, 0..=3))
        .prop_flat_map(|(mesh, sizes)| {
            let order: Vec<u8> = (0..mesh.len() as u8).collect();
            let side = || {
                let dims = prop::collection::vec(0..=sizes.len(), mesh.len());
                (Just(order.clone()).prop_shuffle(), dims, any::<u32>())
            };
            let dtype = prop::sample::select(&DType::ALL[..]);
            (Just(mesh.clone()), Just(sizes.clone()), side(), side(), dtype, any::<bool>())
        })
        .prop_map(|(mesh, sizes, from, to, dtype, least)| {
            let layout = |(order, dims, _): &(Vec<u8>, Vec<usize>, u32)| {
                let axes_of = |dim| order.iter().copied().filter(|&axis| dims[axis as usize] == dim).collect();
                let dims = sizes.iter().enumerate().map(|(dim, &size)| LayoutDim { size, axes: axes_of(dim) });
                Layout { dtype, dims: dims.collect() }
            };
            // An arena has the axes of its value, and may have more.
            let arena = |side: &(Vec<u8>, Vec<usize>, u32)| {
                split(&layout(side)).union(AxisSet(side.2).intersect(AxisSet::all(mesh.len())))
            };
            let (from_layout, to_layout) = (layout(&from), layout(&to));
            let differing = from_layout.dims.iter().zip(&to_layout.dims).filter(|(a, b)| a.axes != b.axes);
            let needed = differing.flat_map(|(a, b)| a.axes.iter().chain(&b.axes).map(|&axis| axis as usize)).collect();
            Change {
                group: if least { needed } else { AxisSet::all(mesh.len()) },
                from_axes: arena(&from),
                to_axes: arena(&to),
                from: from_layout,
                to: to_layout,
                mesh,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_exchange_is_right(change in changes()) {
        check_exchange(&change);
    }
}

/// Pairs of neighbours, then pairs of pairs; the last one waits if it has no neighbour.
fn by_pairs(values: &[f32], combine: &impl Fn(f32, f32) -> f32) -> f32 {
    match values {
        [value] => *value,
        values => {
            let pairs: Vec<f32> = values.chunks(2).map(|pair| pair.iter().copied().reduce(combine).unwrap()).collect();
            by_pairs(&pairs, combine)
        }
    }
}

/// Partial values along the axes `reduce`, combined into `to`. The partial values are the blocks of an array with one more
/// dimension in front, split over these axes.
fn check_reduce(
    mesh: &[usize],
    reduce: &[u8],
    from: &[(usize, &[u8])],
    to: &[(usize, &[u8])],
    to_axes: AxisSet,
    op: ReduceOp,
) {
    let dtype = DType::F32;
    let mut maker = Maker::new(mesh);
    let reduced: AxisSet = reduce.iter().map(|&axis| axis as usize).collect();
    let partials = maker.mesh().count(reduced.iter());
    let mut stacked = vec![(partials, reduce)];
    stacked.extend(from);
    let stacked = layout(dtype, &stacked);
    let (from, to) = (layout(dtype, from), layout(dtype, to));
    let source = maker.param(&stacked, split(&stacked));
    let target = maker.result(&to, to_axes);
    maker.step(Step::Reduce(ReduceStep {
        kind: CollectiveKind::AllReduce,
        op,
        group: maker.all(),
        reduce: reduced,
        from: Shards { place: source, layout: from.clone() },
        to: Shards { place: target, layout: to.clone() },
        bytes: 8,
        product: None,
        counts: true,
        site: site(1),
    }));
    let mut array = HostArray::zeros(dtype, &shape(&stacked));
    for (i, element) in array.bytes.chunks_exact_mut(4).enumerate() {
        // Numbers whose sum depends on the order.
        let value = ((i * 37) as f32).sin() * 10f32.powi(i as i32 % 7);
        element.copy_from_slice(&value.to_ne_bytes());
    }
    let values = f32s(&array);
    let len = shape(&from).iter().product::<usize>();
    assert!(matches!(op, ReduceOp::Sum | ReduceOp::Max), "the others are not tested here");
    let combine = |a: f32, b: f32| if op == ReduceOp::Sum { a + b } else { a.max(b) };
    let expected: Vec<f32> = (0..len)
        .map(|i| by_pairs(&(0..partials).map(|part| values[part * len + i]).collect::<Vec<_>>(), &combine))
        .collect();
    let expected = from_f32s(&shape(&from), &expected);
    let mesh = maker.mesh();
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut array.clone()).unwrap();
        for _ in 0..2 {
            session.run(&mut Vec::new()).unwrap();
            for (device, block) in session.read_blocks(0).unwrap().iter().enumerate() {
                assert_eq!(block, &block_of(&expected, &mesh, &to, device), "device {device} with {workers} workers");
            }
        }
    }
}

#[test]
fn reductions_combine_pairs_of_neighbours() {
    for op in [ReduceOp::Sum, ReduceOp::Max] {
        for shared in [AxisSet::EMPTY, AxisSet::all(2)] {
            // All devices, and along one axis of two; scalars, and lengths that nothing divides.
            check_reduce(&[2, 4], &[0, 1], &[], &[], shared, op);
            check_reduce(&[2, 4], &[0, 1], &[(1001, &[])], &[(1001, &[])], shared, op);
            check_reduce(&[2, 4], &[1], &[(7, &[0]), (3, &[])], &[(7, &[]), (3, &[])], shared, op);
            check_reduce(&[2, 4], &[1], &[(0, &[0])], &[(0, &[])], shared, op);
        }
    }
}

#[test]
fn reductions_scatter() {
    let all = AxisSet::all(2);
    check_reduce(&[2, 4], &[1], &[(10, &[0]), (9, &[])], &[(10, &[0]), (9, &[1])], all, ReduceOp::Sum);
    check_reduce(&[2, 4], &[0, 1], &[(10, &[])], &[(10, &[0, 1])], all, ReduceOp::Sum);
    check_reduce(&[2, 4], &[0, 1], &[(3, &[]), (5, &[])], &[(3, &[]), (5, &[1])], AxisSet::of(1), ReduceOp::Sum);
    check_reduce(&[3, 5], &[0], &[(11, &[1])], &[(11, &[0])], AxisSet::of(0), ReduceOp::Sum);
}

/// `buffers[1][i] = buffers[0][i] + 1`, elements of f32.
unsafe extern "C" fn add_one(buffers: *const *mut u8, _: *const i64, begin: i64, end: i64) -> i64 {
    // SAFETY: the programs below give it two buffers of their range.
    unsafe {
        let (from, to) = ((*buffers).cast::<f32>(), (*buffers.add(1)).cast::<f32>());
        (begin..end).for_each(|i| *to.add(i as usize) = *from.add(i as usize) + 1.0);
    }
    0
}

/// Kernels and a reduction that devices along the second axis run by panels for each other: `sum over j of (x[i, j] + 1) + 1`, one `j` on
/// each device.
fn sums_by_panels(sizes: &[usize], rows: usize, sharing: AxisSet) -> (Maker, GroupPanels) {
    let mut maker = Maker::new(sizes);
    let whole = layout(DType::F32, &[(rows, &[0]), (sizes[1], &[1])]);
    let sums = layout(DType::F32, &[(rows, &[0])]);
    let (all, group, others) = (maker.all(), AxisSet::of(1), maker.all().minus(AxisSet::all(2)));
    let x = maker.param(&whole, all.minus(others));
    let parts = maker.buffer(&sums, all.minus(others));
    let own = all.minus(others).minus(sharing);
    let (sum, result) = (maker.buffer(&sums, own), maker.result(&sums, own));
    let range = Scalar::BlockLen(sums.dims[0].clone());
    let mut kernel = |buffers: [Place; 2], split: AxisSet| {
        let Step::Kernel(step) = maker.kernel(add_one, &buffers, &[], range.clone()) else { unreachable!() };
        Step::Kernel(KernelStep { split, cost: 1e6, checks: Vec::new(), ..step })
    };
    let steps = vec![
        kernel([x, parts], others),
        Step::Sync { group, kind: None, site: site(1) },
        Step::Reduce(ReduceStep {
            kind: CollectiveKind::AllReduce,
            op: ReduceOp::Sum,
            group,
            reduce: group,
            from: Shards { place: parts, layout: sums.clone() },
            to: Shards { place: sum, layout: sums.clone() },
            bytes: 8,
            product: None,
            counts: true,
            site: site(1),
        }),
        Step::Sync { group, kind: None, site: site(1) },
        kernel([sum, result], sharing.union(others)),
    ];
    (maker, GroupPanels { group, split: others, steps, panel: 3, grain: 2 })
}

#[test]
fn groups_run_by_panels() {
    for (sizes, rows) in [(&[2, 3][..], 101), (&[1, 4], 5), (&[3, 2], 2), (&[2, 2, 2], 47)] {
        for sharing in [AxisSet::EMPTY, AxisSet::of(1)] {
            let (mut maker, panels) = sums_by_panels(sizes, rows, sharing);
            let group = panels.dividing();
            maker.step(Step::GroupPanels(panels));
            maker.step(Step::Sync { group, kind: None, site: site(2) });
            let value = |i: usize, j: usize| ((i * 37 + j * 11) as f32).sin() * 10f32.powi((i + j) as i32 % 7);
            let values: Vec<f32> = (0..rows * sizes[1]).map(|at| value(at / sizes[1], at % sizes[1])).collect();
            let sum = |row: &[f32]| by_pairs(&row.iter().map(|x| x + 1.0).collect::<Vec<_>>(), &|a, b| a + b) + 1.0;
            let expected: Vec<f32> = values.chunks(sizes[1]).map(sum).collect();
            for workers in [1, 2, 3, 6, 13] {
                let mut session = maker.load(workers).unwrap();
                session.write_param(0, &mut from_f32s(&[rows, sizes[1]], &values)).unwrap();
                for _ in 0..2 {
                    let report = session.run(&mut Vec::new()).unwrap();
                    assert_eq!(report.collectives.iter().map(|all| all.count).collect::<Vec<_>>(), [1]);
                    let whole = layout(DType::F32, &[(rows, &[0])]);
                    for (device, block) in session.read_blocks(0).unwrap().iter().enumerate() {
                        let expected = block_of(&from_f32s(&[rows], &expected), &maker.mesh(), &whole, device);
                        assert_eq!(block, &expected, "device {device} of {sizes:?} with {workers} workers");
                    }
                }
            }
        }
    }
}

#[test]
fn damaged_panels_of_groups_are_refused() {
    let refused = |change: &dyn Fn(&mut GroupPanels)| {
        let (mut maker, mut panels) = sums_by_panels(&[2, 3], 10, AxisSet::EMPTY);
        change(&mut panels);
        maker.step(Step::GroupPanels(panels));
        assert_eq!(maker.load(1).err().expect("to be refused").code, RunCode::E0999);
    };
    refused(&|panels| panels.panel = 0);
    refused(&|panels| panels.grain = 0);
    refused(&|panels| panels.steps.clear());
    refused(&|panels| panels.group = AxisSet::of(0));
    refused(&|panels| panels.split = AxisSet::of(0));
    refused(&|panels| {
        panels.steps.push(Step::If {
            flag: Place { arena: 0, offset: 0 },
            then: vec![],
            otherwise: vec![],
            site: site(1),
        })
    });
    let kernels = |panels: &mut GroupPanels, change: &dyn Fn(&mut KernelStep)| {
        panels.steps.last_mut().unwrap().kernels_mut().iter_mut().for_each(change);
    };
    refused(&|panels| kernels(panels, &|kernel| kernel.range = Scalar::Const(4)));
    refused(&|panels| kernels(panels, &|kernel| kernel.split = AxisSet::of(0)));
    refused(&|panels| {
        kernels(panels, &|kernel| kernel.part = Some(RangePart { first: Scalar::Const(0), len: Scalar::Const(1) }));
    });
    refused(&|panels| {
        if let Step::Reduce(step) = &mut panels.steps[2] {
            step.to.layout = layout(DType::F32, &[(10, &[])]);
        }
    });
}

#[test]
fn permutations_hand_blocks_on() {
    // Positions count along the second axis, then the first.
    let axes = [1u8, 0];
    let mut maker = Maker::new(&[2, 3]);
    let whole = layout(DType::U16, &[(6, &[1, 0]), (50, &[])]);
    let (from, to) = (maker.param(&whole, maker.all()), maker.result(&whole, maker.all()));
    let source = vec![Some(5), None, Some(1), Some(1), Some(4), Some(0)];
    maker.step(Step::Permute(PermuteStep {
        axes: axes.to_vec(),
        source: source.clone(),
        from,
        to,
        bytes: 100,
        site: site(1),
    }));
    let array = counting(DType::U16, &[6, 50]);
    let expected: Vec<u8> = source
        .iter()
        .flat_map(|source| source.map_or(vec![0; 100], |row| array.bytes[row as usize * 100..][..100].to_vec()))
        .collect();
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut array.clone()).unwrap();
        session.run(&mut Vec::new()).unwrap();
        assert_eq!(session.read_result(0).unwrap().bytes, expected);
    }
}

#[test]
fn a_permutation_is_divided_by_those_who_share_it() {
    let mut maker = Maker::new(&[2, 3]);
    let whole = layout(DType::U8, &[(2, &[0]), (1000, &[])]);
    let (from, to) = (maker.param(&whole, AxisSet::of(0)), maker.result(&whole, AxisSet::of(0)));
    let source = vec![Some(1), Some(0)];
    maker.step(Step::Permute(PermuteStep { axes: vec![0], source, from, to, bytes: 1000, site: site(1) }));
    let array = counting(DType::U8, &[2, 1000]);
    let mut session = maker.load(2).unwrap();
    session.write_param(0, &mut array.clone()).unwrap();
    session.run(&mut Vec::new()).unwrap();
    let result = session.read_result(0).unwrap().bytes;
    assert_eq!((&result[..1000], &result[1000..]), (&array.bytes[1000..], &array.bytes[..1000]));
}

/// Each device has two rows of six and two columns of four; it fetches the rows of the next one backwards, all four columns.
fn reversed_rows_of_the_next(maker: &mut Maker, to_axes: AxisSet) -> FetchStep {
    let all = maker.all();
    let from = maker.param(&layout(DType::U16, &[(6, &[1]), (4, &[0])]), all);
    let to = maker.result(&layout(DType::U16, &[(6, &[1]), (4, &[])]), to_axes);
    let run = |owner, from, step, to| FetchRun { owner, from, step, to, len: 2 };
    let rows = (0..3).map(|at| vec![run((at + 1) % 3, 1, -1, 0)]).collect();
    let columns = vec![vec![run(0, 0, 1, 0), run(1, 0, 1, 2)]];
    let dims = vec![
        FetchDim { from_len: 2, to_len: 2, owners: vec![1], axes: vec![1], runs: rows },
        FetchDim { from_len: 2, to_len: 4, owners: vec![0], axes: vec![], runs: columns },
    ];
    let parts = vec![FetchBoxes { dtype: DType::U16, from, to, dims }];
    FetchStep { kind: CollectiveKind::CollectivePermute, group: AxisSet::all(2), parts, bytes: 8, site: site(1) }
}

#[test]
fn parts_of_other_blocks_are_fetched() {
    for to_axes in [AxisSet::all(2), AxisSet::of(1)] {
        let mut maker = Maker::new(&[2, 3]);
        let step = reversed_rows_of_the_next(&mut maker, to_axes);
        maker.step(Step::Fetch(step));
        let array = counting(DType::U16, &[6, 4]);
        let rows: Vec<&[u8]> = array.bytes.chunks(8).collect();
        let expected: Vec<u8> = [3, 2, 5, 4, 1, 0].iter().flat_map(|&row: &usize| rows[row]).copied().collect();
        for workers in 1..=3 {
            let mut session = maker.load(workers).unwrap();
            session.write_param(0, &mut array.clone()).unwrap();
            session.run(&mut Vec::new()).unwrap();
            assert_eq!(session.read_result(0).unwrap().bytes, expected);
        }
    }
}

#[test]
fn a_fetch_stays_within_its_blocks() {
    let refused = |change: fn(&mut FetchStep)| {
        let mut maker = Maker::new(&[2, 3]);
        let all = maker.all();
        let mut step = reversed_rows_of_the_next(&mut maker, all);
        change(&mut step);
        maker.step(Step::Fetch(step));
        assert!(maker.load(1).is_err());
    };
    refused(|step| step.parts[0].dims[0].runs[2][0].from = 0);
    refused(|step| step.parts[0].dims[0].runs[2][0].to = 1);
    refused(|step| step.parts[0].dims[0].runs[1][0].owner = 3);
    refused(|step| step.parts[0].dims[0].runs.truncate(2));
    refused(|step| step.parts[0].dims[1].owners = vec![1]);
    refused(|step| step.group = AxisSet::of(0));
}
