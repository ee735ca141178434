//! Common element types, folded constants and operators.

use crate::testing;
use spmdc_functions::operators::{binary, fold_binary};
use spmdc_grammar::ast;
use spmdc_grammar::codes::Code;
use spmdc_grammar::span::Span;
use spmdc_ir::call::term::Term;
use spmdc_layout::types::DType;
use spmdc_ops::elementwise::power;
use spmdc_ops::promote::{common_dtype, join};

#[test]
fn types_meet_as_in_jax() {
    use DType::*;
    let cases = [
        (U8, I8, I16),
        (U16, I8, I32),
        (U32, I32, I64),
        (U8, I32, I32),
        (U64, I64, F32),
        (I64, F16, F16),
        (F16, Bf16, F32),
        (F32, F64, F64),
        (Bool, I8, I8),
        (U16, U32, U32),
    ];
    for (a, b, joined) in cases {
        assert_eq!((join(a, b), join(b, a)), (Some(joined), Some(joined)), "{a:?} {b:?}");
    }
    for (a, b, joined) in
        [(F8e4m3, I64, Some(F8e4m3)), (Bool, F8e5m2, Some(F8e5m2)), (F8e4m3, F8e5m2, None), (F8e5m2, F16, None)]
    {
        assert_eq!((join(a, b), join(b, a)), (joined, joined), "{a:?} {b:?}");
    }
    assert_eq!(join(Key, I32), None);
}

#[test]
fn literals_take_the_other_type() {
    let mut build = testing::builder();
    let span = Span::default();
    let mut common = |dtype: DType, literal: Term| {
        let x = testing::parameter(&mut build, dtype, &[2]);
        common_dtype(&build, &[(&Term::Array(x), span), (&literal, span)]).unwrap()
    };
    assert_eq!(common(DType::F16, Term::Float(1.5)), DType::F16);
    assert_eq!(common(DType::I32, Term::Float(1.5)), DType::F32);
    assert_eq!(common(DType::U8, Term::Int(3)), DType::U8);
    assert_eq!(common(DType::Bool, Term::Int(3)), DType::I32);
    assert_eq!(common(DType::Bool, Term::Bool(true)), DType::Bool);
}

#[test]
fn lists_of_arrays_are_stacked() {
    let mut build = testing::builder();
    let span = Span::default();
    let x = Term::Array(testing::parameter(&mut build, DType::F16, &[]));
    let list = Term::List(vec![x.clone(), Term::Int(2), Term::Int(3)]);
    let stacked = build.materialize(&list, None, span).unwrap();
    assert_eq!(build.ty(stacked).array.to_string(), "f16[3]");
    let ragged = Term::List(vec![x, list]);
    assert_eq!(build.materialize(&ragged, None, span).unwrap_err().code, Code::E0205);
}

#[test]
fn division_of_integers_is_float() {
    let mut build = testing::builder();
    let span = Span::default();
    let x = Term::Array(testing::parameter(&mut build, DType::I32, &[2]));
    let y = Term::Array(testing::parameter(&mut build, DType::I64, &[2]));
    let mut divide = |a: &Term, b: &Term| match binary(&mut build, ast::InfixOp::Div, (a, span), (b, span)) {
        Ok(Term::Array(value)) => build.ty(value).dtype(),
        other => panic!("{other:?}"),
    };
    assert_eq!(divide(&x, &x), DType::F32);
    assert_eq!(divide(&x, &y), DType::F64);
}

#[test]
fn constants_fold_as_in_python() {
    use ast::InfixOp as Ast;
    let fold = |op, a: Term, b: Term| format!("{:?}", fold_binary(op, &a, &b).unwrap().unwrap());
    assert_eq!(fold(Ast::FloorDiv, Term::Int(-7), Term::Int(2)), "Int(-4)");
    assert_eq!(fold(Ast::FloorDiv, Term::Int(7), Term::Int(-2)), "Int(-4)");
    assert_eq!(fold(Ast::Rem, Term::Int(-7), Term::Int(2)), "Int(1)");
    assert_eq!(fold(Ast::Rem, Term::Int(7), Term::Int(-2)), "Int(-1)");
    assert_eq!(fold(Ast::Rem, Term::Int(-6), Term::Int(-2)), "Int(0)");
    assert_eq!(fold(Ast::Div, Term::Int(1), Term::Int(2)), "Float(0.5)");
    assert_eq!(fold(Ast::Pow, Term::Int(2), Term::Int(-1)), "Float(0.5)");
    assert_eq!(fold(Ast::Pow, Term::Int(2), Term::Int(100)), format!("Int({})", 1i128 << 100));
    assert_eq!(fold(Ast::Pow, Term::Int(-1), Term::Int(1 << 40)), "Int(1)");
    assert_eq!(fold(Ast::Lt, Term::Int(1), Term::Float(1.5)), "Bool(true)");
    assert_eq!(fold(Ast::And, Term::Bool(true), Term::Bool(false)), "Bool(false)");
    assert!(matches!(fold_binary(Ast::Div, &Term::Int(0), &Term::Int(0)), Some(Ok(Term::Float(x))) if x.is_nan()));
    assert_eq!(fold_binary(Ast::Rem, &Term::Int(1), &Term::Int(0)).unwrap().unwrap_err().code, Code::E0802);
    assert_eq!(fold_binary(Ast::Mul, &Term::Int(i128::MAX), &Term::Int(2)).unwrap().unwrap_err().code, Code::E0218);
    assert!(fold_binary(Ast::Add, &Term::Int(1), &Term::Str("a".into())).is_none());
}

#[test]
fn literal_powers_are_multiplications() {
    let mut build = testing::builder();
    let span = Span::default();
    let x = Term::Array(testing::parameter(&mut build, DType::F32, &[2]));
    power(&mut build, (&x, span), (&Term::Int(6), span)).unwrap();
    let names: Vec<&str> = build.innermost().stmts.iter().map(|stmt| stmt.name()).collect();
    assert_eq!(names, ["square", "square", "mul"]);
    let n = Term::Array(testing::parameter(&mut build, DType::I32, &[2]));
    assert_eq!(power(&mut build, (&n, span), (&Term::Int(-1), span)).unwrap_err().code, Code::E0215);
}
