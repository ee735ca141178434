//! The meaning of programs, by the reference evaluator.

use crate::testing::typed;
use spmdc_abi::DType;
use spmdc_inspect::eval::{EvalOutput, evaluate};
use spmdc_ir::array::Array;

fn run(text: &str, args: &[Array]) -> EvalOutput {
    evaluate(&typed(text), args).unwrap()
}

fn ints(shape: &[usize], values: &[i128]) -> Array {
    Array::from_ints(DType::I32, shape, values)
}

#[test]
fn loops_and_branches_run() {
    let text = "
        fn main(n: i32) -> (i32, i32, i32[4]) {
          let mut total = 0;
          for i in 0..n { if i % 2 == 0 { total += i; } else { total -= 1; } }
          let mut k = 1;
          while k < 100 { k = 3 * k; }
          let squares = for i in 2..6 collect { i * i };
          (total, k, squares)
        }";
    let output = run(text, &[ints(&[], &[7])]);
    let values: Vec<Vec<i128>> = output.results.iter().map(Array::ints).collect();
    assert_eq!(values, [vec![9], vec![243], vec![4, 9, 16, 25]]);
}

#[test]
fn lanes_of_a_region_have_their_own_values() {
    let text = "
        mesh (X = 2, Y = 2);
        manual(X, Y) fn f(x: i32[4@(Y, X)]) -> (i32[4@(X, Y)], i32[2@X], i32) {
          let mut n = 0;
          let limit = reshape(x, ());
          while n < limit { n += 1; }
          let m = if axis_index(X) == 1 { n } else { -n };
          (10 * x + m, reshape(psum(n, Y), (1,)), psum(n, (X, Y)))
        }
        fn main(x: i32[4]) -> (i32[4], i32[2], i32) { f(x) }";
    let output = run(text, &[ints(&[4], &[0, 1, 2, 3])]);
    let values: Vec<Vec<i128>> = output.results.iter().map(Array::ints).collect();
    // Lane (x, y) holds element 2y + x.
    assert_eq!(values, [vec![0, 18, 11, 33], vec![2, 4], vec![6]]);
}
