//! Rows of streams: indices, types and values.

use crate::testing::{self, integers};
use spmdc_functions::indexing::get::indexed;
use spmdc_functions::indexing::plan::IndexItem;
use spmdc_grammar::codes::Code;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::rules::Semantics;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::read_rows::ReadRows;

fn stream(build: &mut CallBuilder, shape: &[usize]) -> Value {
    let value = testing::parameter(build, DType::U8, shape);
    build.info_mut(value).ty.array.is_stream = true;
    value
}

#[test]
fn rows_are_indexed_and_nothing_else() {
    let mut build = testing::builder();
    let data = stream(&mut build, &[10, 3]);
    let at = |build: &mut CallBuilder, items: &[IndexItem]| indexed(build, data, items, Span::default());
    let range = |start, stop, step| IndexItem::Range { start, stop, step, span: Span::default() };
    let place = |place| IndexItem::Place(Term::Int(place), Span::default());
    let shape = |build: &CallBuilder, value: Value| build.ty(value).array.to_string();
    let row = at(&mut build, &[place(-1)]).unwrap();
    let some = at(&mut build, &[range(Some(2), Some(6), None), IndexItem::Ellipsis(Span::default())]).unwrap();
    let every = at(&mut build, &[range(None, None, Some(-4))]).unwrap();
    assert_eq!([row, some, every].map(|value| shape(&build, value)), ["u8[3]", "u8[4,3]", "u8[3,3]"]);
    for items in [[place(0), place(1)], [range(None, None, None), range(None, Some(2), None)]] {
        assert_eq!(at(&mut build, &items).unwrap_err().code, Code::E0223);
    }
    assert_eq!(at(&mut build, &[IndexItem::NewAxis(Span::default())]).unwrap_err().code, Code::E0223);
    assert_eq!(at(&mut build, &[place(10)]).unwrap_err().code, Code::E0401);
}

#[test]
fn no_other_op_takes_a_stream() {
    let mut build = testing::builder();
    let data = stream(&mut build, &[10, 3]);
    let error = build.emit1(Binary(BinaryOp::Add), &[data, data]).unwrap_err();
    assert_eq!(error.code, Code::E0223);
    let array = testing::parameter(&mut build, DType::U8, &[10, 3]);
    let at = build.emit1(Constant::scalar(DType::I64, 0), &[]).unwrap();
    let error = build.emit1(ReadRows { len: Some(1), out: None }, &[array, at]).unwrap_err();
    assert_eq!(error.code, Code::E0203);
}

#[test]
fn rows_are_elements_of_the_whole_array() {
    let data = integers(&[4, 2], &[0, 1, 2, 3, 4, 5, 6, 7]);
    let read = |len, at: Array| ReadRows { len, out: None }.eval(&[&data, &at]).unwrap()[0].ints();
    assert_eq!(read(Some(2), Array::scalar(DType::I64, 1)), [2, 3, 4, 5]);
    assert_eq!(read(None, Array::scalar(DType::I64, 3)), [6, 7]);
    assert_eq!(read(None, Array::from_ints(DType::I64, &[2], &[3, 0])), [6, 7, 0, 1]);
}
