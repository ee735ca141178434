//! The operations of the language on bundles: elementwise functions, comparisons, casts, and conversions for memory.
//!
//! Results equal those of `spmdc_kernel::number`, bit for bit except for NaNs. Operations without vector instructions run lane by lane.

use super::math_calls::{MathCall, MathStyle};
use super::vector::{Bundle, Vector, int_of};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use spmdc_abi::{DType, Kind, Stored};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, IntegerOp, LogicalOp, UnaryOp};
use spmdc_math::MathFn2;

/// The type of one element in registers: narrow floats are held as f32. A bool is a mask, whose width varies.
pub fn register_type(dtype: DType) -> Type {
    match dtype.kind() {
        Kind::Float if dtype == DType::F64 => F64,
        Kind::Float => F32,
        Kind::Bool | Kind::Signed | Kind::Unsigned | Kind::Key => int_of_size(dtype),
    }
}

/// The type of one element in memory.
pub fn memory_type(dtype: DType) -> Type {
    match dtype.stored() {
        Stored::Narrow => int_of_size(dtype),
        Stored::Same | Stored::Truth => register_type(dtype),
    }
}

fn int_of_size(dtype: DType) -> Type {
    Type::int_with_byte_size(dtype.size() as u16).expect("elements have 1 to 8 bytes")
}

impl Vector<'_, '_> {
    /// Converts elements in memory to values.
    pub fn decode_memory(&mut self, dtype: DType, raw: Bundle) -> Bundle {
        match dtype.stored() {
            Stored::Same => raw,
            Stored::Truth if self.is_scalar() => raw,
            Stored::Truth => {
                let zero = self.int(I8, 0);
                self.compare_ints(IntCC::NotEqual, raw, zero)
            }
            Stored::Narrow => {
                let bits = self.resize(raw, I32, false);
                self.decode_narrow(dtype, bits)
            }
        }
    }

    /// Converts values to elements in memory.
    pub fn encode_memory(&mut self, dtype: DType, value: Bundle) -> Bundle {
        match dtype.stored() {
            Stored::Same => value,
            Stored::Truth => self.mask_to_int(value, I8),
            Stored::Narrow => {
                let bits = self.encode_narrow(dtype, value);
                self.resize(bits, memory_type(dtype), false)
            }
        }
    }

    /// `cond ? then : otherwise` on values of a type.
    pub fn select_values(&mut self, dtype: DType, cond: Bundle, then: Bundle, otherwise: Bundle) -> Bundle {
        if dtype != DType::Bool {
            return self.select(cond, then, otherwise);
        }
        let (then, otherwise) = self.align_masks(then, otherwise);
        self.select(cond, then, otherwise)
    }

    /// An operation that is defined for the type, with the semantics of `spmdc_kernel::number`.
    pub fn unary(&mut self, op: UnaryOp, dtype: DType, x: Bundle, math: MathStyle) -> Bundle {
        if dtype == DType::Bool {
            return if op == UnaryOp::Not { self.not_mask(x) } else { x };
        }
        if !x.lane.is_float() {
            return self.int_unary(op, dtype, x);
        }
        let y = self.float_unary(op, x, math);
        let is_exact = matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Relu)
            || op.is_test()
            || op.is_rounding();
        if dtype.is_narrow() && !is_exact { self.round_to_narrow(dtype, y) } else { y }
    }

    fn float_unary(&mut self, op: UnaryOp, x: Bundle, math: MathStyle) -> Bundle {
        match op {
            UnaryOp::Neg => self.map(x, |v, x| v.builder.ins().fneg(x)),
            UnaryOp::Abs => self.magnitude(x),
            UnaryOp::Sign => {
                let one = self.float(x.lane, 1.0);
                let signed = self.with_sign_of(one, x);
                // Zeros and NaN are their own sign.
                let (magnitude, zero) = (self.magnitude(x), self.float(x.lane, 0.0));
                let has_sign = self.compare_floats(FloatCC::GreaterThan, magnitude, zero);
                self.select(has_sign, signed, x)
            }
            UnaryOp::Square => self.mul(x, x),
            UnaryOp::Relu => {
                let zero = self.float(x.lane, 0.0);
                let is_low = self.compare_floats(FloatCC::LessThanOrEqual, x, zero);
                self.select(is_low, zero, x)
            }
            UnaryOp::Reciprocal => {
                let one = self.float(x.lane, 1.0);
                self.divide(one, x)
            }
            UnaryOp::IsNan => self.compare_floats(FloatCC::Unordered, x, x),
            UnaryOp::IsInf => self.compare_magnitude(FloatCC::Equal, x),
            UnaryOp::IsFinite => self.compare_magnitude(FloatCC::LessThan, x),
            UnaryOp::Signbit => self.has_sign(x),
            UnaryOp::Math(f) => self.math(f, x, math),
            UnaryOp::Not | UnaryOp::Popcount | UnaryOp::Clz => unreachable!("{op:?} of floats"),
        }
    }

    fn magnitude(&mut self, x: Bundle) -> Bundle {
        self.map(x, |v, x| v.builder.ins().fabs(x))
    }

    /// Compares the magnitude with infinity.
    fn compare_magnitude(&mut self, cc: FloatCC, x: Bundle) -> Bundle {
        let magnitude = self.magnitude(x);
        let infinity = self.float(x.lane, f64::INFINITY);
        self.compare_floats(cc, magnitude, infinity)
    }

    fn int_unary(&mut self, op: UnaryOp, dtype: DType, x: Bundle) -> Bundle {
        // The operands of other operations are converted to floats when a kernel is built.
        match op.of_integers().unwrap_or_else(|| unreachable!("{op:?} of integers")) {
            IntegerOp::Neg => self.map(x, |v, x| v.builder.ins().ineg(x)),
            IntegerOp::Not => self.map(x, |v, x| v.builder.ins().bnot(x)),
            IntegerOp::Abs if dtype.is_unsigned_integer() => x,
            IntegerOp::Abs => self.map(x, |v, x| v.builder.ins().iabs(x)),
            IntegerOp::Square => self.mul(x, x),
            IntegerOp::Relu if dtype.is_unsigned_integer() => x,
            IntegerOp::Relu => {
                let zero = self.int(x.lane, 0);
                self.zip(x, zero, |v, x, zero| v.builder.ins().smax(x, zero))
            }
            IntegerOp::Popcount => self.count_ones(x),
            IntegerOp::Clz => self.count_leading_zeros(x),
            IntegerOp::Sign => {
                let zero = self.int(x.lane, 0);
                let positive = if dtype.is_signed_integer() {
                    self.compare_ints(IntCC::SignedGreaterThan, x, zero)
                } else {
                    self.compare_ints(IntCC::NotEqual, x, zero)
                };
                let one = self.mask_to_int(positive, x.lane);
                if dtype.is_unsigned_integer() {
                    return one;
                }
                let negative = self.compare_ints(IntCC::SignedLessThan, x, zero);
                let minus = self.mask_to_int(negative, x.lane);
                self.sub(one, minus)
            }
        }
    }

    /// An operation that is defined for the type, with the semantics of `spmdc_kernel::number`. For a divisor of zero the result is
    /// arbitrary.
    pub fn binary(&mut self, op: BinaryOp, dtype: DType, x: Bundle, y: Bundle, math: MathStyle) -> Bundle {
        if dtype == DType::Bool {
            return self.bool_binary(op, x, y);
        }
        if !x.lane.is_float() {
            return self.int_binary(op, dtype, x, y);
        }
        let z = self.float_binary(op, dtype, x, y, math);
        let is_exact = matches!(op, BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Copysign | BinaryOp::Nextafter);
        if dtype.is_narrow() && !is_exact { self.round_to_narrow(dtype, z) } else { z }
    }

    fn bool_binary(&mut self, op: BinaryOp, x: Bundle, y: Bundle) -> Bundle {
        let (x, y) = self.align_masks(x, y);
        match op.of_bools().unwrap_or_else(|| unreachable!("{op:?} of bools")) {
            LogicalOp::And => self.and(x, y),
            LogicalOp::Or => self.or(x, y),
            LogicalOp::Xor => self.xor(x, y),
        }
    }

    /// `x * y + z`, rounded once; narrow floats are rounded again.
    pub fn fma(&mut self, dtype: DType, x: Bundle, y: Bundle, z: Bundle) -> Bundle {
        let operands = x.parts().iter().zip(y.parts()).zip(z.parts());
        let parts: Vec<Value> = operands.map(|((&x, &y), &z)| self.builder.ins().fma(x, y, z)).collect();
        let sum = Bundle::new(x.lane, &parts);
        if dtype.is_narrow() { self.round_to_narrow(dtype, sum) } else { sum }
    }

    fn divide(&mut self, x: Bundle, y: Bundle) -> Bundle {
        self.zip(x, y, |v, x, y| v.builder.ins().fdiv(x, y))
    }

    fn float_binary(&mut self, op: BinaryOp, dtype: DType, x: Bundle, y: Bundle, math: MathStyle) -> Bundle {
        match op {
            BinaryOp::Add => self.add(x, y),
            BinaryOp::Sub => self.sub(x, y),
            BinaryOp::Mul => self.mul(x, y),
            BinaryOp::Div => self.divide(x, y),
            BinaryOp::Minimum => self.float_minimum(x, y),
            BinaryOp::Maximum => self.float_maximum(x, y),
            BinaryOp::Rem => {
                let (rest, below) = self.float_rest(x, y, math);
                let raised = self.add(rest, y);
                self.select(below, raised, rest)
            }
            BinaryOp::FloorDiv => {
                let (rest, below) = self.float_rest(x, y, math);
                let whole = self.sub(x, rest);
                let zero = self.float(x.lane, 0.0);
                let by_zero = self.compare_floats(FloatCC::Equal, y, zero);
                let dividend = self.select(by_zero, x, whole);
                let quotient = self.divide(dividend, y);
                let one = self.float(x.lane, 1.0);
                let lowered = self.sub(quotient, one);
                let quotient = self.select(below, lowered, quotient);
                self.round_away(quotient)
            }
            BinaryOp::Pow => self.math2(MathFn2::Pow, x, y, math),
            BinaryOp::Atan2 => self.math2(MathFn2::Atan2, x, y, math),
            BinaryOp::Hypot => self.math2(MathFn2::Hypot, x, y, math),
            BinaryOp::Logaddexp => self.math2(MathFn2::Logaddexp, x, y, math),
            BinaryOp::Copysign => self.copy_sign(x, y),
            BinaryOp::Nextafter => self.next_after(dtype, x, y),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Gcd => {
                unreachable!("{op:?} of floats")
            }
        }
    }

    /// `a < b ? a : b`: one instruction.
    fn less_or_second(&mut self, a: Bundle, b: Bundle) -> Bundle {
        let less = self.compare_floats(FloatCC::LessThan, a, b);
        self.select(less, a, b)
    }

    /// `b < a ? a : b`: one instruction.
    fn greater_or_second(&mut self, a: Bundle, b: Bundle) -> Bundle {
        let less = self.compare_floats(FloatCC::LessThan, b, a);
        self.select(less, a, b)
    }

    /// The minimum; NaN if an operand is NaN, and -0 is less than 0.
    pub fn float_minimum(&mut self, x: Bundle, y: Bundle) -> Bundle {
        if let (constant, other, Some(_)) | (other, constant, None) = (x, y, self.float_constant(x))
            && let Some(limit) = self.float_constant(constant)
            && !limit.is_nan()
            && (limit != 0.0 || limit.is_sign_positive())
        {
            return self.less_or_second(constant, other);
        }
        // Both orders give each operand where they are equal or one is NaN: the union of the bits is -0, or a NaN.
        let (a, b) = (self.less_or_second(x, y), self.less_or_second(y, x));
        self.combine_bits(a, b, Vector::or)
    }

    /// The maximum; NaN if an operand is NaN, and 0 is greater than -0.
    pub fn float_maximum(&mut self, x: Bundle, y: Bundle) -> Bundle {
        if let (constant, other, Some(_)) | (other, constant, None) = (x, y, self.float_constant(x))
            && let Some(limit) = self.float_constant(constant)
            && !limit.is_nan()
            && limit.to_bits() != (-0.0_f64).to_bits()
        {
            let larger = self.greater_or_second(constant, other);
            // A -0 that was kept becomes 0 when 0 is added; nothing else changes.
            return if limit == 0.0 { self.add(larger, constant) } else { larger };
        }
        let (a, b) = (self.greater_or_second(x, y), self.greater_or_second(y, x));
        let common = self.combine_bits(a, b, Vector::and);
        let is_nan = self.compare_floats(FloatCC::Unordered, x, y);
        if self.is_scalar() {
            let nan = self.float(x.lane, f64::NAN);
            return self.select(is_nan, nan, common);
        }
        // All ones is a NaN.
        self.combine_bits(common, is_nan, Vector::or)
    }

    fn combine_bits(&mut self, a: Bundle, b: Bundle, f: impl FnOnce(&mut Self, Bundle, Bundle) -> Bundle) -> Bundle {
        let (lane, int) = (a.lane, int_of(a.lane));
        let (a, b) = (self.bitcast(int, a), self.bitcast(int, b));
        let bits = f(self, a, b);
        self.bitcast(lane, bits)
    }

    /// The value of a float constant.
    fn float_constant(&self, x: Bundle) -> Option<f64> {
        let bits = self.constant_bits(x)?;
        Some(if x.lane == F32 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) })
    }

    /// Rounds half away from zero, as C does.
    fn round_away(&mut self, x: Bundle) -> Bundle {
        let whole = self.map(x, |v, x| v.builder.ins().trunc(x));
        let rest = self.sub(x, whole);
        let rest = self.magnitude(rest);
        let half = self.float(x.lane, 0.5);
        let away = self.compare_floats(FloatCC::GreaterThanOrEqual, rest, half);
        let one = self.float(x.lane, 1.0);
        let one = self.with_sign_of(one, x);
        let next = self.add(whole, one);
        self.select(away, next, whole)
    }

    /// C's `fmod`, and a mask of the lanes to which `y` must be added to have the sign of `y`.
    fn float_rest(&mut self, x: Bundle, y: Bundle, math: MathStyle) -> (Bundle, Bundle) {
        let rest = self.float_remainder(x, y, math);
        let zero = self.float(x.lane, 0.0);
        let inexact = self.compare_floats(FloatCC::NotEqual, rest, zero);
        let rest_negative = self.compare_floats(FloatCC::LessThan, rest, zero);
        let negative = self.compare_floats(FloatCC::LessThan, y, zero);
        let differ = self.xor(rest_negative, negative);
        let below = self.and(inexact, differ);
        (rest, below)
    }

    /// `x - trunc(x / y) * y`, exactly.
    ///
    /// If the quotient is small, the fused remainder of its rounded truncation is exact and off by at most one `y`. Other operands
    /// are rare and are passed to the C library.
    fn float_remainder(&mut self, x: Bundle, y: Bundle, math: MathStyle) -> Bundle {
        let (a, b) = (self.magnitude(x), self.magnitude(y));
        let quotient = self.divide(a, b);
        let whole = self.map(quotient, |v, x| v.builder.ins().trunc(x));
        let minus = self.map(whole, |v, x| v.builder.ins().fneg(x));
        let operands = minus.parts().iter().zip(b.parts()).zip(a.parts());
        let parts: Vec<Value> = operands.map(|((&x, &y), &z)| self.builder.ins().fma(x, y, z)).collect();
        let rest = Bundle::new(x.lane, &parts);
        let zero = self.float(x.lane, 0.0);
        let too_far = self.compare_floats(FloatCC::LessThan, rest, zero);
        let raised = self.add(rest, b);
        let rest = self.select(too_far, raised, rest);
        let too_near = self.compare_floats(FloatCC::GreaterThanOrEqual, rest, b);
        let lowered = self.sub(rest, b);
        let rest = self.select(too_near, lowered, rest);
        let already = self.compare_floats(FloatCC::LessThan, a, b);
        let rest = self.select(already, a, rest);
        let rest = self.magnitude(rest);
        let common = self.with_sign_of(rest, x);
        let limit = self.float(x.lane, if x.lane == F32 { 2.0_f64.powi(22) } else { 2.0_f64.powi(51) });
        // Also NaN and infinity.
        let small = self.compare_floats(FloatCC::LessThan, quotient, limit);
        let large = self.not_mask(small);
        let any = self.any(large);
        let results = self.rarely(any, common.parts(), |v| {
            let exact = v.call_bulk(MathCall::Remainder, &[x, y], math);
            v.select(large, exact, common).parts().to_vec()
        });
        Bundle::new(x.lane, &results)
    }

    fn int_binary(&mut self, op: BinaryOp, dtype: DType, x: Bundle, y: Bundle) -> Bundle {
        let signed = dtype.is_signed_integer();
        match op {
            BinaryOp::Add => self.add(x, y),
            BinaryOp::Sub => self.sub(x, y),
            BinaryOp::Mul => self.mul(x, y),
            BinaryOp::And => self.and(x, y),
            BinaryOp::Or => self.or(x, y),
            BinaryOp::Xor => self.xor(x, y),
            BinaryOp::Minimum if signed => self.zip(x, y, |v, x, y| v.builder.ins().smin(x, y)),
            BinaryOp::Minimum => self.zip(x, y, |v, x, y| v.builder.ins().umin(x, y)),
            BinaryOp::Maximum if signed => self.zip(x, y, |v, x, y| v.builder.ins().smax(x, y)),
            BinaryOp::Maximum => self.zip(x, y, |v, x, y| v.builder.ins().umax(x, y)),
            BinaryOp::FloorDiv | BinaryOp::Rem => self.int_division(op, dtype, x, y),
            BinaryOp::Pow => self.int_power(signed, x, y),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, signed, x, y),
            BinaryOp::Gcd => self.common_divisor(dtype, x, y),
            BinaryOp::Div
            | BinaryOp::Atan2
            | BinaryOp::Hypot
            | BinaryOp::Logaddexp
            | BinaryOp::Copysign
            | BinaryOp::Nextafter => unreachable!("{op:?} of integers"),
        }
    }

    /// An index counted from the start of a dimension, as i64, and a mask of the lanes in which it is out of bounds.
    pub fn counted_index(&mut self, dtype: DType, index: Bundle, extent: i64) -> (Bundle, Bundle) {
        let is_signed = dtype.is_signed_integer();
        if i128::from(extent) > dtype.integer_bounds().1 {
            let wide = self.resize(index, I64, is_signed);
            return self.counted_index(DType::I64, wide, extent);
        }
        let size = self.int(index.lane, extent);
        let mut counted = index;
        if is_signed {
            let zero = self.int(index.lane, 0);
            let is_negative = self.compare_ints(IntCC::SignedLessThan, index, zero);
            let from_end = self.add(index, size);
            counted = self.select(is_negative, from_end, index);
        }
        // A number that is still negative is a large one without its sign.
        let fails = self.compare_ints(IntCC::UnsignedGreaterThanOrEqual, counted, size);
        (self.resize(counted, I64, is_signed), fails)
    }

    /// An i64 outside `0..=last` replaced by `last`.
    pub fn limit(&mut self, value: Bundle, last: u64) -> Bundle {
        let last = self.constant(I64, last);
        let is_inside = self.compare_ints(IntCC::UnsignedLessThan, value, last);
        self.select(is_inside, value, last)
    }

    /// A quotient rounded down, or a remainder with the sign of the divisor.
    pub fn int_division(&mut self, op: BinaryOp, dtype: DType, x: Bundle, y: Bundle) -> Bundle {
        let (signed, lane) = (dtype.is_signed_integer(), x.lane);
        if lane == I32 && signed && !self.is_scalar() {
            return self.int_division_by_floats(op, x, y);
        }
        if lane.bits() < 32 {
            // Wider numbers cannot overflow, and the result fits again.
            let (x, y) = (self.resize(x, I32, signed), self.resize(y, I32, signed));
            let wide = self.int_division(op, DType::I32, x, y);
            return self.resize(wide, lane, signed);
        }
        self.per_lane2(lane, x, y, |v, x, y| v.scalar_division(op, signed, lane, x, y))
    }

    /// The quotient of 32-bit integers in double precision, rounded down, which is exact.
    fn int_division_by_floats(&mut self, op: BinaryOp, x: Bundle, y: Bundle) -> Bundle {
        let (a, b) = (self.int_to_float(x, F64, true), self.int_to_float(y, F64, true));
        let quotient = self.divide(a, b);
        let down = self.map(quotient, |v, x| v.builder.ins().floor(x));
        let quotient = self.float_to_int(down, I32, true);
        // -2^31 / -1 wraps.
        let minus = self.int(I32, -1);
        let negates = self.compare_ints(IntCC::Equal, y, minus);
        let negated = self.map(x, |v, x| v.builder.ins().ineg(x));
        let quotient = self.select(negates, negated, quotient);
        if op == BinaryOp::FloorDiv {
            return quotient;
        }
        let product = self.mul(quotient, y);
        self.sub(x, product)
    }

    fn scalar_division(&mut self, op: BinaryOp, signed: bool, lane: Type, x: Value, y: Value) -> Value {
        let one = self.builder.ins().iconst(lane, 1);
        let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, y, 0);
        let divisor = self.builder.ins().select(is_zero, one, y);
        if !signed {
            return if op == BinaryOp::FloorDiv {
                self.builder.ins().udiv(x, divisor)
            } else {
                self.builder.ins().urem(x, divisor)
            };
        }
        // The machine stops at the smallest number divided by -1: negate instead.
        let negates = self.builder.ins().icmp_imm_s(IntCC::Equal, y, -1);
        let divisor = self.builder.ins().select(negates, one, divisor);
        let quotient = self.builder.ins().sdiv(x, divisor);
        let product = self.builder.ins().imul(quotient, divisor);
        let rest = self.builder.ins().isub(x, product);
        let signs = self.builder.ins().bxor(rest, y);
        let differ = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
        let inexact = self.builder.ins().icmp_imm_s(IntCC::NotEqual, rest, 0);
        let below = self.builder.ins().band(differ, inexact);
        if op == BinaryOp::FloorDiv {
            let lowered = self.builder.ins().iadd_imm_s(quotient, -1);
            let quotient = self.builder.ins().select(below, lowered, quotient);
            let negated = self.builder.ins().ineg(x);
            self.builder.ins().select(negates, negated, quotient)
        } else {
            let raised = self.builder.ins().iadd(rest, y);
            self.builder.ins().select(below, raised, rest)
        }
    }

    /// Repeated squaring, with as many steps as the largest exponent requires.
    fn int_power(&mut self, signed: bool, x: Bundle, y: Bundle) -> Bundle {
        if x.lane == I8 && !self.is_scalar() {
            let (wide_x, wide_y) = (self.widen(x, signed), self.widen(y, signed));
            let wide = self.int_power(signed, wide_x, wide_y);
            return self.narrow(wide);
        }
        let (zero, one) = (self.int(x.lane, 0), self.int(x.lane, 1));
        let negative = self.compare_ints(IntCC::SignedLessThan, y, zero);
        let exponent = if signed { self.select(negative, zero, y) } else { y };
        let [power, ..] = self.repeat_while([one, x, exponent], |v, [power, square, rest]| {
            let bit = v.and(rest, one);
            let odd = v.compare_ints(IntCC::NotEqual, bit, zero);
            let product = v.mul(power, square);
            let power = v.select(odd, product, power);
            let square = v.mul(square, square);
            let rest = v.shift_right(rest, 1);
            let left = v.compare_ints(IntCC::NotEqual, rest, zero);
            ([power, square, rest], v.any(left))
        });
        if !signed {
            return power;
        }
        // With a negative exponent only 1 and -1 are not zero.
        let minus = self.int(x.lane, -1);
        let bit = self.and(y, one);
        let is_odd = self.compare_ints(IntCC::NotEqual, bit, zero);
        let of_minus = self.select(is_odd, minus, one);
        let is_minus = self.compare_ints(IntCC::Equal, x, minus);
        let is_one = self.compare_ints(IntCC::Equal, x, one);
        let inverse = self.select(is_minus, of_minus, zero);
        let inverse = self.select(is_one, one, inverse);
        self.select(negative, inverse, power)
    }

    /// Shifts; an amount outside the width shifts everything out.
    fn shift(&mut self, op: BinaryOp, signed: bool, x: Bundle, y: Bundle) -> Bundle {
        let (lane, width) = (x.lane, x.lane.bits());
        let keeps_sign = op == BinaryOp::Shr && signed;
        if let Some(amount) = self.constant_bits(y) {
            let inside = amount < u64::from(width);
            if !inside && !keeps_sign {
                return self.int(lane, 0);
            }
            let amount = amount.min(u64::from(width) - 1) as i64;
            return self.map(x, |v, x| match (op, signed) {
                (BinaryOp::Shl, _) => v.builder.ins().ishl_imm_u(x, amount),
                (_, true) => v.builder.ins().sshr_imm_u(x, amount),
                (_, false) => v.builder.ins().ushr_imm_u(x, amount),
            });
        }
        self.per_lane2(lane, x, y, |v, x, y| {
            let inside = v.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, y, i64::from(width));
            if keeps_sign {
                let last = v.builder.ins().iconst(lane, i64::from(width) - 1);
                let amount = v.builder.ins().select(inside, y, last);
                return v.builder.ins().sshr(x, amount);
            }
            let shifted = if op == BinaryOp::Shl { v.builder.ins().ishl(x, y) } else { v.builder.ins().ushr(x, y) };
            let zero = v.builder.ins().iconst(lane, 0);
            v.builder.ins().select(inside, shifted, zero)
        })
    }

    pub fn compare(&mut self, op: CompareOp, dtype: DType, x: Bundle, y: Bundle) -> Bundle {
        if dtype == DType::Bool {
            return self.compare_bools(op, x, y);
        }
        if x.lane.is_float() {
            let cc = match op {
                CompareOp::Eq => FloatCC::Equal,
                CompareOp::Ne => FloatCC::NotEqual,
                CompareOp::Lt => FloatCC::LessThan,
                CompareOp::Le => FloatCC::LessThanOrEqual,
                CompareOp::Gt => FloatCC::GreaterThan,
                CompareOp::Ge => FloatCC::GreaterThanOrEqual,
            };
            return self.compare_floats(cc, x, y);
        }
        let cc = match (op, dtype.is_signed_integer()) {
            (CompareOp::Eq, _) => IntCC::Equal,
            (CompareOp::Ne, _) => IntCC::NotEqual,
            (CompareOp::Lt, true) => IntCC::SignedLessThan,
            (CompareOp::Le, true) => IntCC::SignedLessThanOrEqual,
            (CompareOp::Gt, true) => IntCC::SignedGreaterThan,
            (CompareOp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
            (CompareOp::Lt, false) => IntCC::UnsignedLessThan,
            (CompareOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
            (CompareOp::Gt, false) => IntCC::UnsignedGreaterThan,
            (CompareOp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.compare_ints(cc, x, y)
    }

    /// Compares bools: false is less than true.
    fn compare_bools(&mut self, op: CompareOp, x: Bundle, y: Bundle) -> Bundle {
        let (x, y) = self.align_masks(x, y);
        match op {
            CompareOp::Ne => self.xor(x, y),
            CompareOp::Eq => {
                let differ = self.xor(x, y);
                self.not_mask(differ)
            }
            CompareOp::Lt => {
                let not = self.not_mask(x);
                self.and(not, y)
            }
            CompareOp::Gt => {
                let not = self.not_mask(y);
                self.and(x, not)
            }
            CompareOp::Le => {
                let not = self.not_mask(x);
                self.or(not, y)
            }
            CompareOp::Ge => {
                let not = self.not_mask(y);
                self.or(x, not)
            }
        }
    }

    /// Integers wrap, floats saturate with NaN as 0, and to bool is "not zero". Narrow floats are rounded from f32.
    pub fn cast(&mut self, from: DType, to: DType, x: Bundle) -> Bundle {
        if from == to {
            return x;
        }
        if from == DType::Key || to == DType::Key {
            // The words of a key are the halves of a u64, in the other order.
            let (high, low) = (self.shift_left(x, 32), self.shift_right(x, 32));
            return self.or(high, low);
        }
        if to == DType::Bool {
            let zero = self.constant(x.lane, 0);
            return if x.lane.is_float() {
                self.compare_floats(FloatCC::NotEqual, x, zero)
            } else {
                self.compare_ints(IntCC::NotEqual, x, zero)
            };
        }
        let lane = register_type(to);
        if from == DType::Bool {
            let int = self.mask_to_int(x, int_of(lane));
            return if !lane.is_float() {
                int
            } else if self.is_scalar() {
                let wide = self.resize(int, I32, false);
                self.int_to_float(wide, lane, true)
            } else {
                // One, where the mask says so.
                let mask = self.mask_as(x, lane);
                let one = self.float(lane, 1.0);
                let one = self.bitcast(int_of(lane), one);
                let bits = self.and(mask, one);
                self.bitcast(lane, bits)
            };
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => self.resize(x, lane, from.is_signed_integer()),
            (false, true) => {
                let wide = if x.lane.bits() < 32 { self.resize(x, I32, from.is_signed_integer()) } else { x };
                let signed = from.is_signed_integer() || x.lane.bits() < 32;
                let float = self.int_to_float(wide, lane, signed);
                if to.is_narrow() { self.round_to_narrow(to, float) } else { float }
            }
            (true, false) => self.float_to(to, x),
            (true, true) => {
                let float = match (x.lane == F64, lane == F64) {
                    (true, false) => self.demote(x),
                    (false, true) => self.promote(x),
                    (true, true) | (false, false) => x,
                };
                if to.is_narrow() { self.round_to_narrow(to, float) } else { float }
            }
        }
    }

    /// The bits of the elements as another number type of the same size. Registers hold narrow floats as f32; integer arithmetic converts
    /// them, so that a NaN keeps its bits.
    pub fn bits_as(&mut self, from: DType, to: DType, x: Bundle) -> Bundle {
        let stored = self.encode_memory(from, x);
        let stored = self.bitcast(memory_type(to), stored);
        self.decode_memory(to, stored)
    }

    fn float_to(&mut self, to: DType, x: Bundle) -> Bundle {
        let (lane, signed) = (register_type(to), to.is_signed_integer());
        if lane.bits() >= 32 {
            return self.float_to_int(x, lane, signed);
        }
        let wide = self.float_to_int(x, I32, true);
        let (least, largest) = if signed {
            (-(1_i64 << (lane.bits() - 1)), (1_i64 << (lane.bits() - 1)) - 1)
        } else {
            (0, (1_i64 << lane.bits()) - 1)
        };
        let (least, largest) = (self.int(I32, least), self.int(I32, largest));
        let raised = self.zip(wide, least, |v, x, y| v.builder.ins().smax(x, y));
        let clamped = self.zip(raised, largest, |v, x, y| v.builder.ins().smin(x, y));
        self.resize(clamped, lane, signed)
    }
}
