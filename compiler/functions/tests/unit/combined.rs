//! Collectives of several arrays: layouts, traffic and values.

use crate::testing::{self, integers};
use spmdc_abi::{CollectiveKind, ReduceOp};
use spmdc_ir::rules::{Exchange, PlacesResults, Semantics};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::combined::Combined;

const Y: u8 = 1;

fn partial(shape: &[usize], combine: ReduceOp) -> Type {
    let mut ty = Type::replicated(ArrayType::new(DType::F32, shape));
    ty.sharding = ty.sharding.with_unreduced(AxisSet::of(Y.into()), combine);
    ty
}

#[test]
fn traffic_adds_up_and_parts_are_alike() {
    let mesh = testing::mesh();
    let op = Combined { kind: CollectiveKind::AllReduce, to: vec![Sharding::replicated(1), Sharding::replicated(2)] };
    let (x, y) = (partial(&[16], ReduceOp::Sum), partial(&[4, 8], ReduceOp::Sum));
    let results = op.place(&[&x, &y], &mesh).unwrap();
    assert_eq!(results[1], Type::replicated(y.array.clone()));
    let results: Vec<&Type> = results.iter().collect();
    assert_eq!(op.collective(&[&x, &y], &results, &mesh), (CollectiveKind::AllReduce, AxisSet::of(1)));
    let traffic = op.traffic(&[&x, &y], &results, &mesh);
    // On each of 8 devices, 3/2 of the elements of the operands.
    assert_eq!((traffic.operand, traffic.received, traffic.total), (vec![48], 288, 2304));
    for other in [partial(&[4, 8], ReduceOp::Max), Type::replicated(y.array.clone())] {
        assert!(op.place(&[&x, &other], &mesh).is_err());
    }
    assert!(op.place(&[&x], &mesh).is_err());
}

#[test]
fn whole_arrays_stay_as_they_are() {
    let (x, y) = (integers(&[2], &[1, 2]), integers(&[1], &[3]));
    let op = Combined { kind: CollectiveKind::AllGather, to: vec![Sharding::replicated(1); 2] };
    assert_eq!(op.eval(&[&x, &y]).unwrap(), [x, y]);
}
