//! Short loops over results that share work.

use spmdc_abi::{DType, ReduceOp};
use spmdc_ir::lower::unroll::unroll;
use spmdc_kernel::interpret::run;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};

const POINTS: usize = 7;

/// `y[i, k] = sum over j of x[j, k] * (1 / t[j])`, or `x[j, k] * (1 / x[j, k])` if nothing is `shared`; `[k, i]` if k comes `first`.
fn kernel(trips: usize, shared: bool, first: bool) -> Kernel {
    let dtype = DType::F32;
    let dim = |extent, reduced| LoopDim { extent: Extent::Static(extent as u64), reduced };
    let (i, k) = if first { (1, 0) } else { (0, 1) };
    let at = |buffer, address| Access { buffer, address };
    let load = |buffer, address| Inst::Load { access: at(buffer, address), dtype };
    let kept = if first { [trips, POINTS] } else { [POINTS, trips] };
    Kernel {
        dims: vec![dim(kept[0], false), dim(kept[1], false), dim(5, true)],
        range_dim: true,
        buffers: [(5 * trips, false), (5, false), (POINTS * trips, true)]
            .map(|(len, written)| BufferSlot { dtype, written, len, streamed: false })
            .to_vec(),
        scalars: Vec::new(),
        insts: vec![
            load(0, Affine::dim(2).times(trips as i64).plus(&Affine::dim(k))),
            load(1, Affine::dim(2)),
            Inst::Unary { op: UnaryOp::Reciprocal, dtype, arg: Elem(u32::from(shared)) },
            Inst::Binary { op: BinaryOp::Mul, dtype, lhs: Elem(0), rhs: Elem(2), site: None },
        ],
        stores: vec![Store {
            access: at(2, Affine::dim(i).times(trips as i64).plus(&Affine::dim(k))),
            dtype,
            value: Elem(3),
            combine: Some(Combine::Reduce(ReduceOp::Sum)),
        }],
    }
}

/// The bytes of the result.
fn results(kernel: &Kernel) -> Vec<u8> {
    let Extent::Static(range) = kernel.dims[0].extent else { panic!("the extent is known") };
    let number = |at: usize| (1.0 / (at as f32 + 3.0)).to_le_bytes();
    let mut buffers: Vec<Vec<u8>> =
        kernel.buffers.iter().map(|buffer| (0..buffer.len).flat_map(number).collect()).collect();
    assert_eq!(run(kernel, &mut buffers, &[], 0, range as i64), 0);
    buffers.pop().unwrap()
}

#[test]
fn results_that_share_work_are_computed_at_once() {
    for (trips, first) in [(2, false), (3, false), (4, false), (3, true)] {
        let kernel = kernel(trips, true, first);
        let unrolled = unroll(kernel.clone());
        assert_eq!((unrolled.dims.len(), unrolled.stores.len()), (2, trips));
        // The terms of all, but one division.
        assert_eq!(unrolled.insts.len(), 2 + 2 * trips);
        assert_eq!(results(&unrolled), results(&kernel));
    }
}

#[test]
fn loops_stay_that_are_long_or_share_nothing() {
    for kernel in [kernel(5, true, false), kernel(3, false, false)] {
        assert_eq!(unroll(kernel.clone()), kernel);
    }
}
