//! The operations on lanes that are one instruction, with the numbers of their instructions.

use crate::encode::{Map, Opcode, Prefix, Tuple};

/// The lanes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// 32 bits: one register for a group.
    Word,
    /// 64 bits: two registers.
    Double,
    /// The outcome of comparing words: one mask.
    Mask,
    /// The outcome of comparing doubles: two masks.
    DoubleMask,
}

impl Lane {
    /// The registers of a group.
    pub fn registers(self) -> usize {
        match self {
            Lane::Word | Lane::Mask => 1,
            Lane::Double | Lane::DoubleMask => 2,
        }
    }

    /// Whether it is the outcome of a comparison.
    pub fn is_mask(self) -> bool {
        matches!(self, Lane::Mask | Lane::DoubleMask)
    }
}

macro_rules! instructions {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $prefix:ident $map:ident $byte:literal $wide:literal $lane:ident $commutes:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All of them.
            #[cfg(test)]
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The numbers of the instruction.
            pub const fn opcode(self) -> Opcode {
                match self { $($name::$variant => Opcode::new(Prefix::$prefix, Map::$map, $byte, $wide, Tuple::Full),)* }
            }

            /// The lanes of operands and result.
            pub fn lane(self) -> Lane {
                match self { $($name::$variant => Lane::$lane,)* }
            }

            /// Whether operands may change places.
            #[allow(dead_code, reason = "of one operand")]
            pub fn commutes(self) -> bool {
                match self { $($name::$variant => $commutes,)* }
            }
        }
    };
}

instructions! {
    /// `a op b`
    Binary {
        AddF32: None M0F 0x58 false Word true,
        SubF32: None M0F 0x5c false Word false,
        MulF32: None M0F 0x59 false Word true,
        DivF32: None M0F 0x5e false Word false,
        // `a < b ? a : b`: the second operand where one is NaN, and of two zeros.
        MinF32: None M0F 0x5d false Word false,
        MaxF32: None M0F 0x5f false Word false,
        AddF64: P66 M0F 0x58 true Double true,
        SubF64: P66 M0F 0x5c true Double false,
        MulF64: P66 M0F 0x59 true Double true,
        DivF64: P66 M0F 0x5e true Double false,
        MinF64: P66 M0F 0x5d true Double false,
        MaxF64: P66 M0F 0x5f true Double false,
        And32: P66 M0F 0xdb false Word true,
        Or32: P66 M0F 0xeb false Word true,
        Xor32: P66 M0F 0xef false Word true,
        And64: P66 M0F 0xdb true Double true,
        Or64: P66 M0F 0xeb true Double true,
        Xor64: P66 M0F 0xef true Double true,
        AddI32: P66 M0F 0xfe false Word true,
        SubI32: P66 M0F 0xfa false Word false,
        MulI32: P66 M0F38 0x40 false Word true,
        MinS32: P66 M0F38 0x39 false Word true,
        MaxS32: P66 M0F38 0x3d false Word true,
        MinU32: P66 M0F38 0x3b false Word true,
        MaxU32: P66 M0F38 0x3f false Word true,
        AddI64: P66 M0F 0xd4 true Double true,
        SubI64: P66 M0F 0xfb true Double false,
        MulI64: P66 M0F38 0x40 true Double true,
        MinS64: P66 M0F38 0x39 true Double true,
        MaxS64: P66 M0F38 0x3d true Double true,
        MinU64: P66 M0F38 0x3b true Double true,
        MaxU64: P66 M0F38 0x3f true Double true,
        // A count of the width or more shifts everything out, or leaves the sign.
        ShlV32: P66 M0F38 0x47 false Word false,
        ShrV32: P66 M0F38 0x45 false Word false,
        SarV32: P66 M0F38 0x46 false Word false,
        ShlV64: P66 M0F38 0x47 true Double false,
        ShrV64: P66 M0F38 0x45 true Double false,
        SarV64: P66 M0F38 0x46 true Double false,
    }
}

instructions! {
    /// `op a`
    Unary {
        SqrtF32: None M0F 0x51 false Word false,
        SqrtF64: P66 M0F 0x51 true Double false,
        AbsI32: P66 M0F38 0x1e false Word false,
        AbsI64: P66 M0F38 0x1f true Double false,
        I32ToF32: None M0F 0x5b false Word false,
        U32ToF32: PF2 M0F 0x7a false Word false,
        // Numbers out of range give the smallest integer, those of the next line the largest.
        F32ToI32: PF3 M0F 0x5b false Word false,
        F32ToU32: None M0F 0x78 false Word false,
        I64ToF64: PF3 M0F 0xe6 true Double false,
        U64ToF64: PF3 M0F 0x7a true Double false,
        F64ToI64: P66 M0F 0x7a true Double false,
        F64ToU64: P66 M0F 0x78 true Double false,
    }
}

/// From words to doubles or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resize {
    WidenF32,
    I32ToF64,
    U32ToF64,
    SignExtend,
    ZeroExtend,
    NarrowF64,
    F64ToI32,
    F64ToU32,
    I64ToF32,
    U64ToF32,
    Truncate,
}

impl Resize {
    pub const fn opcode(self) -> Opcode {
        use Map::{M0F, M0F38};
        match self {
            Resize::WidenF32 => Opcode::new(Prefix::None, M0F, 0x5a, false, Tuple::Half),
            Resize::I32ToF64 => Opcode::new(Prefix::PF3, M0F, 0xe6, false, Tuple::Half),
            Resize::U32ToF64 => Opcode::new(Prefix::PF3, M0F, 0x7a, false, Tuple::Half),
            Resize::SignExtend => Opcode::new(Prefix::P66, M0F38, 0x25, false, Tuple::Half),
            Resize::ZeroExtend => Opcode::new(Prefix::P66, M0F38, 0x35, false, Tuple::Half),
            Resize::NarrowF64 => Opcode::new(Prefix::P66, M0F, 0x5a, true, Tuple::Full),
            Resize::F64ToI32 => Opcode::new(Prefix::P66, M0F, 0xe6, true, Tuple::Full),
            Resize::F64ToU32 => Opcode::new(Prefix::None, M0F, 0x78, true, Tuple::Full),
            Resize::I64ToF32 => Opcode::new(Prefix::None, M0F, 0x5b, true, Tuple::Full),
            Resize::U64ToF32 => Opcode::new(Prefix::PF2, M0F, 0x7a, true, Tuple::Full),
            // The result is the operand in memory.
            Resize::Truncate => Opcode::new(Prefix::PF3, M0F38, 0x35, false, Tuple::Half),
        }
    }

    /// The lanes of the result.
    pub fn lane(self) -> Lane {
        match self {
            Resize::WidenF32 | Resize::I32ToF64 | Resize::U32ToF64 | Resize::SignExtend | Resize::ZeroExtend => {
                Lane::Double
            }
            Resize::NarrowF64
            | Resize::F64ToI32
            | Resize::F64ToU32
            | Resize::I64ToF32
            | Resize::U64ToF32
            | Resize::Truncate => Lane::Word,
        }
    }
}

/// The type that a comparison reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compared {
    F32,
    F64,
    S32,
    U32,
    S64,
    U64,
}

impl Compared {
    pub const fn opcode(self) -> Opcode {
        use Map::{M0F, M0F3A};
        match self {
            Compared::F32 => Opcode::new(Prefix::None, M0F, 0xc2, false, Tuple::Full),
            Compared::F64 => Opcode::new(Prefix::P66, M0F, 0xc2, true, Tuple::Full),
            Compared::S32 => Opcode::new(Prefix::P66, M0F3A, 0x1f, false, Tuple::Full),
            Compared::U32 => Opcode::new(Prefix::P66, M0F3A, 0x1e, false, Tuple::Full),
            Compared::S64 => Opcode::new(Prefix::P66, M0F3A, 0x1f, true, Tuple::Full),
            Compared::U64 => Opcode::new(Prefix::P66, M0F3A, 0x1e, true, Tuple::Full),
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Compared::F32 | Compared::F64)
    }

    /// The lanes of the outcome.
    pub fn lane(self) -> Lane {
        match self {
            Compared::F32 | Compared::S32 | Compared::U32 => Lane::Mask,
            Compared::F64 | Compared::S64 | Compared::U64 => Lane::DoubleMask,
        }
    }
}

/// The relation between the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// An operand is NaN.
    Unordered,
}

impl Relation {
    /// The number of the predicate. None of floats signals, and only `NotEqual` and `Unordered` hold for NaN.
    pub fn predicate(self, float: bool) -> u8 {
        match (self, float) {
            (Relation::Equal, _) => 0,
            (Relation::NotEqual, _) => 4,
            (Relation::Less, true) => 17,
            (Relation::Less, false) => 1,
            (Relation::LessOrEqual, true) => 18,
            (Relation::LessOrEqual, false) => 2,
            (Relation::Greater, true) => 30,
            (Relation::Greater, false) => 6,
            (Relation::GreaterOrEqual, true) => 29,
            (Relation::GreaterOrEqual, false) => 5,
            (Relation::Unordered, true) => 3,
            (Relation::Unordered, false) => unreachable!("integers are ordered"),
        }
    }

    /// The relation of the operands in the other order.
    pub fn swapped(self) -> Relation {
        match self {
            Relation::Equal | Relation::NotEqual | Relation::Unordered => self,
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
        }
    }
}

/// Shifts by a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    Shl32,
    Shr32,
    Sar32,
    Shl64,
    Shr64,
    Sar64,
}

impl Shift {
    /// The instruction, and the digit that is a part of its opcode.
    pub const fn opcode(self) -> (Opcode, u8) {
        let (byte, digit, wide) = match self {
            Shift::Shl32 => (0x72, 6, false),
            Shift::Shr32 => (0x72, 2, false),
            Shift::Sar32 => (0x72, 4, false),
            Shift::Shl64 => (0x73, 6, true),
            Shift::Shr64 => (0x73, 2, true),
            Shift::Sar64 => (0x72, 4, true),
        };
        (Opcode::new(Prefix::P66, Map::M0F, byte, wide, Tuple::Full), digit)
    }

    pub fn lane(self) -> Lane {
        match self {
            Shift::Shl32 | Shift::Shr32 | Shift::Sar32 => Lane::Word,
            Shift::Shl64 | Shift::Shr64 | Shift::Sar64 => Lane::Double,
        }
    }
}

/// Rounding to an integer: the immediate operand, without signals of inexact results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    Nearest = 8,
    Floor = 9,
    Ceil = 10,
    Trunc = 11,
}

impl Rounding {
    pub const fn opcode(lane_is_double: bool) -> Opcode {
        let byte = if lane_is_double { 9 } else { 8 };
        Opcode::new(Prefix::P66, Map::M0F3A, byte, lane_is_double, Tuple::Full)
    }
}

/// Combinations of masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    pub const fn opcode(self) -> Opcode {
        let byte = match self {
            Logic::And => 0x41,
            Logic::Or => 0x45,
            Logic::Xor => 0x47,
        };
        Opcode::vex(Prefix::None, Map::M0F, byte, false)
    }
}

/// From register to register.
pub const MOVE_ALIGNED: Opcode = Opcode::new(Prefix::None, Map::M0F, 0x28, false, Tuple::Full);
pub const LOAD: Opcode = Opcode::new(Prefix::None, Map::M0F, 0x10, false, Tuple::Full);
pub const LOAD_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F, 0x10, true, Tuple::Full);
pub const STORE: Opcode = Opcode::new(Prefix::None, Map::M0F, 0x11, false, Tuple::Full);
pub const STORE_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F, 0x11, true, Tuple::Full);
/// Stores that bypass the caches, at addresses that are multiples of the vector's size.
pub const STREAM: Opcode = Opcode::new(Prefix::None, Map::M0F, 0x2b, false, Tuple::Full);
pub const BROADCAST: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x18, false, Tuple::Four);
/// For integers, because the instruction for floats has no form of 128 bits.
pub const BROADCAST_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x59, true, Tuple::Eight);
/// Elements of 16 and 8 bits from memory to all such lanes.
pub const BROADCAST_16: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x79, false, Tuple::Two);
pub const BROADCAST_8: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x78, false, Tuple::One);
/// From a general register to all lanes.
pub const SPREAD: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x7c, false, Tuple::Full);
pub const SPREAD_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x7c, true, Tuple::Full);
pub const BLEND: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x65, false, Tuple::Full);
pub const BLEND_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x65, true, Tuple::Full);
/// Elements of 16 or 8 bits as words: zero-extended and sign-extended, and back; the operand in memory is the narrow one.
pub const ZERO_EXTEND_16: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x33, false, Tuple::Half);
pub const SIGN_EXTEND_16: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x23, false, Tuple::Half);
pub const ZERO_EXTEND_8: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x31, false, Tuple::Quarter);
pub const SIGN_EXTEND_8: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x21, false, Tuple::Quarter);
pub const TRUNCATE_16: Opcode = Opcode::new(Prefix::PF3, Map::M0F38, 0x33, false, Tuple::Half);
pub const TRUNCATE_8: Opcode = Opcode::new(Prefix::PF3, Map::M0F38, 0x31, false, Tuple::Quarter);
/// Between `f16` and `f32`; the narrow one may be in memory.
pub const FROM_HALF: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x13, false, Tuple::Half);
pub const TO_HALF: Opcode = Opcode::new(Prefix::P66, Map::M0F3A, 0x1d, false, Tuple::Half);
/// Gathers by words; the second is of doubles, whose indices are words.
pub const GATHER: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x92, false, Tuple::Four);
pub const GATHER_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0x92, true, Tuple::Eight);
pub const SCATTER: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0xa2, false, Tuple::Four);
pub const SCATTER_DOUBLES: Opcode = Opcode::new(Prefix::P66, Map::M0F38, 0xa2, true, Tuple::Eight);
/// The upper half of a register as the lower one, by width.
pub const UPPER_256: Opcode = Opcode::new(Prefix::P66, Map::M0F3A, 0x1b, true, Tuple::ThirtyTwo);
pub const UPPER_128: Opcode = Opcode::new(Prefix::P66, Map::M0F3A, 0x19, false, Tuple::Sixteen);
/// A register from two lower halves, by width.
pub const JOIN_256: Opcode = Opcode::new(Prefix::P66, Map::M0F3A, 0x1a, true, Tuple::ThirtyTwo);
pub const JOIN_128: Opcode = Opcode::new(Prefix::P66, Map::M0F3A, 0x18, false, Tuple::Sixteen);
pub const JOIN_64: Opcode = Opcode::new(Prefix::None, Map::M0F, 0x16, false, Tuple::Eight);
/// Words within 128 bits, chosen by an immediate operand.
pub const SHUFFLE: Opcode = Opcode::new(Prefix::P66, Map::M0F, 0x70, false, Tuple::Full);
/// Masks.
pub const MOVE_MASK: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x90, false);
pub const STORE_MASK: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x91, false);
pub const TEST_MASK: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x98, false);
pub const MASK_NOT: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x44, false);
pub const MASK_FROM_INT: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x92, false);
pub const MASK_JOIN: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x4b, false);
pub const MASK_RIGHT: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x30, true);
pub const MASK_LEFT: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x32, true);
/// Masks that are vectors: `mask ? last : second`, with the mask in the immediate operand's place.
pub const CHOOSE: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x4a, false);
pub const CHOOSE_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x4b, false);
/// `!second & last`
pub const AND_NOT: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0xdf, false);
/// The sign bits of the lanes in a general register, and whether there are any.
pub const SIGNS: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x50, false);
pub const SIGNS_OF_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x50, false);
pub const TEST_SIGNS: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x0e, false);
/// Loads and stores of the lanes in a mask, which is the second operand.
pub const LOAD_MASKED: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x2c, false);
pub const LOAD_MASKED_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x2d, false);
pub const STORE_MASKED: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x2e, false);
pub const STORE_MASKED_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x2f, false);
/// Comparisons of integers.
pub const EQUAL: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x76, false);
pub const EQUAL_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x29, false);
pub const GREATER: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x66, false);
pub const GREATER_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x37, false);
/// Products of the low words of doubles.
pub const MULTIPLY_LOW: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0xf4, false);
/// Words of the second or the last operand, by the bits of an immediate operand.
pub const CHOOSE_WORDS: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x02, false);
/// Two words of the second operand, then two of the last, within 128 bits.
pub const SHUFFLE_PAIR: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0xc6, false);
/// Doubles of a register, chosen by an immediate operand.
pub const PERMUTE_DOUBLES: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x00, true);
/// Words as elements of 16 bits, and these as elements of 8 bits; numbers in range are kept.
pub const PACK_16: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x2b, false);
pub const PACK_8: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x67, false);
/// From a general register to the lowest lane, and from the lowest lane to all.
pub const FROM_INT: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x6e, false);
pub const FROM_LONG_INT: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x6e, true);
pub const BROADCAST_LOWEST: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x58, false);
pub const BROADCAST_LOWEST_DOUBLE: Opcode = Opcode::vex(Prefix::P66, Map::M0F38, 0x59, false);
/// Stores of one element: the lowest one, and one that an immediate operand chooses among 128 bits.
pub const STORE_LOWEST: Opcode = Opcode::vex(Prefix::PF3, Map::M0F, 0x11, false);
pub const STORE_LOW_DOUBLE: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0xd6, false);
pub const STORE_HIGH_DOUBLE: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x17, false);
pub const STORE_ONE_WORD: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x16, false);
pub const STORE_ONE_16: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x15, false);
pub const STORE_ONE_8: Opcode = Opcode::vex(Prefix::P66, Map::M0F3A, 0x14, false);
/// A general register without its lowest bit that is set.
pub const RESET_LOWEST_BIT: Opcode = Opcode::vex(Prefix::None, Map::M0F38, 0xf3, true);
pub const INT_FROM_MASK: Opcode = Opcode::vex(Prefix::None, Map::M0F, 0x93, false);
/// The lowest word, into a general register.
pub const MOVE_WORD: Opcode = Opcode::new(Prefix::P66, Map::M0F, 0x7e, false, Tuple::Four);
/// The lowest double, into a general register, in both forms: the width of general registers counts in VEX, too.
pub const MOVE_TO_INT: Opcode = Opcode::new(Prefix::P66, Map::M0F, 0x7e, true, Tuple::Eight);
pub const MOVE_TO_INT_BY_VEX: Opcode = Opcode::vex(Prefix::P66, Map::M0F, 0x7e, true);
/// The low bits of a general register, as many as another one says.
pub const LOW_BITS: Opcode = Opcode::vex(Prefix::None, Map::M0F38, 0xf5, true);
/// The fused multiply-add whose factors are the tied operand and the last one, by the signs of product and summand.
pub fn fma(double: bool, form: FmaForm, negate_product: bool, negate_sum: bool) -> Opcode {
    let base = match (negate_product, negate_sum) {
        (false, false) => 0x98,
        (false, true) => 0x9a,
        (true, false) => 0x9c,
        (true, true) => 0x9e,
    };
    let byte = base
        + match form {
            FmaForm::F132 => 0,
            FmaForm::F213 => 0x10,
            FmaForm::F231 => 0x20,
        };
    Opcode::new(Prefix::P66, Map::M0F38, byte, double, Tuple::Full)
}

/// The places of the operands of a fused multiply-add: register `a`, which is overwritten, register `b`, and `c`, which may be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FmaForm {
    /// `a * c + b`
    F132,
    /// `b * a + c`
    F213,
    /// `b * c + a`
    F231,
}
