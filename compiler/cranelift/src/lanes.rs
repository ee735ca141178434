//! Math functions as machine code: [`spmdc_math::Lanes`] recorded into Cranelift's IR.
//!
//! Functions run on one register at a time: four lanes of `f32` (whose `f64` values take two registers), two of `f64`, or one lane
//! as scalars. For a bundle of several registers the function runs on each of them, which keeps long polynomials within the
//! machine's registers.

use super::math_calls::{MathCall, MathStyle};
use super::vector::{Bundle, Vector};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64, I32, I64};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::FuncInstBuilder;
use spmdc_math::{Lanes, MathFn, MathFn2, Rare};

impl<'f> Vector<'_, 'f> {
    /// `f(x)` for `f32` or `f64` lanes.
    pub fn math(&mut self, f: MathFn, x: Bundle, style: MathStyle) -> Bundle {
        if self.is_scalar() && style.call_scalars && !f.description().is_instruction {
            return self.call_scalar(MathCall::One(f), &[x], style);
        }
        self.map(x, |v, part| {
            let mut lanes = v.register_lanes(x.lane, style);
            if x.lane == F32 {
                spmdc_math::unary_f32(&mut lanes, f, part)
            } else {
                spmdc_math::unary_f64(&mut lanes, f, [part; 2])[0]
            }
        })
    }

    /// `f(x, y)` for `f32` or `f64` lanes.
    pub fn math2(&mut self, f: MathFn2, x: Bundle, y: Bundle, style: MathStyle) -> Bundle {
        if self.is_scalar() && style.call_scalars {
            return self.call_scalar(MathCall::Two(f), &[x, y], style);
        }
        self.zip(x, y, |v, a, b| {
            let mut lanes = v.register_lanes(x.lane, style);
            if x.lane == F32 {
                spmdc_math::binary_f32(&mut lanes, f, a, b)
            } else {
                spmdc_math::binary_f64(&mut lanes, f, [a; 2], [b; 2])[0]
            }
        })
    }

    /// The function on scalars, inlined; functions of the C library have no body here.
    pub fn math_body(&mut self, call: MathCall, args: &[Bundle], style: MathStyle) -> Bundle {
        let inline = MathStyle { call_scalars: false, ..style };
        let (lane, x) = (args[0].lane, args[0].single());
        match call {
            MathCall::One(f) => self.math(f, args[0], inline),
            MathCall::Two(f) => self.math2(f, args[0], args[1], inline),
            MathCall::Rare(rare) if lane == F32 => {
                Bundle::new(lane, &[spmdc_math::rare_f32(&mut self.register_lanes(lane, inline), rare, x)])
            }
            MathCall::Rare(rare) => {
                Bundle::new(lane, &spmdc_math::rare_f64(&mut self.register_lanes(lane, inline), rare, [x; 2])[..1])
            }
            MathCall::Remainder => self.call_scalar(call, args, inline),
        }
    }

    fn register_lanes(&mut self, lane: Type, style: MathStyle) -> Registers<'_, 'f> {
        // Two lanes of f64 fill a register; for four lanes of f32, f64 values need two registers.
        let (lanes, doubles) = match (self.is_scalar(), lane == F64) {
            (true, _) => (1, 1),
            (false, true) => (2, 1),
            (false, false) => (4, 2),
        };
        Registers { vector: Vector { builder: self.builder, lanes }, doubles, style }
    }
}

/// The operations of math functions on one register of `f32` with up to two of `f64`, or on one of `f64` alone.
struct Registers<'a, 'f> {
    vector: Vector<'a, 'f>,
    /// The number of registers of an `f64` value.
    doubles: usize,
    style: MathStyle,
}

/// A value of 64-bit lanes: two registers, or the same register twice.
type Pair = [Value; 2];

impl<'f> Registers<'_, 'f> {
    fn ins(&mut self) -> FuncInstBuilder<'_, 'f> {
        self.vector.builder.ins()
    }

    fn each(&mut self, a: Pair, f: impl Fn(FuncInstBuilder<'_, '_>, Value) -> Value) -> Pair {
        let low = f(self.ins(), a[0]);
        if self.doubles == 2 { [low, f(self.ins(), a[1])] } else { [low; 2] }
    }

    fn each2(&mut self, a: Pair, b: Pair, f: impl Fn(FuncInstBuilder<'_, '_>, Value, Value) -> Value) -> Pair {
        let low = f(self.ins(), a[0], b[0]);
        if self.doubles == 2 { [low, f(self.ins(), a[1], b[1])] } else { [low; 2] }
    }

    fn cast(&mut self, lane: Type, value: Value) -> Value {
        let ty = self.vector.part_type(lane);
        self.ins().bitcast(ty, MemFlagsData::new().with_endianness(Endianness::Little), value)
    }

    fn constant(&mut self, lane: Type, bits: u64) -> Value {
        self.vector.constant(lane, bits).single()
    }

    /// `mask ? rare(x) : common`, jumping around the call if no lane needs it.
    fn jump_around(&mut self, lane: Type, rare: Rare, mask: Bundle, common: Bundle, x: Bundle) -> Bundle {
        let either = mask.parts()[1..].iter().fold(mask.single(), |any, &part| self.ins().bor(any, part));
        let any = if self.vector.is_scalar() { either } else { self.ins().vany_true(either) };
        let style = self.style;
        let results = self.vector.rarely(any, common.parts(), |v| {
            let call = MathCall::Rare(rare);
            let value = if v.is_scalar() { v.call_scalar(call, &[x], style) } else { v.call_bulk(call, &[x], style) };
            v.select(mask, value, common).parts().to_vec()
        });
        Bundle::new(lane, &results)
    }

    /// A value of 64-bit lanes as a bundle.
    fn doubles(&self, lane: Type, a: Pair) -> Bundle {
        Bundle::new(lane, &a[..self.doubles])
    }
}

impl Lanes for Registers<'_, '_> {
    type F32 = Value;
    type F64 = Pair;
    type I32 = Value;
    type I64 = Pair;
    type M32 = Value;
    type M64 = Pair;

    fn const_f32(&mut self, value: f32) -> Value {
        self.constant(F32, u64::from(value.to_bits()))
    }
    fn add_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fadd(a, b)
    }
    fn sub_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fsub(a, b)
    }
    fn mul_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fmul(a, b)
    }
    fn div_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fdiv(a, b)
    }
    fn sqrt_f32(&mut self, a: Value) -> Value {
        self.ins().sqrt(a)
    }
    fn fma_f32(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.ins().fma(a, b, c)
    }
    fn neg_f32(&mut self, a: Value) -> Value {
        self.ins().fneg(a)
    }
    fn abs_f32(&mut self, a: Value) -> Value {
        self.ins().fabs(a)
    }
    fn nearest_f32(&mut self, a: Value) -> Value {
        self.ins().nearest(a)
    }
    fn floor_f32(&mut self, a: Value) -> Value {
        self.ins().floor(a)
    }
    fn ceil_f32(&mut self, a: Value) -> Value {
        self.ins().ceil(a)
    }
    fn trunc_f32(&mut self, a: Value) -> Value {
        self.ins().trunc(a)
    }
    fn eq_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fcmp(FloatCC::Equal, a, b)
    }
    fn lt_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fcmp(FloatCC::LessThan, a, b)
    }
    fn le_f32(&mut self, a: Value, b: Value) -> Value {
        self.ins().fcmp(FloatCC::LessThanOrEqual, a, b)
    }
    fn select_f32(&mut self, mask: Value, a: Value, b: Value) -> Value {
        self.vector.choose(mask, a, b)
    }
    fn to_bits_f32(&mut self, a: Value) -> Value {
        self.cast(I32, a)
    }
    fn from_bits_f32(&mut self, a: Value) -> Value {
        self.cast(F32, a)
    }
    fn const_i32(&mut self, value: i32) -> Value {
        self.constant(I32, u64::from(value.cast_unsigned()))
    }
    fn add_i32(&mut self, a: Value, b: Value) -> Value {
        self.ins().iadd(a, b)
    }
    fn sub_i32(&mut self, a: Value, b: Value) -> Value {
        self.ins().isub(a, b)
    }
    fn and_i32(&mut self, a: Value, b: Value) -> Value {
        self.ins().band(a, b)
    }
    fn or_i32(&mut self, a: Value, b: Value) -> Value {
        self.ins().bor(a, b)
    }
    fn xor_i32(&mut self, a: Value, b: Value) -> Value {
        self.ins().bxor(a, b)
    }
    fn shl_i32(&mut self, a: Value, by: u32) -> Value {
        self.ins().ishl_imm_u(a, i64::from(by))
    }
    fn shr_i32(&mut self, a: Value, by: u32) -> Value {
        self.ins().ushr_imm_u(a, i64::from(by))
    }
    fn and_m32(&mut self, a: Value, b: Value) -> Value {
        self.ins().band(a, b)
    }
    fn or_m32(&mut self, a: Value, b: Value) -> Value {
        self.ins().bor(a, b)
    }

    fn const_f64(&mut self, value: f64) -> Pair {
        [self.constant(F64, value.to_bits()); 2]
    }
    fn add_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fadd(a, b))
    }
    fn sub_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fsub(a, b))
    }
    fn mul_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fmul(a, b))
    }
    fn div_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fdiv(a, b))
    }
    fn sqrt_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.sqrt(a))
    }
    fn fma_f64(&mut self, a: Pair, b: Pair, c: Pair) -> Pair {
        let low = self.ins().fma(a[0], b[0], c[0]);
        if self.doubles == 2 { [low, self.ins().fma(a[1], b[1], c[1])] } else { [low; 2] }
    }
    fn neg_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.fneg(a))
    }
    fn abs_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.fabs(a))
    }
    fn nearest_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.nearest(a))
    }
    fn floor_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.floor(a))
    }
    fn ceil_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.ceil(a))
    }
    fn trunc_f64(&mut self, a: Pair) -> Pair {
        self.each(a, |ins, a| ins.trunc(a))
    }
    fn eq_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fcmp(FloatCC::Equal, a, b))
    }
    fn lt_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fcmp(FloatCC::LessThan, a, b))
    }
    fn le_f64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.fcmp(FloatCC::LessThanOrEqual, a, b))
    }
    fn select_f64(&mut self, mask: Pair, a: Pair, b: Pair) -> Pair {
        let low = self.vector.choose(mask[0], a[0], b[0]);
        if self.doubles == 2 { [low, self.vector.choose(mask[1], a[1], b[1])] } else { [low; 2] }
    }
    fn to_bits_f64(&mut self, a: Pair) -> Pair {
        a.map(|a| self.cast(I64, a))
    }
    fn from_bits_f64(&mut self, a: Pair) -> Pair {
        a.map(|a| self.cast(F64, a))
    }
    fn const_i64(&mut self, value: i64) -> Pair {
        [self.constant(I64, value.cast_unsigned()); 2]
    }
    fn add_i64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.iadd(a, b))
    }
    fn sub_i64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.isub(a, b))
    }
    fn and_i64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.band(a, b))
    }
    fn or_i64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.bor(a, b))
    }
    fn xor_i64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.bxor(a, b))
    }
    fn shl_i64(&mut self, a: Pair, by: u32) -> Pair {
        self.each(a, |ins, a| ins.ishl_imm_u(a, i64::from(by)))
    }
    fn shr_i64(&mut self, a: Pair, by: u32) -> Pair {
        self.each(a, |ins, a| ins.ushr_imm_u(a, i64::from(by)))
    }
    fn and_m64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.band(a, b))
    }
    fn or_m64(&mut self, a: Pair, b: Pair) -> Pair {
        self.each2(a, b, |ins, a, b| ins.bor(a, b))
    }

    fn widen(&mut self, a: Value) -> Pair {
        let bundle = self.vector.promote(Bundle::new(F32, &[a]));
        let parts = bundle.parts();
        [parts[0], parts[parts.len() - 1]]
    }
    fn narrow(&mut self, a: Pair) -> Value {
        let count = self.doubles;
        self.vector.demote(Bundle::new(F64, &a[..count])).single()
    }

    fn rarely_f32(&mut self, mask: Value, common: Value, rare: Rare, x: Value) -> Value {
        let mask = Bundle::new(self.vector.mask_type(F32), &[mask]);
        let (common, x) = (Bundle::new(F32, &[common]), Bundle::new(F32, &[x]));
        self.jump_around(F32, rare, mask, common, x).single()
    }
    fn rarely_f64(&mut self, mask: Pair, common: Pair, rare: Rare, x: Pair) -> Pair {
        let mask = self.doubles(self.vector.mask_type(F64), mask);
        let (common, x) = (self.doubles(F64, common), self.doubles(F64, x));
        let result = self.jump_around(F64, rare, mask, common, x);
        [result.parts()[0], result.parts()[self.doubles - 1]]
    }
}
