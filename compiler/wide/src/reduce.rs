//! The combination over reduced loops, in the order of the kernel (`spmdc_kernel::order`).
//!
//! Every lane has a separate partial result. If the loop in lanes is reduced, sixteen lanes take the terms of a sum in turn, in one, two or
//! four registers. The lanes are combined by halves, and the terms after the last whole sixteen are added one by one.

use crate::body::Registers;
use crate::code::{INT, Instruction, Int, Mem, RegisterSlot, Rm, V, VECTOR, VectorInstruction, VectorLength};
use crate::emitter::{LaneTotal, LaneTotals, LoopEmitter, Tail};
use crate::encode::{JumpCondition, Opcode, Prefix, Tuple};
use crate::graph::{LaneOp, LoadForm, Node};
use crate::ops::{self, Lane};
use crate::plan::{Combination, StoreKind};
use spmdc_kernel::loops::Combine;

impl<'p> LoopEmitter<'p> {
    /// The partial results of no terms.
    pub fn start_reductions(&mut self) {
        let plan = self.plan;
        self.accumulators.clear();
        let parts = if plan.reduces_across() { plan.groups } else { self.groups };
        for (store, store_plan) in plan.stores.iter().enumerate() {
            let StoreKind::Combined(combination) = &store_plan.kind else { continue };
            let mut part = |group: usize| LaneTotal {
                value: self.get(combination.fresh, group),
                position: combination
                    .position
                    .as_ref()
                    .map(|_| self.body.constant(crate::encode::PoolConstant::Word(0))),
            };
            let parts: Vec<LaneTotal> = (0..parts).map(&mut part).collect();
            let rest = (plan.by_lanes() && combination.in_order).then(|| part(0).value[0]);
            self.accumulators.push(LaneTotals { store, parts, rest });
        }
    }

    /// Combines the current points into the partial results.
    pub fn update_reductions(&mut self) {
        let plan = self.plan;
        for at in 0..self.accumulators.len() {
            let store = self.accumulators[at].store;
            let combination = plan.combination(store);
            if let (Some(tail), Some(rest)) = (self.tail, self.accumulators[at].rest) {
                let value = self.get(combination.value, 0);
                self.accumulators[at].rest = Some(self.added_in_turn(combination, rest, value, tail.count));
                continue;
            }
            for group in 0..self.groups {
                let value = self.get(combination.value, group);
                let old = self.accumulators[at].parts[group];
                let position = combination.position.as_ref().map(|_| self.position(group));
                let mut new = self.merged(combination, old, LaneTotal { value, position });
                if plan.reduces_across()
                    && let Some(Tail { mask, halves, .. }) = self.tail
                {
                    let masks = if combination.double { halves } else { [mask; 2] };
                    new = self.where_masked(combination, masks, mask, new, old);
                }
                self.accumulators[at].parts[group] = new;
                if let Combine::Scan { exclusive, .. } = combination.combine {
                    let total = if exclusive { old } else { new };
                    self.store_result(store, combination, total, group);
                }
            }
        }
    }

    /// `old`, then `other`.
    fn merged(&mut self, combination: &'p Combination, old: LaneTotal, other: LaneTotal) -> LaneTotal {
        let given = self.given(combination, old, other);
        LaneTotal {
            value: self.local(combination.merged, &given),
            position: combination.position.as_ref().map(|position| self.local(position.merged, &given)[0]),
        }
    }

    /// A combination whose positions are in no order.
    fn folded(&mut self, combination: &'p Combination, old: LaneTotal, other: LaneTotal) -> LaneTotal {
        let given = self.given(combination, old, other);
        match &combination.position {
            None => LaneTotal { value: self.local(combination.merged, &given), position: None },
            Some(position) => {
                let [value, position] = position.folded.map(|node| self.local(node, &given));
                LaneTotal { value, position: Some(position[0]) }
            }
        }
    }

    fn given(&self, combination: &Combination, old: LaneTotal, other: LaneTotal) -> Vec<(Node, Registers)> {
        let mut given = vec![(combination.old, old.value), (combination.other, other.value)];
        if let (Some(position), Some(before), Some(behind)) = (&combination.position, old.position, other.position) {
            given.extend([(position.old, [before; 2]), (position.other, [behind; 2])]);
        }
        given
    }

    /// `new` in the lanes of the masks, `old` in the others.
    fn where_masked(
        &mut self,
        combination: &Combination,
        masks: Registers,
        mask: V,
        new: LaneTotal,
        old: LaneTotal,
    ) -> LaneTotal {
        let double = combination.double;
        let low = self.body.blend(double, masks[0], Rm::Use(new.value[0]), old.value[0]);
        let high = if double { self.body.blend(true, masks[1], Rm::Use(new.value[1]), old.value[1]) } else { low };
        let positions = new.position.zip(old.position);
        let position = positions.map(|(new, old)| self.body.blend(false, mask, Rm::Use(new), old));
        LaneTotal { value: [low, high], position }
    }

    /// The row-major position over the reduced loops, in each lane.
    fn position(&mut self, group: usize) -> V {
        let plan = self.plan;
        let mut position = self.body.int(0);
        for dim in (0..plan.nest.dims.len()).filter(|&dim| plan.nest.dims[dim].reduced) {
            let length = self.length(dim);
            let outer = self.body.function.register(INT);
            self.body.function.push(Instruction::MultiplyRegister { to: outer, a: position, b: length });
            let index = self.indices[dim].expect("all loops are entered");
            position = self.body.add_product(outer, index, 1);
        }
        let stride = i64::from(plan.reduces_across());
        let lanes = i64::from(self.body.level.lanes());
        let first = self.body.add_constant(position, group as i64 * lanes * stride);
        self.in_lanes(first, stride, Lane::Word)[0]
    }

    /// A sum in the lowest lane with the first terms of a group, one by one.
    fn added_in_turn(&mut self, combination: &'p Combination, rest: V, terms: Registers, count: V) -> V {
        let bytes = self.body.level.bytes() as i32;
        let room = self.body.function.stack(bytes * if combination.double { 2 } else { 1 });
        self.body.put_away(room, if combination.double { Lane::Double } else { Lane::Word }, terms);
        let opcode = self.scalar_operation(combination);
        let zero = self.body.int(0);
        let function = &mut self.body.function;
        let [base, index, next] = [INT; 3].map(|class| function.register(class));
        let [before, sum, after] = [VECTOR; 3].map(|class| function.register(class));
        function.push(Instruction::StackAddress { to: base, displacement: room });
        let (block, done) = (function.block(vec![index, before]), function.block(vec![after]));
        function.jump(block, vec![zero, rest]);
        function.enter(block);
        let scale = if combination.double { 3 } else { 2 };
        let term = Rm::Mem(Mem { base, index: Some((index, scale)), displacement: 0 });
        let add = VectorInstruction::new(opcode, RegisterSlot::Def(sum), RegisterSlot::Use(before), term);
        function.push(Instruction::Vector(VectorInstruction { length: VectorLength::Least, ..add }));
        function.push(Instruction::Address { to: next, of: Mem { base: index, index: None, displacement: 1 } });
        let (again, leave) = ((block, vec![next, sum]), (done, vec![sum]));
        function.branch(JumpCondition::Less, next, Int::Register(count), again, leave);
        function.enter(done);
        after
    }

    /// The combination of the lowest lanes.
    fn scalar_operation(&self, combination: &Combination) -> Opcode {
        let LaneOp::Binary(binary, ..) = self.plan.graph.op(combination.merged) else {
            unreachable!("only sums and products depend on the order of their terms");
        };
        let opcode = binary.opcode();
        let (prefix, tuple) = match combination.double {
            true => (Prefix::PF2, Tuple::Eight),
            false => (Prefix::PF3, Tuple::Four),
        };
        Opcode { prefix, tuple, ..opcode }
    }

    /// Combines the partial results and stores them.
    pub fn finish_reductions(&mut self) {
        let plan = self.plan;
        for accumulator in std::mem::take(&mut self.accumulators) {
            let LaneTotals { store, parts, rest } = accumulator;
            let combination = plan.combination(store);
            if combination.combine.is_scan() {
                continue;
            }
            if !plan.reduces_across() {
                for (group, part) in parts.into_iter().enumerate() {
                    self.store_result(store, combination, part, group);
                }
                continue;
            }
            let mut total = self.fold(combination, parts);
            if let Some(rest) = rest {
                total = self.merged(combination, total, LaneTotal { value: [rest; 2], position: None });
            }
            self.store_result(store, combination, total, 0);
        }
    }

    /// Combines all lanes, by halves: groups, then registers, then lanes. The result is the lowest lane.
    fn fold(&mut self, combination: &'p Combination, mut parts: Vec<LaneTotal>) -> LaneTotal {
        while parts.len() > 1 {
            let upper = parts.split_off(parts.len() / 2);
            let pairs: Vec<(LaneTotal, LaneTotal)> = parts.into_iter().zip(upper).collect();
            parts = pairs.into_iter().map(|(low, high)| self.folded(combination, low, high)).collect();
        }
        let mut total = parts[0];
        let mut lanes = self.body.level.lanes();
        if combination.double {
            lanes /= 2;
            let [low, high] = total.value;
            let positions = total.position.map(|position| (position, self.body.upper_half(position)));
            let half = |value: V, position: Option<V>| LaneTotal { value: [value; 2], position };
            let (low, high) = (half(low, positions.map(|(low, _)| low)), half(high, positions.map(|(_, high)| high)));
            total = self.folded(combination, low, high);
        }
        while lanes > 1 {
            lanes /= 2;
            let size = if combination.double { 8 } else { 4 };
            let value = [self.down(total.value[0], lanes * size); 2];
            let position = total.position.map(|position| self.down(position, lanes * 4));
            total = self.folded(combination, total, LaneTotal { value, position });
        }
        total
    }

    /// The bytes of a register from this one on, at its beginning.
    fn down(&mut self, value: V, bytes: u32) -> V {
        let bits = self.body.level.bits;
        match bytes {
            32 => self.body.extract(ops::UPPER_256, VectorLength::Whole, value),
            16 => {
                let length = if bits == 512 { VectorLength::Half } else { VectorLength::Whole };
                self.body.extract(ops::UPPER_128, length, value)
            }
            8 => self.body.vector(ops::SHUFFLE, VectorLength::Least, RegisterSlot::None, Rm::Use(value), Some(0b1110)),
            4 => self.body.vector(ops::SHUFFLE, VectorLength::Least, RegisterSlot::None, Rm::Use(value), Some(0b0101)),
            _ => unreachable!("elements have 4 or 8 bytes"),
        }
    }

    fn store_result(&mut self, store: usize, combination: &'p Combination, partial: LaneTotal, group: usize) {
        let plan = self.plan;
        let store = &plan.stores[store];
        let given = match (&combination.position, partial.position) {
            (Some(position), Some(value)) => vec![(position.old, [value; 2])],
            _ => vec![(combination.old, partial.value)],
        };
        let value = self.local(combination.result, &given);
        let place = self.place(store.reached, group);
        let mask = self.tail_of(if store.form == LoadForm::Double { Lane::Double } else { Lane::Word });
        self.body.store(store.form, &place, value, mask, false);
    }
}
