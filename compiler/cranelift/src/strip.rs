//! Strips: reductions over rows that lie far apart, such as sums of the columns of a large matrix.
//!
//! With partial results in registers such a kernel would read a few columns of all rows, then the next few: memory is slowest when
//! it is read in short pieces. Here it reads a strip of columns that is as long as the stack has room for partial results,
//! row by row:
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
use spmdc_kernel::strips::{ROOM, Strips, position_bytes, value_bytes};

/// The strip at hand.
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
        self.count(from, to, shape.columns, false, false, |e, first| {
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
            return self.count(from, to, 1, false, false, |e, index| {
                e.indices[dim] = index;
                e.instructions(dim + 1);
                e.reduced_loops(strip, dim + 1);
            });
        }
        let rows = strip.shape.rows;
        let whole = self.whole(from, to, rows);
        self.count(from, whole, rows, false, false, |e, index| e.rows(strip, dim, index, rows));
        if rows > 1 && known.is_none_or(|known| !known.is_multiple_of(u64::from(rows))) {
            self.count(whole, to, 1, false, false, |e, index| e.rows(strip, dim, index, 1));
        }
    }

    /// Some rows, along the whole strip.
    fn rows(&mut self, strip: Strip, dim: usize, first: Value, rows: u32) {
        // What depends on the row alone is computed before the loop over its columns.
        let prepared: Vec<(Value, Vec<Option<Bundle>>)> = (0..rows)
            .map(|row| {
                self.indices[dim] = self.builder.ins().iadd_imm_s(first, i64::from(row));
                self.instructions(dim + 1);
                (self.indices[dim], self.values.clone())
            })
            .collect();
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

    /// A loop over the columns of the strip; `body` gets the number of the first lane within the strip.
    fn along(&mut self, strip: Strip, body: impl FnOnce(&mut Self, Value) + Clone) {
        let column = self.nest.dims.len() - 1;
        let Cut { lanes: sizes, .. } = self.nest.cut.clone().expect("strips are made of bundles");
        let mut from = strip.first;
        for &lanes in &sizes {
            let is_last = sizes.last() == Some(&lanes);
            let until = if is_last { strip.last } else { self.whole(from, strip.last, lanes) };
            self.lanes = lanes;
            let body = body.clone();
            self.count(from, until, lanes, false, false, |e, index| {
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

    /// Takes partial results from the stack in place of those that [`Emitter::start_reductions`] has made.
    fn take_out(&mut self, strip: Strip, at: Value) {
        let fresh = self.accumulator_bundles();
        let mut values = Vec::new();
        for (place, bundle) in self.places(strip, at).into_iter().zip(fresh) {
            values.extend_from_slice(self.vector(self.lanes).load(bundle.lane, place, 0).parts());
        }
        self.set_accumulator_values(&values);
    }

    /// Where the partial results of the column `at` are: for each store its value, and perhaps its position.
    fn places(&mut self, strip: Strip, at: Value) -> Vec<Value> {
        let nest = self.nest;
        let mut begin = 0;
        let mut places = Vec::new();
        for store in &nest.stores {
            for bytes in [value_bytes(store), position_bytes(store)].into_iter().filter(|&bytes| bytes > 0) {
                let base = self.builder.ins().stack_addr(I64, strip.slot, begin);
                let offset = self.builder.ins().imul_imm_s(at, i64::from(bytes));
                places.push(self.builder.ins().iadd(base, offset));
                begin += (bytes * strip.shape.columns) as i32;
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::jit;
    use super::super::tests::{bytes, check};
    use spmdc_abi::{DType, ReduceOp};
    use spmdc_kernel::loops::{Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store};
    use spmdc_kernel::nest::Nest;
    use spmdc_kernel::number;
    use spmdc_kernel::scalar::CompareOp;

    const ROWS: i64 = 1003;
    const COLUMNS: i64 = 293;

    fn at(terms: &[(usize, i64)]) -> Affine {
        Affine { terms: terms.to_vec(), ..Affine::default() }
    }

    /// Reduces `x[r, c]` over the rows; `body` makes the values of the stores.
    fn over_rows(dtype: DType, body: &[Inst], combines: &[(DType, Combine)]) -> Kernel {
        let dim = |extent: i64, reduced| LoopDim { extent: Extent::Static(extent as u64), reduced };
        let slot = |dtype, written, len| BufferSlot { dtype, written, len };
        let written = |&(dtype, combine): &(DType, Combine)| match combine {
            Combine::ArgMax | Combine::ArgMin => DType::I32,
            Combine::Reduce(_) | Combine::Scan { .. } => dtype,
        };
        let mut insts = vec![Inst::Load { access: Access { buffer: 0, address: at(&[(0, 1), (1, COLUMNS)]) }, dtype }];
        insts.extend(body.iter().cloned());
        let mut buffers = vec![slot(dtype, false, (ROWS * COLUMNS) as usize)];
        buffers.extend(combines.iter().map(|combine| slot(written(combine), true, COLUMNS as usize)));
        let stores = combines.iter().enumerate().map(|(i, &(dtype, combine))| Store {
            access: Access { buffer: 1 + i, address: at(&[(0, 1)]) },
            dtype,
            value: Elem(insts.len() as u32 - 1),
            combine: Some(combine),
        });
        let stores = stores.collect();
        let dims = vec![dim(COLUMNS, false), dim(ROWS, true)];
        Kernel { dims, range_dim: true, buffers, scalars: Vec::new(), insts, stores }
    }

    /// What `x[r, c]` comes to over the rows so far.
    fn over_columns_so_far(dtype: DType, op: ReduceOp) -> Kernel {
        let begin = Inst::Const { dtype, bits: 0 };
        let mut kernel = over_rows(dtype, &[], &[(dtype, Combine::Scan { op, first: Elem(1) })]);
        kernel.insts.push(begin);
        kernel.buffers[1].len = (ROWS * COLUMNS) as usize;
        kernel.stores[0].access.address = at(&[(0, 1), (1, COLUMNS)]);
        kernel
    }

    #[test]
    fn strips_combine_as_registers_do() {
        let sum = Combine::Reduce(ReduceOp::Sum);
        let positive = |dtype| {
            [Inst::Const { dtype, bits: 0 }, Inst::Compare { op: CompareOp::Gt, dtype, lhs: Elem(0), rhs: Elem(1) }]
        };
        let any = (DType::Bool, Combine::Reduce(ReduceOp::Or));
        let kernels = [
            over_rows(DType::F32, &[], &[(DType::F32, sum)]),
            over_rows(DType::F64, &[], &[(DType::F64, Combine::Reduce(ReduceOp::Max))]),
            over_rows(DType::F16, &[], &[(DType::F16, sum)]),
            over_rows(DType::I32, &[], &[(DType::I32, sum), (DType::I32, Combine::ArgMax)]),
            over_rows(DType::F32, &[], &[(DType::F32, Combine::ArgMin), (DType::F32, Combine::Reduce(ReduceOp::Min))]),
            over_columns_so_far(DType::F32, ReduceOp::Sum),
            over_columns_so_far(DType::I32, ReduceOp::Min),
            over_rows(DType::F64, &positive(DType::F64), &[any]),
            over_rows(DType::F32, &positive(DType::F32), &[any]),
        ];
        let jit = jit::compile(&kernels).unwrap();
        for (kernel, &function) in kernels.iter().zip(jit.functions()) {
            assert!(Nest::new(kernel).cut.is_some_and(|cut| cut.strips.is_some()));
            let dtype = kernel.buffers[0].dtype;
            // Whole numbers, so that sums are exact in any order; columns 1 and 40 have nothing positive.
            let number = |i: i64| if matches!(i % COLUMNS, 1 | 40) { -1 } else { i * 7919 % 23 - 11 };
            let x: Vec<u64> =
                (0..ROWS * COLUMNS).map(|i| number::cast(DType::I64, dtype, number(i) as u64).unwrap()).collect();
            let mut buffers = vec![bytes(dtype, &x)];
            buffers.extend(kernel.buffers[1..].iter().map(|slot| vec![0; slot.len * slot.dtype.size()]));
            check(kernel, function, &buffers, &[], 0, COLUMNS);
            check(kernel, function, &buffers, &[], 3, COLUMNS - 50);
        }
    }
}
