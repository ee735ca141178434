//! Strips: reductions over rows that are far apart, such as sums of the columns of a large matrix.
//!
//! With partial results in registers such a kernel would read a few columns of all rows, then the next few: memory is slowest when
//! it is read in short pieces. With strips it reads, row by row, as many columns as the stack has room for partial results:
//!
//! ```text
//! for first in (0..columns).step_by(512) {
//!     partial = 512 zeros
//!     for r in (0..rows).step_by(4) {
//!         for c in (first..first + 512).step_by(16) {
//!             partial[c] = partial[c] + x[r, c ..] + x[r + 1, c ..] + x[r + 2, c ..] + x[r + 3, c ..]
//!         }
//!     }
//!     y[first ..] = partial
//! }
//! ```
//!
//! Each result is combined in the order of the rows, as it would be in a register.

use super::kernel::Emitter;
use super::vector::Bundle;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value};
use spmdc_kernel::nest::Cut;
use spmdc_kernel::nest::Strips;
use spmdc_kernel::strips::{ROOM, position_bytes, value_bytes};

/// The current strip.
#[derive(Clone, Copy)]
struct Strip {
    slot: StackSlot,
    first: Value,
    last: Value,
    shape: Strips,
}

impl Emitter<'_, '_> {
    /// All reductions of the nest, from the first reduced dimension inward; the columns are the innermost dimension.
    pub fn strips(&mut self, shape: Strips) {
        let column = self.nest.dims.len() - 1;
        let (from, to, _) = self.bounds(column);
        let slot = self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, ROOM, 4));
        self.count(from, to, shape.columns, None, false, |e, first| {
            let end = e.builder.ins().iadd_imm_s(first, i64::from(shape.columns));
            let last = e.builder.ins().smin(end, to);
            let strip = Strip { slot, first, last, shape };
            e.along(strip, |e, at| {
                e.start_reductions();
                e.put_away(strip, at);
            });
            e.reduced_loops(strip, e.nest.first_reduced());
            e.along(strip, |e, at| {
                e.start_reductions();
                e.take_out(strip, at);
                e.finish_reductions();
            });
        });
    }

    /// The loops over reduced dimensions, the last one by groups of rows.
    fn reduced_loops(&mut self, strip: Strip, dim: usize) {
        let (from, to, known) = self.bounds(dim);
        if dim + 2 < self.nest.dims.len() {
            return self.count(from, to, 1, None, false, |e, index| {
                e.indices[dim] = index;
                e.instructions(dim + 1);
                e.reduced_loops(strip, dim + 1);
            });
        }
        let rows = strip.shape.rows;
        let whole = self.whole(from, to, rows);
        self.count(from, whole, rows, None, false, |e, index| e.rows(strip, dim, index, rows));
        if rows > 1 && known.is_none_or(|known| !known.is_multiple_of(u64::from(rows))) {
            self.count(whole, to, 1, None, false, |e, index| e.rows(strip, dim, index, 1));
        }
    }

    /// Combines some rows, along the whole strip.
    fn rows(&mut self, strip: Strip, dim: usize, first: Value, rows: u32) {
        // Instructions that depend on the row alone are computed before the loop over its columns.
        let prepared: Vec<(Value, Vec<Option<Bundle>>)> = (0..rows)
            .map(|row| {
                self.indices[dim] = self.builder.ins().iadd_imm_s(first, i64::from(row));
                self.instructions(dim + 1);
                (self.indices[dim], self.values.clone())
            })
            .collect();
        debug_assert!(self.nest.tiles.is_none() || rows == 1, "a tile has the random bits of one row");
        let count = self.builder.ins().isub(strip.last, strip.first);
        self.fill_tiles(strip.first, count);
        self.along(strip, |e, at| {
            e.start_reductions();
            e.take_out(strip, at);
            for (index, values) in prepared {
                e.indices[dim] = index;
                e.values = values;
                e.instructions(dim + 2);
                e.update_reductions();
            }
            e.put_away(strip, at);
        });
    }

    /// A loop over the columns of the strip; `body` gets the index of the first lane within the strip.
    fn along(&mut self, strip: Strip, body: impl FnOnce(&mut Self, Value) + Clone) {
        let column = self.nest.dims.len() - 1;
        let Cut { lanes: sizes, .. } = self.nest.cut.clone().expect("strips are made of bundles");
        let mut from = strip.first;
        for &lanes in &sizes {
            let is_last = sizes.last() == Some(&lanes);
            let until = if is_last { strip.last } else { self.whole(from, strip.last, lanes) };
            self.lanes = lanes;
            let body = body.clone();
            self.count(from, until, lanes, None, false, |e, index| {
                e.indices[column] = index;
                let at = e.builder.ins().isub(index, strip.first);
                body(e, at);
            });
            from = until;
        }
        self.lanes = 1;
    }

    /// Writes the partial results of the current columns to the stack.
    fn put_away(&mut self, strip: Strip, at: Value) {
        for (place, bundle) in self.places(strip, at).into_iter().zip(self.accumulator_bundles()) {
            self.vector(self.lanes).store(bundle, place, 0);
        }
        self.accumulators.clear();
    }

    /// Loads partial results from the stack; replaces [`Emitter::start_reductions`].
    fn take_out(&mut self, strip: Strip, at: Value) {
        let fresh = self.accumulator_bundles();
        let mut values = Vec::new();
        for (place, bundle) in self.places(strip, at).into_iter().zip(fresh) {
            values.extend_from_slice(self.vector(self.lanes).load(bundle.lane, place, 0).parts());
        }
        self.set_accumulator_values(&values);
    }

    /// The addresses of the partial results of the column `at`: for each store its value, then its position if it has one.
    fn places(&mut self, strip: Strip, at: Value) -> Vec<Value> {
        let nest = self.nest;
        let mut begin = 0;
        let mut places = Vec::new();
        for store in &nest.stores {
            for bytes in [value_bytes(store), position_bytes(store)].into_iter().filter(|&bytes| bytes > 0) {
                let base = self.builder.ins().stack_addr(I64, strip.slot, begin);
                places.push(self.add_product(Some(base), at, i64::from(bytes)));
                begin += (bytes * strip.shape.columns) as i32;
            }
        }
        places
    }
}
