//! Math functions as machine code: [`math::Lanes`] recorded into Cranelift's IR.
//!
//! One register at a time: four lanes of `f32` (their `f64` then are two registers), two of `f64`, or one lane as scalars. A
//! bundle of several registers runs the function on each of them, which keeps long polynomials within the machine's registers.
//!
//! Where there is little to gain from inlining, a scalar function is called instead ([`MathCall`]): for the rare arguments that
//! a vector function jumps around, and for the few elements left over at the end of a vector loop.

use super::vector::{Bundle, Vector, register_of};
use crate::math::{self, Lanes, MathFn, MathFn2, Rare};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Endianness, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, Signature, Type,
    UserExternalName, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FuncInstBuilder;

/// A scalar math function that kernels call: `extern "C" fn(f32) -> f32`, or with two operands, or of `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MathCall {
    One(MathFn),
    Two(MathFn2),
    Rare(Rare),
    /// The C library's `fmod`.
    Remainder,
}

/// The namespace of [`MathCall`]s among the external names of a kernel.
pub const MATH_NAMESPACE: u32 = 1;

const RARE: [Rare; 3] = [Rare::Sin, Rare::Cos, Rare::Tan];

impl MathCall {
    /// Every function that a kernel may call.
    pub fn all() -> impl Iterator<Item = MathCall> {
        let one = MathFn::ALL.iter().map(|&f| MathCall::One(f));
        let two = MathFn2::ALL.iter().map(|&f| MathCall::Two(f));
        one.chain(two).chain(RARE.into_iter().map(MathCall::Rare)).chain([MathCall::Remainder])
    }

    /// The function as an external name: its number, then its width.
    fn external(self, lane: Type) -> UserExternalName {
        let number = match self {
            MathCall::One(f) => f as u32,
            MathCall::Two(f) => 100 + f as u32,
            MathCall::Rare(rare) => 200 + rare as u32,
            MathCall::Remainder => 300,
        };
        UserExternalName::new(MATH_NAMESPACE, 2 * number + u32::from(lane == F64))
    }

    /// The function and its width behind an external name.
    pub fn from_external(name: &UserExternalName) -> Option<(MathCall, Type)> {
        let lane = if name.index.is_multiple_of(2) { F32 } else { F64 };
        let call = MathCall::all().find(|call| call.external(lane) == *name)?;
        Some((call, lane))
    }

    /// The symbol of the function in objects.
    pub fn symbol(self, lane: Type) -> String {
        let width = if lane == F32 { "f32" } else { "f64" };
        match self {
            MathCall::One(f) => format!("spmd_{}_{width}", f.name()),
            MathCall::Two(f) => format!("spmd_{}_{width}", f.name()),
            MathCall::Rare(rare) => format!("spmd_rare_{}_{width}", format!("{rare:?}").to_lowercase()),
            MathCall::Remainder => String::from(if lane == F32 { "fmodf" } else { "fmod" }),
        }
    }

    pub fn signature(self, lane: Type, convention: CallConv) -> Signature {
        let mut signature = Signature::new(convention);
        let count = if matches!(self, MathCall::Two(_) | MathCall::Remainder) { 2 } else { 1 };
        signature.params = vec![AbiParam::new(lane); count];
        signature.returns.push(AbiParam::new(lane));
        signature
    }
}

/// How math functions are emitted.
#[derive(Clone, Copy, Debug)]
pub struct MathStyle {
    /// Scalars call; vectors are always inlined.
    pub call_scalars: bool,
    /// The functions lie in the same object as the kernels.
    pub near: bool,
}

impl<'f> Vector<'_, 'f> {
    /// `f(x)` for `f32` or `f64` lanes.
    pub fn math(&mut self, f: MathFn, x: Bundle, style: MathStyle) -> Bundle {
        if self.is_scalar() && style.call_scalars && !is_one_instruction(f) {
            return self.call(MathCall::One(f), &[x], style);
        }
        self.map(x, |v, part| {
            let mut lanes = v.register_lanes(x.lane, style);
            if x.lane == F32 {
                math::unary_f32(&mut lanes, f, part)
            } else {
                math::unary_f64(&mut lanes, f, [part; 2])[0]
            }
        })
    }

    /// `f(x, y)` for `f32` or `f64` lanes.
    pub fn math2(&mut self, f: MathFn2, x: Bundle, y: Bundle, style: MathStyle) -> Bundle {
        if self.is_scalar() && style.call_scalars {
            return self.call(MathCall::Two(f), &[x, y], style);
        }
        self.zip(x, y, |v, a, b| {
            let mut lanes = v.register_lanes(x.lane, style);
            if x.lane == F32 {
                math::binary_f32(&mut lanes, f, a, b)
            } else {
                math::binary_f64(&mut lanes, f, [a; 2], [b; 2])[0]
            }
        })
    }

    /// `fmod(x, y)` of scalars.
    pub fn call_remainder(&mut self, x: Value, y: Value, style: MathStyle) -> Value {
        let lane = self.builder.func.dfg.value_type(x);
        self.call_values(MathCall::Remainder, lane, &[x, y], style)
    }

    /// Emits the body of a [`MathCall`] on scalars.
    pub fn math_body(&mut self, call: MathCall, args: &[Value], lane: Type, style: MathStyle) -> Value {
        debug_assert!(self.is_scalar());
        let inline = MathStyle { call_scalars: false, ..style };
        let mut lanes = self.register_lanes(lane, inline);
        match (call, lane == F32) {
            (MathCall::Remainder, _) => unreachable!("the C library has it"),
            (MathCall::One(f), true) => math::unary_f32(&mut lanes, f, args[0]),
            (MathCall::One(f), false) => math::unary_f64(&mut lanes, f, [args[0]; 2])[0],
            (MathCall::Two(f), true) => math::binary_f32(&mut lanes, f, args[0], args[1]),
            (MathCall::Two(f), false) => math::binary_f64(&mut lanes, f, [args[0]; 2], [args[1]; 2])[0],
            (MathCall::Rare(rare), true) => math::rare_f32(&mut lanes, rare, args[0]),
            (MathCall::Rare(rare), false) => math::rare_f64(&mut lanes, rare, [args[0]; 2])[0],
        }
    }

    fn register_lanes(&mut self, lane: Type, style: MathStyle) -> Registers<'_, 'f> {
        // Two lanes of f64 fill a register; where f32 leads, its four lanes need two registers of f64.
        let (lanes, doubles) = match (self.is_scalar(), lane == F64) {
            (true, _) => (1, 1),
            (false, true) => (2, 1),
            (false, false) => (4, 2),
        };
        Registers { vector: Vector { builder: self.builder, lanes }, doubles, style }
    }

    fn call(&mut self, call: MathCall, args: &[Bundle], style: MathStyle) -> Bundle {
        let lane = args[0].lane;
        let args: Vec<Value> = args.iter().map(Bundle::single).collect();
        let result = self.call_values(call, lane, &args, style);
        Bundle::new(lane, &[result])
    }

    fn call_values(&mut self, call: MathCall, lane: Type, args: &[Value], style: MathStyle) -> Value {
        let function = self.import(call, lane, style);
        let inst = self.builder.ins().call(function, args);
        self.builder.inst_results(inst)[0]
    }

    /// The reference to an external function, declared at its first use.
    fn import(&mut self, call: MathCall, lane: Type, style: MathStyle) -> FuncRef {
        let name = call.external(lane);
        let known = self.builder.func.dfg.ext_funcs.iter().find(|(_, data)| match data.name {
            ExternalName::User(user) => self.builder.func.params.user_named_funcs()[user] == name,
            _ => false,
        });
        if let Some((function, _)) = known {
            return function;
        }
        let convention = self.builder.func.signature.call_conv;
        let signature = self.builder.import_signature(call.signature(lane, convention));
        let name = ExternalName::user(self.builder.func.declare_imported_user_function(name));
        self.builder.import_function(ExtFuncData {
            name,
            signature,
            colocated: style.near && call != MathCall::Remainder,
            patchable: false,
        })
    }
}

/// Functions that are no longer than a call.
fn is_one_instruction(f: MathFn) -> bool {
    matches!(f, MathFn::Sqrt | MathFn::Floor | MathFn::Ceil | MathFn::Round | MathFn::Trunc)
}

/// The operations of math functions on one register of `f32` with up to two of `f64`, or on one of `f64` alone.
struct Registers<'a, 'f> {
    vector: Vector<'a, 'f>,
    /// Registers that an `f64` value takes.
    doubles: usize,
    style: MathStyle,
}

/// A value of 64-bit lanes: two registers, or the same one twice.
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

    /// `mask ? rare(x) : common`, jumping around the calls when no lane needs them.
    fn jump_around(&mut self, lane: Type, rare: Rare, any: Value, operands: [(Value, Value, Value); 2]) -> Pair {
        let count = if lane == F64 { self.doubles } else { 1 };
        let style = self.style;
        let common: Vec<Value> = operands[..count].iter().map(|&(_, common, _)| common).collect();
        let results = self.vector.rarely(any, &common, |v| {
            let selected = operands[..count].iter().map(|&(mask, common, x)| {
                let lanes = if v.is_scalar() { 1 } else { 128 / lane.bits() };
                let scalars: Vec<Value> = (0..lanes as u8)
                    .map(|i| {
                        let x = if lanes == 1 { x } else { v.builder.ins().extractlane(x, i) };
                        v.call_values(MathCall::Rare(rare), lane, &[x], style)
                    })
                    .collect();
                let value = if lanes == 1 {
                    scalars[0]
                } else {
                    let first = v.builder.ins().scalar_to_vector(register_of(lane), scalars[0]);
                    let rest = scalars.iter().enumerate().skip(1);
                    rest.fold(first, |vector, (i, &value)| v.builder.ins().insertlane(vector, value, i as u8))
                };
                v.choose(mask, value, common)
            });
            selected.collect()
        });
        [results[0], results[results.len() - 1]]
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
        let any = if self.vector.is_scalar() { mask } else { self.ins().vany_true(mask) };
        self.jump_around(F32, rare, any, [(mask, common, x); 2])[0]
    }
    fn rarely_f64(&mut self, mask: Pair, common: Pair, rare: Rare, x: Pair) -> Pair {
        let either = if self.doubles == 2 { self.ins().bor(mask[0], mask[1]) } else { mask[0] };
        let any = if self.vector.is_scalar() { either } else { self.ins().vany_true(either) };
        self.jump_around(F64, rare, any, [(mask[0], common[0], x[0]), (mask[1], common[1], x[1])])
    }
}
