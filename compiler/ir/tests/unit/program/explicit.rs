//! Explicit axes of dimensions that consist of several factors.

use spmdc_ir::program::explicit::{merge_factors, split_over_factors};
use spmdc_layout::factors::{Factor, FactorKind, Factors};
use spmdc_layout::mesh::{AxisKind, Mesh};

fn mesh() -> Mesh {
    let axis = |name: &str, size| spmdc_layout::mesh::Axis::new(name, size, AxisKind::Explicit);
    Mesh { axes: vec![axis("X", 2), axis("Y", 4)], ..Mesh::default() }
}

fn rule(sizes: &[usize]) -> Factors {
    let factors = sizes.iter().map(|&size| Factor { size, kind: FactorKind::Pass }).collect();
    Factors { factors, ..Factors::default() }
}

#[test]
fn axes_of_a_dimension_go_to_its_factors() {
    let rule = rule(&[2, 8]);
    let split = |axes: &[u8]| split_over_factors(&rule, &[0, 1], axes, &mesh());
    assert_eq!(split(&[0]), Some(vec![vec![0], vec![]]));
    assert_eq!(split(&[0, 1]), Some(vec![vec![0], vec![1]]));
    assert_eq!(split(&[1]), None);
}

#[test]
fn factors_merge_where_blocks_are_blocks() {
    let rule = rule(&[2, 8]);
    let merge = |axes: [&[u8]; 2]| merge_factors(&rule, &[0, 1], &axes.map(<[u8]>::to_vec).to_vec(), &mesh());
    assert_eq!(merge([&[0], &[]]), Some(vec![0]));
    assert_eq!(merge([&[0], &[1]]), Some(vec![0, 1]));
    assert_eq!(merge([&[], &[1]]), None);
}
