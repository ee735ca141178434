//! Masks of lanes: in separate registers, or vectors whose lanes have all bits or none ([`VectorLevel`](crate::level::VectorLevel)).

use crate::body::{BodyEmitter, OperandSource, Registers};
use crate::code::{INT, Int, MASK, RegisterSlot, Rm, V, VECTOR, VectorInstruction, VectorLength};
use crate::encode::{Alu, Opcode, PoolConstant};
use crate::ops::{self, Binary, Compared, Lane, Logic, Relation, Resize};

impl BodyEmitter {
    /// An instruction of mask registers.
    fn mask(&mut self, opcode: Opcode, length: VectorLength, vvvv: RegisterSlot, rm: V, immediate: Option<u8>) -> V {
        self.define(MASK, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), vvvv, Rm::Use(rm));
            VectorInstruction { length, immediate, ..inst }
        })
    }

    /// A mask register with the low bits of a general register.
    fn mask_of_int(&mut self, int: V) -> V {
        self.mask(ops::MASK_FROM_INT, VectorLength::Least, RegisterSlot::None, int, None)
    }

    /// The mask of all lanes, or of none.
    pub fn truth(&mut self, truth: bool) -> V {
        if !self.level.evex {
            return self.constant(PoolConstant::Word(if truth { u32::MAX } else { 0 }));
        }
        let int = self.int(if truth { -1 } else { 0 });
        self.mask_of_int(int)
    }

    /// The mask of the first lane of values of either width; the VEX form does not need one.
    pub fn first_lane(&mut self) -> Option<V> {
        self.level.evex.then(|| {
            let int = self.int(1);
            self.mask_of_int(int)
        })
    }

    /// The mask of the first `count` lanes; `count` is at most their number.
    pub fn first_lanes(&mut self, count: V) -> V {
        if !self.level.evex {
            let count = self.spread(count, Lane::Word);
            return self.two(ops::GREATER, count, Rm::Const(PoolConstant::LaneNumbers));
        }
        let ones = self.int(-1);
        let bits = self.define(INT, |to| {
            let inst =
                VectorInstruction::new(ops::LOW_BITS, RegisterSlot::Def(to), RegisterSlot::Use(count), Rm::Use(ones));
            VectorInstruction { length: VectorLength::Least, ..inst }
        });
        self.mask_of_int(bits)
    }

    /// The bits of a mask of a register in a general register.
    pub fn mask_bits(&mut self, lane: Lane, mask: V) -> V {
        let (opcode, length) = match (self.level.evex, lane) {
            (true, _) => (ops::INT_FROM_MASK, VectorLength::Least),
            (false, Lane::DoubleMask) => (ops::SIGNS_OF_DOUBLES, VectorLength::Whole),
            (false, Lane::Mask | Lane::Word | Lane::Double) => (ops::SIGNS, VectorLength::Whole),
        };
        let bits = self.define(INT, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), RegisterSlot::None, Rm::Use(mask));
            VectorInstruction { length, ..inst }
        });
        if !self.level.evex {
            return bits;
        }
        // Bits above those of the lanes are arbitrary.
        let lanes = self.level.lanes() / lane.registers() as u32;
        self.alu(Alu::And, bits, Int::Constant((1 << lanes) - 1))
    }

    /// Masks of the two halves of a group.
    pub fn halves(&mut self, mask: V) -> Registers {
        if !self.level.evex {
            let high = self.upper_half(mask);
            return [mask, high].map(|half| self.one(Resize::SignExtend.opcode(), Rm::Use(half)));
        }
        let half = (self.level.lanes() / 2) as u8;
        [mask, self.mask(ops::MASK_RIGHT, VectorLength::Least, RegisterSlot::None, mask, Some(half))]
    }

    /// The mask of a group from the masks of its halves.
    pub fn join_masks(&mut self, halves: Registers) -> V {
        if !self.level.evex {
            return self.low_words(halves);
        }
        let [low, high] = halves;
        let half = (self.level.lanes() / 2) as u8;
        if half == 8 {
            return self.mask(ops::MASK_JOIN, VectorLength::One, RegisterSlot::Use(high), low, None);
        }
        // Bits above those of the lanes are arbitrary.
        let low = self.mask(ops::MASK_LEFT, VectorLength::Least, RegisterSlot::None, low, Some(16 - half));
        let low = self.mask(ops::MASK_RIGHT, VectorLength::Least, RegisterSlot::None, low, Some(16 - half));
        let high = self.mask(ops::MASK_LEFT, VectorLength::Least, RegisterSlot::None, high, Some(half));
        self.logic(Logic::Or, low, high)
    }

    pub fn logic(&mut self, logic: Logic, a: V, b: V) -> V {
        if self.level.evex {
            return self.mask(logic.opcode(), VectorLength::One, RegisterSlot::Use(a), b, None);
        }
        let binary = match logic {
            Logic::And => Binary::And32,
            Logic::Or => Binary::Or32,
            Logic::Xor => Binary::Xor32,
        };
        self.two(binary.opcode(), a, Rm::Use(b))
    }

    pub fn not(&mut self, mask: V) -> V {
        if self.level.evex {
            return self.mask(ops::MASK_NOT, VectorLength::Least, RegisterSlot::None, mask, None);
        }
        self.two(Binary::Xor32.opcode(), mask, Rm::Const(PoolConstant::Word(u32::MAX)))
    }

    /// The mask of the lanes in which a relation holds.
    pub fn compare(&mut self, compared: Compared, relation: Relation, a: OperandSource, b: OperandSource) -> V {
        if !self.level.evex && !compared.is_float() {
            return self.compare_integers(compared, relation, a, b);
        }
        let class = if self.level.evex { MASK } else { VECTOR };
        let (opcode, predicate) = (compared.opcode(), relation.predicate(compared.is_float()));
        let a = self.in_register(a);
        self.define(class, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), RegisterSlot::Use(a), b.place());
            VectorInstruction { immediate: Some(predicate), ..inst }
        })
    }

    /// VEX has equality and "greater" of signed numbers only.
    fn compare_integers(&mut self, compared: Compared, relation: Relation, a: OperandSource, b: OperandSource) -> V {
        let double = compared.lane() == Lane::DoubleMask;
        let (equal, greater) =
            if double { (ops::EQUAL_DOUBLES, ops::GREATER_DOUBLES) } else { (ops::EQUAL, ops::GREATER) };
        let (a, b) = match (compared, relation) {
            (_, Relation::Equal | Relation::NotEqual) => (a, b),
            (Compared::U32, _) => return self.compare_words(relation, a, b),
            // The order of unsigned numbers is that of signed ones with the other sign.
            (Compared::U64, _) => {
                let sign = Rm::Const(PoolConstant::Double(1 << 63));
                let (a, b) = (self.in_register(a), self.in_register(b));
                let [a, b] = [a, b].map(|x| OperandSource::Register(self.two(Binary::Xor64.opcode(), x, sign)));
                (a, b)
            }
            (Compared::S32 | Compared::S64 | Compared::F32 | Compared::F64, _) => (a, b),
        };
        let (opcode, first, second, negated) = match relation {
            Relation::Equal => (equal, a, b, false),
            Relation::NotEqual => (equal, a, b, true),
            Relation::Greater => (greater, a, b, false),
            Relation::Less => (greater, b, a, false),
            Relation::LessOrEqual => (greater, a, b, true),
            Relation::GreaterOrEqual => (greater, b, a, true),
            Relation::Unordered => unreachable!("integers are ordered"),
        };
        let first = self.in_register(first);
        let holds = self.two(opcode, first, second.place());
        if negated { self.not(holds) } else { holds }
    }

    /// The order of unsigned words: `a >= b` if `a` is the larger one.
    fn compare_words(&mut self, relation: Relation, a: OperandSource, b: OperandSource) -> V {
        let (chosen, negated) = match relation {
            Relation::GreaterOrEqual => (Binary::MaxU32, false),
            Relation::LessOrEqual => (Binary::MinU32, false),
            Relation::Less => (Binary::MaxU32, true),
            Relation::Greater => (Binary::MinU32, true),
            Relation::Equal | Relation::NotEqual | Relation::Unordered => unreachable!("no order"),
        };
        let a = self.in_register(a);
        let chosen = self.two(chosen.opcode(), a, b.place());
        let holds = self.two(ops::EQUAL, a, Rm::Use(chosen));
        if negated { self.not(holds) } else { holds }
    }

    /// `mask ? then : otherwise`
    pub fn blend(&mut self, double: bool, mask: V, then: Rm, otherwise: V) -> V {
        let opcode = match (self.level.evex, double) {
            (true, false) => ops::BLEND,
            (true, true) => ops::BLEND_DOUBLES,
            (false, false) => ops::CHOOSE,
            (false, true) => ops::CHOOSE_DOUBLES,
        };
        self.define(VECTOR, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), RegisterSlot::Use(otherwise), then);
            VectorInstruction { mask: Some((mask, false)), ..inst }
        })
    }

    /// The same, which is shorter if a side is zero.
    pub fn select(&mut self, double: bool, mask: V, then: OperandSource, otherwise: OperandSource) -> V {
        match (self.level.evex, then.is_zero(), otherwise.is_zero()) {
            (true, _, true) => {
                let then = self.in_register(then);
                let copy = if double { ops::LOAD_DOUBLES } else { ops::LOAD };
                self.masked(copy, VectorLength::Whole, RegisterSlot::None, Rm::Use(then), Some(mask))
            }
            (false, _, true) => self.two(Binary::And32.opcode(), mask, then.place()),
            (false, true, false) => self.two(ops::AND_NOT, mask, otherwise.place()),
            (true, _, false) | (false, false, false) => {
                let otherwise = self.in_register(otherwise);
                self.blend(double, mask, then.place(), otherwise)
            }
        }
    }

    /// A vector instruction under a mask register, with other lanes zero.
    pub fn masked(&mut self, opcode: Opcode, length: VectorLength, vvvv: RegisterSlot, rm: Rm, mask: Option<V>) -> V {
        debug_assert!(self.level.evex || mask.is_none(), "VEX instructions have no masks");
        self.define(VECTOR, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), vvvv, rm);
            VectorInstruction { length, mask: mask.map(|mask| (mask, true)), ..inst }
        })
    }
}
