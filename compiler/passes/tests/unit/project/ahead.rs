//! Tests of `project::ahead`: where the meshes of a pipeline may cut a loop.

use spmdc_passes::project::ahead::{Ends, LoopCut, cut_of_each};
use std::collections::BTreeSet;

/// The ends of transfers of statements: positive numbers are received, negative ones sent.
fn mesh(ends: &[i64]) -> Vec<Ends> {
    let one = |&end: &i64| {
        let channel = BTreeSet::from([end.unsigned_abs() as u32]);
        match end < 0 {
            true => Ends { sends: channel, ..Ends::default() },
            false => Ends { receives: channel, ..Ends::default() },
        }
    };
    ends.iter().map(one).collect()
}

#[test]
fn stages_wait_for_the_answers_of_those_behind_them() {
    let stages = [mesh(&[-1, 6]), mesh(&[1, -2, 5, -6]), mesh(&[2, -3, 4, -5]), mesh(&[3, -4])];
    let cut = |before, distance| Some(LoopCut { before, distance });
    assert_eq!(cut_of_each(&stages), [cut(1, 3), cut(2, 2), cut(2, 1), None]);
}

#[test]
fn values_that_only_go_forward_are_no_answers() {
    let stages = [mesh(&[-1, -2]), mesh(&[1, -3]), mesh(&[2, 3])];
    assert_eq!(cut_of_each(&stages), [None, None, None]);
    // What a mesh sends after it has received does not make that an answer.
    assert_eq!(cut_of_each(&[mesh(&[1, -2]), mesh(&[-1, 2])]), [None, Some(LoopCut { before: 1, distance: 1 })]);
}
