//! Bundles of lanes in Cranelift's IR.
//!
//! A kernel works on `lanes` points at a time. A value of 32-bit elements for 8 points is two 128-bit registers, one of 64-bit
//! elements four; with one lane it is a scalar. [`Vector`] hides the difference: every operation here takes and returns whole
//! bundles, so an operation of the language is written once for scalars and vectors.
//!
//! A bundle of narrow elements may fill only the low part of its register: 4 lanes of bytes are 4 bytes. The bits above are
//! unspecified, so no operation may trap on them, and loads and stores touch the valid bytes only.
//!
//! Bools are *masks*. With several lanes a mask is a bundle of integers, all ones or zero, as wide as the compared values, and it
//! is widened or narrowed to the width of the values that it selects. With one lane it is an `I8` that is 0 or 1.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::types::{F32, F64, F64X2, I8, I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{
    BlockArg, ConstantData, Endianness, Immediate, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value,
    ValueDef,
};
use cranelift_frontend::FunctionBuilder;

/// Maximum number of registers of a value: 16 lanes of 64 bits.
pub const MAX_PARTS: usize = 8;

/// One value for every lane.
#[derive(Clone, Copy, Debug)]
pub struct Bundle {
    /// The type of one lane.
    pub lane: Type,
    len: u8,
    parts: [Value; MAX_PARTS],
}

impl Bundle {
    pub fn new(lane: Type, parts: &[Value]) -> Bundle {
        let mut array = [parts[0]; MAX_PARTS];
        array[..parts.len()].copy_from_slice(parts);
        Bundle { lane, len: parts.len() as u8, parts: array }
    }

    pub fn parts(&self) -> &[Value] {
        &self.parts[..self.len as usize]
    }

    /// The only part: for one lane the value itself.
    pub fn single(&self) -> Value {
        self.parts[0]
    }
}

/// Accesses never trap; vectors need not be aligned.
pub fn memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_endianness(Endianness::Little)
}

/// Loads of elements that nobody writes while the kernel runs: they may be moved out of loops, and to their uses.
pub fn constant_memory() -> MemFlagsData {
    memory().with_readonly().with_can_move()
}

/// The integer type as wide as a lane.
pub fn int_of(lane: Type) -> Type {
    Type::int(lane.lane_bits() as u16).expect("lanes have 8 to 64 bits")
}

/// The 128-bit vector of a lane type.
pub fn register_of(lane: Type) -> Type {
    lane.by(128 / lane.bits()).expect("lanes have 8 to 64 bits")
}

/// Emits operations on bundles of a fixed number of lanes: 1, or a power of two from 4 to 16.
pub struct Vector<'a, 'f> {
    pub builder: &'a mut FunctionBuilder<'f>,
    pub lanes: u32,
}

impl Vector<'_, '_> {
    pub fn is_scalar(&self) -> bool {
        self.lanes == 1
    }

    /// The type of one part.
    pub fn part_type(&self, lane: Type) -> Type {
        if self.is_scalar() { lane } else { register_of(lane) }
    }

    pub fn part_count(&self, lane: Type) -> usize {
        if self.is_scalar() { 1 } else { (self.lanes * lane.bits()).div_ceil(128) as usize }
    }

    /// Lanes in one part.
    pub fn part_lanes(&self, lane: Type) -> u32 {
        if self.is_scalar() { 1 } else { 128 / lane.bits() }
    }

    pub fn map(&mut self, a: Bundle, mut f: impl FnMut(&mut Self, Value) -> Value) -> Bundle {
        let mut out = a;
        for i in 0..a.len as usize {
            out.parts[i] = f(self, a.parts[i]);
        }
        out
    }

    pub fn zip(&mut self, a: Bundle, b: Bundle, mut f: impl FnMut(&mut Self, Value, Value) -> Value) -> Bundle {
        debug_assert_eq!((a.lane, a.len), (b.lane, b.len));
        let mut out = a;
        for i in 0..a.len as usize {
            out.parts[i] = f(self, a.parts[i], b.parts[i]);
        }
        out
    }

    // Constants and conversions between scalars and bundles.

    /// The same bits in every lane.
    pub fn constant(&mut self, lane: Type, bits: u64) -> Bundle {
        let value = if self.is_scalar() { self.scalar(lane, bits) } else { self.register(lane, bits) };
        self.repeat(lane, value)
    }

    pub fn int(&mut self, lane: Type, value: i64) -> Bundle {
        self.constant(lane, value as u64)
    }

    /// A float constant of either width.
    pub fn float(&mut self, lane: Type, value: f64) -> Bundle {
        let bits = if lane == F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() };
        self.constant(lane, bits)
    }

    pub fn scalar(&mut self, lane: Type, bits: u64) -> Value {
        if lane == F32 {
            self.builder.ins().f32const(Ieee32::with_bits(bits as u32))
        } else if lane == F64 {
            self.builder.ins().f64const(Ieee64::with_bits(bits))
        } else {
            // Sign-extended, because the immediate has 64 bits for every type.
            let unused = 64 - lane.bits();
            self.builder.ins().iconst(lane, (bits as i64) << unused >> unused)
        }
    }

    fn register(&mut self, lane: Type, bits: u64) -> Value {
        let size = lane.bytes() as usize;
        let bytes: Vec<u8> = (0..16).map(|i| bits.to_le_bytes()[i % size]).collect();
        self.register_bytes(lane, bytes)
    }

    fn register_bytes(&mut self, lane: Type, bytes: Vec<u8>) -> Value {
        let handle = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        self.builder.ins().vconst(register_of(lane), handle)
    }

    /// A different integer constant in each lane.
    pub fn int_lanes(&mut self, lane: Type, value: impl Fn(u32) -> i64) -> Bundle {
        if self.is_scalar() {
            return self.int(lane, value(0));
        }
        let (size, count) = (lane.bytes() as usize, self.part_lanes(lane));
        let parts: Vec<Value> = (0..self.part_count(lane) as u32)
            .map(|part| {
                let bytes = (0..count).flat_map(|i| value(part * count + i).to_le_bytes()[..size].to_vec()).collect();
                self.register_bytes(lane, bytes)
            })
            .collect();
        Bundle::new(lane, &parts)
    }

    /// The same scalar in every lane. A scalar truth value becomes a mask of `lane`'s width.
    pub fn splat(&mut self, lane: Type, value: Value) -> Bundle {
        if self.is_scalar() {
            return Bundle::new(lane, &[value]);
        }
        let vector = match self.constant_of(value) {
            Some(bits) => self.register(lane, bits),
            None => self.builder.ins().splat(register_of(lane), value),
        };
        self.repeat(lane, vector)
    }

    pub fn splat_mask(&mut self, lane: Type, truth: Value) -> Bundle {
        if self.is_scalar() {
            return Bundle::new(I8, &[truth]);
        }
        let extended = if lane == I8 { truth } else { self.builder.ins().uextend(lane, truth) };
        let all_ones = self.builder.ins().ineg(extended);
        let vector = self.builder.ins().splat(register_of(lane), all_ones);
        self.repeat(lane, vector)
    }

    /// The bits of a scalar constant.
    fn constant_of(&self, value: Value) -> Option<u64> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return None };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the instructions of Cranelift are not ours")]
        match dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits() as u64),
            InstructionData::UnaryIeee32 { opcode: Opcode::F32const, imm } => Some(u64::from(imm.bits())),
            InstructionData::UnaryIeee64 { opcode: Opcode::F64const, imm } => Some(imm.bits()),
            _ => None,
        }
    }

    /// The bits of one lane of a constant that is the same in every lane.
    pub fn constant_bits(&self, a: Bundle) -> Option<u64> {
        let unused = 64 - a.lane.bits();
        if self.is_scalar() {
            return self.constant_of(a.single()).map(|bits| bits << unused >> unused);
        }
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(a.single()) else { return None };
        let InstructionData::UnaryConst { opcode: Opcode::Vconst, constant_handle } = dfg.insts[inst] else {
            return None;
        };
        let bytes = dfg.constants.get(constant_handle).as_slice();
        let size = a.lane.bytes() as usize;
        let is_same =
            a.parts().iter().all(|&part| part == a.single()) && bytes.chunks(size).all(|lane| lane == &bytes[..size]);
        is_same.then(|| bytes[..size].iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }

    fn repeat(&mut self, lane: Type, value: Value) -> Bundle {
        Bundle { lane, len: self.part_count(lane) as u8, parts: [value; MAX_PARTS] }
    }

    pub fn extract(&mut self, a: Bundle, lane: u32) -> Value {
        if self.is_scalar() {
            return a.single();
        }
        let count = self.part_lanes(a.lane);
        self.builder.ins().extractlane(a.parts()[(lane / count) as usize], (lane % count) as u8)
    }

    /// A bundle from one scalar per lane.
    pub fn assemble(&mut self, lane: Type, values: &[Value]) -> Bundle {
        if self.is_scalar() {
            return Bundle::new(lane, values);
        }
        let parts: Vec<Value> = values
            .chunks(self.part_lanes(lane) as usize)
            .map(|chunk| {
                let first = self.in_first_lane(lane, chunk[0]);
                let rest = chunk.iter().enumerate().skip(1);
                rest.fold(first, |vector, (i, &value)| self.builder.ins().insertlane(vector, value, i as u8))
            })
            .collect();
        Bundle::new(lane, &parts)
    }

    /// A register whose first lane is the scalar.
    fn in_first_lane(&mut self, lane: Type, value: Value) -> Value {
        if lane.bits() >= 32 {
            return self.builder.ins().scalar_to_vector(register_of(lane), value);
        }
        let word = self.builder.ins().uextend(I32, value);
        let vector = self.builder.ins().scalar_to_vector(I32X4, word);
        self.recast(register_of(lane), vector)
    }

    /// Applies `f` lane by lane, for operations without a vector instruction.
    pub fn per_lane(&mut self, result: Type, a: Bundle, mut f: impl FnMut(&mut Self, Value) -> Value) -> Bundle {
        let values: Vec<Value> = (0..self.lanes)
            .map(|i| {
                let x = self.extract(a, i);
                f(self, x)
            })
            .collect();
        self.assemble(result, &values)
    }

    pub fn per_lane2(
        &mut self,
        result: Type,
        a: Bundle,
        b: Bundle,
        mut f: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> Bundle {
        let values: Vec<Value> = (0..self.lanes)
            .map(|i| {
                let (x, y) = (self.extract(a, i), self.extract(b, i));
                f(self, x, y)
            })
            .collect();
        self.assemble(result, &values)
    }

    // Bits.

    /// The same bits as another type of the same width.
    pub fn bitcast(&mut self, lane: Type, a: Bundle) -> Bundle {
        if a.lane == lane {
            return a;
        }
        let ty = self.part_type(lane);
        let mut out = self.map(a, |v, x| v.recast(ty, x));
        out.lane = lane;
        out
    }

    fn recast(&mut self, ty: Type, value: Value) -> Value {
        self.builder.ins().bitcast(ty, MemFlagsData::new().with_endianness(Endianness::Little), value)
    }

    pub fn and(&mut self, a: Bundle, b: Bundle) -> Bundle {
        self.zip(a, b, |v, x, y| v.builder.ins().band(x, y))
    }

    pub fn or(&mut self, a: Bundle, b: Bundle) -> Bundle {
        self.zip(a, b, |v, x, y| v.builder.ins().bor(x, y))
    }

    pub fn xor(&mut self, a: Bundle, b: Bundle) -> Bundle {
        self.zip(a, b, |v, x, y| v.builder.ins().bxor(x, y))
    }

    pub fn and_int(&mut self, a: Bundle, bits: i64) -> Bundle {
        let b = self.int(a.lane, bits);
        self.and(a, b)
    }

    pub fn or_int(&mut self, a: Bundle, bits: i64) -> Bundle {
        let b = self.int(a.lane, bits);
        self.or(a, b)
    }

    pub fn shift_left(&mut self, a: Bundle, by: u32) -> Bundle {
        self.map(a, |v, x| v.builder.ins().ishl_imm_u(x, i64::from(by)))
    }

    /// A logical shift to the right.
    pub fn shift_right(&mut self, a: Bundle, by: u32) -> Bundle {
        self.map(a, |v, x| v.builder.ins().ushr_imm_u(x, i64::from(by)))
    }

    // Arithmetic, comparison, choice.

    pub fn add(&mut self, a: Bundle, b: Bundle) -> Bundle {
        if a.lane.is_float() {
            self.zip(a, b, |v, x, y| v.builder.ins().fadd(x, y))
        } else {
            self.zip(a, b, |v, x, y| v.builder.ins().iadd(x, y))
        }
    }

    pub fn sub(&mut self, a: Bundle, b: Bundle) -> Bundle {
        if a.lane.is_float() {
            self.zip(a, b, |v, x, y| v.builder.ins().fsub(x, y))
        } else {
            self.zip(a, b, |v, x, y| v.builder.ins().isub(x, y))
        }
    }

    pub fn mul(&mut self, a: Bundle, b: Bundle) -> Bundle {
        if a.lane.is_float() {
            self.zip(a, b, |v, x, y| v.builder.ins().fmul(x, y))
        } else if a.lane == I8 && !self.is_scalar() {
            // There is no product of bytes; the low half of a wider product is the same.
            let (x, y) = (self.widen(a, false), self.widen(b, false));
            let product = self.mul(x, y);
            self.narrow(product)
        } else {
            self.zip(a, b, |v, x, y| v.builder.ins().imul(x, y))
        }
    }

    /// The magnitude of `a`, which is not negative, with the sign of `sign`.
    pub fn with_sign_of(&mut self, a: Bundle, sign: Bundle) -> Bundle {
        let int = int_of(a.lane);
        let (bits, sign_bits) = (self.bitcast(int, a), self.bitcast(int, sign));
        let sign = self.and_int(sign_bits, i64::MIN >> (64 - int.bits()));
        let signed = self.or(bits, sign);
        self.bitcast(a.lane, signed)
    }

    /// The type of the lanes of a mask from comparing lanes of a type.
    pub fn mask_type(&self, lane: Type) -> Type {
        if self.is_scalar() { I8 } else { int_of(lane) }
    }

    pub fn compare_ints(&mut self, cc: IntCC, a: Bundle, b: Bundle) -> Bundle {
        let mut mask = self.zip(a, b, |v, x, y| v.builder.ins().icmp(cc, x, y));
        mask.lane = self.mask_type(a.lane);
        mask
    }

    pub fn compare_floats(&mut self, cc: FloatCC, a: Bundle, b: Bundle) -> Bundle {
        let mut mask = self.zip(a, b, |v, x, y| v.builder.ins().fcmp(cc, x, y));
        mask.lane = self.mask_type(a.lane);
        mask
    }

    pub fn not_mask(&mut self, mask: Bundle) -> Bundle {
        if self.is_scalar() {
            self.map(mask, |v, x| v.builder.ins().bxor_imm_u(x, 1))
        } else {
            self.map(mask, |v, x| v.builder.ins().bnot(x))
        }
    }

    /// Two masks, both at the larger of their widths.
    pub fn align_masks(&mut self, a: Bundle, b: Bundle) -> (Bundle, Bundle) {
        let lane = if a.lane.bits() >= b.lane.bits() { a.lane } else { b.lane };
        (self.mask_as(a, lane), self.mask_as(b, lane))
    }

    /// A mask at the width of `lane`.
    pub fn mask_as(&mut self, mask: Bundle, lane: Type) -> Bundle {
        let lane = int_of(lane);
        if self.is_scalar() || mask.lane == lane {
            return mask;
        }
        let mut mask = mask;
        while mask.lane.bits() < lane.bits() {
            mask = self.widen(mask, true);
        }
        while mask.lane.bits() > lane.bits() {
            mask = self.narrow_mask(mask);
        }
        mask
    }

    /// `mask ? a : b`
    pub fn select(&mut self, mask: Bundle, a: Bundle, b: Bundle) -> Bundle {
        let mask = self.mask_as(mask, a.lane);
        let mut out = a;
        for i in 0..a.len as usize {
            out.parts[i] = self.choose(mask.parts[i], a.parts[i], b.parts[i]);
        }
        out
    }

    /// `mask ? a : b` for one part.
    pub fn choose(&mut self, mask: Value, a: Value, b: Value) -> Value {
        if self.is_scalar() {
            return self.builder.ins().select(mask, a, b);
        }
        let ty = self.builder.func.dfg.value_type(a);
        let mask = if self.builder.func.dfg.value_type(mask) == ty { mask } else { self.recast(ty, mask) };
        self.builder.ins().bitselect(mask, a, b)
    }

    /// 0 or 1 in the type `lane`.
    pub fn mask_to_int(&mut self, mask: Bundle, lane: Type) -> Bundle {
        if self.is_scalar() {
            if lane == I8 {
                return mask;
            }
            let value = self.builder.ins().uextend(lane, mask.single());
            return Bundle::new(lane, &[value]);
        }
        let mask = self.mask_as(mask, lane);
        self.and_int(mask, 1)
    }

    /// Whether any lane of the mask is set, as a branch condition.
    pub fn any(&mut self, mask: Bundle) -> Value {
        if self.is_scalar() {
            return mask.single();
        }
        let mask = self.clear_unused(mask);
        let parts = mask.parts().to_vec();
        let or = parts[1..].iter().fold(parts[0], |or, &part| self.builder.ins().bor(or, part));
        self.builder.ins().vany_true(or)
    }

    /// Clears the lanes above the valid ones.
    fn clear_unused(&mut self, a: Bundle) -> Bundle {
        if self.part_lanes(a.lane) <= self.lanes {
            return a;
        }
        let lanes = self.lanes;
        let bytes = (0..16).map(|i| if i < lanes * a.lane.bytes() { 0xff } else { 0 }).collect();
        let valid = self.register_bytes(a.lane, bytes);
        self.map(a, |v, x| v.builder.ins().band(x, valid))
    }

    // Widths.

    /// Integers of twice the width.
    pub fn widen(&mut self, a: Bundle, signed: bool) -> Bundle {
        let lane = Type::int(a.lane.bits() as u16 * 2).expect("at most 32 bits become wider");
        if self.is_scalar() {
            return self.map_as(lane, a, |v, x| {
                if signed { v.builder.ins().sextend(lane, x) } else { v.builder.ins().uextend(lane, x) }
            });
        }
        let count = self.part_count(lane);
        let parts: Vec<Value> = (0..count)
            .map(|i| {
                let (part, ins) = (a.parts[i / 2], self.builder.ins());
                match (signed, i % 2) {
                    (true, 0) => ins.swiden_low(part),
                    (true, _) => ins.swiden_high(part),
                    (false, 0) => ins.uwiden_low(part),
                    (false, _) => ins.uwiden_high(part),
                }
            })
            .collect();
        Bundle::new(lane, &parts)
    }

    fn map_as(&mut self, lane: Type, a: Bundle, f: impl FnMut(&mut Self, Value) -> Value) -> Bundle {
        let mut out = self.map(a, f);
        out.lane = lane;
        out
    }

    /// The low half of each integer.
    pub fn narrow(&mut self, a: Bundle) -> Bundle {
        let lane = Type::int(a.lane.bits() as u16 / 2).expect("at least 16 bits become narrower");
        if self.is_scalar() {
            return self.map_as(lane, a, |v, x| v.builder.ins().ireduce(lane, x));
        }
        if a.lane == I64 {
            return self.narrow_pairs(a);
        }
        // The packing instructions saturate: clear the upper half first.
        let low = self.and_int(a, (1 << lane.bits()) - 1);
        self.pack(low, lane, |v, x, y| v.builder.ins().unarrow(x, y))
    }

    /// A mask of half the width.
    fn narrow_mask(&mut self, a: Bundle) -> Bundle {
        let lane = Type::int(a.lane.bits() as u16 / 2).expect("at least 16 bits become narrower");
        if a.lane == I64 {
            return self.narrow_pairs(a);
        }
        self.pack(a, lane, |v, x, y| v.builder.ins().snarrow(x, y))
    }

    fn pack(&mut self, a: Bundle, lane: Type, mut f: impl FnMut(&mut Self, Value, Value) -> Value) -> Bundle {
        let parts: Vec<Value> = a.parts().chunks(2).map(|pair| f(self, pair[0], pair[pair.len() - 1])).collect();
        Bundle::new(lane, &parts)
    }

    fn narrow_pairs(&mut self, a: Bundle) -> Bundle {
        self.pack(a, I32, |v, x, y| v.shuffle(I32X4, x, y, [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]))
    }

    /// An integer bundle at any width: extended as `signed` says, or truncated.
    pub fn resize(&mut self, a: Bundle, lane: Type, signed: bool) -> Bundle {
        let mut a = a;
        while a.lane.bits() < lane.bits() {
            a = self.widen(a, signed);
        }
        while a.lane.bits() > lane.bits() {
            a = self.narrow(a);
        }
        a
    }

    /// Bytes picked from two registers.
    fn shuffle(&mut self, ty: Type, a: Value, b: Value, bytes: [u8; 16]) -> Value {
        let (a, b) = (self.recast_from(a, I8X16), self.recast_from(b, I8X16));
        let mask: Immediate = self.builder.func.dfg.immediates.push(ConstantData::from(&bytes[..]));
        let picked = self.builder.ins().shuffle(a, b, mask);
        self.recast_from(picked, ty)
    }

    fn recast_from(&mut self, value: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(value) == ty { value } else { self.recast(ty, value) }
    }

    /// The upper half of a register, moved down.
    fn high_half(&mut self, a: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(a);
        self.shuffle(ty, a, a, [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15])
    }

    /// The lower halves of two registers.
    fn join_halves(&mut self, ty: Type, a: Value, b: Value) -> Value {
        self.shuffle(ty, a, b, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23])
    }

    /// Pieces of a type from the lower or upper halves of two registers, interleaved.
    pub fn unpack(&mut self, piece: Type, a: Value, b: Value, high: bool) -> Value {
        let size = piece.bytes() as u8;
        let start = if high { 8 } else { 0 };
        let bytes = std::array::from_fn(|i| {
            let (which, within) = (i as u8 / size, i as u8 % size);
            start + which / 2 * size + within + if which % 2 == 1 { 16 } else { 0 }
        });
        self.shuffle(I8X16, a, b, bytes)
    }

    /// A register rotated so that the given 32-bit word comes first.
    pub fn word_down(&mut self, a: Value, word: usize) -> Value {
        self.byte_down(a, 4 * word)
    }

    fn byte_down(&mut self, a: Value, byte: usize) -> Value {
        let bytes = std::array::from_fn(|i| ((i + byte) % 16) as u8);
        self.shuffle(I8X16, a, a, bytes)
    }

    /// A bundle of one register rotated so that the given lane comes first.
    pub fn lanes_down(&mut self, a: Bundle, lane: u32) -> Bundle {
        let part = self.byte_down(a.single(), (lane * a.lane.bytes()) as usize);
        self.as_lanes(a.lane, &[part])
    }

    /// Registers of any type as a bundle.
    pub fn as_lanes(&mut self, lane: Type, parts: &[Value]) -> Bundle {
        let parts: Vec<Value> = parts.iter().map(|&part| self.recast_from(part, register_of(lane))).collect();
        Bundle::new(lane, &parts)
    }

    /// For 32-bit lanes, applies `f`, which makes two 64-bit lanes from the low half of a register.
    fn spread(&mut self, lane: Type, a: Bundle, mut f: impl FnMut(&mut Self, Value) -> Value) -> Bundle {
        if self.is_scalar() {
            return self.map_as(lane, a, f);
        }
        let parts: Vec<Value> = (0..self.part_count(lane))
            .map(|i| {
                let part = if i % 2 == 0 { a.parts[i / 2] } else { self.high_half(a.parts[i / 2]) };
                f(self, part)
            })
            .collect();
        Bundle::new(lane, &parts)
    }

    /// For 64-bit lanes, applies `f`, which makes two 32-bit lanes in the low half of a register.
    fn gather_halves(&mut self, lane: Type, a: Bundle, mut f: impl FnMut(&mut Self, Value) -> Value) -> Bundle {
        if self.is_scalar() {
            return self.map_as(lane, a, f);
        }
        let halves: Vec<Value> = (0..a.len as usize).map(|i| f(self, a.parts[i])).collect();
        let parts: Vec<Value> =
            halves.chunks(2).map(|pair| self.join_halves(register_of(lane), pair[0], pair[pair.len() - 1])).collect();
        Bundle::new(lane, &parts)
    }

    pub fn promote(&mut self, a: Bundle) -> Bundle {
        let scalar = self.is_scalar();
        self.spread(
            F64,
            a,
            |v, x| {
                if scalar { v.builder.ins().fpromote(F64, x) } else { v.builder.ins().fvpromote_low(x) }
            },
        )
    }

    pub fn demote(&mut self, a: Bundle) -> Bundle {
        let scalar = self.is_scalar();
        self.gather_halves(
            F32,
            a,
            |v, x| {
                if scalar { v.builder.ins().fdemote(F32, x) } else { v.builder.ins().fvdemote(x) }
            },
        )
    }

    /// Integers of 32 or 64 bits to floats, rounded to nearest even.
    pub fn int_to_float(&mut self, a: Bundle, float: Type, signed: bool) -> Bundle {
        let convert = move |v: &mut Self, ty: Type, x: Value| {
            if signed { v.builder.ins().fcvt_from_sint(ty, x) } else { v.builder.ins().fcvt_from_uint(ty, x) }
        };
        if a.lane == I64 && float == F32 {
            return self.per_lane(F32, a, |v, x| convert(v, F32, x));
        }
        if self.is_scalar() {
            return self.map_as(float, a, |v, x| convert(v, float, x));
        }
        if a.lane == I32 && float == F64 {
            return self.spread(F64, a, |v, x| {
                let wide = if signed { v.builder.ins().swiden_low(x) } else { v.builder.ins().uwiden_low(x) };
                convert(v, F64X2, wide)
            });
        }
        let ty = self.part_type(float);
        self.map_as(float, a, |v, x| convert(v, ty, x))
    }

    /// Floats to integers of 32 or 64 bits: toward zero, saturating, NaN to 0.
    pub fn float_to_int(&mut self, a: Bundle, int: Type, signed: bool) -> Bundle {
        let convert = move |v: &mut Self, ty: Type, x: Value| {
            if signed { v.builder.ins().fcvt_to_sint_sat(ty, x) } else { v.builder.ins().fcvt_to_uint_sat(ty, x) }
        };
        if self.is_scalar() {
            return self.map_as(int, a, |v, x| convert(v, int, x));
        }
        if a.lane == F32 && int == I32 {
            return self.map_as(I32, a, |v, x| convert(v, I32X4, x));
        }
        if a.lane == F64 && int == I32 && signed {
            return self.gather_halves(I32, a, |v, x| {
                let wide = convert(v, I64X2, x);
                let zero = v.register(I64, 0);
                v.builder.ins().snarrow(wide, zero)
            });
        }
        self.per_lane(int, a, |v, x| convert(v, int, x))
    }

    // Memory. `lane` is the type in memory.

    /// Consecutive elements from `address + offset`.
    pub fn load(&mut self, lane: Type, address: Value, offset: i32) -> Bundle {
        self.load_by(memory(), lane, address, offset)
    }

    /// The same for other flags.
    pub fn load_by(&mut self, flags: MemFlagsData, lane: Type, address: Value, offset: i32) -> Bundle {
        if self.is_scalar() {
            let value = self.builder.ins().load(lane, flags, address, offset);
            return Bundle::new(lane, &[value]);
        }
        let bytes = self.lanes * lane.bytes();
        if bytes < 16 {
            let (word, vector) = if bytes == 4 { (I32, I32X4) } else { (I64, I64X2) };
            let value = self.builder.ins().load(word, flags, address, offset);
            let wide = self.builder.ins().scalar_to_vector(vector, value);
            let part = self.recast_from(wide, register_of(lane));
            return Bundle::new(lane, &[part]);
        }
        let parts: Vec<Value> = (0..self.part_count(lane) as i32)
            .map(|i| self.builder.ins().load(register_of(lane), flags, address, offset + 16 * i))
            .collect();
        Bundle::new(lane, &parts)
    }

    pub fn store(&mut self, a: Bundle, address: Value, offset: i32) {
        if self.is_scalar() {
            self.builder.ins().store(memory(), a.single(), address, offset);
            return;
        }
        let bytes = self.lanes * a.lane.bytes();
        if bytes < 16 {
            let vector = if bytes == 4 { I32X4 } else { I64X2 };
            let wide = self.recast_from(a.single(), vector);
            let word = self.builder.ins().extractlane(wide, 0);
            self.builder.ins().store(memory(), word, address, offset);
            return;
        }
        for (i, &part) in a.parts().iter().enumerate() {
            self.builder.ins().store(memory(), part, address, offset + 16 * i as i32);
        }
    }

    /// The lanes in reverse order.
    pub fn reverse(&mut self, a: Bundle) -> Bundle {
        if self.is_scalar() {
            return a;
        }
        let (size, valid) = (a.lane.bytes() as usize, (self.lanes * a.lane.bytes()).min(16) as usize);
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate().take(valid) {
            *byte = (valid - size - i / size * size + i % size) as u8;
        }
        let parts: Vec<Value> =
            a.parts().iter().rev().map(|&part| self.shuffle(register_of(a.lane), part, part, bytes)).collect();
        Bundle::new(a.lane, &parts)
    }

    // Control flow.

    /// `if condition { rare() } else { common }` for a condition that rarely holds.
    pub fn rarely(
        &mut self,
        condition: Value,
        common: &[Value],
        rare: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let (slow, after) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(slow);
        let results: Vec<Value> = common
            .iter()
            .map(|&value| {
                let ty = self.builder.func.dfg.value_type(value);
                self.builder.append_block_param(after, ty)
            })
            .collect();
        let args: Vec<BlockArg> = common.iter().map(|&value| value.into()).collect();
        self.builder.ins().brif(condition, slow, &[], after, &args);
        self.builder.switch_to_block(slow);
        let args: Vec<BlockArg> = rare(self).into_iter().map(|value| value.into()).collect();
        self.builder.ins().jump(after, &args);
        self.builder.switch_to_block(after);
        results
    }
}
