//! Functions of single elements: types, factors, values and text.

use crate::testing::{self, floats, int, integers};
use spmdc_functions::operators;
use spmdc_grammar::ast;
use spmdc_grammar::codes::Code;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::elementwise::{Binary, Compare, Unary};

#[test]
fn operands_broadcast_and_must_agree() {
    let f32s = |shape: &[usize]| ArrayType::new(DType::F32, shape);
    let result = Binary(BinaryOp::Add).infer(&[&f32s(&[4, 1]), &f32s(&[3])]).unwrap();
    assert_eq!(result, [f32s(&[4, 3])]);
    let error = Binary(BinaryOp::Add).infer(&[&f32s(&[4]), &f32s(&[3])]).unwrap_err();
    assert_eq!(error.code, Code::E0204);
    let ints = ArrayType::new(DType::I32, &[4]);
    assert_eq!(Compare(CompareOp::Lt).infer(&[&ints, &f32s(&[4])]).unwrap_err().code, Code::E0203);
    assert_eq!(Unary(UnaryOp::Math(MathFn::Sin)).infer(&[&ints]).unwrap_err().code, Code::E0215);
    let bools = ArrayType::new(DType::Bool, &[4]);
    let error = Binary(BinaryOp::Sub).infer(&[&bools, &bools]).unwrap_err();
    assert_eq!(error.message, "`-` is not defined for bool");
}

#[test]
fn stretched_dimensions_stay_whole() {
    let args = [ArrayType::new(DType::F32, &[4, 1]), ArrayType::new(DType::F32, &[3])];
    let result = ArrayType::new(DType::F32, &[4, 3]);
    let rule = Binary(BinaryOp::Mul).factors(&[&args[0], &args[1]], &[&result]);
    assert_eq!(rule.operands[0][0], rule.results[0][0]);
    assert_eq!(rule.operands[1][0], rule.results[0][1]);
    assert_eq!(rule.factors[rule.operands[0][1][0]].size, 1);
}

#[test]
fn integers_become_floats_where_needed() {
    let y = testing::run("sqrt", &[integers(&[2], &[4, 9])], |x| x, &[]).unwrap();
    assert_eq!((y.dtype(), y.floats()), (DType::F32, vec![2.0, 3.0]));
    let y = testing::run("floor", &[integers(&[2], &[4, 9])], |x| x, &[]).unwrap();
    assert_eq!(y.dtype(), DType::I32);
    let y = testing::run("isnan", &[integers(&[1], &[4])], |x| x, &[]).unwrap();
    assert_eq!((y.dtype(), y.ints()), (DType::Bool, vec![0]));
    let x = floats(&[4], &[f64::NAN, -1.0, 0.5, 2.5]);
    assert_eq!(testing::run("isfinite", &[x], |x| x, &[]).unwrap().ints(), [0, 1, 1, 1]);
}

#[test]
fn where_chooses() {
    let c = Array::from_ints(DType::Bool, &[2, 1], &[1, 0]);
    let y = testing::run(
        "where",
        &[c, floats(&[2], &[1.0, 2.0])],
        |mut x| {
            x.push(int(0));
            x
        },
        &[],
    )
    .unwrap();
    assert_eq!(y.floats(), [1.0, 2.0, 0.0, 0.0]);
}

#[test]
fn division_by_zero_traps() {
    let x = integers(&[2], &[6, 7]);
    let zero = integers(&[2], &[2, 0]);
    assert_eq!(Binary(BinaryOp::FloorDiv).eval(&[&x, &zero]).unwrap_err().code, Code::E0802);
    assert_eq!(Binary(BinaryOp::Rem).eval(&[&x, &integers(&[], &[4])]).unwrap()[0].ints(), [2, 3]);
}

#[test]
fn operators_print_as_such() {
    let mut build = testing::builder();
    let span = Span::default();
    let x = Term::Array(testing::parameter(&mut build, DType::F32, &[2]));
    let y = operators::binary(&mut build, ast::InfixOp::Mul, (&Term::Int(2), span), (&x, span)).unwrap();
    let y = operators::unary(&mut build, ast::PrefixOp::Neg, (&y, span)).unwrap();
    operators::binary(&mut build, ast::InfixOp::Lt, (&y, span), (&x, span)).unwrap();
    assert_eq!(testing::printed(&build), ["f32(2.0)", "a * b", "-a", "a < b"]);
}
