//! Products of two arrays: types, values, factors and the loops that they become.

mod contract;
mod diagonal;

use crate::testing;
use spmdc_abi::{ReduceOp, Scalar};
use spmdc_einsum_ops::einsum::Einsum;
use spmdc_grammar::codes::Code;
use spmdc_ir::lower::work::{Lowering, ProductDim, Temporaries, Work};
use spmdc_ir::program::Value;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::rules::{Infer, NestLowering, Reads, Semantics};
use spmdc_layout::factors::FactorKind;
use spmdc_layout::types::{ArrayType, DType};

fn einsum(text: &str) -> Einsum {
    let (operands, result) = text.split_once("->").unwrap();
    let (lhs, rhs) = operands.split_once(',').unwrap();
    Einsum { lhs: lhs.into(), rhs: rhs.into(), result: result.into(), out: None }
}

fn f32s(shape: &[usize]) -> ArrayType {
    ArrayType::new(DType::F32, shape)
}

#[test]
fn letters_are_checked() {
    let ty = einsum("ik,kj->ji").infer(&[&f32s(&[2, 3]), &f32s(&[3, 4])]).unwrap();
    assert_eq!(ty, [f32s(&[4, 2])]);
    let error = |text: &str, a: &[usize], b: &[usize]| einsum(text).infer(&[&f32s(a), &f32s(b)]).unwrap_err().code;
    assert_eq!(error("ik,kj->ij", &[2, 3], &[4, 4]), Code::E0205);
    assert_eq!(error("ik,kj->i", &[2, 3], &[3, 4]), Code::E0216);
    assert_eq!(error("ii,ij->j", &[2, 2], &[2, 4]), Code::E0216);
    let small = ArrayType::new(DType::I8, &[2, 2]);
    assert_eq!(einsum("ik,kj->ij").infer(&[&small, &small]).unwrap_err().code, Code::E0215);
}

#[test]
fn contracted_letters_are_summed() {
    let a = testing::floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let b = testing::floats(&[2, 2], &[5.0, 6.0, 7.0, 8.0]);
    assert_eq!(einsum("ik,kj->ij").eval(&[&a, &b]).unwrap()[0].floats(), [19.0, 22.0, 43.0, 50.0]);
    assert_eq!(einsum("ik,kj->ji").eval(&[&a, &b]).unwrap()[0].floats(), [19.0, 43.0, 22.0, 50.0]);
    assert_eq!(einsum("ij,ij->").eval(&[&a, &b]).unwrap()[0].floats(), [70.0]);
    assert_eq!(einsum("bi,bi->b").eval(&[&a, &b]).unwrap()[0].floats(), [17.0, 53.0]);
    let op = einsum("ik,kj->ij");
    let (ta, tb, tc) = (f32s(&[2, 3]), f32s(&[3, 4]), f32s(&[2, 4]));
    let rule = op.factors(&[&ta, &tb], &[&tc]);
    assert_eq!(rule.operands[0][1], rule.operands[1][0]);
    assert_eq!(rule.factors[rule.operands[0][1][0]].kind, FactorKind::Reduce(ReduceOp::Sum));
    assert_eq!(op.flops(&[&ta, &tb], &[&tc]), 48);
}

fn lowered(text: &str, a: &[usize], b: &[usize]) -> Vec<Work> {
    lowered_of(DType::F32, text, a, b)
}

fn lowered_of(dtype: DType, text: &str, a: &[usize], b: &[usize]) -> Vec<Work> {
    let mut build = testing::builder();
    let (x, y) = (testing::parameter(&mut build, dtype, a), testing::parameter(&mut build, dtype, b));
    build.emit1(einsum(text), &[x, y]).unwrap();
    let stmt = build.blocks()[0].stmts[0].clone();
    let inlined = vec![None; build.value_count()];
    let temporaries = Temporaries::starting_at(build.value_count() as u32);
    let mut lowering = Lowering {
        func: build.func(),
        mesh: build.mesh(),
        inlined: &inlined,
        work: Vec::new(),
        temporaries: &temporaries,
        is_last_use: false,
        origin: Origin::default(),
    };
    einsum(text).lower(&mut lowering, &stmt).unwrap();
    lowering.work
}

#[test]
fn neighbouring_dimensions_merge() {
    let work = lowered("bihk,kj->bihj", &[5, 4, 3, 32], &[32, 6]);
    let [Work::Product { product, .. }] = work.as_slice() else { panic!("{work:?}") };
    let dim = |len: i64, a, b, c| ProductDim { extent: Scalar::Const(len), a, b, c };
    assert_eq!(product.m, dim(60, 32, 0, 6));
    assert_eq!(product.n, dim(6, 0, 1, 1));
    assert_eq!(product.k, dim(32, 1, 6, 0));
    assert!(product.loops.is_empty() && product.contracted.is_empty());
}

#[test]
fn what_does_not_merge_becomes_loops() {
    let work = lowered("bqhd,bkhd->bhqk", &[2, 4, 3, 32], &[2, 5, 3, 32]);
    let [Work::Product { product, .. }] = work.as_slice() else { panic!("{work:?}") };
    assert_eq!((product.a, product.b), (Value(0), Value(1)));
    let lens: Vec<&Scalar> = product.loops.iter().map(|dim| &dim.extent).collect();
    assert_eq!(lens, [&Scalar::Const(3), &Scalar::Const(2)]);
    assert_eq!((product.m.a, product.n.b, product.k.a), (96, 96, 1));
}

#[test]
fn small_and_thin_products_are_loops() {
    let is_loop =
        |text: &str, a: &[usize], b: &[usize]| matches!(lowered(text, a, b).as_slice(), [Work::Kernel { .. }]);
    assert!(is_loop("nij,njk->nik", &[9, 16, 16], &[9, 16, 16]));
    assert!(!is_loop("nij,njk->nik", &[9, 16, 17], &[9, 17, 16]));
    assert!(!is_loop("nij,njk->nik", &[9, 17, 16], &[9, 16, 16]));
    assert!(!is_loop("nij,nkj->nik", &[9, 16, 16], &[9, 16, 16]));
    assert!(is_loop("ik,kj->ij", &[5000, 4], &[4, 4]));
    assert!(!is_loop("ik,kj->ij", &[5000, 4], &[4, 5]));
}

#[test]
fn small_and_thin_products_of_integers_are_loops() {
    let is_loop = |dtype: DType, a: &[usize], b: &[usize]| {
        matches!(lowered_of(dtype, "ik,kj->ij", a, b).as_slice(), [Work::Kernel { .. }])
    };
    for dtype in [DType::I32, DType::U32, DType::I64, DType::U64] {
        assert!(is_loop(dtype, &[32, 32], &[32, 32]) && !is_loop(dtype, &[32, 33], &[33, 32]));
        assert!(is_loop(dtype, &[4, 500], &[500, 500]) && !is_loop(dtype, &[5, 500], &[500, 500]));
    }
}

#[test]
fn products_with_a_vector_are_loops() {
    let work = lowered("ik,k->i", &[4, 8], &[8]);
    let [Work::Kernel { kernel, .. }] = work.as_slice() else { panic!("{work:?}") };
    assert_eq!(kernel.dims.iter().map(|dim| dim.reduced).collect::<Vec<_>>(), [false, true]);
    assert_eq!(einsum("ik,k->i").reads(1, &[&f32s(&[4, 8]), &f32s(&[8])]), Reads::Often);
    assert_eq!(einsum("ik,k->i").reads(0, &[&f32s(&[4, 8]), &f32s(&[8])]), Reads::Once);
}
