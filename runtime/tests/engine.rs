//! Whole programs made by hand: control flow, products, kernels in parts, errors, waits and limits.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::*;
use spmdc_abi::*;
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::run::report::RunOptions;

/// `buffers[1][i] = buffers[0][i] + 1`, elements of f32.
unsafe extern "C" fn add_one(buffers: *const *mut u8, _: *const i64, begin: i64, end: i64) -> i64 {
    // SAFETY: the programs below give it two buffers of their range.
    unsafe {
        let (from, to) = ((*buffers).cast::<f32>(), (*buffers.add(1)).cast::<f32>());
        (begin..end).for_each(|i| *to.add(i as usize) = *from.add(i as usize) + 1.0);
    }
    0
}

/// `buffers[1][i] = buffers[0][i - 1] + buffers[0][i + 1]` for rows of 8 elements of f32 that have neighbours, and 0 at the ends.
unsafe extern "C" fn add_neighbours(buffers: *const *mut u8, scalars: *const i64, begin: i64, end: i64) -> i64 {
    // SAFETY: the program below gives it two buffers of `scalars[0]` rows.
    unsafe {
        let (from, to) = ((*buffers).cast::<f32>(), (*buffers.add(1)).cast::<f32>());
        for (row, at) in (begin..end).flat_map(|row| (8 * row..8 * row + 8).map(move |at| (row, at as usize))) {
            let is_inside = row > 0 && row + 1 < *scalars;
            *to.add(at) = if is_inside { *from.add(at - 8) + *from.add(at + 8) } else { 0.0 };
        }
    }
    0
}

/// `buffers[0][i] += scalars[0] * buffers[1][0] + scalars[1]`, elements of i32; the second buffer is a loop counter.
unsafe extern "C" fn accumulate(buffers: *const *mut u8, scalars: *const i64, begin: i64, end: i64) -> i64 {
    // SAFETY: the programs below give it such buffers.
    unsafe {
        let (to, counter) = ((*buffers).cast::<i32>(), (*buffers.add(1)).cast::<i32>());
        let step = *scalars as i32 * *counter + *scalars.add(1) as i32;
        (begin..end).for_each(|i| *to.add(i as usize) += step);
    }
    0
}

/// `buffers[0][i] = scalars[0]`, elements of i32.
unsafe extern "C" fn store(buffers: *const *mut u8, scalars: *const i64, begin: i64, end: i64) -> i64 {
    // SAFETY: the programs below give it such a buffer.
    unsafe {
        (begin..end).for_each(|i| *(*buffers).cast::<i32>().add(i as usize) = *scalars as i32);
    }
    0
}

/// `buffers[1] = buffers[0] < scalars[0]`, an i32 and a bool.
unsafe extern "C" fn less(buffers: *const *mut u8, scalars: *const i64, _: i64, _: i64) -> i64 {
    // SAFETY: the programs below give it such buffers.
    unsafe { **buffers.add(1) = u8::from(i64::from(*(*buffers).cast::<i32>()) < *scalars) };
    0
}

/// Divides by zero where the scalar says so.
unsafe extern "C" fn fail_if(_: *const *mut u8, scalars: *const i64, _: i64, _: i64) -> i64 {
    // SAFETY: the programs below give it a scalar.
    match unsafe { *scalars } {
        0 => trap::NONE,
        number => trap::code(number as usize - 1, 0),
    }
}

/// Sleeps as many milliseconds as the scalar says.
unsafe extern "C" fn sleep(_: *const *mut u8, scalars: *const i64, _: i64, _: i64) -> i64 {
    // SAFETY: the programs below give it a scalar.
    std::thread::sleep(Duration::from_millis(unsafe { *scalars } as u64));
    0
}

const ONE: Scalar = Scalar::Const(1);

fn device_number(axes: usize) -> Scalar {
    Scalar::Coordinate((0..axes as u8).collect())
}

/// A separate i32 for every device, as a result.
fn own_i32(maker: &mut Maker) -> Place {
    let devices = maker.program.device_count();
    let axes: Vec<u8> = (0..maker.program.mesh.len() as u8).collect();
    let all = maker.all();
    maker.result(&layout(DType::I32, &[(devices, &axes)]), all)
}

fn i32s(array: &HostArray) -> Vec<i32> {
    array.bytes.chunks_exact(4).map(|bytes| i32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn sync(group: AxisSet, line: u32) -> Step {
    Step::Sync { group, kind: None, site: site(line) }
}

#[test]
fn a_kernel_runs_on_every_block() {
    let mut maker = Maker::new(&[2, 3]);
    let whole = layout(DType::F32, &[(11, &[0, 1])]);
    let (from, to) = (maker.param(&whole, maker.all()), maker.result(&whole, maker.all()));
    let range = Scalar::BlockLen(whole.dims[0].clone());
    let step = maker.kernel(add_one, &[from, to], &[], range);
    maker.step(step);
    let values: Vec<f32> = (0..11).map(|i| i as f32).collect();
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut from_f32s(&[11], &values)).unwrap();
        let report = session.run(&mut Vec::new()).unwrap();
        assert!(report.collectives.is_empty() && report.peak_bytes_per_device == 128);
        assert_eq!(f32s(&session.read_result(0).unwrap()), values.iter().map(|x| x + 1.0).collect::<Vec<_>>());
    }
}

#[test]
fn devices_that_share_a_buffer_divide_the_work() {
    let mut maker = Maker::new(&[2, 3]);
    let whole = layout(DType::F32, &[(20, &[0]), (7, &[])]);
    let (from, to) = (maker.param(&whole, AxisSet::of(0)), maker.result(&whole, AxisSet::of(0)));
    for (from, to) in [(from, to), (to, from), (from, to)] {
        let mut step = maker.kernel(add_one, &[from, to], &[], Scalar::Const(70));
        let Step::Kernel(kernel) = &mut step else { unreachable!() };
        kernel.split = AxisSet::of(1);
        maker.step(step);
        maker.step(sync(AxisSet::of(1), 2));
    }
    let values: Vec<f32> = (0..140).map(|i| i as f32).collect();
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut from_f32s(&[20, 7], &values)).unwrap();
        session.run(&mut Vec::new()).unwrap();
        assert_eq!(f32s(&session.read_result(0).unwrap()), values.iter().map(|x| x + 3.0).collect::<Vec<_>>());
    }
}

#[test]
fn kernels_run_by_panels() {
    let mut maker = Maker::new(&[2]);
    let whole = layout(DType::F32, &[(100_000, &[0])]);
    let places =
        [maker.param(&whole, maker.all()), maker.result(&whole, maker.all()), maker.result(&whole, maker.all())];
    let range = Scalar::BlockLen(whole.dims[0].clone());
    let steps = [0, 1].map(|i| maker.kernel(add_one, &places[i..i + 2], &[], range.clone()));
    let kernels = steps.map(|step| if let Step::Kernel(kernel) = step { kernel } else { unreachable!() });
    maker.step(Step::Panels { kernels: kernels.to_vec(), lags: vec![0; 2], panel: 1000 });
    let values: Vec<f32> = (0..100_000).map(|i| i as f32).collect();
    for workers in 1..=4 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut from_f32s(&[100_000], &values)).unwrap();
        session.run(&mut Vec::new()).unwrap();
        assert!(f32s(&session.read_result(1).unwrap()).iter().zip(&values).all(|(y, x)| *y == x + 2.0));
    }
    let refused = |kernels: Vec<KernelStep>, panel| {
        let mut damaged = maker.clone();
        damaged.step(Step::Panels { lags: vec![0; kernels.len()], kernels, panel });
        assert_eq!(damaged.load(1).err().expect("to be refused").code, RunCode::E0999);
    };
    refused(kernels.to_vec(), 0);
    refused(vec![], 1);
    refused(vec![kernels[0].clone(), KernelStep { range: Scalar::Const(3), ..kernels[1].clone() }], 1);
    refused(vec![kernels[0].clone(), KernelStep { grain: 2, ..kernels[1].clone() }], 1);
}

#[test]
fn kernels_stay_behind_by_their_lags() {
    const ROWS: usize = 500;
    let mut maker = Maker::new(&[]);
    let whole = layout(DType::F32, &[(ROWS, &[]), (8, &[])]);
    let places = [
        maker.param(&whole, AxisSet::EMPTY),
        maker.result(&whole, AxisSet::EMPTY),
        maker.result(&whole, AxisSet::EMPTY),
    ];
    // One step from the parameter, then from one result to the other and back.
    let number_of_rows = [Scalar::Const(ROWS as i64)];
    let kernels: Vec<KernelStep> = (0..9usize)
        .map(|step| {
            let from = if step == 0 { 0 } else { 1 + (step - 1) % 2 };
            let used = [places[from], places[1 + step % 2]];
            let step = maker.kernel(add_neighbours, &used, &number_of_rows, number_of_rows[0].clone());
            let Step::Kernel(kernel) = step else { unreachable!() };
            KernelStep { cost: 1000.0, ..kernel }
        })
        .collect();
    let mut expected: Vec<f32> = (0..ROWS * 8).map(|i| (i % 13) as f32).collect();
    let first = expected.clone();
    for _ in 0..kernels.len() {
        let inside = |i: usize| i >= 8 && i + 8 < expected.len();
        expected =
            (0..expected.len()).map(|i| if inside(i) { expected[i - 8] + expected[i + 8] } else { 0.0 }).collect();
    }
    // With 5 threads the last stage has one kernel; 9 threads have one each; with 7 the stages would be uneven.
    for (panel, workers) in [(1, 1), (7, 1), (1, 2), (10, 2), (3, 3), (16, 5), (1000, 2), (4, 7), (1, 9)] {
        let mut maker = maker.clone();
        maker.step(Step::Panels { kernels: kernels.clone(), lags: (0..9).collect(), panel });
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut from_f32s(&[ROWS, 8], &first)).unwrap();
        for _ in 0..3 {
            session.run(&mut Vec::new()).unwrap();
            assert_eq!(f32s(&session.read_result(0).unwrap()), expected, "panels of {panel}, {workers} workers");
        }
    }
    let refused = |lags: Vec<u64>, split: AxisSet, axes: &[usize]| {
        let mut damaged = Maker::new(axes);
        let whole = layout(DType::F32, &[(ROWS, &[])]);
        let places = [damaged.param(&whole, AxisSet::EMPTY), damaged.result(&whole, AxisSet::EMPTY)];
        let step = damaged.kernel(add_one, &places, &[], Scalar::Const(ROWS as i64));
        let Step::Kernel(kernel) = step else { unreachable!() };
        let kernels = vec![KernelStep { split, ..kernel }; 2];
        damaged.step(Step::Panels { kernels, lags, panel: 1 });
        damaged.load(1).err().map(|error| error.code)
    };
    assert_eq!(refused(vec![0, 1], AxisSet::EMPTY, &[]), None);
    assert_eq!(refused(vec![0], AxisSet::EMPTY, &[]), Some(RunCode::E0999));
    assert_eq!(refused(vec![0, u64::MAX], AxisSet::EMPTY, &[]), Some(RunCode::E0999));
    assert_eq!(refused(vec![0, 1], AxisSet::of(0), &[2]), Some(RunCode::E0999));
}

#[test]
fn a_team_helps_with_long_kernels() {
    let mut maker = Maker::new(&[]);
    let whole = layout(DType::F32, &[(100_000, &[])]);
    let (from, to) = (maker.param(&whole, AxisSet::EMPTY), maker.result(&whole, AxisSet::EMPTY));
    let step = maker.kernel(add_one, &[from, to], &[], Scalar::Const(100_000));
    maker.step(step);
    let step = maker.kernel(fail_if, &[], &[Scalar::Const(0)], Scalar::Const(100_000));
    maker.step(step);
    let values: Vec<f32> = (0..100_000).map(|i| i as f32).collect();
    let mut session = maker.load(3).unwrap();
    session.write_param(0, &mut from_f32s(&[100_000], &values)).unwrap();
    for _ in 0..20 {
        session.run(&mut Vec::new()).unwrap();
        assert!(f32s(&session.read_result(0).unwrap()).iter().zip(&values).all(|(y, x)| *y == x + 1.0));
    }
}

#[test]
fn loops_count_and_nest() {
    // for i in 2..5 { for j in 0..limit { total += 10 * i + 1 } }, with limit = 3 in memory.
    let mut maker = Maker::new(&[4]);
    let total = own_i32(&mut maker);
    let (i, j) = (maker.bytes(maker.all(), 4), maker.bytes(maker.all(), 4));
    let limit = maker.param(&layout(DType::U8, &[]), AxisSet::EMPTY);
    let clear = maker.kernel(store, &[total], &[Scalar::Const(0)], ONE);
    let add = maker.kernel(accumulate, &[total, i], &[Scalar::Const(10), ONE], ONE);
    let inner = Step::For {
        counter: j,
        start: Bound::Const(0),
        end: Bound::Memory(limit, DType::U8),
        body: vec![add, sync(AxisSet::of(0), 3)],
        site: site(2),
    };
    maker.step(clear);
    maker.step(Step::For {
        counter: i,
        start: Bound::Const(2),
        end: Bound::Const(5),
        body: vec![inner],
        site: site(1),
    });
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        for limit in [3, 0, 1] {
            session.write_param(0, &mut HostArray { dtype: DType::U8, shape: vec![], bytes: vec![limit] }).unwrap();
            session.run(&mut Vec::new()).unwrap();
            assert_eq!(i32s(&session.read_result(0).unwrap()), [(20 + 30 + 40 + 3) * limit as i32; 4]);
        }
    }
}

#[test]
fn while_and_if_may_differ_between_devices() {
    // while total < 5 * (x + 1) { if total < 2 { total += 1 } else { barrier along y; total += 2 } }, x the first coordinate: what
    // devices with the same x do is the same.
    let mut maker = Maker::new(&[3, 2]);
    let total = own_i32(&mut maker);
    let flag = maker.bytes(maker.all(), 1);
    let zero = maker.bytes(maker.all(), 4);
    let clear = maker.kernel(store, &[total], &[Scalar::Const(0)], ONE);
    let end = Scalar::Mul(
        Box::new(Scalar::Const(5)),
        Box::new(Scalar::Add(Box::new(Scalar::Coordinate(vec![0])), Box::new(ONE))),
    );
    let go_on = maker.kernel(less, &[total, flag], &[end], ONE);
    let small = maker.kernel(less, &[total, flag], &[Scalar::Const(2)], ONE);
    let add = |maker: &mut Maker, value| maker.kernel(accumulate, &[total, zero], &[ONE, Scalar::Const(value)], ONE);
    let (one, two) = (add(&mut maker, 1), add(&mut maker, 2));
    maker.step(clear);
    let branch = Step::If { flag, then: vec![one], otherwise: vec![sync(AxisSet::of(1), 5), two], site: site(4) };
    maker.step(Step::While { cond: vec![go_on], flag, body: vec![small, branch], site: site(3) });
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.run(&mut Vec::new()).unwrap();
        assert_eq!(i32s(&session.read_result(0).unwrap()), [6, 6, 10, 10, 16, 16]);
    }
}

#[test]
fn products_are_divided_by_those_who_share_them() {
    // c[b, m, n] = a[b, m, k] @ w[k, n], in the parts that a mesh of 1, 3 and 4 devices makes; along batch, rows and columns.
    for (b, m, n, k) in [(5, 4, 6, 3), (1, 33, 8, 5), (1, 2, 40, 7), (2, 3, 3, 0)] {
        let mut whole = Vec::new();
        for (devices, workers) in [(1, 1), (1, 2), (3, 2), (4, 3)] {
            let mut maker = Maker::new(&[devices]);
            let none = AxisSet::EMPTY;
            let a = maker.param(&layout(DType::F32, &[(b, &[]), (m, &[]), (k, &[])]), none);
            let w = maker.param(&layout(DType::F32, &[(k, &[]), (n, &[])]), none);
            let c = maker.result(&layout(DType::F32, &[(b, &[]), (m, &[]), (n, &[])]), none);
            let dim = |extent: usize, a: usize, b: usize, c: usize| GemmDim {
                extent: Scalar::Const(extent as i64),
                a: a as i64,
                b: b as i64,
                c: c as i64,
            };
            maker.step(Step::Gemm(GemmStep {
                dtype: DType::F32,
                operands: [DType::F32; 2],
                a,
                b: w,
                c,
                m: dim(m, k, 0, n),
                n: dim(n, 0, 1, 1),
                k: dim(k, 1, n, 0),
                loops: vec![dim(b, m * k, 0, m * n)],
                contracted: vec![],
                split: AxisSet::of(0),
                ring: None,
                site: site(1),
            }));
            let mut session = maker.load(workers).unwrap();
            let ramp = |len: usize| (0..len).map(|i| i as f32).collect::<Vec<_>>();
            session.write_param(0, &mut from_f32s(&[b, m, k], &ramp(b * m * k))).unwrap();
            session.write_param(1, &mut from_f32s(&[k, n], &ramp(k * n))).unwrap();
            session.run(&mut Vec::new()).unwrap();
            let result = f32s(&session.read_result(0).unwrap());
            if whole.is_empty() {
                let at = |i: usize| (0..k).map(|j| ((i / n * k + j) * (j * n + i % n)) as f32).sum::<f32>();
                assert_eq!(result, (0..b * m * n).map(at).collect::<Vec<_>>());
                whole = result;
            } else {
                assert_eq!(result, whole);
            }
        }
    }
}

#[test]
fn indices_are_checked() {
    let mut maker = Maker::new(&[2, 2]);
    let index = maker.param(&layout(DType::I8, &[]), AxisSet::EMPTY);
    let checked = maker.result(&layout(DType::I64, &[]), AxisSet::EMPTY);
    maker.step(Step::CheckIndex { index, dtype: DType::I8, extent: 4, len: 1, to: checked, site: site(9) });
    maker.step(sync(maker.all(), 10));
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        // The session can be used again after an error.
        for (value, expected) in [(3i8, Ok(3)), (9, Err(9)), (-1, Ok(3)), (-4, Ok(0)), (-5, Err(-5)), (0, Ok(0))] {
            let mut value = HostArray { dtype: DType::I8, shape: vec![], bytes: vec![value as u8] };
            session.write_param(0, &mut value).unwrap();
            match (session.run(&mut Vec::new()), expected) {
                (Ok(_), Ok(expected)) => {
                    assert_eq!(session.read_result(0).unwrap().bytes, i64::to_ne_bytes(expected));
                }
                (Err(error), Err(index)) => {
                    assert_eq!(error.message, format!("index {index} is out of bounds for a dimension of size 4"));
                    assert_eq!((error.code, error.site), (RunCode::E0801, Some(site(9))));
                }
                (result, _) => panic!("{result:?} instead of {expected:?}"),
            }
        }
    }
}

#[test]
fn a_failing_device_wakes_all_others() {
    // Device 4 fails while all others wait, some of them only for those who wait for it. A dimension of one element split along
    // the second axis has a block on the first device only.
    let mut maker = Maker::new(&[2, 4]);
    let first_of_row = Scalar::BlockLen(LayoutDim { size: 1, axes: vec![1] });
    let fail = maker.kernel(fail_if, &[], &[Scalar::Coordinate(vec![0])], first_of_row.clone());
    let late = maker.kernel(sleep, &[], &[Scalar::Const(30)], first_of_row);
    maker.step(late);
    maker.step(fail);
    maker.step(sync(AxisSet::of(1), 5));
    maker.step(sync(AxisSet::of(0), 6));
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        let start = Instant::now();
        for _ in 0..3 {
            let error = session.run(&mut Vec::new()).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (RunCode::E0802, "integer division by zero"));
            assert_eq!(error.site, Some(site(41)));
        }
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn the_first_failure_in_program_order_is_reported() {
    // Devices with y = 0 fail at once; those with y = 1 come late, wait at one more barrier, and fail before that point in the program.
    let mut maker = Maker::new(&[2, 2]);
    let y = || Scalar::Coordinate(vec![1]);
    let not_y = Scalar::Add(Box::new(ONE), Box::new(Scalar::Mul(Box::new(Scalar::Const(-1)), Box::new(y()))));
    let late = Scalar::Mul(Box::new(Scalar::Const(20)), Box::new(y()));
    let nap = maker.kernel(sleep, &[], &[late], ONE);
    let early = maker.kernel(fail_if, &[], &[y()], ONE);
    let later = maker.kernel(fail_if, &[], &[not_y], ONE);
    for step in [nap, sync(AxisSet::of(0), 2), early, sync(AxisSet::of(0), 3), later, sync(maker.all(), 4)] {
        maker.step(step);
    }
    for workers in 1..=4 {
        let mut session = maker.load(workers).unwrap();
        for _ in 0..5 {
            assert_eq!(session.run(&mut Vec::new()).unwrap_err().site, Some(site(42)), "{workers} workers");
        }
    }
}

#[test]
fn a_wait_that_is_too_long_names_who_is_missing() {
    let mut maker = Maker::new(&[2]);
    let scalar = Scalar::Mul(Box::new(Scalar::Const(400)), Box::new(device_number(1)));
    let nap = maker.kernel(sleep, &[], &[scalar], ONE);
    maker.step(nap);
    let value = layout(DType::F32, &[(2, &[])]);
    let (from, to) = (maker.buffer(&value, maker.all()), maker.buffer(&value, AxisSet::EMPTY));
    maker.step(Step::Sync { group: maker.all(), kind: Some(CollectiveKind::AllReduce), site: site(7) });
    maker.step(Step::Reduce(ReduceStep {
        kind: CollectiveKind::AllReduce,
        op: ReduceOp::Sum,
        group: maker.all(),
        reduce: maker.all(),
        from: Shards { place: from, layout: value.clone() },
        to: Shards { place: to, layout: value },
        bytes: 8,
        product: None,
        counts: true,
        site: site(7),
    }));
    let options = |ms| RunOptions { timeout: Duration::from_millis(ms), workers: Some(2), ..RunOptions::default() };
    let mut session = maker.load_with(options(300)).unwrap();
    let error = session.run(&mut Vec::new()).unwrap_err();
    assert_eq!((error.code, error.site), (RunCode::E0804, Some(site(7))));
    assert_eq!(error.message, "the all_reduce of line 7 waited 300ms for device 1");
    // The device did come back in time for the next run.
    assert_eq!(session.run(&mut Vec::new()).unwrap_err().code, RunCode::E0804);
    // One that does not come back at all leaves the session unusable, but nobody waits for it.
    let mut session = maker.load_with(options(50)).unwrap();
    let start = Instant::now();
    assert_eq!(session.run(&mut Vec::new()).unwrap_err().code, RunCode::E0804);
    assert_eq!(session.run(&mut Vec::new()).unwrap_err().code, RunCode::E0999);
    drop(session);
    assert!(start.elapsed() < Duration::from_millis(350));
}

#[test]
fn a_posted_barrier_waits_for_nobody_until_it_is_awaited() {
    // Device 1 comes late: device 0 does what nobody waits for meanwhile, and reads then.
    let mut maker = Maker::new(&[2]);
    let number = own_i32(&mut maker);
    let (own, other) = (own_i32(&mut maker), own_i32(&mut maker));
    let nap = Scalar::Mul(Box::new(Scalar::Const(30)), Box::new(device_number(1)));
    let nap = maker.kernel(sleep, &[], &[nap], ONE);
    let write =
        maker.kernel(store, &[number], &[Scalar::Add(Box::new(Scalar::Const(7)), Box::new(device_number(1)))], ONE);
    let independent = maker.kernel(store, &[own], &[Scalar::Const(5)], ONE);
    let pass = Step::Permute(PermuteStep {
        axes: vec![0],
        source: vec![Some(1), Some(0)],
        from: number,
        to: other,
        bytes: 4,
        site: site(3),
    });
    let (group, kind) = (maker.all(), Some(CollectiveKind::CollectivePermute));
    let i = maker.bytes(maker.all(), 4);
    let body = vec![
        nap,
        write,
        Step::Post { group, site: site(3) },
        independent,
        Step::Await { group, kind, site: site(3) },
        pass,
        sync(group, 4),
    ];
    maker.step(Step::For { counter: i, start: Bound::Const(0), end: Bound::Const(3), body, site: site(1) });
    for workers in 1..=2 {
        let mut session = maker.load(workers).unwrap();
        session.run(&mut Vec::new()).unwrap();
        assert_eq!([0, 1, 2].map(|result| i32s(&session.read_result(result).unwrap())), [[7, 8], [5, 5], [8, 7]]);
    }
}

#[test]
fn who_has_posted_is_there_even_if_it_fails_then() {
    // Device 0 posts and fails later than device 1 does behind the barrier: the first failure in program order is reported.
    let mut maker = Maker::new(&[2]);
    let is = |number: i64| Scalar::Table { axes: vec![0], values: (0..2).map(|at| i64::from(at == number)).collect() };
    let (group, kind) = (maker.all(), None);
    let early = maker.kernel(fail_if, &[], &[is(0)], ONE);
    let nap = maker.kernel(sleep, &[], &[Scalar::Mul(Box::new(Scalar::Const(20)), Box::new(is(1)))], ONE);
    let steps = [Step::Post { group, site: site(2) }, nap, early, Step::Await { group, kind, site: site(2) }];
    steps.into_iter().for_each(|step| maker.step(step));
    maker.step(sync(group, 3));
    for workers in 1..=2 {
        for _ in 0..3 {
            let error = maker.load(workers).unwrap().run(&mut Vec::new()).unwrap_err();
            assert_eq!((error.code, error.site), (RunCode::E0802, Some(site(41))));
        }
    }
}

#[test]
fn barriers_are_posted_and_awaited_in_pairs() {
    let (group, kind) = (AxisSet::of(0), None);
    let (post, awaited) = (Step::Post { group, site: site(1) }, Step::Await { group, kind, site: site(2) });
    let branch = |maker: &mut Maker| {
        let flag = maker.bytes(group, 1);
        Step::If { flag, then: vec![], otherwise: vec![], site: site(3) }
    };
    let refused = |steps: &dyn Fn(&mut Maker) -> Vec<Step>| {
        let mut maker = Maker::new(&[2]);
        steps(&mut maker).into_iter().for_each(|step| maker.step(step));
        maker.load(1).err().map(|error| error.code)
    };
    assert_eq!(refused(&|_| vec![post.clone(), awaited.clone(), post.clone(), awaited.clone()]), None);
    assert_eq!(refused(&|_| vec![post.clone()]), Some(RunCode::E0999));
    assert_eq!(refused(&|_| vec![awaited.clone()]), Some(RunCode::E0999));
    assert_eq!(refused(&|_| vec![post.clone(), post.clone(), awaited.clone()]), Some(RunCode::E0999));
    assert_eq!(refused(&|_| vec![post.clone(), sync(group, 3), awaited.clone()]), Some(RunCode::E0999));
    assert_eq!(refused(&|maker| vec![post.clone(), branch(maker), awaited.clone()]), Some(RunCode::E0999));
}

#[test]
fn a_barrier_that_is_never_complete_is_an_error_even_on_one_worker() {
    // Device 0 waits for device 1, which has finished: a compiler's mistake, but no reason to hang.
    let mut maker = Maker::new(&[2]);
    let flag = maker.param(&layout(DType::Bool, &[(2, &[0])]), AxisSet::of(0));
    maker.step(Step::If { flag, then: vec![sync(AxisSet::of(0), 3)], otherwise: vec![], site: site(2) });
    for workers in 1..=2 {
        let options =
            RunOptions { timeout: Duration::from_millis(50), workers: Some(workers), ..RunOptions::default() };
        let mut session = maker.load_with(options).unwrap();
        session.write_param(0, &mut HostArray { dtype: DType::Bool, shape: vec![2], bytes: vec![1, 0] }).unwrap();
        let error = session.run(&mut Vec::new()).unwrap_err();
        assert!(error.code == RunCode::E0804 && error.message.ends_with("for device 1"), "{error}");
    }
}

#[test]
fn what_is_printed_comes_in_program_order() {
    let mut maker = Maker::new(&[2, 2]);
    let values = layout(DType::I32, &[(3, &[0])]);
    let x = maker.param(&values, AxisSet::of(0));
    let number = own_i32(&mut maker);
    let i = maker.bytes(maker.all(), 4);
    let count = maker.kernel(store, &[number], &[device_number(2)], ONE);
    let scalar = layout(DType::I32, &[]);
    let print = |text: &str, values: Vec<PrintValue>| Step::Print {
        text: text.into(),
        values,
        purpose: TextPurpose::Line,
        site: site(1),
    };
    let varying = |axes| PrintValue { place: number, layout: scalar.clone(), varying: axes };
    let body = vec![
        print("trip {}", vec![PrintValue { place: i, layout: scalar.clone(), varying: AxisSet::EMPTY }]),
        print("x = {}", vec![PrintValue { place: x, layout: values.clone(), varying: AxisSet::EMPTY }]),
    ];
    maker.step(count);
    maker.step(Step::For { counter: i, start: Bound::Const(0), end: Bound::Const(2), body, site: site(1) });
    maker.step(print("on {}", vec![varying(AxisSet::of(1))]));
    let bytes = [7i32, 8, 9].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let mut array = HostArray { dtype: DType::I32, shape: vec![3], bytes };
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        session.write_param(0, &mut array).unwrap();
        let mut out = Vec::new();
        session.run(&mut out).unwrap();
        let text = "trip 0\nx = [7 8 9]\ntrip 1\nx = [7 8 9]\nA=0: on 0\nA=1: on 1\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}

#[test]
fn a_panic_is_an_internal_error() {
    struct Broken;

    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("no paper")
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut maker = Maker::new(&[4]);
    maker.step(Step::Print { text: "hello".into(), values: vec![], purpose: TextPurpose::Line, site: site(1) });
    maker.step(sync(maker.all(), 2));
    for workers in 1..=3 {
        let mut session = maker.load(workers).unwrap();
        let error = session.run(&mut Broken).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (RunCode::E0999, "a worker panicked: no paper"));
        let mut out = Vec::new();
        session.run(&mut out).unwrap();
        assert_eq!(out, b"hello\n");
    }
}

#[test]
fn collectives_are_counted_once_per_execution() {
    let mut maker = Maker::new(&[4]);
    let (split, whole) = (layout(DType::F32, &[(8, &[0])]), layout(DType::F32, &[(8, &[])]));
    let (from, to) = (maker.buffer(&split, maker.all()), maker.buffer(&whole, AxisSet::EMPTY));
    let i = maker.bytes(maker.all(), 4);
    let gather = Step::Exchange(ExchangeStep {
        kind: CollectiveKind::AllGather,
        group: maker.all(),
        from: Shards { place: from, layout: split },
        to: Shards { place: to, layout: whole },
        bytes: 8,
        counts: true,
        site: site(1),
    });
    let mut rest = gather.clone();
    let Step::Exchange(part) = &mut rest else { unreachable!() };
    part.counts = false;
    maker.step(Step::For {
        counter: i,
        start: Bound::Const(0),
        end: Bound::Const(5),
        body: vec![gather, rest, sync(maker.all(), 1)],
        site: site(1),
    });
    let mut session = maker.load(2).unwrap();
    for _ in 0..2 {
        let report = session.run(&mut Vec::new()).unwrap();
        let total = report.collectives[0];
        // Two parts of one collective, of eight bytes each.
        assert_eq!((total.kind, total.count, total.bytes), (CollectiveKind::AllGather, 5, 80));
        assert_eq!(report.collectives.len(), 1);
    }
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let mut maker = Maker::new(&[2]);
    maker.param(&layout(DType::F32, &[(1 << 20, &[])]), maker.all());
    let options = |limit| RunOptions { memory_limit: limit, ..RunOptions::default() };
    let error = maker.load_with(options(Some(5 << 20))).err().unwrap();
    assert_eq!(error.message, "the program needs 8.0 MiB of memory, but only 5.0 MiB is available");
    assert_eq!((error.code, error.site), (RunCode::E0803, Some(site(1))));
    assert!(maker.load_with(options(Some(8 << 20))).is_ok());
    // Without a limit, what the machine has is one.
    maker.program.arenas[0].bytes = 1 << 46;
    maker.program.buffers[0].bytes = 1 << 46;
    assert_eq!(maker.load_with(options(None)).err().unwrap().code, RunCode::E0803);
}

#[test]
fn only_the_blocks_of_a_device_are_read() {
    /// Counts the reads.
    struct Source(HostArray, usize);

    impl spmdc_runtime::data::array::BlockSource for Source {
        fn dtype(&self) -> DType {
            self.0.dtype
        }

        fn shape(&self) -> &[usize] {
            &self.0.shape
        }

        fn read_block(
            &mut self,
            start: &[usize],
            len: &[usize],
            out: &mut [u8],
        ) -> Result<(), spmdc_runtime::errors::trap::RunError> {
            self.1 += out.len();
            self.0.read_block(start, len, out)
        }
    }

    // Uneven in both dimensions, and replicated along the third axis, with a copy for each of its coordinates.
    let mut maker = Maker::new(&[2, 3, 2]);
    let whole = layout(DType::U16, &[(5, &[0]), (7, &[1])]);
    let param = maker.param(&whole, maker.all());
    maker.program.results.push(Binding {
        name: "0".into(),
        second_name: None,
        ty: "?".into(),
        plane: None,
        layout: whole.clone(),
        place: Some(param),
    });
    let array = counting(DType::U16, &[5, 7]);
    let mut session = maker.load(2).unwrap();
    let mut source = Source(array.clone(), 0);
    session.write_param(0, &mut source).unwrap();
    assert_eq!(source.1, 70);
    for (device, block) in session.read_blocks(0).unwrap().iter().enumerate() {
        assert_eq!(block, &block_of(&array, &maker.mesh(), &whole, device));
    }
    let error = session.write_param(0, &mut HostArray::zeros(DType::U16, &[7, 5])).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (RunCode::E0701, "`x` has type ?, but u16[7, 5] was given"));
}

#[test]
fn damaged_programs_are_errors() {
    let mut maker = Maker::new(&[2, 2]);
    let value = layout(DType::F32, &[(4, &[0])]);
    let (a, b) = (maker.param(&value, AxisSet::of(0)), maker.result(&value, maker.all()));
    let kernel = maker.kernel(add_one, &[a, b], &[], Scalar::Const(2));
    let refused = |change: &dyn Fn(&mut Program)| {
        let mut damaged = maker.clone();
        change(&mut damaged.program);
        assert_eq!(damaged.load(2).err().expect("to be refused").code, RunCode::E0999);
    };
    assert!(maker.load(2).is_ok());
    let with = |step: Step| move |program: &mut Program| program.body.push(step.clone());
    let far = Place { arena: 1, offset: 1 << 20 };
    refused(&|program| program.abi_version += 1);
    refused(&|program| program.mesh[0].size = 0);
    refused(&|program| program.arenas[0].axes = AxisSet(1 << 9));
    refused(&|program| program.params[0].place = Some(Place { arena: 7, offset: 0 }));
    refused(&|program| program.params[0].place = Some(Place { arena: 0, offset: u64::MAX }));
    refused(&|program| program.params[0].layout.dims[0].axes = vec![0, 0]);
    refused(&|program| program.params[0].layout.dims[0].axes = vec![200]);
    refused(&|program| program.params[0].layout.dims[0].size = usize::MAX);
    refused(&|program| program.params[0].layout.dims[0].axes = vec![1]);
    refused(&with(sync(AxisSet::of(5), 1)));
    refused(&with(Step::CheckIndex { index: far, dtype: DType::I32, extent: 1, len: 1, to: a, site: site(1) }));
    refused(&with(Step::CheckIndex { index: a, dtype: DType::F32, extent: 1, len: 1, to: a, site: site(1) }));
    refused(&with(Step::Copy { from: a, to: b, bytes: 1 << 20, split: AxisSet::EMPTY }));
    refused(&with(Step::If { flag: far, then: vec![], otherwise: vec![], site: site(1) }));
    let (start, end) = (Bound::Const(0), Bound::Const(1));
    refused(&with(Step::For { counter: a, start, end, body: vec![], site: site(1) }));
    let Step::Kernel(good) = kernel else { unreachable!() };
    refused(&with(Step::Kernel(KernelStep { kernel: 1, ..good.clone() })));
    refused(&with(Step::Kernel(KernelStep { range: Scalar::Const(-1), ..good.clone() })));
    refused(&with(Step::Kernel(KernelStep { grain: 0, ..good.clone() })));
    refused(&with(Step::Kernel(KernelStep { range: Scalar::Coordinate(vec![9]), ..good })));
    let sides = |layout: &Layout, place| Shards { place, layout: layout.clone() };
    let exchange = ExchangeStep {
        kind: CollectiveKind::AllGather,
        group: maker.all(),
        from: sides(&value, a),
        to: sides(&value, b),
        bytes: 4,
        counts: true,
        site: site(1),
    };
    let other = layout(DType::F32, &[(3, &[0])]);
    refused(&with(Step::Exchange(ExchangeStep { to: sides(&other, b), ..exchange })));
    refused(&with(Step::Permute(PermuteStep {
        axes: vec![0],
        source: vec![Some(2), None],
        from: a,
        to: b,
        bytes: 8,
        site: site(1),
    })));
    let dim = |extent, a, b, c| GemmDim { extent: Scalar::Const(extent), a, b, c };
    let gemm = GemmStep {
        dtype: DType::F32,
        operands: [DType::F32; 2],
        a,
        b: a,
        c: b,
        m: dim(2, 1, 0, 1),
        n: dim(1, 0, 1, 1),
        k: dim(1, 1, 1, 0),
        loops: vec![],
        contracted: vec![],
        split: AxisSet::EMPTY,
        ring: None,
        site: site(1),
    };
    assert!({
        let mut good = maker.clone();
        good.step(Step::Gemm(gemm.clone()));
        good.load(1).is_ok()
    });
    refused(&with(Step::Gemm(GemmStep { m: dim(100, 1, 0, 1), ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { m: dim(2, -1, 0, 1), ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { m: dim(2, 1, 0, 0), ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { dtype: DType::F16, ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { dtype: DType::I32, ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { dtype: DType::I64, operands: [DType::I8; 2], ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { dtype: DType::I32, operands: [DType::I8, DType::I64], ..gemm.clone() })));
    let ring = GemmRing {
        kind: CollectiveKind::AllGather,
        bytes: 8,
        is_b: false,
        axes: vec![0],
        start: Scalar::Const(100),
        other: 0,
        c: 1,
    };
    refused(&with(Step::Gemm(GemmStep { ring: Some(ring.clone()), ..gemm.clone() })));
    refused(&with(Step::Gemm(GemmStep { ring: Some(GemmRing { axes: vec![7], ..ring }), ..gemm })));
}

#[test]
fn devices_are_carried_on_by_whoever_has_time() {
    // More workers than any machine has cores, so that most of them are off the processor most of the time.
    let mut maker = Maker::new(&[48]);
    let total = own_i32(&mut maker);
    let i = maker.bytes(maker.all(), 4);
    let clear = maker.kernel(store, &[total], &[Scalar::Const(0)], ONE);
    let add = maker.kernel(accumulate, &[total, i], &[Scalar::Const(10), ONE], ONE);
    let value = PrintValue { place: i, layout: layout(DType::I32, &[]), varying: AxisSet::EMPTY };
    let print = Step::Print { text: "{}".into(), values: vec![value], purpose: TextPurpose::Line, site: site(2) };
    let body = vec![add, sync(maker.all(), 1), print, sync(maker.all(), 3)];
    maker.step(clear);
    maker.step(Step::For { counter: i, start: Bound::Const(0), end: Bound::Const(200), body, site: site(1) });
    let text: String = (0..200).map(|i| format!("{i}\n")).collect();
    for workers in [2, 7, 48] {
        let mut session = maker.load(workers).unwrap();
        for _ in 0..3 {
            let mut out = Vec::new();
            session.run(&mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(i32s(&session.read_result(0).unwrap()), [10 * 199 * 100 + 200; 48]);
        }
    }
}
