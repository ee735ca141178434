//! Loops in the body of a kernel ([`spmdc_kernel::repeats`]): all trips of a bundle, with carried values in registers.

use super::kernel::{Emitter, arguments};
use super::vector::Bundle;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use spmdc_abi::DType;
use spmdc_kernel::loops::{Elem, Inst};

impl Emitter<'_, '_> {
    /// Emits a loop that tests at the bottom, and sets its last values. Returns the number of trips.
    pub fn repeat(&mut self, repeat: Elem, trips: Elem, carried: &[(Elem, Elem)]) -> Bundle {
        let nest = self.nest;
        let known = if let Inst::Const { bits, .. } = nest.insts[trips.0 as usize] { Some(bits as i64) } else { None };
        let trips = self.operand(trips, 1);
        let zero = self.builder.ins().iconst(I64, 0);
        let first: Vec<Bundle> = carried.iter().map(|&(value, _)| self.first(value)).collect();
        let [body, after] = std::array::from_fn(|_| self.builder.create_block());
        let count = self.builder.append_block_param(body, I64);
        let inside = self.bundles_like(body, &first);
        let last = self.bundles_like(after, &first);
        let enter = values(&first);
        if known.is_some_and(|known| known > 0) {
            self.builder.ins().jump(body, &arguments(Some(zero), &enter));
        } else {
            let any = self.builder.ins().icmp(IntCC::SignedGreaterThan, trips.single(), zero);
            self.builder.ins().brif(any, body, &arguments(Some(zero), &enter), after, &arguments(None, &enter));
        }
        self.builder.switch_to_block(body);
        for (&(value, _), bundle) in carried.iter().zip(inside) {
            self.values[value.0 as usize] = Some(bundle);
        }
        for &elem in nest.order.iter().filter(|elem| nest.inside[elem.0 as usize] == Some(repeat)) {
            self.instruction(elem);
        }
        let next: Vec<Bundle> = carried.iter().map(|&(value, next)| self.like(value, next)).collect();
        let next = values(&next);
        let count = self.builder.ins().iadd_imm_s(count, 1);
        let again = self.builder.ins().icmp(IntCC::SignedLessThan, count, trips.single());
        self.builder.ins().brif(again, body, &arguments(Some(count), &next), after, &arguments(None, &next));
        self.builder.switch_to_block(after);
        for (at, inst) in nest.insts.iter().enumerate() {
            if let Inst::Last { repeat: of, place, .. } = inst
                && *of == repeat
            {
                self.values[at] = Some(last[*place]);
            }
        }
        let counted = self.builder.ins().smax(trips.single(), zero);
        Bundle::new(I64, &[counted])
    }

    /// The first value of a carried one.
    fn first(&mut self, value: Elem) -> Bundle {
        let Inst::Carried { init, .. } = self.nest.insts[value.0 as usize] else { panic!("{value:?} is not carried") };
        self.like(value, init)
    }

    /// A value in as many lanes as a carried one, which has all bools as masks of one width.
    fn like(&mut self, carried: Elem, value: Elem) -> Bundle {
        let lanes = if self.nest.varies[carried.0 as usize] { self.lanes } else { 1 };
        let bundle = self.operand(value, lanes);
        if self.nest.dtype(carried) == DType::Bool { self.vector(lanes).mask_as(bundle, I32) } else { bundle }
    }

    /// Parameters of a block for the registers of some bundles.
    fn bundles_like(&mut self, block: Block, bundles: &[Bundle]) -> Vec<Bundle> {
        let like = |bundle: &Bundle| {
            let values = self.parameters_like(block, bundle.parts());
            Bundle::new(bundle.lane, &values)
        };
        bundles.iter().map(like).collect()
    }
}

/// The registers of some bundles.
fn values(bundles: &[Bundle]) -> Vec<Value> {
    bundles.iter().flat_map(|bundle| bundle.parts().iter().copied()).collect()
}
