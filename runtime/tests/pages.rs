//! Large results leave the memory of a program without a copy, and later runs do not change them.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use spmdc_abi::*;

/// `buffers[1][i] = buffers[0][i] + 1`, elements of f32.
unsafe extern "C" fn add_one(buffers: *const *mut u8, _: *const i64, begin: i64, end: i64) -> i64 {
    // SAFETY: the programs below give it two buffers of their range.
    unsafe {
        let (from, to) = ((*buffers).cast::<f32>(), (*buffers.add(1)).cast::<f32>());
        (begin..end).for_each(|i| *to.add(i as usize) = *from.add(i as usize) + 1.0);
    }
    0
}

const SIZE: usize = 1_000_003;

/// A program whose only result is its parameter plus one, after `bytes` of another buffer.
fn program(sizes: &[usize], axes: &[u8], bytes: usize) -> Maker {
    let mut maker = Maker::new(sizes);
    let all = maker.all();
    maker.buffer(&layout(DType::U8, &[(bytes, &[])]), all);
    let whole = layout(DType::F32, &[(SIZE, axes)]);
    let (from, to) = (maker.param(&whole, all), maker.result(&whole, all));
    let step = maker.kernel(add_one, &[from, to], &[], Scalar::BlockLen(whole.dims[0].clone()));
    maker.step(step);
    maker
}

fn numbers(first: usize) -> Vec<f32> {
    (0..SIZE).map(|i| (first + i) as f32).collect()
}

#[test]
fn results_are_moved_and_stay() {
    for (sizes, axes, is_moved) in [(&[][..], &[][..], true), (&[2], &[], true), (&[2], &[0], false)] {
        for bytes in [0, 64, 70_000, 5_000_000] {
            let mut session = program(sizes, axes, bytes).load(2).unwrap();
            let mut taken = Vec::new();
            for run in 0..3 {
                session.write_param(0, &mut from_f32s(&[SIZE], &numbers(run))).unwrap();
                session.run(&mut Vec::new()).unwrap();
                taken.push(session.take_result(0).unwrap().unwrap());
            }
            drop(session);
            for (run, pages) in taken.iter().enumerate() {
                assert_eq!(pages.is_moved(), is_moved && cfg!(target_os = "linux"));
                let found = pages.as_slice().chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()));
                assert!(found.eq(numbers(run + 1)), "{sizes:?} {bytes}");
            }
        }
    }
}

#[test]
fn results_that_others_need_are_copied() {
    let mut maker = program(&[], &[], 0);
    // The parameter is a result, and the sum is two.
    let (param, sum) = (maker.program.params[0].clone(), maker.program.results[0].clone());
    maker.program.results.extend([param, sum]);
    let mut session = maker.load(1).unwrap();
    session.write_param(0, &mut from_f32s(&[SIZE], &numbers(0))).unwrap();
    for _ in 0..2 {
        session.run(&mut Vec::new()).unwrap();
        for (index, first) in [(0, 1), (1, 0), (2, 1)] {
            let pages = session.take_result(index).unwrap().unwrap();
            let found = pages.as_slice().chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap()));
            assert!(found.eq(numbers(first)) && !pages.is_moved());
        }
    }
}

#[test]
fn small_results_are_not_taken() {
    let mut maker = Maker::new(&[]);
    let whole = layout(DType::F32, &[(1000, &[])]);
    let (from, to) = (maker.param(&whole, maker.all()), maker.result(&whole, maker.all()));
    let step = maker.kernel(add_one, &[from, to], &[], Scalar::Const(1000));
    maker.step(step);
    let mut session = maker.load(1).unwrap();
    session.run(&mut Vec::new()).unwrap();
    assert!(session.take_result(0).unwrap().is_none());
}
