//! Operations on the bits of numbers.

use super::shapes::reshaped;
use super::{FunctionReader, MlirValue, at, malformed, result_type, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, DenseNumber, MlirElement, MlirOp, TensorType};
use spmdc_grammar::ast::{Expr, IndexNode, InfixOp};

/// The layout of a binary floating-point type, as in IEEE 754.
#[derive(Clone, Copy, PartialEq)]
struct BinaryFormat {
    exponent_bits: u32,
    mantissa_bits: u32,
}

impl BinaryFormat {
    /// The format of the float types that have infinities.
    fn of(element: MlirElement) -> Option<BinaryFormat> {
        let (exponent_bits, mantissa_bits) = match element {
            MlirElement::F64 => (11, 52),
            MlirElement::F32 => (8, 23),
            MlirElement::Bf16 => (8, 7),
            MlirElement::F16 => (5, 10),
            MlirElement::F8e5m2 => (5, 2),
            MlirElement::Bool
            | MlirElement::Signed(_)
            | MlirElement::Unsigned(_)
            | MlirElement::F8e4m3
            | MlirElement::C64
            | MlirElement::C128 => return None,
        };
        Some(BinaryFormat { exponent_bits, mantissa_bits })
    }

    /// `e5m10`
    fn named(text: &str) -> Option<BinaryFormat> {
        let (exponent, mantissa) = text.strip_prefix('e')?.split_once('m')?;
        Some(BinaryFormat { exponent_bits: exponent.parse().ok()?, mantissa_bits: mantissa.parse().ok()? })
    }

    fn bias(self) -> i128 {
        (1 << (self.exponent_bits - 1)) - 1
    }
}

/// Whether a number of a constant is a NaN.
pub(super) fn is_nan(element: MlirElement, number: &DenseNumber) -> bool {
    let DenseNumber::Bits(bits) = number else { return false };
    match BinaryFormat::of(element) {
        Some(format) => {
            let infinity = ((1u64 << format.exponent_bits) - 1) << format.mantissa_bits;
            let magnitude = bits & ((1u64 << (format.exponent_bits + format.mantissa_bits)) - 1);
            magnitude > infinity
        }
        None => element == MlirElement::F8e4m3 && bits & 0x7F == 0x7F,
    }
}

impl FunctionReader<'_> {
    /// Rounding to a format with fewer bits: ties to even, large numbers to infinity, and numbers below the smallest normal one to zero.
    pub(super) fn reduce_precision(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let text = match operation.attributes.get("format") {
            Some(Attribute::Word(word)) => word.clone(),
            _ => {
                let bits = |name: &str| super::ints(operation, name).map(|bits| bits.first().copied().unwrap_or(0));
                format!("e{}m{}", bits("exponent_bits")?, bits("mantissa_bits")?)
            }
        };
        let Some(from) = BinaryFormat::of(x.ty.element) else {
            return Err(unsupported(operation, format!("for elements of type {}", x.ty.element.name())));
        };
        let to = BinaryFormat::named(&text).filter(|to| (1..=11).contains(&to.exponent_bits) && to.mantissa_bits <= 52);
        let to =
            to.ok_or_else(|| malformed(operation, "a format has a number of bits of the exponent and the mantissa"))?;
        let exponent_bits = to.exponent_bits.min(from.exponent_bits);
        let to = BinaryFormat { exponent_bits, mantissa_bits: to.mantissa_bits.min(from.mantissa_bits) };
        if to == from {
            return self.same_as_operands(operation);
        }
        if Some(to) == BinaryFormat::of(MlirElement::Bf16) && x.ty.element == MlirElement::F32 {
            let rounded = build.cast(MlirElement::Bf16, x.expr);
            return self.emit(operation, build.cast(MlirElement::F32, rounded));
        }
        let rounded = self.rounded_bits(build, &x, from, to);
        self.emit(operation, rounded)
    }

    /// The numbers of one format, rounded to another one by integer arithmetic on their bits.
    fn rounded_bits(&mut self, build: Build, x: &MlirValue, from: BinaryFormat, to: BinaryFormat) -> Expr {
        let unsigned = MlirElement::Unsigned(x.ty.element.bits() as u8);
        let number = |value: i128| build.cast(unsigned, build.int(value));
        let value = self.variable(build, "x", x.expr.clone());
        let bits = build.call("bitcast", [value.clone(), build.type_value(&scalar(unsigned))]);
        let mut bits = self.variable(build, "bits", bits);
        let sign_bit = 1i128 << (from.exponent_bits + from.mantissa_bits);
        let sign = build.binary(InfixOp::BitAnd, bits.clone(), number(sign_bit));
        let sign = self.variable(build, "sign", sign);
        let dropped = from.mantissa_bits - to.mantissa_bits;
        if dropped > 0 {
            let last = build.binary(InfixOp::Shr, bits.clone(), number(i128::from(dropped)));
            let last = build.binary(InfixOp::BitAnd, last, number(1));
            let half = number((1 << (dropped - 1)) - 1);
            let up = build.binary(InfixOp::Add, bits, build.binary(InfixOp::Add, last, half));
            let kept = 2 * sign_bit - (1 << dropped);
            let cut = build.binary(InfixOp::BitAnd, up, number(kept));
            bits = self.variable(build, "bits", cut);
        }
        if to.exponent_bits < from.exponent_bits {
            let mask = ((1i128 << from.exponent_bits) - 1) << from.mantissa_bits;
            let exponent = build.binary(InfixOp::BitAnd, bits.clone(), number(mask));
            let exponent = self.variable(build, "exponent", exponent);
            let largest = number((from.bias() + to.bias()) << from.mantissa_bits);
            let below = number((from.bias() - to.bias()) << from.mantissa_bits);
            let overflows = build.binary(InfixOp::Gt, exponent.clone(), largest);
            let underflows = build.binary(InfixOp::Le, exponent, below);
            let infinity = build.binary(InfixOp::BitOr, sign.clone(), number(mask));
            bits = build.call("where", [overflows, infinity, bits]);
            bits = build.call("where", [underflows, sign, bits]);
        }
        let rounded = build.call("bitcast", [bits, build.type_value(&scalar(x.ty.element))]);
        let is_number = build.binary(InfixOp::Eq, value.clone(), value.clone());
        build.call("where", [is_number, rounded, value])
    }

    pub(super) fn bitcast_convert(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let ty = result_type(operation)?;
        let (from, to) = (x.ty.element.bits(), ty.element.bits());
        if from == to {
            let result = build.call("bitcast", [x.expr, build.type_value(&scalar(ty.element))]);
            return self.emit(operation, result);
        }
        let has_bytes = |element: MlirElement| element.is_float() || element.is_integer();
        if !has_bytes(x.ty.element) || !has_bytes(ty.element) {
            return Err(unsupported(operation, "between these types"));
        }
        let (narrow, wide) = if from < to { (&x.ty, &ty) } else { (&ty, &x.ty) };
        let ratio = wide.element.bits() / narrow.element.bits();
        let fits = narrow.shape.split_last().is_some_and(|(last, rest)| *last == ratio as usize && rest == wide.shape);
        if !fits {
            return Err(malformed(
                operation,
                "the narrower elements have a last dimension for those of one wider element",
            ));
        }
        let unsigned = |ty: &TensorType| MlirElement::Unsigned(ty.element.bits() as u8);
        let result = match from < to {
            true => self.joined_bits(build, &x, unsigned(&x.ty), unsigned(&ty), ratio),
            false => self.separate_bits(build, &x, unsigned(&x.ty), unsigned(&ty), ratio),
        };
        self.emit(operation, build.call("bitcast", [result, build.type_value(&scalar(ty.element))]))
    }

    /// Each wider number consists of the elements along the last dimension, the least significant first.
    fn joined_bits(&mut self, build: Build, x: &MlirValue, narrow: MlirElement, wide: MlirElement, ratio: u32) -> Expr {
        let bits = build.call("bitcast", [x.expr.clone(), build.type_value(&scalar(narrow))]);
        let bits = self.variable(build, "bits", build.cast(wide, bits));
        let mut all: Option<Expr> = None;
        for place in 0..ratio {
            let every = IndexNode::Slice { start: None, stop: None, step: None, span: build.0 };
            let mut items = vec![every; x.ty.rank() - 1];
            items.push(IndexNode::Expr(build.int(i128::from(place))));
            let part = build.index(bits.clone(), items);
            all = Some(match all {
                None => part,
                Some(lower) => {
                    let shift = build.cast(wide, build.int(i128::from(place * narrow.bits())));
                    build.binary(InfixOp::BitOr, lower, build.binary(InfixOp::Shl, part, shift))
                }
            });
        }
        all.unwrap_or(bits)
    }

    /// The parts of each wider number along a new last dimension, the least significant first.
    fn separate_bits(
        &mut self,
        build: Build,
        x: &MlirValue,
        wide: MlirElement,
        narrow: MlirElement,
        ratio: u32,
    ) -> Expr {
        let bits = build.call("bitcast", [x.expr.clone(), build.type_value(&scalar(wide))]);
        let mut shape = x.ty.shape.clone();
        shape.push(1);
        let bits = reshaped(build, bits, &shape);
        let count = build.call("iota", [build.type_value(&TensorType { shape: vec![ratio as usize], element: wide })]);
        let width = build.cast(wide, build.int(i128::from(narrow.bits())));
        let shifted = build.binary(InfixOp::Shr, bits, build.binary(InfixOp::Mul, count, width));
        let mask = build.cast(wide, build.int((1 << narrow.bits()) - 1));
        build.cast(narrow, build.binary(InfixOp::BitAnd, shifted, mask))
    }
}

fn scalar(element: MlirElement) -> TensorType {
    TensorType { shape: Vec::new(), element }
}
