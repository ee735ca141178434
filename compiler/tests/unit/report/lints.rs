//! Tests of `report::lints`: what each lint finds.

use crate::testing::compiled;
use spmdc_compiler::report::lints::{Lint, Policy, findings};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Severity;
use spmdc_ir::program::{Module, Stage};

const PROGRAM: &str = "mesh (X = 2, Y = 4);
    fn main(x: f32[65@X, 16@Y], big: f32[4096, 2048@_]) -> f32 {
      let s = sum(x, axis=1);
      let whole = reshard(x, P());
      for i in 0..3 { print(\"{}\", sum(s ** f32(i))); }
      sum(s) + whole[0, 0] + big[0, 0]
    }";

fn partitioned(program: &str) -> Module {
    compiled(program).stage(Stage::Partitioned).unwrap().clone()
}

fn codes(policy: &Policy) -> Vec<(Code, Severity)> {
    let found = findings(&partitioned(PROGRAM), policy);
    found.iter().map(|diagnostic| (diagnostic.code, diagnostic.severity)).collect()
}

fn lint(name: &str, severity: Severity) -> Vec<(Code, Severity)> {
    codes(&Policy { lints: vec![(Lint::named(name).unwrap(), severity)], max_comm: None })
}

#[test]
fn lints_find_what_they_are_named_for() {
    let warned = |name| lint(name, Severity::Warning).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(warned("implicit-reshard"), [Code::E1001; 3]);
    assert_eq!(warned("full-gather"), [Code::E1002]);
    assert_eq!(warned("replicated-large"), [Code::E1003]);
    // `x`, and the sums of its rows.
    assert_eq!(warned("uneven-shard"), [Code::E1004; 2]);
    assert_eq!(warned("unused-axis"), []);
    assert_eq!(warned("all_gather"), [Code::E1006]);
    assert_eq!(lint("all_gather", Severity::Error), [(Code::E1006, Severity::Error)]);
    assert_eq!(warned("all_to_all"), []);
}

#[test]
fn an_axis_is_unused_if_all_devices_along_it_do_the_same() {
    let policy = Policy { lints: vec![(Lint::UnusedAxis, Severity::Warning)], max_comm: None };
    let unused = |axes: &str, program: &str| -> Vec<String> {
        let module = partitioned(&format!("mesh ({axes}); {program}"));
        findings(&module, &policy).into_iter().map(|diagnostic| diagnostic.message).collect()
    };
    let messages = unused("X = 2, Y = 4, Z = 1", "fn main(x: f32[8@X]) -> f32[8@X] { 2 * x }");
    assert_eq!(messages, ["nothing is split over `Y`: its 4 devices hold the same data and do the same work"]);
    assert_eq!(unused("X = 2, Y = 4", "fn main(x: f32[8@X]) -> f32 { sum(reshard(x, P(Y))) }"), [""; 0]);
    // The axis is cut: each dimension is split over a part of it.
    let cut = "fn main(x: f32[8@X]) -> f32[2, 4] { exp(reshape(x, (2, 4))) }";
    assert!(partitioned(&format!("mesh (X = 4); {cut}")).mesh.axes.len() > 1);
    assert_eq!(unused("X = 4", cut), [""; 0]);
}

#[test]
fn a_budget_is_for_the_whole_run() {
    let over = |max_comm| codes(&Policy { lints: Vec::new(), max_comm: Some(max_comm) }).len();
    assert_eq!((over(10), over(1 << 20)), (1, 0));
}
