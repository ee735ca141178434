//! The axes of factors as axes of dimensions, and back.

use crate::testing::mesh;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use spmdc_layout::projection::Projection;

/// `a,b->(ab)`
fn merge(a: usize, b: usize) -> Projection {
    let mut rule = Factors::new();
    let (a, b) = (rule.add(a, FactorKind::Pass), rule.add(b, FactorKind::Pass));
    rule.operands.push(vec![vec![a], vec![b]]);
    rule.results.push(vec![vec![a, b]]);
    Projection::new(rule)
}

#[test]
fn a_dimension_fills_its_factors_major_to_minor() {
    let mesh = mesh();
    let factors = |a, b, axes: &[u8]| {
        let projection = merge(a, b);
        let parts = projection.factors_of(&projection.rule.results[0], |_| axes, &mesh);
        parts.into_iter().map(|part| part.map(<[u8]>::to_vec)).collect::<Vec<_>>()
    };
    assert_eq!(factors(2, 8, &[0, 1]), [Some(vec![0]), Some(vec![1])]);
    assert_eq!(factors(8, 2, &[0, 1]), [Some(vec![0, 1]), Some(vec![])]);
    assert_eq!(factors(1, 8, &[0]), [Some(vec![]), Some(vec![0])]);
    assert_eq!(factors(3, 8, &[0]), [None, None]);
}

#[test]
fn axes_are_cut_where_factors_end() {
    let axis = |name: &str, size| Axis::new(name, size, AxisKind::Auto);
    let mesh = Mesh { axes: vec![axis("X", 2), axis("Y", 12)], ..Mesh::default() };
    let cuts = |sizes: &[usize], axes: &[u8]| {
        let mut rule = Factors::new();
        let factors: Vec<usize> = sizes.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        rule.results.push(vec![factors.clone()]);
        Projection::new(rule).cuts(&factors, axes, &mesh)
    };
    assert_eq!(cuts(&[2, 1, 24], &[1]), Some((1, vec![2])));
    assert_eq!(cuts(&[2, 3, 8], &[1]), Some((1, vec![2, 6])));
    assert_eq!(cuts(&[8, 3], &[0, 1]), Some((1, vec![4])));
    // A part may remain that fits no factor; an axis that fits needs no cut, nor does one without a common divisor.
    assert_eq!(cuts(&[9, 4], &[1]), Some((1, vec![3])));
    assert_eq!(cuts(&[9, 2], &[1]), None);
    assert_eq!(
        (cuts(&[24, 2], &[1]), cuts(&[2, 12], &[0, 1]), cuts(&[5, 12], &[1]), cuts(&[24], &[1])),
        (None, None, None, None)
    );
}

#[test]
fn blocks_do_not_straddle_factors() {
    let mesh = mesh();
    let valid = |a, b, axes: [&[u8]; 2]| merge(a, b).is_valid(&axes.map(<[u8]>::to_vec).to_vec(), &mesh);
    assert!(valid(8, 16, [&[0], &[]]));
    assert!(valid(2, 16, [&[0], &[1]]));
    assert!(!valid(8, 16, [&[], &[1]]));
    assert!(!valid(8, 16, [&[0], &[1]]));
    assert!(!valid(6, 16, [&[1], &[]]));
    assert!(!valid(8, 16, [&[0], &[0]]));
    // Blocks of 12, 12, 12 and 10 are 6, 6, 6 and 5 pairs; blocks of 7, 7 and 6 do not consist of whole pairs.
    assert!(valid(23, 2, [&[1], &[]]) && !valid(10, 2, [&[1], &[]]) && !valid(2, 23, [&[], &[1]]));
    let parts = merge(23, 2);
    let parts = parts.factors_of(&parts.rule.results[0], |_| &[1], &mesh);
    assert_eq!(parts, [Some([1].as_slice()), Some(&[])]);
}

#[test]
fn a_single_factor_need_not_divide() {
    let rule = Factors::elementwise(&[&[10]], &[10]);
    let projection = Projection::new(rule);
    assert!(projection.is_valid(&vec![vec![1]], &mesh()));
    assert_eq!(projection.factors_of(&[vec![0]], |_| &[0, 1], &mesh()), [Some([0, 1].as_slice())]);
}
