//! Long reductions cut into parts.

use spmdc_abi::DType;
use spmdc_ir::lower::split::ReductionCut;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::machine::Machine;

/// A full reduction of `extent` elements.
fn total(extent: u64) -> Kernel {
    let address = Affine::dim(0);
    Kernel {
        dims: vec![LoopDim { extent: Extent::Static(extent), reduced: true }],
        buffers: vec![
            BufferSlot { dtype: DType::F32, written: false, len: extent as usize, streamed: false },
            BufferSlot { dtype: DType::F32, written: true, len: 1, streamed: false },
        ],
        insts: vec![Inst::Load { access: Access { buffer: 0, address }, dtype: DType::F32 }],
        stores: vec![Store {
            access: Access { buffer: 1, address: Affine::default() },
            dtype: DType::F32,
            value: Elem(0),
            combine: Some(Combine::Reduce(spmdc_abi::ReduceOp::Sum)),
        }],
        ..Kernel::default()
    }
}

#[test]
fn parts_are_whole_rows() {
    let matrix = |rows, columns| {
        let mut kernel = total(rows);
        kernel.dims.push(LoopDim { extent: Extent::Static(columns), reduced: true });
        ReductionCut::choose(&kernel, &Machine::REAL).map(|cut| (cut.dim, cut.part))
    };
    assert_eq!(matrix(2048, 4096), Some((0, 4)));
    assert_eq!(matrix(4096, 2048), Some((0, 8)));
    // A few rows are too little work for many cores, and long enough to be cut.
    assert_eq!(matrix(8, 1 << 20), Some((1, 2048)));
}

#[test]
fn columns_side_by_side_are_few_results() {
    let columns = |columns| {
        let mut kernel = total(1 << 20);
        kernel.dims.insert(0, LoopDim { extent: Extent::Static(columns), reduced: false });
        kernel.range_dim = true;
        let Inst::Load { access, .. } = &mut kernel.insts[0] else { unreachable!() };
        access.address = Affine::dim(0).plus(&Affine::dim(1).times(columns as i64));
        kernel.stores[0].access.address = Affine::dim(0);
        ReductionCut::choose(&kernel, &Machine::REAL).map(|cut| (cut.dim, cut.part))
    };
    assert_eq!((columns(64), columns(512), columns(513)), (Some((1, 16384)), Some((1, 16384)), None));
}

#[test]
fn parts_cover_the_whole() {
    assert!(ReductionCut::choose(&total(65536), &Machine::REAL).is_none());
    for extent in [65537, 100_003, 1 << 20] {
        let cut = ReductionCut::choose(&total(extent), &Machine::REAL).expect("it is long");
        assert_eq!(cut.full * cut.part + cut.rest, extent);
        assert!(cut.rest < cut.part && cut.part >= Machine::REAL.reduction_part);
    }
}
