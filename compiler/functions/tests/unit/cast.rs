//! Conversions of arrays and of literals.

use crate::testing;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::cast::{Cast, convert};

#[test]
fn arrays_convert_and_literals_become_constants() {
    let mut build = testing::builder();
    let x = Term::Array(testing::parameter(&mut build, DType::F32, &[2]));
    let y = convert(&mut build, DType::I8, (&x, Span::default())).unwrap();
    assert_eq!(build.ty(y).array, ArrayType::new(DType::I8, &[2]));
    let list = Term::List(vec![Term::Float(2.9), Term::Int(300)]);
    convert(&mut build, DType::U8, (&list, Span::default())).unwrap();
    let stmts = &build.innermost().stmts;
    let printed = stmts[1].op().unwrap().rules().print(&[], &Mesh::default());
    assert_eq!(printed, "u8([2, 44])");
    assert_eq!(stmts.len(), 2);
}

#[test]
fn elements_convert() {
    let x = Array::from_floats(DType::F32, &[3], &[-1.5, f64::NAN, 300.0]);
    let y = Cast { to: DType::U8 }.eval(&[&x]).unwrap();
    assert_eq!(y[0].ints(), [0, 0, 255]);
}
