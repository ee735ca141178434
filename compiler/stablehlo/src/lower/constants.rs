//! Constants as expressions.

use crate::build::Build;
use crate::tree::{Dense, DenseNumber, MlirElement};
use spmdc_grammar::ast::{Expr, InfixOp};

/// The elements of a constant as an expression of its type.
pub(super) fn constant(build: Build, dense: &Dense) -> Expr {
    let element = dense.ty.element;
    if dense.is_splat() {
        let number = constant_number(build, element, &dense.elements);
        return match dense.ty.rank() {
            0 => number,
            _ => build.call("full", [build.type_value(&dense.ty), number]),
        };
    }
    let parts = if element.is_complex() { 2 } else { 1 };
    if element.is_complex() {
        let plane = |at: usize| {
            let numbers = dense.elements.iter().skip(at).step_by(2).cloned().collect();
            constant(build, &Dense { ty: dense.ty.with(part_of(element)), elements: numbers })
        };
        return build.call("complex", [plane(0), plane(1)]);
    }
    if dense.elements.is_empty() {
        return build.call("zeros", [build.type_value(&dense.ty)]);
    }
    let mut rows: Vec<Expr> = dense.elements.chunks(parts).map(|number| literal(build, element, &number[0])).collect();
    for &size in dense.ty.shape.iter().rev() {
        rows = rows.chunks(size).map(|row| build.list(row.to_vec())).collect();
    }
    build.cast(element, rows.pop().expect("a constant has elements"))
}

/// The type of the parts of complex numbers.
pub(super) fn part_of(element: MlirElement) -> MlirElement {
    match element == MlirElement::C128 {
        true => MlirElement::F64,
        false => MlirElement::F32,
    }
}

/// A scalar of this type.
fn constant_number(build: Build, element: MlirElement, numbers: &[DenseNumber]) -> Expr {
    match numbers {
        [re, im] => {
            let part = part_of(element);
            build.call("complex", [re, im].map(|number| build.cast(part, literal(build, part, number))))
        }
        [number, ..] if element == MlirElement::Bool => literal(build, element, number),
        [number, ..] => build.cast(element, literal(build, element, number)),
        [] => build.int(0),
    }
}

/// A number as it is written in a program.
pub(super) fn literal(build: Build, element: MlirElement, number: &DenseNumber) -> Expr {
    match number {
        DenseNumber::Int(value) if element == MlirElement::Bool => build.flag(*value != 0),
        DenseNumber::Int(value) if element.is_float() => build.float(&format!("{value}.0")),
        DenseNumber::Int(value) => build.int(*value),
        DenseNumber::Decimal(text) => build.float(&decimal(element, text)),
        DenseNumber::Bits(bits) => of_bits(build, element, *bits),
    }
}

/// The shortest decimal number that is rounded to the same float.
fn decimal(element: MlirElement, text: &str) -> String {
    let shortest = match element {
        MlirElement::F64 | MlirElement::C128 => text.parse().map(|value: f64| format!("{value:?}")),
        // A float of fewer bits is one of 32 bits, too.
        MlirElement::Bool
        | MlirElement::Signed(_)
        | MlirElement::Unsigned(_)
        | MlirElement::F8e4m3
        | MlirElement::F8e5m2
        | MlirElement::F16
        | MlirElement::Bf16
        | MlirElement::F32
        | MlirElement::C64 => text.parse().map(|value: f32| format!("{value:?}")),
    };
    shortest.ok().filter(|text| !text.contains("inf")).unwrap_or_else(|| text.replace("e+", "e").replace('E', "e"))
}

/// The float with these bits.
fn of_bits(build: Build, element: MlirElement, bits: u64) -> Expr {
    let value = match element {
        MlirElement::F64 => f64::from_bits(bits),
        MlirElement::F32 => f64::from(f32::from_bits(bits as u32)),
        MlirElement::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        MlirElement::F16 => small_float(bits, 5, 10, true),
        MlirElement::F8e5m2 => small_float(bits, 5, 2, true),
        MlirElement::F8e4m3 => small_float(bits, 4, 3, false),
        MlirElement::Bool
        | MlirElement::Signed(_)
        | MlirElement::Unsigned(_)
        | MlirElement::C64
        | MlirElement::C128 => {
            return build.int(i128::from(bits));
        }
    };
    float(build, value)
}

/// The value of a float with so many bits of exponent and fraction; `has_infinity` if the largest exponent is that of infinities.
fn small_float(bits: u64, exponents: u32, fractions: u32, has_infinity: bool) -> f64 {
    let sign = if bits >> (exponents + fractions) & 1 == 1 { -1.0 } else { 1.0 };
    let exponent = (bits >> fractions & ((1 << exponents) - 1)) as i32;
    let fraction = (bits & ((1 << fractions) - 1)) as f64 / f64::from(1u32 << fractions);
    let bias = (1 << (exponents - 1)) - 1;
    let largest = (1 << exponents) - 1;
    let all_ones = bits & ((1 << (exponents + fractions)) - 1) == (1 << (exponents + fractions)) - 1;
    if exponent == largest && has_infinity {
        return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
    }
    if !has_infinity && all_ones {
        return f64::NAN;
    }
    match exponent {
        0 => sign * fraction * 2f64.powi(1 - bias),
        _ => sign * (1.0 + fraction) * 2f64.powi(exponent - bias),
    }
}

/// A number that is rounded to the same float again.
fn float(build: Build, value: f64) -> Expr {
    let number = |text: &str| build.float(text);
    if value.is_nan() {
        return build.binary(InfixOp::Div, number("0.0"), number("0.0"));
    }
    if value.is_infinite() {
        let infinity = build.binary(InfixOp::Div, number("1.0"), number("0.0"));
        return if value < 0.0 { build.negative(infinity) } else { infinity };
    }
    number(&format!("{value:?}"))
}
