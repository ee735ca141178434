//! The math functions as machine code: their errors on samples, and their equality with the evaluator. The program `ulp`
//! tries every number.

#![allow(clippy::unwrap_used)]

use half::{bf16, f16};
use spmdc_compiler::ops::elementwise::UnaryOp;
use spmdc_compiler::ops::number;
use spmdc_runtime::abi::DType;
use spmdc_tests::accuracy::subject::{CHUNK, Subject};
use spmdc_tests::accuracy::{Function, Sweep};

fn errors_stay_within(dtype: DType, samples: u64) {
    let sweep = Sweep { samples: Some(samples), threads: 2 };
    let mut bad = Vec::new();
    for function in Function::all() {
        let errors = sweep.run(function, dtype).unwrap();
        if !errors.good() {
            bad.push(format!("{errors:?}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn single_precision_is_within_one_ulp() {
    errors_stay_within(DType::F32, 1 << 18);
}

#[test]
fn double_precision_is_within_two_ulp() {
    errors_stay_within(DType::F64, 1 << 16);
}

/// All of them: whoever rounds twice, or flushes a subnormal number, is found.
#[test]
fn half_precision_is_single_precision_rounded() {
    for function in Function::all().filter(|f| f.operands() == 1) {
        let single = Subject::new(function, DType::F32).unwrap();
        for dtype in [DType::F16, DType::Bf16] {
            let half = Subject::new(function, dtype).unwrap();
            let x: Vec<u16> = (0..=u16::MAX).collect();
            let mut got = vec![0; CHUNK];
            half.run(&[&x], &mut got);
            let wide: Vec<f32> = x.iter().map(|&x| number::to_float(dtype, u64::from(x)) as f32).collect();
            let mut expected = vec![0.0; CHUNK];
            single.run(&[&wide], &mut expected);
            for ((&x, &got), &expected) in x.iter().zip(&got).zip(&expected) {
                let rounded = match dtype {
                    DType::F16 => f16::from_f32(expected).to_bits(),
                    _ => bf16::from_f32(expected).to_bits(),
                };
                let nan = expected.is_nan() && number::to_float(dtype, u64::from(got)).is_nan();
                let (name, ty) = (function.name(), dtype.name());
                assert!(rounded == got || nan, "{name} of the {ty} {x:#x} is {got:#x}, rounded {rounded:#x}");
                // The evaluator is slow without optimisation: it computes every ninth.
                if x % 9 == 0 && !nan {
                    let op = UnaryOp::from_name(name).unwrap();
                    let evaluated = number::eval_unary(op, dtype, u64::from(x));
                    assert_eq!(evaluated, Some(u64::from(got)), "{name} of the {ty} {x:#x}");
                }
            }
        }
    }
}
