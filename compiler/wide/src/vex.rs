//! Operations that AVX2 lacks, by instructions that it has. Results are the same bits.

use crate::body::{BodyEmitter, OperandSource, Registers};
use crate::code::{RegisterSlot, Rm, V, VectorLength};
use crate::encode::PoolConstant;
use crate::ops::{self, Binary, Compared, Lane, Relation, Resize, Rounding, Shift, Unary};

/// The bits of 2^52, whose last place is 1, and the bits of 2^84, whose last place is 2^32.
const UNIT: u64 = 0x4330_0000_0000_0000;
const UPPER_UNIT: u64 = 0x4530_0000_0000_0000;

fn word(value: f32) -> Rm {
    Rm::Const(PoolConstant::Word(value.to_bits()))
}

fn double(bits: u64) -> Rm {
    Rm::Const(PoolConstant::Double(bits))
}

/// Whether an operation is refused: conversions of floats to 64-bit integers.
pub fn lacks(unary: Unary) -> bool {
    matches!(unary, Unary::F64ToI64 | Unary::F64ToU64)
}

impl BodyEmitter {
    /// None if there is an instruction.
    pub fn vex_binary(&mut self, binary: Binary, a: OperandSource, b: OperandSource) -> Option<V> {
        let of_doubles =
            [Binary::MulI64, Binary::MinS64, Binary::MaxS64, Binary::MinU64, Binary::MaxU64, Binary::SarV64];
        if !of_doubles.contains(&binary) {
            return None;
        }
        let (x, y) = (self.in_register(a), self.in_register(b));
        Some(if binary == Binary::MulI64 {
            self.multiply_doubles(x, y)
        } else if binary == Binary::SarV64 {
            self.vex_shift_sign(x, |body, magnitude| body.two(Binary::ShrV64.opcode(), magnitude, Rm::Use(y)))
        } else {
            let signed = matches!(binary, Binary::MinS64 | Binary::MaxS64);
            let compared = if signed { Compared::S64 } else { Compared::U64 };
            let larger =
                self.compare(compared, Relation::Greater, OperandSource::Register(x), OperandSource::Register(y));
            let (then, otherwise) = if matches!(binary, Binary::MaxS64 | Binary::MaxU64) { (x, y) } else { (y, x) };
            self.blend(true, larger, Rm::Use(then), otherwise)
        })
    }

    /// The low halves of products: the products of the upper words do not count.
    fn multiply_doubles(&mut self, a: V, b: V) -> V {
        let [a_high, b_high] = [a, b].map(|x| self.shift(Shift::Shr64, Rm::Use(x), 32));
        let crossed = self.two(ops::MULTIPLY_LOW, a_high, Rm::Use(b));
        let other = self.two(ops::MULTIPLY_LOW, a, Rm::Use(b_high));
        let sum = self.two(Binary::AddI64.opcode(), crossed, Rm::Use(other));
        let high = self.shift(Shift::Shl64, Rm::Use(sum), 32);
        let low = self.two(ops::MULTIPLY_LOW, a, Rm::Use(b));
        self.two(Binary::AddI64.opcode(), low, Rm::Use(high))
    }

    /// All bits of the negative lanes.
    fn signs(&mut self, a: V) -> V {
        let zero = self.constant(PoolConstant::Word(0));
        self.two(ops::GREATER_DOUBLES, zero, Rm::Use(a))
    }

    /// A shift that keeps the sign, by one that brings zeros in: the complement of negative numbers is shifted.
    pub fn vex_shift_sign(&mut self, a: V, shift: impl FnOnce(&mut BodyEmitter, V) -> V) -> V {
        let signs = self.signs(a);
        let magnitude = self.two(Binary::Xor64.opcode(), a, Rm::Use(signs));
        let shifted = shift(self, magnitude);
        self.two(Binary::Xor64.opcode(), shifted, Rm::Use(signs))
    }

    /// None if there is an instruction.
    pub fn vex_unary(&mut self, unary: Unary, a: OperandSource) -> Option<V> {
        let lower: fn(&mut BodyEmitter, V) -> V = match unary {
            Unary::AbsI64 => BodyEmitter::magnitudes,
            Unary::U32ToF32 => BodyEmitter::unsigned_to_float,
            Unary::F32ToU32 => BodyEmitter::float_to_unsigned,
            Unary::I64ToF64 => |body: &mut BodyEmitter, a: V| body.longs_to_doubles(a, true),
            Unary::U64ToF64 => |body: &mut BodyEmitter, a: V| body.longs_to_doubles(a, false),
            Unary::F64ToI64 | Unary::F64ToU64 => unreachable!("{unary:?} is refused"),
            Unary::SqrtF32 | Unary::SqrtF64 | Unary::AbsI32 | Unary::I32ToF32 | Unary::F32ToI32 => return None,
        };
        let a = self.in_register(a);
        Some(lower(self, a))
    }

    fn magnitudes(&mut self, a: V) -> V {
        let signs = self.signs(a);
        let flipped = self.two(Binary::Xor64.opcode(), a, Rm::Use(signs));
        self.two(Binary::SubI64.opcode(), flipped, Rm::Use(signs))
    }

    /// Both halves of a word are exact; their sum is rounded once.
    fn unsigned_to_float(&mut self, a: V) -> V {
        let convert = Unary::I32ToF32.opcode();
        let high = self.shift(Shift::Shr32, Rm::Use(a), 16);
        let low = self.two(Binary::And32.opcode(), a, Rm::Const(PoolConstant::Word(0xffff)));
        let [high, low] = [high, low].map(|half| self.one(convert, Rm::Use(half)));
        let factor = OperandSource::Constant(PoolConstant::Word(65536.0_f32.to_bits()));
        let [high, low] = [high, low].map(OperandSource::Register);
        self.fma(false, [high, factor, low], [true; 3], false, false)
    }

    /// Positive numbers toward zero; numbers that are too large result in all bits.
    fn float_to_unsigned(&mut self, a: V) -> V {
        const HALF: f32 = 2_147_483_648.0;
        let convert = Unary::F32ToI32.opcode();
        // From the half on this one is the smallest integer, whose sign takes the other one.
        let low = self.one(convert, Rm::Use(a));
        let rest = self.two(Binary::SubF32.opcode(), a, word(HALF));
        let high = self.one(convert, Rm::Use(rest));
        let signs = self.shift(Shift::Sar32, Rm::Use(low), 31);
        let high = self.two(Binary::And32.opcode(), high, Rm::Use(signs));
        let int = self.two(Binary::Or32.opcode(), low, Rm::Use(high));
        let limit = OperandSource::Constant(PoolConstant::Word((2.0 * HALF).to_bits()));
        let beyond = self.compare(Compared::F32, Relation::GreaterOrEqual, OperandSource::Register(a), limit);
        self.two(Binary::Or32.opcode(), int, Rm::Use(beyond))
    }

    /// The words of a number as the last places of 2^52 and 2^84; the sum without these is rounded once.
    fn longs_to_doubles(&mut self, a: V, signed: bool) -> V {
        let upper_words = Some(0b1010_1010);
        let low = self.vector(ops::CHOOSE_WORDS, VectorLength::Whole, RegisterSlot::Use(a), double(UNIT), upper_words);
        let high = self.shift(Shift::Shr64, Rm::Use(a), 32);
        // With the other sign a signed number is an unsigned one that is larger by 2^63.
        let sign = if signed { 1 << 31 } else { 0 };
        let high = self.two(Binary::Xor64.opcode(), high, double(UPPER_UNIT | sign));
        let high = self.two(Binary::SubF64.opcode(), high, double(UPPER_UNIT | 1 << 20 | sign));
        self.two(Binary::AddF64.opcode(), high, Rm::Use(low))
    }

    /// None if there is an instruction.
    pub fn vex_resize(&mut self, resize: Resize, a: Registers) -> Option<Registers> {
        Some(match resize {
            Resize::U32ToF64 => {
                let high = self.upper_half(a[0]);
                [a[0], high].map(|half| {
                    let wide = self.one(Resize::ZeroExtend.opcode(), Rm::Use(half));
                    let raised = self.two(Binary::Or64.opcode(), wide, double(UNIT));
                    self.two(Binary::SubF64.opcode(), raised, double(UNIT))
                })
            }
            Resize::F64ToU32 => {
                let ints = a.map(|half| {
                    let largest = double(f64::from(u32::MAX).to_bits());
                    let limited = self.two(Binary::MinF64.opcode(), half, largest);
                    let toward_zero = Some(Rounding::Trunc as u8);
                    let (opcode, none) = (Rounding::opcode(true), RegisterSlot::None);
                    let whole = self.vector(opcode, VectorLength::Whole, none, Rm::Use(limited), toward_zero);
                    // The integer is in the last places.
                    self.two(Binary::AddF64.opcode(), whole, double(UNIT))
                });
                [self.low_words(ints); 2]
            }
            Resize::I64ToF32 | Resize::U64ToF32 => {
                let halves = a.map(|half| self.longs_to_floats(half, resize == Resize::I64ToF32));
                [self.join_halves(halves); 2]
            }
            Resize::Truncate => [self.low_words(a); 2],
            Resize::WidenF32
            | Resize::I32ToF64
            | Resize::SignExtend
            | Resize::ZeroExtend
            | Resize::NarrowF64
            | Resize::F64ToI32 => return None,
        })
    }

    /// Rounded once, by doubles: doubles of large numbers have a last place that records whether lower places were lost.
    fn longs_to_floats(&mut self, a: V, signed: bool) -> V {
        const LOST: u64 = 0x7ff;
        let near = self.longs_to_doubles(a, signed);
        let lost = self.two(Binary::And64.opcode(), a, double(LOST));
        let carry = self.two(Binary::AddI64.opcode(), lost, double(LOST));
        let odd = self.two(Binary::Or64.opcode(), a, Rm::Use(carry));
        let odd = self.two(Binary::And64.opcode(), odd, double(!LOST));
        let odd = self.longs_to_doubles(odd, signed);
        let magnitude = self.two(Binary::And64.opcode(), near, double(u64::MAX >> 1));
        let limit = OperandSource::Constant(PoolConstant::Double(9_007_199_254_740_992.0_f64.to_bits()));
        let large = self.compare(Compared::F64, Relation::GreaterOrEqual, OperandSource::Register(magnitude), limit);
        let exact = self.blend(true, large, Rm::Use(odd), near);
        self.one(Resize::NarrowF64.opcode(), Rm::Use(exact))
    }

    /// The low words of doubles, of both registers in one.
    pub fn low_words(&mut self, [low, high]: Registers) -> V {
        let (whole, second) = (VectorLength::Whole, RegisterSlot::Use(low));
        let pairs = self.vector(ops::SHUFFLE_PAIR, whole, second, Rm::Use(high), Some(0b10_00_10_00));
        // Both registers' lower halves come first.
        self.vector(ops::PERMUTE_DOUBLES, whole, RegisterSlot::None, Rm::Use(pairs), Some(0b11_01_10_00))
    }

    /// Words cut to elements of 2 bytes or 1 byte, in the low part of a register.
    pub fn packed(&mut self, bytes: i64, a: V) -> V {
        let bits = if bytes == 2 { 0xffff } else { 0xff };
        let low = self.two(Binary::And32.opcode(), a, Rm::Const(PoolConstant::Word(bits)));
        let high = self.upper_half(low);
        let pack = |body: &mut BodyEmitter, opcode, a: V, b: V| {
            body.vector(opcode, VectorLength::Least, RegisterSlot::Use(a), Rm::Use(b), None)
        };
        let packed = pack(self, ops::PACK_16, low, high);
        if bytes == 2 { packed } else { pack(self, ops::PACK_8, packed, packed) }
    }

    /// A general register in all lanes.
    pub fn spread(&mut self, int: V, lane: Lane) -> V {
        let double = lane == Lane::Double;
        if self.level.evex {
            return self.one(if double { ops::SPREAD_DOUBLES } else { ops::SPREAD }, Rm::Use(int));
        }
        let (from, to) = if double {
            (ops::FROM_LONG_INT, ops::BROADCAST_LOWEST_DOUBLE)
        } else {
            (ops::FROM_INT, ops::BROADCAST_LOWEST)
        };
        let lowest = self.vector(from, VectorLength::Least, RegisterSlot::None, Rm::Use(int), None);
        self.one(to, Rm::Use(lowest))
    }
}
