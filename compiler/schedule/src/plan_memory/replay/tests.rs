//! Plans with one fault each, such as a mistake of the planner would make.
#![allow(clippy::unwrap_used)]

use super::accesses::sign_change;
use super::{MemoryPlan, offsets, replay, strides};
use crate::fuse::fuse;
use crate::order::schedule;
use crate::plan_memory::lifetimes::Lifetimes;
use crate::plan_memory::plan_memory;
use crate::plan_memory::storage::Storage;
use spmdc_abi::{AxisSet, GroupPanels, KernelStep, Program, Scalar, Site, Step};
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::pipeline::{Compilation, Options, compile};
use spmdc_ir::program::Stage;
use spmdc_kernel::loops::Inst;
use std::collections::BTreeSet;

fn compiled(source: &str) -> Compilation {
    let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    compile(&set, &Options::default()).unwrap()
}

/// The result of a replay of the program's plan after `change`.
fn changed(source: &str, change: impl FnOnce(&mut Program)) -> Result<(), String> {
    replayed(source, u64::MAX, change).map(|whole| assert!(whole))
}

/// As [`changed`], and whether the replay came to the end.
fn replayed(source: &str, most: u64, change: impl FnOnce(&mut Program)) -> Result<bool, String> {
    let compilation = compiled(source);
    let module = compilation.stage(Stage::Optimized).unwrap();
    let schedule = schedule(module, &fuse(&module.func, &module.mesh)).unwrap();
    let lifetimes = Lifetimes::new(&module.func, &schedule, &module.mesh);
    let storage = Storage::new(&schedule, &lifetimes, &module.mesh);
    let planned = plan_memory(module, &schedule, &|_| Site::default(), None).unwrap();
    let (mut program, kernels) = (planned.program, planned.kernels);
    change(&mut program);
    let plan = MemoryPlan {
        func: &module.func,
        schedule: &schedule,
        lifetimes: &lifetimes,
        storage: &storage,
        program: &program,
        kernels: &kernels,
    };
    replay(&plan, most)
}

fn each_kernel(steps: &mut [Step], change: &mut dyn FnMut(&mut KernelStep)) {
    for step in steps {
        if let Step::Kernel(kernel) = step {
            change(kernel);
        } else if let Step::For { body, .. } = step {
            each_kernel(body, change);
        }
    }
}

const WINDOW: &str = "mesh (X = 2); fn main(p: f32[400@X, 64]) { let q = reshard(p[3:], P()); (q, sum(q)) }";
const LOOP: &str =
    "fn main(x: f32[100]) { let mut u = x; for i in 0..3 { let v = u * 2; u = v + flip(u) + sum(v); } (u, x + 1) }";

#[test]
fn right_plans_are_right() {
    assert_eq!(changed(WINDOW, |_| ()), Ok(()));
    assert_eq!(changed(LOOP, |_| ()), Ok(()));
}

#[test]
fn what_is_stored_once_counts_once() {
    // An argument of 4 MiB, in one instance for all devices.
    let whole = |most| replayed("mesh (X = 64); fn main(x: f32[1048576]) { x[5] }", most, |_| ());
    assert_eq!(whole(8192), Ok(true));
    assert_eq!(whole(2048), Ok(false));
}

#[test]
fn shares_must_cover_what_is_stored_once() {
    let divided_part_by_part = |program: &mut Program| {
        each_kernel(&mut program.body, &mut |kernel| {
            if let Some(part) = kernel.part.take() {
                kernel.range = part.len;
            }
        });
    };
    let fault = changed(WINDOW, divided_part_by_part).unwrap_err();
    assert!(fault.contains("two devices write") || fault.contains("where [] lies"), "{fault}");
}

#[test]
fn shares_must_not_overlap() {
    let all_write_all = |program: &mut Program| {
        each_kernel(&mut program.body, &mut |kernel| kernel.split = AxisSet::EMPTY);
    };
    let fault = changed(WINDOW, all_write_all).unwrap_err();
    assert!(fault.contains("two devices write"), "{fault}");
}

#[test]
fn what_is_needed_must_not_be_overwritten() {
    // Each kernel in turn writes where the one before did.
    let count = |program: &mut Program| {
        let mut count = 0;
        each_kernel(&mut program.body, &mut |_| count += 1);
        count
    };
    let mut kernels = 0;
    changed(LOOP, |program| kernels = count(program)).unwrap();
    assert!(kernels > 2);
    for wrong in 0..kernels {
        let mut at = 0;
        let shifted = |program: &mut Program| {
            each_kernel(&mut program.body, &mut |kernel| {
                if at == wrong
                    && let Some(last) = kernel.buffers.last_mut()
                {
                    last.offset = last.offset.checked_sub(64).unwrap_or(64);
                }
                at += 1;
            });
        };
        assert!(changed(LOOP, shifted).is_err(), "kernel {wrong} uses memory of something else");
    }
}

#[test]
fn buffers_have_ends() {
    let longer = |program: &mut Program| {
        each_kernel(&mut program.body, &mut |kernel| {
            kernel.range = spmdc_abi::Scalar::Const(101);
        });
    };
    assert!(changed("fn main(x: f32[100]) { exp(x) }", longer).unwrap_err().contains("behind its end"));
}

#[test]
fn panels_must_not_overlap() {
    let joined = |program: &mut Program| {
        let mut kernels = Vec::new();
        each_kernel(&mut program.body, &mut |kernel| kernels.push(kernel.clone()));
        program.body.retain(|step| !matches!(step, Step::Kernel(_)));
        program.body.push(Step::Panels { lags: vec![0; kernels.len()], kernels, panel: 1 });
    };
    let by_rows = "fn main(x: f32[100, 64]) { let s = sum(x, axis=1); let t = s * s; (t[:, None] + x, t) }";
    assert_eq!(changed(by_rows, joined), Ok(()));
    let backwards = "fn main(x: f32[100, 64]) { let s = sum(x, axis=1); (s, flip(s)) }";
    assert!(changed(backwards, joined).unwrap_err().contains("one panel reads byte"));
}

#[test]
fn lags_must_be_long_enough() {
    let source = "fn main(x: f32[1000, 128]) { let mut u = exp(x); let mut v = exp(2 * x); v[1:999] = u[:998] + u[2:]; \
                  u[1:999] = v[:998] + v[2:]; v[1:999] = u[:998] + u[2:]; (u, v) }";
    let with = |given: Option<[u64; 5]>| {
        let mut planned = Vec::new();
        let result = changed(source, |program| {
            for step in &mut program.body {
                if let Step::Panels { lags, .. } = step {
                    planned.clone_from(lags);
                    given.iter().for_each(|given| *lags = given.to_vec());
                }
            }
        });
        (planned, result)
    };
    assert_eq!(with(None), (vec![0, 0, 2, 3, 4], Ok(())));
    assert_eq!(with(Some([0, 1, 5, 9, 20])).1, Ok(()));
    assert!(with(Some([0, 0, 2, 2, 4])).1.unwrap_err().contains("before an earlier kernel"));
    assert!(with(Some([1, 0, 2, 3, 4])).1.unwrap_err().contains("before an earlier kernel"));
    assert!(with(Some([0; 5])).1.unwrap_err().contains("panel"));
}

#[test]
fn panels_of_groups_must_not_overlap() {
    // All steps of the program as the panels of a group; where `wrong`, kernels write rows of others.
    let joined = |wrong: bool| {
        move |program: &mut Program| {
            program.body.retain(|step| !matches!(step, Step::Sync { .. } | Step::Post { .. } | Step::Await { .. }));
            if let Some(Step::Kernel(last)) = program.body.last_mut()
                && wrong
            {
                last.range = Scalar::Const(1);
            }
            let (group, steps) = (AxisSet::of(0), std::mem::take(&mut program.body));
            let panels = GroupPanels { group, split: AxisSet::EMPTY, steps, panel: 1, grain: 1 };
            program.body.push(Step::GroupPanels(panels));
        }
    };
    let rows = "mesh (X = 2); fn main(x: f32[100, 64@X]) { x - max(x, axis=1, keepdims=true) }";
    assert_eq!(changed(rows, joined(false)), Ok(()));
    let fault = changed(rows, joined(true)).unwrap_err();
    assert!(fault.contains("several ranges") || fault.contains("lies"), "{fault}");
    let backwards = "mesh (X = 2); fn main(x: f32[100, 64@X]) { x - flip(max(x, axis=1, keepdims=true), axis=0) }";
    let fault = changed(backwards, joined(false)).unwrap_err();
    assert!(fault.contains("one panel reads byte"), "{fault}");
}

#[test]
fn runs_are_the_elements_at_all_points() {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    };
    for _ in 0..500 {
        let rank = draw(4) as usize;
        let (lens, strides): (Vec<i64>, Vec<i64>) = (0..rank).map(|_| (draw(5), draw(13) - 2)).unzip();
        let mut points = vec![0];
        for (len, stride) in lens.iter().zip(&strides) {
            points = points.iter().flat_map(|at| (0..*len).map(move |i| at + i * stride)).collect();
        }
        let runs = offsets(lens.clone(), &strides).into_iter();
        let found: BTreeSet<i64> = runs.flat_map(|(at, run)| at..at + run as i64).collect();
        assert_eq!(found, points.into_iter().collect(), "{lens:?} with strides {strides:?}");
    }
    assert_eq!(offsets(vec![3, 4, 5], &strides(&[3, 4, 5])), [(0, 60)]);
    assert_eq!(offsets(vec![3, 4, 4], &strides(&[3, 4, 5])).len(), 12, "rows with gaps");
    assert_eq!(offsets(vec![6, 3], &[1, 2]), [(0, 10)], "windows that overlap");
    assert_eq!(offsets(vec![4, 4], &[0, -1]).len(), 4, "a reversed row");
    assert_eq!(offsets(vec![], &[]), [(0, 1)]);
    assert_eq!(offsets(vec![2, 0], &[1, 1]), []);
}

#[test]
fn a_sign_changes_after_the_last_step_without_a_change() {
    for value in -9..10i64 {
        for slope in -4..5 {
            let changed = (1..100).find(|step| (value + step * slope >= 0) != (value >= 0));
            assert_eq!(sign_change(value, slope), changed.unwrap_or(i64::MAX), "{value} by steps of {slope}");
        }
    }
}

#[test]
fn conditional_reads_are_those_of_every_point() {
    // Along the innermost dimension the operands are read between zeros only.
    for (source, operands) in [
        ("fn main(x: f32[4, 5]) { sum(pad(x, pad_width=3), axis=1) }", 1),
        ("fn main(x: f32[4, 5], y: f32[4, 5]) { sum(pad(x, pad_width=3) * flip(pad(y, pad_width=3)), axis=1) }", 2),
        ("mesh (X = 2); fn main(x: f32[3, 12@X]) { pad(x, pad_width=2) * 2 }", 1),
    ] {
        let kernels = compiled(source).kernels;
        let mut insts = kernels.iter().flat_map(|kernel| &kernel.insts);
        assert!(insts.any(|inst| matches!(inst, Inst::InRange { .. })), "{source} has no condition");
        assert_eq!(changed(source, |_| {}), Ok(()), "{source}");
        for slot in 0..operands {
            let shifted = |program: &mut Program| {
                each_kernel(&mut program.body, &mut |kernel| kernel.buffers[slot].offset += 4);
            };
            let fault = changed(source, shifted).unwrap_err();
            assert!(fault.contains("reads byte"), "{source}: {fault}");
        }
    }
}
