//! Tests of `propagate::step`: the axes that tensors around one op take from each other.

use spmdc_abi::ReduceOp;
use spmdc_grammar::span::Span;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::mesh::{Axis, AxisKind};
use spmdc_layout::projection::Projection;
use spmdc_layout::types::AxisSet;
use spmdc_passes::propagate::step::{Choices, OpNode, PropagationStage, Slot, SlotDim};

const X: u8 = 0;
const Y: u8 = 1;

fn mesh() -> Mesh {
    let axis = |name: &str, size| Axis::new(name, size, AxisKind::Auto);
    Mesh { axes: vec![axis("X", 2), axis("Y", 4)], ..Mesh::default() }
}

fn slot(dims: &[(usize, &[u8])]) -> Slot {
    let bytes = dims.iter().map(|dim| dim.0).product::<usize>() * 4;
    let dims =
        dims.iter().map(|&(size, axes)| SlotDim { size, axes: axes.to_vec(), first: 0, pinned: false }).collect();
    Slot { dims, bytes, allowed: AxisSet::all(2), causes: Vec::new() }
}

/// Steps until nothing changes; then the axes of each tensor, as `X,_`.
fn settle(rule: Factors, mut slots: Vec<Slot>, stage: PropagationStage) -> Vec<String> {
    let (span, op) = (Span::default(), "test");
    let node = OpNode { projection: Projection::new(rule), slots: (0..slots.len()).collect(), span, op };
    while node.step(&mut slots, &mesh(), stage, Choices::NONE, &mut Choices::default()) {}
    let dim = |dim: &SlotDim| if dim.axes.is_empty() { "_".to_string() } else { mesh().display_axes(&dim.axes) };
    slots.iter().map(|slot| slot.dims.iter().map(dim).collect::<Vec<_>>().join(",")).collect()
}

fn add(x: [&[u8]; 2], y: [&[u8]; 2], stage: PropagationStage) -> Vec<String> {
    let rule = Factors::elementwise(&[&[8, 16], &[8, 16]], &[8, 16]);
    let slots = vec![slot(&[(8, x[0]), (16, x[1])]), slot(&[(8, y[0]), (16, y[1])]), slot(&[(8, &[]), (16, &[])])];
    settle(rule, slots, stage)
}

#[test]
fn operands_complete_each_other() {
    assert_eq!(add([&[X], &[]], [&[], &[Y]], PropagationStage::Carry), ["X,Y", "X,Y", "X,Y"]);
}

#[test]
fn an_axis_splits_one_dimension_only() {
    assert_eq!(add([&[X], &[]], [&[], &[X]], PropagationStage::Carry), ["X,_", "_,X", "X,_"]);
}

#[test]
fn an_axis_splits_one_factor_of_a_dimension_only() {
    let mut rule = Factors::new();
    let (a, b) = (rule.add(2, FactorKind::Pass), rule.add(8, FactorKind::Pass));
    rule.operands.push(vec![vec![a], vec![b]]);
    rule.results.push(vec![vec![a, b]]);
    let slots = vec![slot(&[(2, &[]), (8, &[X])]), slot(&[(16, &[X])])];
    assert_eq!(settle(rule, slots, PropagationStage::All), ["_,X", "X"]);
}

#[test]
fn where_operands_differ_more_blocks_win_in_the_end() {
    assert_eq!(add([&[X], &[]], [&[Y], &[]], PropagationStage::Pass), ["X,_", "Y,_", "_,_"]);
    assert_eq!(add([&[X], &[]], [&[Y], &[]], PropagationStage::All), ["X,_", "Y,_", "Y,_"]);
}

#[test]
fn contracted_dimensions_wait_for_the_last_stage() {
    let rule = || {
        let kind = |c| if c == 'k' { FactorKind::Reduce(ReduceOp::Sum) } else { FactorKind::Pass };
        Factors::labelled(&[vec![('i', 8), ('k', 16)], vec![('k', 16), ('j', 4)]], &[('i', 8), ('j', 4)], kind)
    };
    let slots = || vec![slot(&[(8, &[X]), (16, &[Y])]), slot(&[(16, &[]), (4, &[])]), slot(&[(8, &[]), (4, &[])])];
    assert_eq!(settle(rule(), slots(), PropagationStage::Carry), ["X,Y", "_,_", "_,_"]);
    assert_eq!(settle(rule(), slots(), PropagationStage::Pass), ["X,Y", "_,_", "X,_"]);
    assert_eq!(settle(rule(), slots(), PropagationStage::All), ["X,Y", "Y,_", "X,_"]);
}

#[test]
fn pinned_and_tiny_dimensions_stay() {
    let rule = |size| Factors::elementwise(&[&[size]], &[size]);
    let mut pinned = slot(&[(8, &[])]);
    pinned.dims[0].pinned = true;
    assert_eq!(settle(rule(8), vec![slot(&[(8, &[X])]), pinned], PropagationStage::All), ["X", "_"]);
    // Eight blocks of three elements would be mostly empty.
    assert_eq!(settle(rule(3), vec![slot(&[(3, &[X, Y])]), slot(&[(3, &[])])], PropagationStage::All), ["(X,Y)", "X"]);
}
