//! The number of units of a kernel's range that are computed together, whatever divides the range.
//!
//! ```text
//! for c in 0..64 { for r in 0..rows { s[c] += x[64 * r + c] } }
//! ```
//!
//! A single unit would read four bytes of every cache line of `x`, and no two of its elements are neighbours. Adjacent units use
//! whole lines and whole registers.

use super::loops::{Access, Kernel};
use super::nest::Nest;
use crate::machine::Machine;
use spmdc_abi::DType;

/// The number of units; 1 if each unit uses separate memory.
pub fn grain(kernel: &Kernel, machine: &Machine) -> u32 {
    if !kernel.range_dim {
        return 1;
    }
    // Neighbours along the range are neighbours in memory, and the elements of one unit are far apart.
    let side_by_side = |access: &Access| {
        let stride = |dim| Nest::stride(&access.address, dim).unsigned_abs();
        stride(0) == 1 && (1..kernel.dims.len()).any(|dim| kernel.dims[dim].extent.most() > 1 && stride(dim) > 1)
    };
    let has_sums = kernel.stores.iter().any(|store| store.combine.is_some());
    let together = |dtype: DType| {
        let line = (machine.line_bytes / dtype.size()).max(1) as u32;
        if has_sums { line.max(machine.sums_side_by_side) } else { line }
    };
    let used = kernel.accesses().filter(|(access, _)| side_by_side(access));
    used.map(|(_, dtype)| together(dtype)).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{Affine, BufferSlot, Combine, Elem, Extent, Inst, LoopDim, Store};
    use spmdc_abi::ReduceOp;

    /// `y[address of to] (+)= x[address of from]`, over a range of 64 and 1000 within.
    fn kernel(from: [i64; 2], to: [i64; 2], dtype: DType) -> Kernel {
        let sums = to[1] == 0;
        let at = |[outer, inner]: [i64; 2]| Affine::dim(0).times(outer).plus(&Affine::dim(1).times(inner));
        let slot = |written| BufferSlot { dtype, written, len: 64_000, streamed: false };
        Kernel {
            dims: [(64, false), (1000, sums)]
                .map(|(extent, reduced)| LoopDim { extent: Extent::Static(extent), reduced })
                .to_vec(),
            range_dim: true,
            buffers: vec![slot(false), slot(true)],
            insts: vec![Inst::Load { access: Access { buffer: 0, address: at(from) }, dtype }],
            stores: vec![Store {
                access: Access { buffer: 1, address: at(to) },
                dtype,
                value: Elem(0),
                combine: sums.then_some(Combine::Reduce(ReduceOp::Sum)),
            }],
            ..Kernel::default()
        }
    }

    #[test]
    fn what_lies_side_by_side_is_computed_together() {
        let grain = |from, to, dtype| grain(&kernel(from, to, dtype), &Machine::REAL);
        // The rows of a matrix are far apart, its columns adjacent.
        assert_eq!(grain([1000, 1], [1, 0], DType::F32), 1);
        assert_eq!(grain([1, 64], [1, 0], DType::F32), 32);
        assert_eq!(grain([1000, 1], [1000, 1], DType::F32), 1);
        // For a transposition, one cache line of reads or of writes.
        assert_eq!(grain([1, 64], [1000, 1], DType::F32), 16);
        assert_eq!(grain([1000, 1], [1, 64], DType::F64), 8);
        assert_eq!(grain([1, 64], [1000, 1], DType::Bool), 64);
    }
}
