//! Loops cut at the borders of tests.

use spmdc_abi::{DType, Scalar};
use spmdc_ir::lower::cutout::Cutout;
use spmdc_ir::lower::peel::peel;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::machine::Machine;

/// `y[i] = if low <= i < high { x[i] } else { h[i] }` for `i` below `extent`.
fn kernel(extent: Extent, scalars: Vec<Scalar>, low: Affine, high: Affine) -> Kernel {
    let buffer = |written| BufferSlot { dtype: DType::F32, written, len: 8, streamed: false };
    let at = |buffer| Access { buffer, address: Affine::dim(0) };
    let load = |buffer| Inst::Load { access: at(buffer), dtype: DType::F32 };
    let choice = Inst::Select { dtype: DType::F32, cond: Elem(2), then: Elem(0), otherwise: Elem(1) };
    Kernel {
        dims: vec![LoopDim { extent, reduced: false }],
        range_dim: true,
        buffers: vec![buffer(false), buffer(false), buffer(true)],
        scalars,
        insts: vec![load(0), load(1), Inst::InRange { affine: Affine::dim(0), low, high }, choice],
        stores: vec![Store { access: at(2), dtype: DType::F32, value: Elem(3), combine: None }],
    }
}

/// Extent and first index of each part, and its loads.
fn parts(kernel: Kernel) -> Vec<(Extent, i64, Vec<usize>)> {
    let loads = |part: &Kernel| {
        let buffer = |inst: &Inst| if let Inst::Load { access, .. } = inst { Some(access.buffer) } else { None };
        part.insts.iter().filter_map(buffer).collect()
    };
    let part = |part: &Kernel| (part.dims[0].extent.clone(), part.stores[0].access.address.constant, loads(part));
    peel(kernel, &Machine::REAL).iter().map(|(kernel, _)| part(kernel)).collect()
}

#[test]
fn ends_and_middle_need_no_test() {
    let constant = Affine::constant;
    let cut = parts(kernel(Extent::Static(8), Vec::new(), constant(1), constant(7)));
    let wanted = [(1, 0, 1), (1, 7, 1), (6, 1, 0)].map(|(len, at, from)| (Extent::Static(len), at, vec![from]));
    assert_eq!(cut, wanted);
    let all = parts(kernel(Extent::Static(8), Vec::new(), constant(0), constant(9)));
    assert_eq!(all, [(Extent::Static(8), 0, vec![0])]);
    let none = parts(kernel(Extent::Static(8), Vec::new(), constant(8), constant(8)));
    assert_eq!(none, [(Extent::Static(8), 0, vec![1])]);
}

#[test]
fn borders_may_differ_between_devices() {
    let table = Scalar::Table { axes: vec![0], values: vec![0, 2] };
    let low = Affine { scalars: vec![(0, 1)], ..Affine::default() };
    let kernel = kernel(Extent::Static(8), vec![table.clone()], low, Affine::constant(8));
    let cut = peel(kernel, &Machine::REAL);
    assert_eq!(cut.len(), 2);
    let [(front, _), (middle, Some(cutout))] = cut.as_slice() else { panic!("{cut:?}") };
    assert_eq!(front.dims[0].extent, Extent::Scalar { slot: 0, max: 2 });
    assert_eq!(middle.stores[0].access.address.scalars, [(0, 1)]);
    assert_eq!(*cutout, Cutout { whole: Scalar::Const(8), first: table, continues: true, grain: 1 });
}
