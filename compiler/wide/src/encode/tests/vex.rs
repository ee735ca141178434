//! Instructions in VEX form, decoded by another program.

use super::{Address, Decoder, DecoderOptions, EncodedVector, Encoder, Mnemonic, Numbers, Opcode, RmPlace};
use super::{check, forms, number_of, ops, place, register, vector_register};
use iced_x86::{OpKind, Register};
use ops::{Binary, Compared, FmaForm, Resize, Rounding, Shift, Unary};

/// The operands of an instruction, in the order of the manual.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    /// A register, and one that may be in memory.
    Two,
    /// A register, another one, and one that may be in memory.
    Three,
    /// The one that may be in memory, and a register.
    Store,
}

/// Where an operand may be.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    Anywhere,
    Memory,
    Register,
}

/// An instruction: its name, its immediate operand, and the binary logarithms of its lengths.
type Form = (Opcode, Mnemonic, Option<u8>, Operands, Where, std::ops::Range<u64>);

fn vex_forms() -> Vec<Form> {
    use Mnemonic::*;
    use Operands::{Store, Three, Two};
    use Where::{Anywhere, Memory, Register};
    let of = |binary: Binary, name| (binary.opcode(), name, None, Three, Anywhere, 0..2);
    let three = |opcode, name| (opcode, name, None, Three, Anywhere, 0..2);
    let one = |opcode, name| (opcode, name, None, Two, Anywhere, 0..2);
    let fma = |double, form, product, sum, name| three(ops::fma(double, form, product, sum), name);
    vec![
        of(Binary::AddF32, Vaddps),
        of(Binary::SubF32, Vsubps),
        of(Binary::MulF32, Vmulps),
        of(Binary::DivF32, Vdivps),
        of(Binary::MinF32, Vminps),
        of(Binary::MaxF32, Vmaxps),
        of(Binary::AddF64, Vaddpd),
        of(Binary::SubF64, Vsubpd),
        of(Binary::MulF64, Vmulpd),
        of(Binary::DivF64, Vdivpd),
        of(Binary::MinF64, Vminpd),
        of(Binary::MaxF64, Vmaxpd),
        of(Binary::And32, Vpand),
        of(Binary::Or32, Vpor),
        of(Binary::Xor32, Vpxor),
        of(Binary::And64, Vpand),
        of(Binary::Or64, Vpor),
        of(Binary::Xor64, Vpxor),
        of(Binary::AddI32, Vpaddd),
        of(Binary::SubI32, Vpsubd),
        of(Binary::MulI32, Vpmulld),
        of(Binary::MinS32, Vpminsd),
        of(Binary::MaxS32, Vpmaxsd),
        of(Binary::MinU32, Vpminud),
        of(Binary::MaxU32, Vpmaxud),
        of(Binary::AddI64, Vpaddq),
        of(Binary::SubI64, Vpsubq),
        of(Binary::ShlV32, Vpsllvd),
        of(Binary::ShrV32, Vpsrlvd),
        of(Binary::SarV32, Vpsravd),
        of(Binary::ShlV64, Vpsllvq),
        of(Binary::ShrV64, Vpsrlvq),
        fma(false, FmaForm::F132, false, false, Vfmadd132ps),
        fma(false, FmaForm::F213, true, false, Vfnmadd213ps),
        fma(true, FmaForm::F231, false, true, Vfmsub231pd),
        fma(true, FmaForm::F213, true, true, Vfnmsub213pd),
        three(ops::AND_NOT, Vpandn),
        three(ops::EQUAL, Vpcmpeqd),
        three(ops::EQUAL_DOUBLES, Vpcmpeqq),
        three(ops::GREATER, Vpcmpgtd),
        three(ops::GREATER_DOUBLES, Vpcmpgtq),
        three(ops::MULTIPLY_LOW, Vpmuludq),
        three(ops::PACK_16, Vpackusdw),
        three(ops::PACK_8, Vpackuswb),
        (ops::LOAD_MASKED, Vmaskmovps, None, Three, Memory, 0..2),
        (ops::LOAD_MASKED_DOUBLES, Vmaskmovpd, None, Three, Memory, 0..2),
        (Compared::F32.opcode(), Vcmpps, Some(30), Three, Anywhere, 0..2),
        (Compared::F64.opcode(), Vcmppd, Some(17), Three, Anywhere, 0..2),
        (ops::CHOOSE, Vblendvps, Some(0x50), Three, Anywhere, 0..2),
        (ops::CHOOSE_DOUBLES, Vblendvpd, Some(0xe0), Three, Anywhere, 0..2),
        (ops::CHOOSE_WORDS, Vpblendd, Some(0xaa), Three, Anywhere, 0..2),
        (ops::SHUFFLE_PAIR, Vshufps, Some(0x88), Three, Anywhere, 0..2),
        (ops::JOIN_128, Vinsertf128, Some(1), Three, Anywhere, 1..2),
        one(Unary::SqrtF32.opcode(), Vsqrtps),
        one(Unary::SqrtF64.opcode(), Vsqrtpd),
        one(Unary::AbsI32.opcode(), Vpabsd),
        one(Unary::I32ToF32.opcode(), Vcvtdq2ps),
        one(Unary::F32ToI32.opcode(), Vcvttps2dq),
        one(Resize::WidenF32.opcode(), Vcvtps2pd),
        one(Resize::I32ToF64.opcode(), Vcvtdq2pd),
        one(Resize::SignExtend.opcode(), Vpmovsxdq),
        one(Resize::ZeroExtend.opcode(), Vpmovzxdq),
        one(Resize::NarrowF64.opcode(), Vcvtpd2ps),
        one(Resize::F64ToI32.opcode(), Vcvttpd2dq),
        (Rounding::opcode(false), Vroundps, Some(Rounding::Floor as u8), Two, Anywhere, 0..2),
        (Rounding::opcode(true), Vroundpd, Some(Rounding::Nearest as u8), Two, Anywhere, 0..2),
        one(ops::MOVE_ALIGNED, Vmovaps),
        one(ops::LOAD, Vmovups),
        one(ops::LOAD_DOUBLES, Vmovupd),
        one(ops::BROADCAST, Vbroadcastss),
        one(ops::BROADCAST_DOUBLES, Vpbroadcastq),
        one(ops::BROADCAST_16, Vpbroadcastw),
        one(ops::BROADCAST_8, Vpbroadcastb),
        one(ops::BROADCAST_LOWEST, Vpbroadcastd),
        one(ops::BROADCAST_LOWEST_DOUBLE, Vpbroadcastq),
        one(ops::ZERO_EXTEND_16, Vpmovzxwd),
        one(ops::SIGN_EXTEND_16, Vpmovsxwd),
        one(ops::ZERO_EXTEND_8, Vpmovzxbd),
        one(ops::SIGN_EXTEND_8, Vpmovsxbd),
        one(ops::FROM_HALF, Vcvtph2ps),
        one(ops::TEST_SIGNS, Vtestps),
        (ops::PERMUTE_DOUBLES, Vpermq, Some(0xd8), Two, Anywhere, 1..2),
        (ops::SHUFFLE, Vpshufd, Some(0x0e), Two, Anywhere, 0..2),
        (ops::SIGNS, Vmovmskps, None, Two, Register, 0..2),
        (ops::SIGNS_OF_DOUBLES, Vmovmskpd, None, Two, Register, 0..2),
        (ops::FROM_INT, Vmovd, None, Two, Register, 0..1),
        (ops::FROM_LONG_INT, Vmovq, None, Two, Register, 0..1),
        (ops::STORE, Vmovups, None, Store, Anywhere, 0..2),
        (ops::STORE_DOUBLES, Vmovupd, None, Store, Anywhere, 0..2),
        (ops::STREAM, Vmovntps, None, Store, Memory, 0..2),
        (ops::TO_HALF, Vcvtps2ph, Some(0), Store, Anywhere, 0..2),
        (ops::UPPER_128, Vextractf128, Some(1), Store, Anywhere, 1..2),
        (ops::STORE_LOWEST, Vmovss, None, Store, Memory, 0..1),
        (ops::STORE_LOW_DOUBLE, Vmovq, None, Store, Memory, 0..1),
        (ops::STORE_HIGH_DOUBLE, Vmovhpd, None, Store, Memory, 0..1),
        (ops::STORE_ONE_WORD, Vpextrd, Some(3), Store, Memory, 0..1),
        (ops::STORE_ONE_16, Vpextrw, Some(5), Store, Memory, 0..1),
        (ops::STORE_ONE_8, Vpextrb, Some(1), Store, Memory, 0..1),
    ]
}

/// A place without the registers of EVEX.
fn vex_place(numbers: &mut Numbers, at: Where) -> RmPlace {
    loop {
        match (place(numbers), at) {
            (RmPlace::Register(register), Where::Anywhere | Where::Register) => {
                return RmPlace::Register(register % 16);
            }
            (memory @ RmPlace::Memory(_), Where::Anywhere | Where::Memory) => return memory,
            _ => {}
        }
    }
}

#[test]
fn vex_vectors_are_what_a_decoder_reads() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let all = vex_forms();
    for _ in 0..forms() {
        let (opcode, name, immediate, operands, at, lengths) = all[numbers.below(all.len() as u64) as usize].clone();
        let length = (lengths.start + numbers.below(lengths.end - lengths.start)) as u8;
        let (reg, rm) = (numbers.below(16) as u8, vex_place(&mut numbers, at));
        let three = operands == Operands::Three;
        let vvvv = if three { numbers.below(16) as u8 } else { 0 };
        let inst = EncodedVector { vvvv, immediate, ..EncodedVector::new(opcode, length, reg, rm) };
        check(&inst, name, operands == Operands::Store, three, false);
    }
}

fn decode(inst: &EncodedVector) -> iced_x86::Instruction {
    let mut encoder = Encoder::new(0);
    encoder.vector(inst, false);
    let bytes = encoder.finish(0);
    let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    assert_eq!(decoded.len(), bytes.len(), "{inst:?} {bytes:02x?} {decoded}");
    decoded
}

/// Instructions with their operands in another order.
#[test]
fn other_vex_forms_are_what_a_decoder_reads() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    for _ in 0..2000 {
        let mut number = || numbers.below(16) as u8;
        let (reg, vvvv, source) = (number(), number(), RmPlace::Register(number()));
        let RmPlace::Register(rm) = source else { continue };
        let length = 1;
        let inst = |opcode, rm| EncodedVector { vvvv, ..EncodedVector::new(opcode, length, reg, rm) };

        let memory = vex_place(&mut numbers, Where::Memory);
        for (opcode, name) in
            [(ops::STORE_MASKED, Mnemonic::Vmaskmovps), (ops::STORE_MASKED_DOUBLES, Mnemonic::Vmaskmovpd)]
        {
            let decoded = decode(&inst(opcode, memory));
            assert_eq!(decoded.mnemonic(), name);
            assert_eq!(decoded.op0_kind(), OpKind::Memory);
            assert_eq!(decoded.op1_register(), vector_register(length, vvvv));
            assert_eq!(decoded.op2_register(), vector_register(length, reg));
        }

        let (index, scale) = (numbers.below(16) as u8, numbers.below(4) as u8);
        let place = RmPlace::Memory(Address { base: 3, index: Some((index, scale)), displacement: -77 });
        for (opcode, name) in [(ops::GATHER, Mnemonic::Vgatherdps), (ops::GATHER_DOUBLES, Mnemonic::Vgatherdpd)] {
            let (reg, mask) = ((index + 1) % 16, (index + 2) % 16);
            let decoded = decode(&EncodedVector { reg, vvvv: mask, ..inst(opcode, place) });
            assert_eq!(decoded.mnemonic(), name);
            assert_eq!(decoded.op0_register(), vector_register(length, reg));
            assert_eq!(number_of(decoded.memory_index()), index);
            assert_eq!((decoded.memory_index_scale(), decoded.memory_displacement64() as i64), (1 << scale, -77));
            assert_eq!(decoded.op2_register(), vector_register(length, mask));
        }

        let by = numbers.below(32) as u8;
        for (shift, name) in [
            (Shift::Shl32, Mnemonic::Vpslld),
            (Shift::Shr32, Mnemonic::Vpsrld),
            (Shift::Sar32, Mnemonic::Vpsrad),
            (Shift::Shl64, Mnemonic::Vpsllq),
            (Shift::Shr64, Mnemonic::Vpsrlq),
        ] {
            let (opcode, digit) = shift.opcode();
            let decoded = decode(&EncodedVector { reg: digit, immediate: Some(by), ..inst(opcode, source) });
            assert_eq!((decoded.mnemonic(), decoded.immediate8()), (name, by));
            assert_eq!(decoded.op0_register(), vector_register(length, vvvv));
            assert_eq!(decoded.op1_register(), vector_register(length, rm));
        }

        let decoded = decode(&EncodedVector { length: 0, reg: 1, ..inst(ops::RESET_LOWEST_BIT, source) });
        assert_eq!(decoded.mnemonic(), Mnemonic::Blsr);
        assert_eq!(decoded.op0_register(), register(Register::RAX, vvvv));
        assert_eq!(decoded.op1_register(), register(Register::RAX, rm));
    }
}
