//! Reductions by strips of columns.

use super::*;
use spmdc_abi::ReduceOp;
use spmdc_kernel::loops::Combine;

const ROWS: i64 = 1003;
const COLUMNS: i64 = 293;

/// Reduces `x[r, c]` over the rows; `body` makes the values of the stores.
fn over_rows(dtype: DType, body: &[Inst], combines: &[(DType, Combine)]) -> Kernel {
    let dim = |extent: i64, reduced| LoopDim { extent: Extent::Static(extent as u64), reduced };
    let slot = |dtype, written, len| BufferSlot { dtype, written, len, streamed: false };
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

/// The combination of `x[r, c]` over the rows so far.
fn over_columns_so_far(dtype: DType, op: ReduceOp) -> Kernel {
    let begin = Inst::Const { dtype, bits: 0 };
    let mut kernel = over_rows(dtype, &[], &[(dtype, Combine::Scan { op, first: Elem(1), exclusive: false })]);
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
    let code = load(&kernels);
    for (kernel, function) in kernels.iter().zip(code.functions()) {
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
