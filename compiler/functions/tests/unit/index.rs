//! Indexed arrays: statements, values and errors.

use crate::testing::{self, integers};
use spmdc_functions::indexing::get;
use spmdc_functions::indexing::plan::IndexItem;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::types::DType;
use spmdc_ops::index::{CheckIndex, Index};

fn range(start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> IndexItem {
    IndexItem::Range { start, stop, step, span: Span::default() }
}

fn place(index: i64) -> IndexItem {
    IndexItem::Place(Term::Int(index.into()), Span::default())
}

fn x() -> Array {
    integers(&[2, 3, 2], &(0..12).collect::<Vec<i128>>())
}

/// `x[items]`, where the last item may be the scalar `i`.
fn indexed(items: impl FnOnce(Term) -> Vec<IndexItem>, i: i128) -> Result<(Array, Vec<String>), Diagnostic> {
    let mut build = testing::builder();
    let arrays = [x(), integers(&[], &[i])];
    let inputs =
        [testing::parameter(&mut build, DType::I32, &[2, 3, 2]), testing::parameter(&mut build, DType::I32, &[])];
    let items = items(Term::Array(inputs[1]));
    let result = get::indexed(&mut build, inputs[0], &items, Span::default())?;
    Ok((testing::evaluate(&build, &inputs, &arrays, result), testing::printed(&build)))
}

#[test]
fn static_indices_are_slices() {
    let (y, lines) = indexed(|_| vec![place(-1), range(None, None, Some(-2))], 0).unwrap();
    assert_eq!((y.shape(), y.ints()), (&[2, 2][..], vec![10, 11, 6, 7]));
    assert_eq!(lines, ["a[1:2, 2::-2, :]", "reshape(a, (2, 2))"]);
    let (y, lines) = indexed(|_| vec![range(None, None, None)], 0).unwrap();
    assert_eq!((y, lines.len()), (x(), 0));
}

#[test]
fn new_dimensions_and_dots_have_their_places() {
    let span = Span::default();
    let (y, _) =
        indexed(|_| vec![IndexItem::NewAxis(span), IndexItem::Ellipsis(span), place(0), IndexItem::NewAxis(span)], 0)
            .unwrap();
    assert_eq!((y.shape(), y.ints()), (&[1, 2, 3, 1][..], vec![0, 2, 4, 6, 8, 10]));
    let dots = vec![IndexItem::Ellipsis(span), IndexItem::Ellipsis(span)];
    assert_eq!(indexed(|_| dots, 0).unwrap_err().code, Code::E0205);
}

#[test]
fn dynamic_indices_are_checked() {
    let at_end = |i: Term| vec![range(Some(1), None, None), IndexItem::Place(i, Span::default()), place(1)];
    let (y, lines) = indexed(at_end, -1).unwrap();
    assert_eq!((y.shape(), y.ints()), (&[1][..], vec![11]));
    assert_eq!(lines, ["check_index(a, 3)", "a[1:2, :, 1:2]", "index(a, b, dims=(1,))", "reshape(a, (1,))"]);
    let trap = CheckIndex { extent: 3, len: 1 }.eval(&[&integers(&[], &[3])]).unwrap_err();
    assert_eq!((trap.code, trap.message.as_str()), (Code::E0801, "index 3 is out of bounds for a dimension of size 3"));
    assert!(CheckIndex { extent: 3, len: 1 }.eval(&[&integers(&[], &[-4])]).is_err());
}

#[test]
fn wrong_indices_are_errors() {
    let code = |items: Vec<IndexItem>| indexed(|_| items, 0).unwrap_err().code;
    assert_eq!(code(vec![place(2)]), Code::E0401);
    assert_eq!(code(vec![range(None, None, Some(0))]), Code::E0402);
    assert_eq!(code(vec![place(0), place(0), place(0), place(0)]), Code::E0205);
    assert_eq!(code(vec![IndexItem::Place(Term::Float(1.0), Span::default())]), Code::E0210);
}

#[test]
fn the_call_of_a_dump_gives_the_same() {
    let mut build = testing::builder();
    let x = testing::parameter(&mut build, DType::F32, &[2, 3]);
    let i = testing::parameter(&mut build, DType::I64, &[]);
    testing::call(&mut build, "index", &[Term::Array(x), Term::Array(i)], &[("dims", testing::ints(&[1]))]).unwrap();
    assert_eq!(build.blocks()[0].stmts[0].op(), Some(&Index { dims: vec![1] }.into()));
    assert_eq!(build.ty(build.blocks()[0].stmts[0].results[0]).shape(), [2]);
}
