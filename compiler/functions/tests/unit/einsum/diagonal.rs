//! Diagonals: types, factors, values, text and the parts of devices.

use crate::testing::{self, floats, int, integers};
use spmdc_abi::{ReduceOp, Scalar};
use spmdc_einsum_ops::diagonal::{Diagonal, own_part};
use spmdc_grammar::codes::Code;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType, Type};

#[test]
fn diagonals_are_taken_and_made() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let take = |k| testing::run("diag", std::slice::from_ref(&x), |x| x, &[("k", int(k))]).unwrap().floats();
    assert_eq!(take(0), [1.0, 5.0]);
    assert_eq!(take(1), [2.0, 6.0]);
    assert_eq!(take(-1), [4.0]);
    assert!(take(5).is_empty());
    let made = testing::run("diag", &[integers(&[2], &[7, 8])], |x| x, &[("k", int(1))]).unwrap();
    assert_eq!(made.ints(), [0, 7, 0, 0, 0, 8, 0, 0, 0]);
    let trace = testing::run("trace", &[floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], |x| x, &[]).unwrap();
    assert_eq!(trace.floats(), [5.0]);
}

#[test]
fn dimensions_of_a_diagonal_agree() {
    let (op, labels) = Diagonal::of_labels(&['i', 'k', 'i'], |_| false);
    assert_eq!((op.dims.as_slice(), labels.as_slice()), (&[0, 1, 0][..], &['i', 'k'][..]));
    assert_eq!(op.infer(&[&ArrayType::new(DType::F32, &[2, 3, 4])]).unwrap_err().code, Code::E0205);
    assert_eq!(op.print(&["v1".into()], &Mesh::default()), "einsum(\"aba->ab\", v1)");
    let (ty, result) = (ArrayType::new(DType::F32, &[2, 3, 2]), ArrayType::new(DType::F32, &[2, 3]));
    let rule = op.factors(&[&ty], &[&result]);
    assert_eq!(rule.operands[0][1], rule.results[0][1]);
    assert_eq!(rule.operands[0][0], rule.results[0][0]);
    assert_eq!(rule.factors[rule.operands[0][2][0]].kind, FactorKind::Reduce(ReduceOp::Sum));
}

#[test]
fn what_is_summed_has_no_dimension() {
    let (op, labels) = Diagonal::of_labels(&['i', 'k', 'i'], |label| *label == 'i');
    assert_eq!((op.summed.as_slice(), labels.as_slice()), (&[0][..], &['k'][..]));
    assert_eq!(op.print(&["v1".into()], &Mesh::default()), "einsum(\"aba->b\", v1)");
    let x = integers(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(op.eval(&[&x]).unwrap()[0].ints(), [7, 11]);
    assert_eq!(op.infer(&[&x.ty]).unwrap()[0].shape, [2]);
}

#[test]
fn blocks_meet_on_the_diagonal() {
    let mut ty = Type::replicated(ArrayType::new(DType::F32, &[5, 5]));
    ty.sharding = spmdc_layout::sharding::Sharding::closed(vec![vec![0], vec![1]]);
    let (len, max, begins) = own_part(&ty, &[0, 1], &testing::mesh());
    // Rows 0..3 and 3..5, columns 0..2, 2..4, 4..5 and none.
    let per_device = |values: [i64; 8]| Scalar::Table { axes: vec![0, 1], values: values.to_vec() };
    assert_eq!((len, max), (per_device([2, 1, 0, 0, 0, 1, 1, 0]), 2));
    assert_eq!(begins, [per_device([0, 2, 0, 0, 0, 0, 1, 0]), per_device([0, 0, 0, 0, 0, 1, 0, 0])]);
}
