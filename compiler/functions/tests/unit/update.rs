//! Arrays with replaced regions: values, factors, text and errors.

use crate::testing::{self, integers};
use spmdc_functions::indexing::assign::set;
use spmdc_functions::indexing::plan::IndexItem;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::factors::{FactorKind, FactorRange};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::region::Places;
use spmdc_ops::slice::SliceRange;
use spmdc_ops::update::Update;

fn range(start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> IndexItem {
    IndexItem::Range { start, stop, step, span: Span::default() }
}

fn place(index: i64) -> IndexItem {
    IndexItem::Place(Term::Int(index.into()), Span::default())
}

/// A 3x4 array of zeros after `u[items] = new`.
fn assigned(items: &[IndexItem], new: Array) -> Result<Vec<i128>, Diagnostic> {
    let mut build = testing::builder();
    let arrays = [integers(&[3, 4], &[0; 12]), new];
    let inputs = [
        testing::parameter(&mut build, DType::I32, &[3, 4]),
        testing::parameter(&mut build, arrays[1].dtype(), arrays[1].shape()),
    ];
    let span = Span::default();
    let result = set(&mut build, inputs[0], items, (&Term::Array(inputs[1]), span), span)?;
    Ok(testing::evaluate(&build, &inputs, &arrays, result).ints())
}

#[test]
fn regions_are_replaced() {
    let new = assigned(&[range(Some(1), None, None), place(-1)], integers(&[2], &[5, 6])).unwrap();
    assert_eq!(new, [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6]);
    let new = assigned(&[place(0)], integers(&[4], &[1, 2, 3, 4])).unwrap();
    assert_eq!(new, [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    let new = assigned(&[range(None, None, Some(-2)), range(None, None, Some(2))], integers(&[2, 1], &[7, 8])).unwrap();
    assert_eq!(new, [8, 0, 8, 0, 0, 0, 0, 0, 7, 0, 7, 0]);
    let all = assigned(&[IndexItem::Ellipsis(Span::default())], integers(&[3, 1], &[1, 2, 3])).unwrap();
    assert_eq!(all, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    let reversed = assigned(&[place(1), range(None, None, Some(-1))], integers(&[4], &[1, 2, 3, 4])).unwrap();
    assert_eq!(reversed[4..8], [4, 3, 2, 1]);
}

#[test]
fn dynamic_places_are_operands() {
    let mut build = testing::builder();
    let arrays = [integers(&[2, 2], &[0; 4]), integers(&[], &[-1])];
    let x = testing::parameter(&mut build, DType::I32, &[2, 2]);
    let i = testing::parameter(&mut build, DType::I32, &[]);
    let span = Span::default();
    let items = [range(None, None, None), IndexItem::Place(Term::Array(i), span)];
    let result = set(&mut build, x, &items, (&Term::Int(9), span), span).unwrap();
    assert_eq!(testing::evaluate(&build, &[x, i], &arrays, result).ints(), [0, 9, 0, 9]);
    assert_eq!(testing::printed(&build)[2], "update(a, b, c, at=((0, 1, 2), ()))");
}

#[test]
fn what_does_not_fit_is_an_error() {
    assert_eq!(assigned(&[place(0)], integers(&[3], &[1, 2, 3])).unwrap_err().code, Code::E0204);
    assert_eq!(assigned(&[place(3)], integers(&[], &[1])).unwrap_err().code, Code::E0401);
    assert_eq!(assigned(&[place(0)], integers(&[1, 1, 4], &[0; 4])).unwrap_err().code, Code::E0204);
    assert_eq!(assigned(&[place(0)], testing::floats(&[], &[1.5])).unwrap_err().code, Code::E0203);
}

#[test]
fn cut_dimensions_of_the_array_pass() {
    let op = Update::replacing(vec![
        Places::Range(SliceRange { start: 1, step: 1, len: 2 }),
        Places::Range(SliceRange::all(4)),
    ]);
    let (x, v) = (ArrayType::new(DType::F32, &[3, 4]), ArrayType::new(DType::F32, &[2, 4]));
    let rule = op.factors(&[&x, &v], &[&x]);
    assert_eq!(rule.operands[0], rule.results[0]);
    assert!(rule.operands[0].iter().all(|dim| rule.factors[dim[0]].kind == FactorKind::Pass));
    assert_eq!(rule.operands[1], rule.operands[0]);
    assert_eq!(rule.parts, [FactorRange { operand: 1, dim: 0, start: 1, step: 1 }]);
}

#[test]
fn the_call_of_a_dump_gives_the_same() {
    let mut build = testing::builder();
    let x = Term::Array(testing::parameter(&mut build, DType::F32, &[3]));
    let at = Term::Tuple(vec![testing::ints(&[0, 2, 2])]);
    testing::call(&mut build, "update", &[x, Term::Int(1)], &[("at", at)]).unwrap();
    let wanted = Update::replacing(vec![Places::Range(SliceRange { start: 0, step: 2, len: 2 })]);
    assert_eq!(build.blocks()[0].stmts[1].op(), Some(&wanted.into()));
}
