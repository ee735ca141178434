//! Computed indices, integer division, and the checks of both.
//!
//! A check compares in all lanes. If one fails, a branch that is almost never taken records the least code of each lane in memory. The
//! kernel continues, and returns the least of all codes at its end.

use crate::code::{BlockTarget, INT, Instruction, Int, Mem, RegisterSlot, Rm, V, VectorLength};
use crate::emitter::LoopEmitter;
use crate::encode::{Alu, JumpCondition, PoolConstant};
use crate::graph::{CheckCode, GIVEN_TO_CHECKS, Graph, LaneOp, Node};
use crate::ops::{self, Binary, Compared, Lane, Logic, Relation, Resize, Rounding};
use crate::select::Selector;
use spmdc_abi::{DType, trap};
use spmdc_kernel::loops::{Affine, Inst};
use spmdc_kernel::scalar::BinaryOp;

/// Larger than every code.
const NOT_FAILED: i64 = i64::MAX;

impl Selector<'_> {
    /// The part of an address that is computed in lanes, as a number of elements in 32 bits; an inner None if there is none.
    pub fn element(&mut self, address: &Affine) -> Option<Option<Node>> {
        let mut sum: Option<Node> = None;
        let mut most = 0_i64;
        for &(elem, stride) in &address.dynamic {
            let inst = &self.nest.insts[elem.0 as usize];
            if matches!(inst, Inst::LoopInvariant { .. }) {
                continue;
            }
            let Inst::Limit { last, .. } = *inst else { return None };
            let last = i64::try_from(last).ok()?;
            most = most.checked_add(last.checked_mul(stride.checked_abs()?)?)?;
            let index = self.value(elem)?;
            let index = self.graph.truncated(index);
            let term = match stride {
                1 => index,
                _ => {
                    let stride = self.graph.word(stride as u32);
                    self.graph.binary(Binary::MulI32, index, stride)
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.graph.binary(Binary::AddI32, sum, term),
            });
        }
        // The lanes of a loop add to it.
        (most < 1 << 30).then_some(sum)
    }

    /// Notes a failure where the mask and the guard hold.
    pub fn fail(&mut self, fails: Node, guard: Option<Node>, value: Node, code: Node) {
        let graph = &mut self.graph;
        let mask = match guard {
            Some(guard) => graph.logic(Logic::And, fails, guard),
            None => fails,
        };
        let number = graph.checks.len() as u32;
        let given = |graph: &mut Graph, at: u32, lane: Lane| {
            graph.add(LaneOp::Given { number: GIVEN_TO_CHECKS + 2 * number + at, lane })
        };
        let (fails, before) = (given(graph, 0, Lane::DoubleMask), given(graph, 1, Lane::Double));
        let none = graph.double(NOT_FAILED as u64);
        let of_lanes = graph.select(fails, code, none);
        let after = graph.binary(Binary::MinS64, of_lanes, before);
        graph.checks.push(CheckCode { fails, before, after });
        self.effects.push(graph.add(LaneOp::Fail { check: number, mask, value }));
    }
}

impl Graph {
    /// The low word of each double.
    pub fn truncated(&mut self, x: Node) -> Node {
        if self.lane(x) == Lane::Word {
            return x;
        }
        if let LaneOp::Resize(Resize::SignExtend | Resize::ZeroExtend, word) = self.op(x) {
            return word;
        }
        self.add(LaneOp::Resize(Resize::Truncate, x))
    }

    /// An i64 outside `0..=last` replaced by `last`.
    pub fn limited(&mut self, x: Node, last: u64) -> Node {
        if let LaneOp::Resize(Resize::SignExtend | Resize::ZeroExtend, word) = self.op(x)
            && let Ok(last) = i32::try_from(last)
        {
            // A negative number is a large one without its sign.
            let last = self.word(last as u32);
            let limited = self.binary(Binary::MinU32, word, last);
            return self.add(LaneOp::Resize(Resize::ZeroExtend, limited));
        }
        let last = self.double(last);
        self.binary(Binary::MinU64, x, last)
    }

    /// An index counted from the start of a dimension, in 64 bits, and a mask of the lanes in which it is out of bounds.
    pub fn counted_index(&mut self, dtype: DType, index: Node, extent: i64) -> Option<(Node, Node)> {
        let signed = dtype.is_signed_integer();
        let double = self.lane(index) == Lane::Double;
        if !double && i32::try_from(extent).is_err() {
            let wide = self.cast(dtype, DType::I64, index)?;
            return self.counted_index(DType::I64, wide, extent);
        }
        let lane = self.lane(index);
        let size = self.integer(lane, extent);
        let mut counted = index;
        if signed {
            let zero = self.integer(lane, 0);
            let compared = if double { Compared::S64 } else { Compared::S32 };
            let is_negative = self.compare(compared, Relation::Less, index, zero);
            let from_end = self.by_lane(Binary::AddI32, Binary::AddI64, index, size);
            counted = self.select(is_negative, from_end, index);
        }
        // A number that is still negative is a large one without its sign.
        let compared = if double { Compared::U64 } else { Compared::U32 };
        let fails = self.compare(compared, Relation::GreaterOrEqual, counted, size);
        Some((self.cast(dtype, DType::I64, counted)?, fails))
    }

    /// The code of an index that is out of bounds ([`trap::code`]); `first` is the least one of the check.
    pub fn code_of(&mut self, first: i64, dtype: DType, index: Node) -> Option<Node> {
        let mut value = self.cast(dtype, DType::I64, index)?;
        let most = self.double(trap::LARGEST_VALUE as u64);
        if dtype.is_signed_integer() {
            let least = self.double(trap::LEAST_VALUE as u64);
            value = self.binary(Binary::MaxS64, value, least);
            value = self.binary(Binary::MinS64, value, most);
        } else {
            value = self.binary(Binary::MinU64, value, most);
        }
        let offset = self.double((first - trap::LEAST_VALUE) as u64);
        Some(self.binary(Binary::AddI64, value, offset))
    }

    /// The quotient of integers of at most 32 bits rounded down, or the remainder with the sign of the divisor: the quotient in double
    /// precision is exact once it is rounded. None for 64 bits.
    pub fn divided(&mut self, op: BinaryOp, dtype: DType, x: Node, y: Node) -> Option<Node> {
        if self.lane(x) == Lane::Double {
            return None;
        }
        // Narrow integers are words with a sign.
        let signed = dtype.is_signed_integer() || dtype.size() < 4;
        let (widen, narrow) =
            if signed { (Resize::I32ToF64, Resize::F64ToI32) } else { (Resize::U32ToF64, Resize::F64ToU32) };
        let [a, b] = [x, y].map(|value| self.add(LaneOp::Resize(widen, value)));
        let exact = self.binary(Binary::DivF64, a, b);
        let down = self.add(LaneOp::Round(Rounding::Floor, exact, Lane::Double));
        let mut quotient = self.add(LaneOp::Resize(narrow, down));
        if signed {
            // -2^31 / -1 wraps.
            let (minus, zero) = (self.word(u32::MAX), self.word(0));
            let negates = self.compare(Compared::S32, Relation::Equal, y, minus);
            let negated = self.binary(Binary::SubI32, zero, x);
            quotient = self.select(negates, negated, quotient);
        }
        if op == BinaryOp::FloorDiv {
            return Some(quotient);
        }
        let product = self.binary(Binary::MulI32, quotient, y);
        Some(self.binary(Binary::SubI32, x, product))
    }
}

impl LoopEmitter<'_> {
    /// Fills the memory of the codes.
    pub fn start_checks(&mut self) {
        if self.plan.graph.checks.is_empty() {
            return;
        }
        let room = self.body.function.stack(2 * self.body.level.bytes() as i32);
        self.codes = Some(room);
        let none = self.body.load_constant(PoolConstant::Double(NOT_FAILED as u64));
        self.body.put_away(room, Lane::Double, [none; 2]);
    }

    /// Emits a check for all groups.
    pub fn check(&mut self, number: u32, mask: Node, value: Node) {
        let CheckCode { fails, before, after } = self.plan.graph.checks[number as usize];
        let room = self.codes.expect("the memory of the codes is filled first");
        let lane = self.plan.graph.lane(mask);
        for group in 0..self.groups_of_value(mask) {
            let mut masks = self.get(mask, group);
            if let Some(tail) = self.tail_of(if lane == Lane::DoubleMask { Lane::Double } else { Lane::Word }) {
                masks = self.body.for_registers(lane, |body, at| body.logic(Logic::And, masks[at], tail[at]));
            }
            let mut any = self.body.mask_bits(lane, masks[0]);
            if lane == Lane::DoubleMask {
                let high = self.body.mask_bits(lane, masks[1]);
                any = self.body.alu(Alu::Or, any, Int::Register(high));
            }
            let [failed, safe]: [BlockTarget; 2] = std::array::from_fn(|_| self.body.function.block(Vec::new()));
            let (then, otherwise) = ((failed, Vec::new()), (safe, Vec::new()));
            self.body.function.branch(JumpCondition::NotEqual, any, Int::Constant(0), then, otherwise);
            self.body.function.enter(failed);
            let masks = if lane == Lane::DoubleMask { masks } else { self.body.halves(masks[0]) };
            let bytes = self.body.level.bytes() as i32;
            let old = [0, 1].map(|half| {
                self.body.vector(
                    ops::LOAD,
                    VectorLength::Whole,
                    RegisterSlot::None,
                    Rm::Stack(room + bytes * half),
                    None,
                )
            });
            let mut given = vec![(fails, masks), (before, old)];
            if self.plan.graph.constant(value).is_none() {
                given.push((value, self.get(value, group)));
            }
            let new = self.local(after, &given);
            self.body.put_away(room, Lane::Double, new);
            self.body.function.jump(safe, Vec::new());
            self.body.function.enter(safe);
        }
    }

    /// The result of the kernel: the least code, or none.
    pub fn result_of_checks(&mut self) -> V {
        let Some(room) = self.codes else { return self.body.int(trap::NONE) };
        let base = self.body.function.register(INT);
        self.body.function.push(Instruction::StackAddress { to: base, displacement: room });
        let mut least = self.body.int(NOT_FAILED);
        for at in (0..2 * self.body.level.bytes() as i32).step_by(8) {
            let [code, less] = [INT; 2].map(|class| self.body.function.register(class));
            self.body.function.push(Instruction::Load { to: code, from: Mem { base, index: None, displacement: at } });
            self.body.function.push(Instruction::Min { to: less, a: least, b: code });
            least = less;
        }
        let (none, zero) = (self.body.int(NOT_FAILED), self.body.int(trap::NONE));
        let function = &mut self.body.function;
        let result = function.register(INT);
        let done = function.block(vec![result]);
        function.branch(JumpCondition::Equal, least, Int::Register(none), (done, vec![zero]), (done, vec![least]));
        function.enter(done);
        result
    }
}
