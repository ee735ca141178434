//! The values of Fourier transforms.

use spmdc_abi::Transform;
use spmdc_fft_ops::fft::Fft;
use spmdc_ir::array::Array;
use spmdc_ir::rules::Semantics;
use spmdc_layout::types::DType;

fn apply(transform: Transform, operands: &[&[f64]]) -> Vec<Vec<f64>> {
    let operands: Vec<Array> =
        operands.iter().map(|line| Array::from_floats(DType::F64, &[line.len()], line)).collect();
    let results = Fft { axis: 0, transform }.eval(&operands.iter().collect::<Vec<_>>()).unwrap();
    results.iter().map(Array::floats).collect()
}

#[test]
fn transforms_are_those_of_the_definition() {
    let near = |found: &[f64], expected: &[f64]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
    };
    let found = apply(Transform::Complex { inverse: false }, &[&[1.0, 2.0, 3.0, 4.0]]);
    near(&found[0], &[10.0, -2.0, -2.0, -2.0]);
    near(&found[1], &[0.0, 2.0, 0.0, -2.0]);
    near(&apply(Transform::OfReal, &[&[1.0, 2.0, 3.0, 4.0]])[0], &[10.0, -2.0, -2.0, 2.0]);
    for n in 1..8 {
        let line: Vec<f64> = (0..n).map(|at| f64::from(at * at % 5)).collect();
        let packed = apply(Transform::OfReal, &[&line]);
        let back = apply(Transform::ToReal, &[&packed[0]]);
        near(&back[0], &line.iter().map(|x| x * f64::from(n)).collect::<Vec<_>>());
    }
}
