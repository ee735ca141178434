//! The factors of reshapes.

use spmdc_ir::rules::Semantics;
use spmdc_layout::factors::{DimFactors, FactorKind, Factors};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::reshape::Reshape;

fn factors(from: &[usize], to: &[usize]) -> Factors {
    let [operand, result] = [from, to].map(|shape| ArrayType::new(DType::F32, shape));
    Reshape::new(from, to).factors(&[&operand], &[&result])
}

/// The sizes of the factors of both shapes' dimensions.
fn rule(from: &[usize], to: &[usize]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let rule = factors(from, to);
    let sizes = |dims: &[DimFactors]| {
        dims.iter().map(|dim| dim.iter().map(|&f| rule.factors[f].size).collect()).collect::<Vec<Vec<usize>>>()
    };
    (sizes(&rule.operands[0]), sizes(&rule.results[0]))
}

#[test]
fn merging_and_cutting_share_factors() {
    assert_eq!(rule(&[8, 16], &[128]), (vec![vec![8], vec![16]], vec![vec![8, 16]]));
    assert_eq!(rule(&[6, 8], &[2, 3, 8]), (vec![vec![2, 3], vec![8]], vec![vec![2], vec![3], vec![8]]));
    assert_eq!(rule(&[5, 1, 7], &[5, 7]), (vec![vec![5], vec![1], vec![7]], vec![vec![5], vec![7]]));
}

#[test]
fn what_does_not_divide_is_needed_whole() {
    assert_eq!(rule(&[6, 8], &[8, 6]), (vec![vec![6], vec![8]], vec![vec![8], vec![6]]));
    assert!(factors(&[6, 8], &[8, 6]).factors.iter().all(|factor| factor.kind == FactorKind::Whole));
}
