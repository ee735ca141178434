//! Instructions that are encoded here, decoded by another program.

mod vex;

use super::{Address, EncodedVector, Encoder, Opcode, Prefix, RSP, RmPlace, Tuple};
use crate::ops;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};

/// A generator of numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// The instructions whose three operands are vectors, and their names.
fn three_operands() -> Vec<(Opcode, Mnemonic)> {
    use Mnemonic::*;
    use ops::Binary as B;
    let of = |binary: B, name| (binary.opcode(), name);
    vec![
        of(B::AddF32, Vaddps),
        of(B::SubF32, Vsubps),
        of(B::MulF32, Vmulps),
        of(B::DivF32, Vdivps),
        of(B::MinF32, Vminps),
        of(B::MaxF32, Vmaxps),
        of(B::AddF64, Vaddpd),
        of(B::SubF64, Vsubpd),
        of(B::MulF64, Vmulpd),
        of(B::DivF64, Vdivpd),
        of(B::MinF64, Vminpd),
        of(B::MaxF64, Vmaxpd),
        of(B::And32, Vpandd),
        of(B::Or32, Vpord),
        of(B::Xor32, Vpxord),
        of(B::And64, Vpandq),
        of(B::Or64, Vporq),
        of(B::Xor64, Vpxorq),
        of(B::AddI32, Vpaddd),
        of(B::SubI32, Vpsubd),
        of(B::MulI32, Vpmulld),
        of(B::MinS32, Vpminsd),
        of(B::MaxS32, Vpmaxsd),
        of(B::MinU32, Vpminud),
        of(B::MaxU32, Vpmaxud),
        of(B::AddI64, Vpaddq),
        of(B::SubI64, Vpsubq),
        of(B::MulI64, Vpmullq),
        of(B::MinS64, Vpminsq),
        of(B::MaxS64, Vpmaxsq),
        of(B::MinU64, Vpminuq),
        of(B::MaxU64, Vpmaxuq),
        of(B::ShlV32, Vpsllvd),
        of(B::ShrV32, Vpsrlvd),
        of(B::SarV32, Vpsravd),
        of(B::ShlV64, Vpsllvq),
        of(B::ShrV64, Vpsrlvq),
        of(B::SarV64, Vpsravq),
        (ops::BLEND, Vblendmps),
        (ops::BLEND_DOUBLES, Vblendmpd),
        (ops::fma(false, ops::FmaForm::F132, false, false), Vfmadd132ps),
        (ops::fma(false, ops::FmaForm::F213, true, false), Vfnmadd213ps),
        (ops::fma(true, ops::FmaForm::F231, false, true), Vfmsub231pd),
        (ops::fma(true, ops::FmaForm::F213, true, true), Vfnmsub213pd),
    ]
}

/// The instructions of one source and one result, and their names.
fn two_operands() -> Vec<(Opcode, Mnemonic, Option<u8>)> {
    use Mnemonic::*;
    use ops::{Resize as R, Rounding, Unary as U};
    vec![
        (U::SqrtF32.opcode(), Vsqrtps, None),
        (U::SqrtF64.opcode(), Vsqrtpd, None),
        (U::AbsI32.opcode(), Vpabsd, None),
        (U::AbsI64.opcode(), Vpabsq, None),
        (U::I32ToF32.opcode(), Vcvtdq2ps, None),
        (U::U32ToF32.opcode(), Vcvtudq2ps, None),
        (U::F32ToI32.opcode(), Vcvttps2dq, None),
        (U::F32ToU32.opcode(), Vcvttps2udq, None),
        (U::I64ToF64.opcode(), Vcvtqq2pd, None),
        (U::U64ToF64.opcode(), Vcvtuqq2pd, None),
        (U::F64ToI64.opcode(), Vcvttpd2qq, None),
        (U::F64ToU64.opcode(), Vcvttpd2uqq, None),
        (R::WidenF32.opcode(), Vcvtps2pd, None),
        (R::I32ToF64.opcode(), Vcvtdq2pd, None),
        (R::U32ToF64.opcode(), Vcvtudq2pd, None),
        (R::SignExtend.opcode(), Vpmovsxdq, None),
        (R::ZeroExtend.opcode(), Vpmovzxdq, None),
        (R::NarrowF64.opcode(), Vcvtpd2ps, None),
        (R::F64ToI32.opcode(), Vcvttpd2dq, None),
        (R::F64ToU32.opcode(), Vcvttpd2udq, None),
        (R::I64ToF32.opcode(), Vcvtqq2ps, None),
        (R::U64ToF32.opcode(), Vcvtuqq2ps, None),
        (Rounding::opcode(false), Vrndscaleps, Some(Rounding::Floor as u8)),
        (Rounding::opcode(true), Vrndscalepd, Some(Rounding::Nearest as u8)),
        (ops::LOAD, Vmovups, None),
        (ops::LOAD_DOUBLES, Vmovupd, None),
        (ops::BROADCAST, Vbroadcastss, None),
        (ops::ZERO_EXTEND_16, Vpmovzxwd, None),
        (ops::SIGN_EXTEND_16, Vpmovsxwd, None),
        (ops::ZERO_EXTEND_8, Vpmovzxbd, None),
        (ops::SIGN_EXTEND_8, Vpmovsxbd, None),
        (ops::FROM_HALF, Vcvtph2ps, None),
        (ops::BROADCAST_16, Vpbroadcastw, None),
        (ops::BROADCAST_8, Vpbroadcastb, None),
    ]
}

/// The instructions whose result is their memory operand.
fn stores() -> Vec<(Opcode, Mnemonic, Option<u8>)> {
    use Mnemonic::*;
    vec![
        (ops::STORE, Vmovups, None),
        (ops::STORE_DOUBLES, Vmovupd, None),
        (ops::TRUNCATE_16, Vpmovdw, None),
        (ops::TRUNCATE_8, Vpmovdb, None),
        (ops::Resize::Truncate.opcode(), Vpmovqd, None),
        (ops::TO_HALF, Vcvtps2ph, Some(0)),
    ]
}

fn register(base: Register, number: u8) -> Register {
    base + u32::from(number)
}

fn vector_register(length: u8, number: u8) -> Register {
    register([Register::XMM0, Register::YMM0, Register::ZMM0][usize::from(length)], number)
}

/// The register of an operand, whatever part of it is used.
fn number_of(register: Register) -> u8 {
    register.full_register().number() as u8
}

/// A random place; its displacement is often a multiple of the unit.
fn place(numbers: &mut Numbers) -> RmPlace {
    if numbers.below(3) == 0 {
        return RmPlace::Register(numbers.below(32) as u8);
    }
    let mut index = numbers.below(16) as u8;
    if index == RSP {
        index = 13;
    }
    let displacement = match numbers.below(4) {
        0 => 0,
        1 => numbers.below(64) as i32 * 64 - 2048,
        2 => numbers.below(256) as i32 - 128,
        _ => numbers.below(1 << 31) as i32 - (1 << 30),
    };
    let index = (numbers.below(2) == 0).then(|| (index, numbers.below(4) as u8));
    RmPlace::Memory(Address { base: numbers.below(16) as u8, index, displacement })
}

/// Encodes an instruction and compares all operands with the decoder's.
fn check(inst: &EncodedVector, name: Mnemonic, is_store: bool, three: bool, evex: bool) {
    let mut encoder = Encoder::new(0);
    encoder.vector(inst, evex);
    let bytes = encoder.finish(0);
    let mut decoder = Decoder::new(64, &bytes, DecoderOptions::NONE);
    let decoded = decoder.decode();
    let text = || format!("{inst:?}\n{bytes:02x?}\n{decoded}");
    assert_eq!((decoded.mnemonic(), decoded.len()), (name, bytes.len()), "{}", text());
    assert_eq!(number_of(decoded.op_register(u32::from(is_store))), inst.reg, "{}", text());
    if three {
        assert_eq!(decoded.op_register(1), vector_register(inst.length, inst.vvvv), "{}", text());
    }
    let other = if is_store { 0 } else { decoded.op_count() - 1 - u32::from(inst.immediate.is_some()) };
    match inst.rm {
        RmPlace::Register(expected) => {
            assert_eq!(decoded.op_kind(other), OpKind::Register, "{}", text());
            assert_eq!(number_of(decoded.op_register(other)), expected, "{}", text());
        }
        RmPlace::Memory(Address { base, index, displacement }) => {
            assert_eq!(decoded.op_kind(other), OpKind::Memory, "{}", text());
            assert_eq!(decoded.memory_base(), register(Register::RAX, base), "{}", text());
            assert_eq!(decoded.memory_displacement64() as i64 as i32, displacement, "{}", text());
            match index {
                Some((index, scale)) => {
                    assert_eq!(decoded.memory_index(), register(Register::RAX, index), "{}", text());
                    assert_eq!(decoded.memory_index_scale(), 1 << scale, "{}", text());
                }
                None => assert_eq!(decoded.memory_index(), Register::None, "{}", text()),
            }
            assert_eq!(decoded.is_broadcast(), inst.broadcast, "{}", text());
        }
        RmPlace::Pool(_) => unreachable!("constants are tested by kernels"),
    }
    let mask = if inst.mask == 0 { Register::None } else { register(Register::K0, inst.mask) };
    assert_eq!(decoded.op_mask(), mask, "{}", text());
    assert_eq!(decoded.zeroing_masking(), inst.zeroing, "{}", text());
}

/// The number of instructions to try; `FORMS` gives more.
fn forms() -> u64 {
    std::env::var("FORMS").map_or(30_000, |text| text.parse().expect("a number in FORMS"))
}

#[test]
fn vector_instructions_are_what_a_decoder_reads() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let (three, two, stores) = (three_operands(), two_operands(), stores());
    assert!(ops::Binary::ALL.iter().all(|op| three.iter().any(|(opcode, _)| *opcode == op.opcode())));
    assert!(ops::Unary::ALL.iter().all(|op| two.iter().any(|(opcode, ..)| *opcode == op.opcode())));
    for _ in 0..forms() {
        let at = numbers.below((three.len() + two.len() + stores.len()) as u64) as usize;
        let (opcode, name, immediate, kind) = if at < three.len() {
            (three[at].0, three[at].1, None, 3)
        } else if at < three.len() + two.len() {
            let (opcode, name, immediate) = two[at - three.len()];
            (opcode, name, immediate, 2)
        } else {
            let (opcode, name, immediate) = stores[at - three.len() - two.len()];
            (opcode, name, immediate, 1)
        };
        let rm = place(&mut numbers);
        let is_memory = matches!(rm, RmPlace::Memory(_));
        let mask = numbers.below(8) as u8;
        let inst = EncodedVector {
            opcode,
            length: numbers.below(3) as u8,
            reg: numbers.below(32) as u8,
            vvvv: if kind == 3 { numbers.below(32) as u8 } else { 0 },
            rm,
            mask,
            zeroing: mask != 0 && (kind != 1 || !is_memory) && numbers.below(2) == 0,
            broadcast: kind == 3 && is_memory && opcode.tuple == Tuple::Full && numbers.below(2) == 0,
            immediate,
        };
        check(&inst, name, kind == 1, kind == 3, true);
    }
}

#[test]
fn vex_instructions_are_what_a_decoder_reads() {
    let mut numbers = Numbers(88_172_645_463_325_252);
    let cases = [
        (ops::Logic::And.opcode(), Mnemonic::Kandw, 1, true, None),
        (ops::Logic::Or.opcode(), Mnemonic::Korw, 1, true, None),
        (ops::Logic::Xor.opcode(), Mnemonic::Kxorw, 1, true, None),
        (ops::MASK_JOIN, Mnemonic::Kunpckbw, 1, true, None),
        (ops::MASK_NOT, Mnemonic::Knotw, 0, false, None),
        (ops::MASK_RIGHT, Mnemonic::Kshiftrw, 0, false, Some(8)),
        (ops::MASK_LEFT, Mnemonic::Kshiftlw, 0, false, Some(3)),
    ];
    for _ in 0..2000 {
        let (opcode, name, length, three, immediate) = cases[numbers.below(cases.len() as u64) as usize];
        let mut k = || numbers.below(8) as u8;
        let (reg, vvvv, rm) = (k(), if three { k() } else { 0 }, k());
        let (mask, zeroing, broadcast) = (0, false, false);
        let inst =
            EncodedVector { opcode, length, reg, vvvv, rm: RmPlace::Register(rm), mask, zeroing, broadcast, immediate };
        let mut encoder = Encoder::new(0);
        encoder.vector(&inst, true);
        let bytes = encoder.finish(0);
        let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        assert_eq!((decoded.mnemonic(), decoded.len()), (name, bytes.len()), "{inst:?} {bytes:02x?} {decoded}");
        assert_eq!(decoded.op0_register(), register(Register::K0, reg));
        let last = if three { decoded.op2_register() } else { decoded.op1_register() };
        assert_eq!(last, register(Register::K0, rm));
        if three {
            assert_eq!(decoded.op1_register(), register(Register::K0, vvvv));
        }
    }
}

#[test]
fn general_instructions_are_what_a_decoder_reads() {
    let mut numbers = Numbers(4_101_842_887_655_102_017);
    for _ in 0..5000 {
        let (a, b) = (numbers.below(16) as u8, numbers.below(16) as u8);
        let address = loop {
            if let RmPlace::Memory(address) = place(&mut numbers) {
                break address;
            }
        };
        let value = numbers.below(1 << 40) as i64 - (1 << 39);
        let short = value as i32;
        let mut encoder = Encoder::new(0);
        let bytes = 1 << numbers.below(4);
        let (mnemonic, first) = match numbers.below(15) {
            0 => (encoder.move_register(a, b), Mnemonic::Mov),
            1 => (encoder.load(a, address), Mnemonic::Mov),
            2 => (encoder.address(a, address), Mnemonic::Lea),
            3 => (encoder.alu(super::Alu::Sub, a, b), Mnemonic::Sub),
            4 => (encoder.alu(super::Alu::Cmp, a, b), Mnemonic::Cmp),
            5 => (encoder.alu_constant(super::Alu::And, a, short), Mnemonic::And),
            6 => (encoder.multiply(a, b), Mnemonic::Imul),
            7 => (encoder.multiply_constant(a, b, short), Mnemonic::Imul),
            8 => (encoder.shift_left(a, 5), Mnemonic::Shl),
            9 => (encoder.shift_right(a, 3), Mnemonic::Shr),
            11 => (
                encoder.load_element(bytes, a, address),
                [Mnemonic::Movzx, Mnemonic::Movzx, Mnemonic::Movsxd, Mnemonic::Mov][bytes.trailing_zeros() as usize],
            ),
            12 => (encoder.store_element(bytes, address, a), Mnemonic::Mov),
            13 => (encoder.lowest_bit(a, b), Mnemonic::Tzcnt),
            10 => (encoder.move_if(super::JumpCondition::Greater, a, b), Mnemonic::Cmovg),
            _ => (encoder.move_constant(a, value), Mnemonic::Mov),
        };
        let () = mnemonic;
        let bytes = encoder.finish(0);
        let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        assert_eq!((decoded.mnemonic(), decoded.len()), (first, bytes.len()), "{bytes:02x?} {decoded}");
        let register =
            if decoded.op0_kind() == OpKind::Memory { decoded.op1_register() } else { decoded.op0_register() };
        assert_eq!(number_of(register), a, "{bytes:02x?} {decoded}");
        let has_two = decoded.op0_kind() == OpKind::Register && decoded.op_count() > 1;
        if has_two && decoded.op1_kind() == OpKind::Register {
            assert_eq!(number_of(decoded.op1_register()), b, "{bytes:02x?} {decoded}");
        }
    }
    let none = Opcode::vex(Prefix::None, super::Map::M0F38, 0xf5, true);
    assert_eq!(none, ops::LOW_BITS);
}
