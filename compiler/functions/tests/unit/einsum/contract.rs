//! Calls of products: their statements, values and errors.

use crate::testing::{self, floats, int, integers, ints};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_layout::types::DType;

fn counted(shape: &[usize]) -> Array {
    let len = shape.iter().product::<usize>();
    floats(shape, &(1..=len).map(|i| i as f64).collect::<Vec<f64>>())
}

fn einsum(text: &str, arrays: &[Array]) -> Result<Array, Diagnostic> {
    let text = Term::Str(text.to_string());
    testing::run(
        "einsum",
        arrays,
        |mut terms| {
            terms.insert(0, text);
            terms
        },
        &[],
    )
}

fn statements(text: &str, shapes: &[&[usize]]) -> Vec<String> {
    let mut build = testing::builder();
    let mut terms = vec![Term::Str(text.to_string())];
    terms.extend(shapes.iter().map(|shape| Term::Array(testing::parameter(&mut build, DType::F32, shape))));
    testing::call(&mut build, "einsum", &terms, &[]).unwrap();
    testing::printed(&build)
}

#[test]
fn one_product_is_one_statement() {
    assert_eq!(statements("ik,kj->ij", &[&[2, 3], &[3, 4]]), ["einsum(\"ik,kj->ij\", a, b)"]);
    assert_eq!(statements("...ij,jk->...ik", &[&[5, 2, 3], &[3, 4]]), ["einsum(\"Aij,jk->Aik\", a, b)"]);
    assert_eq!(statements("bij->b", &[&[2, 3, 4]]), ["sum(a, axis=(1, 2))"]);
    assert_eq!(statements("ij->ji", &[&[2, 3]]), ["transpose(a, (1, 0))"]);
}

#[test]
fn letters_of_one_operand_are_prepared() {
    let lines = statements("iij,jk->ik", &[&[2, 2, 3], &[3, 4]]);
    assert_eq!(lines, ["einsum(\"aab->ab\", a)", "einsum(\"ij,jk->ik\", a, b)"]);
    assert_eq!(statements("ij,jkl->ik", &[&[2, 3], &[3, 4, 5]])[0], "sum(a, axis=(2,))");
    let y = einsum("ii", &[counted(&[3, 3])]).unwrap();
    assert_eq!(y.floats(), [15.0]);
}

#[test]
fn nothing_summed_is_elementwise() {
    assert_eq!(statements("i,j->ij", &[&[2], &[3]]), ["reshape(a, (2, 1))", "a * b"]);
    let y = testing::run("outer", &[integers(&[2], &[2, 3]), integers(&[2], &[5, 7])], |x| x, &[]).unwrap();
    assert_eq!((y.shape(), y.ints()), (&[2, 2][..], vec![10, 14, 15, 21]));
    let y = einsum("i,j->ji", &[counted(&[2]), counted(&[3])]).unwrap();
    assert_eq!(y.floats(), [1.0, 2.0, 2.0, 4.0, 3.0, 6.0]);
}

#[test]
fn the_cheapest_pair_comes_first() {
    let lines = statements("ab,bc,cd->ad", &[&[50, 50], &[50, 50], &[50, 1]]);
    assert_eq!(lines, ["einsum(\"bc,cd->bd\", a, b)", "einsum(\"ab,bd->ad\", a, b)"]);
    let arrays = [counted(&[2, 3]), counted(&[3, 2]), counted(&[2, 2])];
    let all = einsum("ab,bc,cd->da", &arrays).unwrap();
    let left = einsum("ab,bc->ac", &arrays[..2]).unwrap();
    assert_eq!(all.bits, einsum("ac,cd->da", &[left, arrays[2].clone()]).unwrap().bits);
}

#[test]
fn sizes_of_one_broadcast() {
    let y = einsum("ij,ij->j", &[counted(&[1, 2]), counted(&[3, 2])]).unwrap();
    assert_eq!(y.floats(), [9.0, 24.0]);
    assert_eq!(einsum("ij,ij->j", &[counted(&[2, 2]), counted(&[3, 2])]).unwrap_err().code, Code::E0205);
}

#[test]
fn matmul_takes_vectors_and_batches() {
    let run = |a: &[usize], b: &[usize]| testing::run("matmul", &[counted(a), counted(b)], |x| x, &[]);
    assert_eq!(run(&[2, 2], &[2, 2]).unwrap().floats(), [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(run(&[2], &[2, 2]).unwrap().floats(), [7.0, 10.0]);
    assert_eq!(run(&[2, 2], &[2]).unwrap().floats(), [5.0, 11.0]);
    assert_eq!(run(&[2], &[2]).unwrap().floats(), [5.0]);
    let batched = run(&[2, 1, 2, 3], &[4, 3, 5]).unwrap();
    assert_eq!(batched.shape(), [2, 4, 2, 5]);
    let error = run(&[2, 3], &[1, 4]).unwrap_err();
    assert_eq!((error.code, error.message.contains("inner sizes 3 and 1")), (Code::E0205, true));
    assert_eq!(run(&[], &[2]).unwrap_err().code, Code::E0205);
    assert_eq!(run(&[2, 2, 2], &[3, 2, 2]).unwrap_err().code, Code::E0204);
}

#[test]
fn small_types_are_summed_in_wider_ones() {
    let bytes = |values: &[i128]| Array::from_ints(DType::I8, &[2], values);
    let y = testing::run("dot", &[bytes(&[100, 100]), bytes(&[1, 1])], |x| x, &[]).unwrap();
    assert_eq!((y.dtype(), y.ints()), (DType::I8, vec![200 - 256]));
    let halves = |values: &[f64]| Array::from_floats(DType::F16, &[3], values);
    let y = testing::run("dot", &[halves(&[2048.0, 1.0, 1.0]), halves(&[1.0; 3])], |x| x, &[]).unwrap();
    assert_eq!((y.dtype(), y.floats()), (DType::F16, vec![2050.0]));
    let bools = |values: &[i128]| Array::from_ints(DType::Bool, &[2], values);
    let y = testing::run("dot", &[bools(&[1, 1]), bools(&[1, 1])], |x| x, &[]).unwrap();
    assert_eq!((y.dtype(), y.ints()), (DType::Bool, vec![1]));
}

#[test]
fn dot_and_tensordot_keep_the_other_dimensions() {
    let shape = |name, a: &[usize], b: &[usize], named: &[(&str, Term)]| {
        testing::run(name, &[counted(a), counted(b)], |x| x, named).map(|y| y.ty.shape)
    };
    assert_eq!(shape("dot", &[2, 3], &[5, 3, 4], &[]).unwrap(), [2, 5, 4]);
    assert_eq!(shape("dot", &[2, 3], &[], &[]).unwrap(), [2, 3]);
    assert_eq!(shape("tensordot", &[2, 3, 4], &[3, 4, 5], &[]).unwrap(), [2, 5]);
    let axes = Term::Tuple(vec![ints(&[0]), ints(&[-1])]);
    assert_eq!(shape("tensordot", &[2, 3], &[4, 2], &[("axes", axes)]).unwrap(), [3, 4]);
    assert_eq!(shape("tensordot", &[2], &[3], &[("axes", int(0))]).unwrap(), [2, 3]);
    assert_eq!(shape("tensordot", &[2], &[3], &[("axes", int(1))]).unwrap_err().code, Code::E0205);
}
