//! Operations on lanes as instructions, for one or several groups of lanes side by side.

use crate::code::{
    INT, Instruction, Int, MachineFunction, Mem, RegisterSlot, Rm, V, VECTOR, VectorInstruction, VectorLength,
};
use crate::encode::{Opcode, PoolConstant};
use crate::graph::{Graph, LaneOp, Node};
use crate::level::VectorLevel;
use crate::ops::{self, Binary, FmaForm, Lane, Resize, Rounding, Shift, Unary};
use regalloc2::RegClass;
use std::collections::HashMap;

/// The registers of a value for a group: the second one counts for 64-bit lanes only.
pub type Registers = [V; 2];

/// The address of the first lane of an access, and how the next ones follow.
#[derive(Clone, Copy, Debug)]
pub struct GroupPlace {
    pub base: V,
    pub index: Option<(V, u8)>,
    pub displacement: i64,
    /// Elements from lane to lane.
    pub stride: i64,
}

/// The emission of operations.
pub struct BodyEmitter {
    pub function: MachineFunction,
    pub level: VectorLevel,
    /// Constants that are registers since the beginning.
    pub residents: HashMap<PoolConstant, V>,
    /// The number of times that a constant was needed in a register but was not in one, by the depth of the loop.
    pub wanted: HashMap<PoolConstant, u32>,
    /// Multiples of the lanes' numbers, as words.
    pub steps: HashMap<i64, V>,
    /// The mask of all lanes, and the mask of the first lane.
    pub everything: Option<V>,
    pub first: Option<V>,
}

impl BodyEmitter {
    pub fn new(level: VectorLevel) -> BodyEmitter {
        BodyEmitter {
            function: MachineFunction::default(),
            level,
            residents: HashMap::new(),
            wanted: HashMap::new(),
            steps: HashMap::new(),
            everything: None,
            first: None,
        }
    }

    /// The result of an instruction that is made for its register.
    pub(crate) fn define(&mut self, class: RegClass, make: impl FnOnce(V) -> VectorInstruction) -> V {
        let to = self.function.register(class);
        self.function.push(Instruction::Vector(make(to)));
        to
    }

    /// A vector instruction without a mask, with a result in its first operand.
    pub fn vector(
        &mut self,
        opcode: Opcode,
        length: VectorLength,
        vvvv: RegisterSlot,
        rm: Rm,
        immediate: Option<u8>,
    ) -> V {
        self.define(VECTOR, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), vvvv, rm);
            VectorInstruction { length, immediate, ..inst }
        })
    }

    pub fn int(&mut self, value: i64) -> V {
        let to = self.function.register(INT);
        self.function.push(Instruction::Constant { to, value });
        to
    }

    pub fn add_constant(&mut self, a: V, constant: i64) -> V {
        if constant == 0 {
            return a;
        }
        let to = self.function.register(INT);
        match i32::try_from(constant) {
            Ok(displacement) => {
                self.function.push(Instruction::Address { to, of: Mem { base: a, index: None, displacement } });
            }
            Err(_) => {
                let b = self.int(constant);
                self.function
                    .push(Instruction::Address { to, of: Mem { base: a, index: Some((b, 0)), displacement: 0 } });
            }
        }
        to
    }

    pub fn alu(&mut self, op: crate::encode::Alu, a: V, b: Int) -> V {
        let to = self.function.register(INT);
        self.function.push(Instruction::Alu { op, to, a, b });
        to
    }

    pub fn product(&mut self, a: V, factor: i64) -> V {
        if factor == 1 {
            return a;
        }
        let to = self.function.register(INT);
        match i32::try_from(factor) {
            Ok(_) if factor > 0 && factor.count_ones() == 1 => {
                self.function.push(Instruction::ShiftLeft { to, a, by: factor.trailing_zeros() as u8 });
            }
            Ok(factor) => self.function.push(Instruction::Multiply { to, a, factor }),
            Err(_) => {
                let b = self.int(factor);
                self.function.push(Instruction::MultiplyRegister { to, a, b });
            }
        }
        to
    }

    /// `sum + a * factor`
    pub fn add_product(&mut self, sum: V, a: V, factor: i64) -> V {
        let to = self.function.register(INT);
        let (index, scale) = match factor {
            1 | 2 | 4 | 8 => (a, factor.trailing_zeros() as u8),
            _ => (self.product(a, factor), 0),
        };
        self.function
            .push(Instruction::Address { to, of: Mem { base: sum, index: Some((index, scale)), displacement: 0 } });
        to
    }

    /// The double in the lowest lane, in a general register.
    pub fn first_double(&mut self, a: V) -> V {
        self.lowest(if self.level.evex { ops::MOVE_TO_INT } else { ops::MOVE_TO_INT_BY_VEX }, a)
    }

    /// The word in the lowest lane, in a general register with zeros above it.
    pub fn first_word(&mut self, a: V) -> V {
        self.lowest(ops::MOVE_WORD, a)
    }

    fn lowest(&mut self, opcode: Opcode, a: V) -> V {
        self.define(INT, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Use(a), RegisterSlot::None, Rm::Def(to));
            VectorInstruction { length: VectorLength::Least, ..inst }
        })
    }

    // Constants.

    /// A constant in a register.
    pub fn constant(&mut self, constant: PoolConstant) -> V {
        if let Some(&resident) = self.residents.get(&constant) {
            return resident;
        }
        *self.wanted.entry(constant).or_default() += 1;
        self.load_constant(constant)
    }

    pub fn load_constant(&mut self, constant: PoolConstant) -> V {
        let opcode = match constant {
            PoolConstant::LaneNumbers => ops::LOAD,
            PoolConstant::Double(_) => ops::BROADCAST_DOUBLES,
            PoolConstant::Word(0) => {
                // Any register without itself.
                return self.vector(
                    ops::Binary::Xor32.opcode(),
                    VectorLength::Whole,
                    RegisterSlot::Digit(0),
                    Rm::Digit(0),
                    None,
                );
            }
            PoolConstant::Word(_) => ops::BROADCAST,
        };
        self.vector(opcode, VectorLength::Whole, RegisterSlot::None, Rm::Const(constant), None)
    }

    /// The constant of a node.
    pub fn constant_of(graph: &Graph, node: Node) -> Option<PoolConstant> {
        let bits = graph.constant(node)?;
        Some(if graph.lane(node) == Lane::Double {
            PoolConstant::Double(bits)
        } else {
            PoolConstant::Word(bits as u32)
        })
    }

    // Operations.

    /// The registers of an operation; `get` returns the registers of its operands. Loads, indices and given values are not among these
    /// operations.
    pub fn operation(
        &mut self,
        graph: &Graph,
        op: LaneOp,
        uses: &[u32],
        get: &mut dyn FnMut(&mut BodyEmitter, Node) -> Registers,
    ) -> Registers {
        match op {
            LaneOp::Binary(binary, a, b) => {
                let (a, b) = if binary.commutes() && Self::constant_of(graph, a).is_some() { (b, a) } else { (a, b) };
                self.each(graph, binary.lane(), [a, b], get, |body, [a, b]| body.binary(binary, a, b))
            }
            LaneOp::Unary(unary, a) => self.each(graph, unary.lane(), [a], get, |body, [a]| body.unary(unary, a)),
            LaneOp::Neg(a, lane) => self.each(graph, lane, [a], get, |body, [a]| {
                let (binary, sign) = if lane == Lane::Double {
                    (ops::Binary::Xor64, PoolConstant::Double(1 << 63))
                } else {
                    (ops::Binary::Xor32, PoolConstant::Word(1 << 31))
                };
                let a = body.in_register(a);
                body.vector(binary.opcode(), VectorLength::Whole, RegisterSlot::Use(a), Rm::Const(sign), None)
            }),
            LaneOp::Round(rounding, a, lane) => self.each(graph, lane, [a], get, |body, [a]| {
                let opcode = Rounding::opcode(lane == Lane::Double);
                body.vector(opcode, VectorLength::Whole, RegisterSlot::None, a.place(), Some(rounding as u8))
            }),
            LaneOp::Shift(shift, a, by) => self.each(graph, shift.lane(), [a], get, |body, [a]| {
                let a = if body.level.evex { a } else { OperandSource::Register(body.in_register(a)) };
                body.shift(shift, a.place(), by)
            }),
            LaneOp::Fma { x, y, z, negate_product, negate_sum } => {
                let lane = graph.lane(x);
                let dies = |node: Node| uses[node.0 as usize] == 1 && Self::constant_of(graph, node).is_none();
                let (x, y) = if Self::constant_of(graph, x).is_some() { (y, x) } else { (x, y) };
                let dying = [dies(x), dies(y), dies(z)];
                self.each(graph, lane, [x, y, z], get, |body, operands| {
                    body.fma(lane == Lane::Double, operands, dying, negate_product, negate_sum)
                })
            }
            LaneOp::Select(mask, a, b) => {
                let lane = graph.lane(a);
                let masks = get(self, mask);
                let mut at = 0;
                self.each(graph, lane, [a, b], get, |body, [a, b]| {
                    let mask = masks[at];
                    at += 1;
                    body.select(lane == Lane::Double, mask, a, b)
                })
            }
            LaneOp::Compare(compared, relation, a, b) => {
                let swap = Self::constant_of(graph, a).is_some();
                let (a, b, relation) = if swap { (b, a, relation.swapped()) } else { (a, b, relation) };
                self.each(graph, compared.lane(), [a, b], get, |body, [a, b]| body.compare(compared, relation, a, b))
            }
            LaneOp::Logic(logic, a, b) => {
                let (lane, a, b) = (graph.lane(a), get(self, a), get(self, b));
                self.for_registers(lane, |body, at| body.logic(logic, a[at], b[at]))
            }
            LaneOp::Not(a) => {
                let (lane, a) = (graph.lane(a), get(self, a));
                self.for_registers(lane, |body, at| body.not(a[at]))
            }
            LaneOp::MaskAs(lane, a) => {
                let a = get(self, a);
                if lane == Lane::DoubleMask { self.halves(a[0]) } else { [self.join_masks(a); 2] }
            }
            LaneOp::Truth(truth) => [self.truth(truth); 2],
            LaneOp::Resize(resize, a) => {
                let a = self.all_in_registers(graph, a, get);
                self.resize(resize, a)
            }
            LaneOp::RoundHalf(a) => {
                let a = self.all_in_registers(graph, a, get)[0];
                let half = self.as_half(a);
                [self.vector(ops::FROM_HALF, VectorLength::Whole, RegisterSlot::None, Rm::Use(half), None); 2]
            }
            LaneOp::Rare { function, mask, common, x } => {
                let lane = graph.lane(common);
                let (mask, common) = (get(self, mask), self.all_in_registers(graph, common, get));
                let x = self.all_in_registers(graph, x, get);
                self.for_registers(lane, |body, at| {
                    let (to, double) = (body.function.register(VECTOR), lane == Lane::Double);
                    let (mask, common, x) = (mask[at], common[at], x[at]);
                    body.function.push(Instruction::Rare { to, function, double, mask, common, x });
                    to
                })
            }
            LaneOp::Const32(bits) => [self.constant(PoolConstant::Word(bits)); 2],
            LaneOp::Const64(bits) => [self.constant(PoolConstant::Double(bits)); 2],
            LaneOp::Load { .. }
            | LaneOp::Index { .. }
            | LaneOp::Given { .. }
            | LaneOp::Lookup { .. }
            | LaneOp::Fail { .. }
            | LaneOp::Carried { .. }
            | LaneOp::Repeat { .. }
            | LaneOp::Last { .. } => unreachable!("{op:?} is no operation"),
        }
    }

    /// Runs for each register of a group.
    pub(crate) fn for_registers(&mut self, lane: Lane, mut f: impl FnMut(&mut BodyEmitter, usize) -> V) -> Registers {
        let low = f(self, 0);
        if lane.registers() == 2 { [low, f(self, 1)] } else { [low; 2] }
    }

    /// Runs for each register of a group, with the operands as registers or constants.
    fn each<const N: usize>(
        &mut self,
        graph: &Graph,
        lane: Lane,
        operands: [Node; N],
        get: &mut dyn FnMut(&mut BodyEmitter, Node) -> Registers,
        mut f: impl FnMut(&mut BodyEmitter, [OperandSource; N]) -> V,
    ) -> Registers {
        let sources = operands.map(|node| match Self::constant_of(graph, node) {
            Some(constant) => [OperandSource::Constant(constant); 2],
            None => get(self, node).map(OperandSource::Register),
        });
        self.for_registers(lane, |body, at| f(body, sources.map(|source| source[at])))
    }

    pub(crate) fn in_register(&mut self, source: OperandSource) -> V {
        match source {
            OperandSource::Register(register) => register,
            OperandSource::Constant(constant) => self.constant(constant),
        }
    }

    pub fn all_in_registers(
        &mut self,
        graph: &Graph,
        node: Node,
        get: &mut dyn FnMut(&mut BodyEmitter, Node) -> Registers,
    ) -> Registers {
        match Self::constant_of(graph, node) {
            Some(constant) => [self.constant(constant); 2],
            None => get(self, node),
        }
    }

    /// `x * y + z`; the form overwrites an operand that is not needed any more, if there is one.
    pub(crate) fn fma(
        &mut self,
        double: bool,
        [x, y, z]: [OperandSource; 3],
        dying: [bool; 3],
        negate_product: bool,
        negate_sum: bool,
    ) -> V {
        let (x, y, z) = match (x, y, z) {
            // At most one operand is in memory.
            (x, OperandSource::Constant(factor), OperandSource::Constant(sum)) => {
                let factor = self.constant(factor);
                (x, OperandSource::Register(factor), OperandSource::Constant(sum))
            }
            other => other,
        };
        let x = self.in_register(x);
        let (form, tied, second, third) = match (y, z) {
            (OperandSource::Register(y), OperandSource::Constant(_)) if dying[1] && !dying[0] => {
                (FmaForm::F213, y, x, z)
            }
            (OperandSource::Register(y), OperandSource::Constant(_)) => (FmaForm::F213, x, y, z),
            (OperandSource::Constant(_), OperandSource::Register(sum)) if dying[2] || !dying[0] => {
                (FmaForm::F231, sum, x, y)
            }
            (OperandSource::Constant(_), OperandSource::Register(sum)) => (FmaForm::F132, x, sum, y),
            (OperandSource::Register(factor), OperandSource::Register(sum)) => match dying {
                [_, _, true] => (FmaForm::F231, sum, x, y),
                [true, _, _] => (FmaForm::F213, x, factor, z),
                [_, true, _] => (FmaForm::F213, factor, x, z),
                _ => (FmaForm::F231, sum, x, y),
            },
            (OperandSource::Constant(_), OperandSource::Constant(_)) => unreachable!("a constant went into a register"),
        };
        let opcode = ops::fma(double, form, negate_product, negate_sum);
        self.define(VECTOR, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Def(to), RegisterSlot::Use(second), third.place());
            VectorInstruction { tied: Some(tied), ..inst }
        })
    }

    /// The upper half of a register, as the lower half of another one.
    pub fn upper_half(&mut self, a: V) -> V {
        match self.level.bits {
            512 => self.extract(ops::UPPER_256, VectorLength::Whole, a),
            256 => self.extract(ops::UPPER_128, VectorLength::Whole, a),
            _ => self.vector(ops::SHUFFLE, VectorLength::Least, RegisterSlot::None, Rm::Use(a), Some(0b1110)),
        }
    }

    /// An instruction that takes the upper half of its operand.
    pub fn extract(&mut self, opcode: Opcode, length: VectorLength, a: V) -> V {
        self.result_in_memory_operand(opcode, length, a, Some(1))
    }

    pub(crate) fn join_halves(&mut self, [low, high]: Registers) -> V {
        let (opcode, immediate) = match self.level.bits {
            512 => (ops::JOIN_256, Some(1)),
            256 => (ops::JOIN_128, Some(1)),
            _ => (ops::JOIN_64, None),
        };
        self.vector(opcode, VectorLength::Whole, RegisterSlot::Use(low), Rm::Use(high), immediate)
    }

    fn resize(&mut self, resize: Resize, a: Registers) -> Registers {
        if !self.level.evex
            && let Some(result) = self.vex_resize(resize, a)
        {
            return result;
        }
        if resize.lane() == Lane::Double {
            let high = self.upper_half(a[0]);
            return [a[0], high].map(|half| {
                self.vector(resize.opcode(), VectorLength::Whole, RegisterSlot::None, Rm::Use(half), None)
            });
        }
        let halves = a.map(|half| {
            if resize == Resize::Truncate {
                self.result_in_memory_operand(resize.opcode(), VectorLength::Whole, half, None)
            } else {
                self.vector(resize.opcode(), VectorLength::Whole, RegisterSlot::None, Rm::Use(half), None)
            }
        });
        [self.join_halves(halves); 2]
    }

    fn binary(&mut self, binary: Binary, a: OperandSource, b: OperandSource) -> V {
        if !self.level.evex
            && let Some(result) = self.vex_binary(binary, a, b)
        {
            return result;
        }
        let a = self.in_register(a);
        self.two(binary.opcode(), a, b.place())
    }

    fn unary(&mut self, unary: Unary, a: OperandSource) -> V {
        if !self.level.evex
            && let Some(result) = self.vex_unary(unary, a)
        {
            return result;
        }
        self.one(unary.opcode(), a.place())
    }

    /// A shift by a constant; the VEX form has no operand in memory.
    pub fn shift(&mut self, shift: Shift, a: Rm, by: u8) -> V {
        if let (false, Shift::Sar64, Rm::Use(a)) = (self.level.evex, shift, a) {
            return self.vex_shift_sign(a, |body, magnitude| body.shift(Shift::Shr64, Rm::Use(magnitude), by));
        }
        let (opcode, digit) = shift.opcode();
        self.define(VECTOR, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Digit(digit), RegisterSlot::Def(to), a);
            VectorInstruction { immediate: Some(by), ..inst }
        })
    }

    /// A plain instruction of one operand on whole vectors.
    pub fn one(&mut self, opcode: Opcode, a: Rm) -> V {
        self.vector(opcode, VectorLength::Whole, RegisterSlot::None, a, None)
    }

    /// The same of two operands.
    pub fn two(&mut self, opcode: Opcode, a: V, b: Rm) -> V {
        self.vector(opcode, VectorLength::Whole, RegisterSlot::Use(a), b, None)
    }

    /// An instruction whose result is its memory operand, into a register.
    pub(crate) fn result_in_memory_operand(
        &mut self,
        opcode: Opcode,
        length: VectorLength,
        a: V,
        immediate: Option<u8>,
    ) -> V {
        self.define(VECTOR, |to| {
            let inst = VectorInstruction::new(opcode, RegisterSlot::Use(a), RegisterSlot::None, Rm::Def(to));
            VectorInstruction { length, immediate, ..inst }
        })
    }

    pub(crate) fn as_half(&mut self, a: V) -> V {
        // To the nearest, ties to even.
        self.result_in_memory_operand(ops::TO_HALF, VectorLength::Whole, a, Some(0))
    }
}

/// An operand: constants can be in memory.
#[derive(Clone, Copy, PartialEq)]
pub enum OperandSource {
    Register(V),
    Constant(PoolConstant),
}

impl OperandSource {
    pub fn is_zero(self) -> bool {
        matches!(self, OperandSource::Constant(PoolConstant::Word(0) | PoolConstant::Double(0)))
    }

    pub fn place(self) -> Rm {
        match self {
            OperandSource::Register(register) => Rm::Use(register),
            OperandSource::Constant(constant) => Rm::Const(constant),
        }
    }
}
