//! The math functions as machine code: their errors on samples, their equality with the evaluator, and the page about them. The
//! program `ulp` tries every number.

use half::{bf16, f16};
use spmdc_abi::DType;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use spmdc_math::{MathFn, MathFn2};
use spmdc_tests::accuracy::subject::{CHUNK, Subject};
use spmdc_tests::accuracy::{Function, Sweep, bound};
use spmdc_tests::{engine, root};
use std::collections::BTreeMap;
use std::fs;

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
                let is_f16 = dtype == DType::F16;
                let rounded =
                    if is_f16 { f16::from_f32(expected).to_bits() } else { bf16::from_f32(expected).to_bits() };
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

/// The rows of the tables of a page, by the text of their first column.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_string()).collect()
    };
    page.lines().filter(|line| line.starts_with("| `")).map(cells).map(|cells| (cells[0].clone(), cells)).collect()
}

#[test]
fn every_function_is_in_the_table_and_within_its_bound() {
    let page = fs::read_to_string(root().join("docs/math.md")).unwrap();
    let mut rows = rows(&page);
    let own =
        |name: &str| MathFn::from_name(name).is_some_and(|f| !f.is_internal()) || MathFn2::from_name(name).is_some();
    let unary = UnaryOp::all().map(UnaryOp::name);
    let names: Vec<&str> = unary.chain(BinaryOp::ALL.iter().map(|op| op.name())).filter(|name| own(name)).collect();
    assert_eq!(names.len(), MathFn::of_programs().count() + MathFn2::ALL.len(), "a math function that is no operation");
    for name in names {
        let cells = rows.remove(name).unwrap_or_else(|| panic!("docs/math.md has no row for {name}"));
        // Name, method, error of f32, where, error of f64, where.
        for (cell, dtype) in [(2, DType::F32), (4, DType::F64)] {
            let error: f64 = cells[cell].parse().unwrap_or_else(|_| panic!("{name}: `{}` is no error", cells[cell]));
            assert!(error <= bound(dtype), "{name} in {}: {error} ULP", dtype.name());
        }
    }
    assert!(rows.is_empty(), "rows for what is not a math function: {:?}", rows.keys());
}

/// Results have one NaN: their bytes do not depend on which instructions computed it, nor on who did.
#[test]
fn nans_have_the_same_bits() {
    let unary =
        MathFn::of_programs().map(MathFn::name).chain(["sign", "square", "reciprocal", "sigmoid", "gelu", "-", "abs"]);
    let binary = ["pow", "hypot", "atan2", "logaddexp", "minimum", "maximum"];
    let infix = ["+", "-", "*", "/", "%", "//"];
    let numbers = ["nan", "-nan", "0", "-0.0", "inf", "-inf", "-2", "0.5"];
    let list = |step: usize| (0..37).map(|i| numbers[i / step % 8]).collect::<Vec<_>>().join(",");
    for dtype in ["f32", "f64", "f16", "bf16"] {
        let mut exprs: Vec<String> = unary.clone().map(|name| format!("{name}(x)")).collect();
        exprs.extend(binary.iter().map(|name| format!("{name}(x, y)")));
        exprs.extend(infix.iter().map(|symbol| format!("x {symbol} y")));
        exprs.extend(["x / 0", "x * (y / 0)", "f64(x)", "f32(x)", "f16(x)", "bf16(x)"].map(str::to_string));
        let text = format!("fn main(x: {dtype}[37], y: {dtype}[37]) {{ ({}) }}\n", exprs.join(", "));
        let compilation = engine::compiled("nans.spmd", &text, "", None).unwrap();
        let args = [format!("x=[{}]", list(1)), format!("y=[{}]", list(5))];
        let inputs = engine::inputs(&compilation, &args, &root()).unwrap();
        let expected = engine::evaluated(&text, &compilation.stages[0], &inputs).unwrap();
        let run = engine::run(&compilation, &inputs, None).unwrap();
        for ((expr, expected), actual) in exprs.iter().zip(&expected).zip(&run.results) {
            assert_eq!(expected.bytes, actual.bytes, "{expr} of {dtype}");
        }
    }
}
