//! The forms of loops.
//!
//! A loop tests at the bottom. A reduced loop whose loads may move (`Nest::loads_move`) tests at the top, one of few trips is
//! unrolled, and the rows around such a loop overlap. These forms change no bits: the terms of a result are combined in the same order.

use super::kernel::{Emitter, arguments};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};
use spmdc_kernel::nest::Cut;

impl Emitter<'_, '_> {
    /// `for index in (from..to).step_by(step) { body }`, with the number of trips if that is known. If the loop is `reduced`,
    /// accumulators pass through it.
    pub fn count(
        &mut self,
        from: Value,
        to: Value,
        step: u32,
        trips: Option<u64>,
        reduced: bool,
        emit_body: impl FnOnce(&mut Self, Value),
    ) {
        if trips == Some(1) {
            return emit_body(self, from);
        }
        if reduced && self.moves_loads {
            return self.count_and_fold(from, to, step, emit_body);
        }
        let nonempty = trips.is_some_and(|trips| trips > 0);
        let (body, after) = (self.builder.create_block(), self.builder.create_block());
        let index = self.builder.append_block_param(body, I64);
        let carried = if reduced { self.accumulator_values() } else { Vec::new() };
        let [inside, outside] = [body, after].map(|block| self.parameters_like(block, &carried));
        let enter = arguments(Some(from), &carried);
        if nonempty {
            self.builder.ins().jump(body, &enter);
        } else {
            let any = self.builder.ins().icmp(IntCC::SignedLessThan, from, to);
            self.builder.ins().brif(any, body, &enter, after, &arguments(None, &carried));
        }
        self.builder.switch_to_block(body);
        if reduced {
            self.set_accumulator_values(&inside);
        }
        emit_body(self, index);
        let carried = if reduced { self.accumulator_values() } else { carried };
        let next = self.builder.ins().iadd_imm_s(index, i64::from(step));
        let again = self.builder.ins().icmp(IntCC::SignedLessThan, next, to);
        self.builder.ins().brif(again, body, &arguments(Some(next), &carried), after, &arguments(None, &carried));
        self.builder.switch_to_block(after);
        if reduced {
            self.set_accumulator_values(&outside);
        }
    }

    /// A reduced loop of [`Emitter::count`] whose loads may move: it tests at the top. Then each new partial result has one user, the jump,
    /// which is Cranelift's condition for making a load the operand of the last addition. The index comes last, because
    /// Cranelift computes arguments in their order, and the loads need the old one.
    fn count_and_fold(&mut self, from: Value, to: Value, step: u32, emit_body: impl FnOnce(&mut Self, Value)) {
        let [test, body, after] = std::array::from_fn(|_| self.builder.create_block());
        let carried = self.accumulator_values();
        let inside = self.parameters_like(test, &carried);
        let index = self.builder.append_block_param(test, I64);
        let jump = |e: &mut Self, carried: &[Value], index: Value| {
            let values = carried.iter().copied().chain([index]).map(BlockArg::from).collect::<Vec<_>>();
            e.builder.ins().jump(test, &values);
        };
        jump(self, &carried, from);
        self.builder.switch_to_block(test);
        let ends = self.builder.ins().icmp(IntCC::SignedGreaterThanOrEqual, index, to);
        self.builder.ins().brif(ends, after, &[], body, &[]);
        self.builder.switch_to_block(body);
        self.set_accumulator_values(&inside);
        emit_body(self, index);
        let next = self.builder.ins().iadd_imm_s(index, i64::from(step));
        let carried = self.accumulator_values();
        jump(self, &carried, next);
        self.builder.switch_to_block(after);
        self.set_accumulator_values(&inside);
    }

    /// As [`Emitter::count`], of a loop over `dim`, whose trips are written out one after the other if they are few: then the loads
    /// that do not depend on outer loops move out of these.
    pub fn count_or_unroll(
        &mut self,
        dim: usize,
        (from, to): (Value, Value),
        step: u32,
        trips: Option<u64>,
        emit_body: impl Fn(&mut Self, Value),
    ) {
        match trips.filter(|&trips| self.nest.is_unrolled(dim, trips)) {
            Some(trips) => {
                for trip in 0..trips {
                    let index = self.builder.ins().iadd_imm_s(from, trip as i64 * i64::from(step));
                    emit_body(self, index);
                }
            }
            None => self.count(from, to, step, trips, self.nest.dims[dim].reduced, emit_body),
        }
    }

    /// A parameter of the block for each of the values that pass through it.
    pub fn parameters_like(&mut self, block: Block, values: &[Value]) -> Vec<Value> {
        let parameter = |&value: &Value| {
            let ty = self.builder.func.dfg.value_type(value);
            self.builder.append_block_param(block, ty)
        };
        values.iter().map(parameter).collect()
    }

    /// The points of one result, inside the kept loops, without its store.
    fn partial_results(&mut self) {
        let depth = self.nest.first_reduced();
        self.instructions(depth);
        self.start_reductions();
        self.dimension(depth);
    }

    /// Whether the lanes of one result are combined after the points of the next one: the reduced loop is unrolled.
    pub fn finishes_later(&self, cut: &Cut) -> bool {
        let nest = self.nest;
        let all = nest.sums.lanes_along(cut.dim).unwrap_or(cut.lanes[0]);
        let trips =
            nest.dims[cut.dim].length.known().map(|points| points / u64::from(all) * u64::from(all / cut.lanes[0]));
        cut.dim == nest.first_reduced()
            && cut.lanes.len() == 1
            && nest.tiles.is_none()
            && trips.is_some_and(|trips| nest.is_unrolled(cut.dim, trips))
            && self.moves_loads
            && nest.stores.iter().all(|store| store.access.address.dynamic.is_empty())
    }

    /// The loop over the rows of an unrolled reduced loop. The lanes of a row are partial results that pass to the next trip, which
    /// combines and stores them: they have one user, as in [`Emitter::count_and_fold`].
    ///
    /// ```text
    /// lanes = points of the first row
    /// loop { y[i] = combination of lanes; i += 1; if i == to { break }; lanes = points of row i }
    /// ```
    pub fn overlapping_rows(&mut self, dim: usize) {
        let (from, to, _) = self.bounds(dim);
        let [first, finish, body, after] = std::array::from_fn(|_| self.builder.create_block());
        let any = self.builder.ins().icmp(IntCC::SignedLessThan, from, to);
        self.builder.ins().brif(any, first, &[], after, &[]);
        self.builder.switch_to_block(first);
        self.indices[dim] = from;
        self.partial_results();
        let lanes = self.accumulator_values();
        self.builder.ins().jump(finish, &arguments(Some(from), &lanes));
        self.builder.switch_to_block(finish);
        let index = self.builder.append_block_param(finish, I64);
        let inside = self.parameters_like(finish, &lanes);
        self.indices[dim] = index;
        self.set_accumulator_values(&inside);
        self.finish_reductions();
        let next = self.builder.ins().iadd_imm_s(index, 1);
        let ends = self.builder.ins().icmp(IntCC::SignedGreaterThanOrEqual, next, to);
        self.builder.ins().brif(ends, after, &[], body, &[]);
        self.builder.switch_to_block(body);
        self.indices[dim] = next;
        self.partial_results();
        let lanes = self.accumulator_values();
        self.builder.ins().jump(finish, &arguments(Some(next), &lanes));
        self.builder.switch_to_block(after);
        self.accumulators.clear();
    }
}
