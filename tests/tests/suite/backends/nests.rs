//! Loops, addresses and guards, and sums whose order shows.

use super::*;
use spmdc_abi::{LayoutDim, ReduceOp, Scalar};
use spmdc_kernel::loops::Combine;

#[test]
fn every_part_of_a_range_and_every_length() {
    let body = |x: &[Elem]| {
        vec![
            Inst::Cast { from: DType::I8, to: DType::F32, arg: x[0] },
            Inst::Binary { op: BinaryOp::Mul, dtype: DType::F32, lhs: Elem(2), rhs: x[1], site: None },
        ]
    };
    let len = 41;
    let kernel = elementwise(len, &[DType::I8, DType::F32], DType::F32, body);
    let code = load(std::slice::from_ref(&kernel));
    let mut random = Random(7);
    let mut input = |dtype| bytes(dtype, &(0..len).map(|_| random.element(dtype)).collect::<Vec<_>>());
    let buffers = vec![input(DType::I8), input(DType::F32), vec![0; 4 * len]];
    for length in 0..=40 {
        for begin in [0, 1, 40 - length] {
            check(&kernel, &code.functions()[0], &buffers, &[], begin, begin + length);
        }
    }
}

#[test]
fn a_division_by_zero_is_reported() {
    for dtype in [DType::I8, DType::I32, DType::U32, DType::I64] {
        let kernel = elementwise(40, &[dtype, dtype], dtype, |x| {
            vec![Inst::Binary { op: BinaryOp::FloorDiv, dtype, lhs: x[0], rhs: x[1], site: None }]
        });
        let code = load(std::slice::from_ref(&kernel));
        for zero_at in [0, 13, 39] {
            let divisors: Vec<u64> = (0..40).map(|i| u64::from(i != zero_at)).collect();
            let mut buffers = vec![bytes(dtype, &[5; 40]), bytes(dtype, &divisors), vec![0; 40 * dtype.size()]];
            assert_eq!(call(&code.functions()[0], &mut buffers, &[], 0, 40), trap::code(0, 0));
            let elsewhere = if zero_at == 0 { (1, 40) } else { (0, zero_at as i64) };
            assert_eq!(call(&code.functions()[0], &mut buffers, &[], elsewhere.0, elsewhere.1), trap::NONE);
        }
    }
}

#[test]
fn padding_reads_nothing_outside() {
    // out[i] = x[i - 5] // y[i - 5] for 5 <= i < 35, else 7; the buffers have 30 elements.
    let dtype = DType::I32;
    let shifted = Affine { constant: -5, ..at(&[(0, 1)]) };
    let kernel = Kernel {
        dims: vec![parallel(50)],
        range_dim: true,
        buffers: vec![slot(dtype, false), slot(dtype, false), slot(dtype, true)],
        scalars: Vec::new(),
        insts: vec![
            Inst::InRange { affine: shifted.clone(), low: Affine::constant(0), high: Affine::constant(30) },
            Inst::Load { access: access(0, shifted.clone()), dtype },
            Inst::Load { access: access(1, shifted), dtype },
            Inst::Binary { op: BinaryOp::FloorDiv, dtype, lhs: Elem(1), rhs: Elem(2), site: None },
            Inst::Const { dtype, bits: 7 },
            Inst::Select { dtype, cond: Elem(0), then: Elem(3), otherwise: Elem(4) },
        ],
        stores: vec![Store { access: access(2, at(&[(0, 1)])), dtype, value: Elem(5), combine: None }],
    };
    let code = load(std::slice::from_ref(&kernel));
    let x: Vec<u64> = (100..130).collect();
    let y: Vec<u64> = (1..31).collect();
    let buffers = vec![bytes(dtype, &x), bytes(dtype, &y), vec![0; 4 * 50]];
    for (begin, end) in [(0, 50), (3, 41), (5, 35), (0, 5), (34, 50)] {
        check(&kernel, &code.functions()[0], &buffers, &[], begin, end);
    }
}

#[test]
fn a_condition_for_all_lanes_guards_elements_that_lie_apart() {
    // out[j, i] = x[i << 20] if j is 5, else 7; j never is, and x has no such elements.
    let dtype = DType::F32;
    let kernel = Kernel {
        dims: vec![parallel(2), parallel(64)],
        range_dim: true,
        buffers: vec![slot(dtype, false), slot(dtype, true)],
        scalars: Vec::new(),
        insts: vec![
            Inst::InRange { affine: Affine::dim(0), low: Affine::constant(5), high: Affine::constant(6) },
            Inst::Load { access: access(0, at(&[(1, 1 << 20)])), dtype },
            Inst::Const { dtype, bits: 7 },
            Inst::Select { dtype, cond: Elem(0), then: Elem(1), otherwise: Elem(2) },
        ],
        stores: vec![Store { access: access(1, at(&[(0, 64), (1, 1)])), dtype, value: Elem(3), combine: None }],
    };
    let code = load(std::slice::from_ref(&kernel));
    check(&kernel, &code.functions()[0], &[vec![0; 4], vec![0; 4 * 128]], &[], 0, 2);
}

#[test]
fn a_condition_guards_what_only_an_address_needs() {
    // out[j, i] = y[k], where k is x[i << 20] if j is 5, else 1; j never is, and x has no such elements.
    let (dtype, index) = (DType::F32, DType::I64);
    let place = Affine { dynamic: vec![(Elem(4), 1)], ..Affine::default() };
    let kernel = Kernel {
        dims: vec![parallel(2), parallel(64)],
        range_dim: true,
        buffers: vec![slot(index, false), slot(dtype, false), slot(dtype, true)],
        scalars: Vec::new(),
        insts: vec![
            Inst::InRange { affine: Affine::dim(0), low: Affine::constant(5), high: Affine::constant(6) },
            Inst::Load { access: access(0, at(&[(1, 1 << 20)])), dtype: index },
            Inst::Const { dtype: index, bits: 1 },
            Inst::Select { dtype: index, cond: Elem(0), then: Elem(1), otherwise: Elem(2) },
            Inst::Limit { arg: Elem(3), last: 2 },
            Inst::Load { access: access(1, place), dtype },
        ],
        stores: vec![Store { access: access(2, at(&[(0, 64), (1, 1)])), dtype, value: Elem(5), combine: None }],
    };
    let code = load(std::slice::from_ref(&kernel));
    check(&kernel, &code.functions()[0], &[vec![0; 8], bytes(dtype, &[1, 2, 3]), vec![0; 4 * 128]], &[], 0, 2);
}

/// Blocks of a two-dimensional array side by side, each padded: every load is under its own conditions, nested selects under
/// both, and the buffers end where the conditions do.
#[test]
fn joined_and_padded_blocks_read_nothing_outside() {
    let mut random = Random(9);
    let mut cases = Vec::new();
    for _ in 0..60 {
        let dtype = random.pick(&[DType::I8, DType::F16, DType::I32, DType::F32, DType::F64, DType::Bool]);
        let (low, rows, high) = (random.below(4) as i64, 1 + random.below(6) as i64, random.below(4) as i64);
        let widths: Vec<i64> = (0..3).map(|_| 1 + random.below(24) as i64).collect();
        let total: i64 = widths.iter().sum();
        let mut kernel = Kernel {
            dims: vec![parallel((low + rows + high) as u64), parallel(total as u64)],
            range_dim: true,
            ..Kernel::default()
        };
        let mut buffers = Vec::new();
        let row = Affine::dim(0).offset(-low);
        kernel.insts.push(Inst::InRange {
            affine: row.clone(),
            low: Affine::constant(0),
            high: Affine::constant(rows),
        });
        kernel.insts.push(Inst::Const { dtype, bits: random.element(dtype) });
        let mut joined = Elem(1);
        let mut start = total;
        for (at_buffer, &width) in widths.iter().enumerate().rev() {
            start -= width;
            let backwards = random.chance(20);
            let column = Affine::dim(1).offset(-start);
            let column = if backwards { column.times(-1).offset(width - 1) } else { column };
            let address = row.times(width).plus(&column);
            let next = kernel.insts.len() as u32;
            kernel.insts.push(Inst::InRange {
                affine: Affine::dim(1),
                low: Affine::constant(start),
                high: Affine::constant(start + width),
            });
            kernel.insts.push(Inst::Load { access: access(at_buffer, address), dtype });
            kernel.insts.push(Inst::Select { dtype, cond: Elem(next), then: Elem(next + 1), otherwise: joined });
            joined = Elem(next + 2);
        }
        for &width in &widths {
            let len = (width * rows) as usize;
            kernel.buffers.push(slot(dtype, false));
            buffers.push(bytes(dtype, &(0..len).map(|_| random.element(dtype)).collect::<Vec<_>>()));
        }
        kernel.insts.push(Inst::Select { dtype, cond: Elem(0), then: joined, otherwise: Elem(1) });
        let value = Elem(kernel.insts.len() as u32 - 1);
        let len = ((low + rows + high) * total) as usize;
        kernel.buffers.push(slot(dtype, true));
        buffers.push(vec![0; len * dtype.size()]);
        let address = at(&[(0, total), (1, 1)]);
        kernel.stores.push(Store { access: access(3, address), dtype, value, combine: None });
        cases.push((kernel, buffers, low + rows + high));
    }
    let kernels: Vec<Kernel> = cases.iter().map(|(kernel, ..)| kernel.clone()).collect();
    let code = load(&kernels);
    for ((kernel, buffers, range), function) in cases.iter().zip(code.functions()) {
        check(kernel, function, buffers, &[], 0, *range);
    }
}

/// Reading along one dimension and writing along another goes by tiles: of every width, with edges of every length.
#[test]
fn transpositions_move_every_element() {
    let mut random = Random(10);
    let mut cases = Vec::new();
    for dtype in [DType::Bool, DType::I8, DType::F16, DType::I32, DType::F32, DType::I64] {
        for (rows, columns, batch) in [(8, 8, 1), (37, 70, 1), (9, 11, 3), (40, 33, 2)] {
            // out[i, b, j] = f(x[j, b, i])
            let dims = vec![parallel(rows as u64), parallel(batch as u64), parallel(columns as u64)];
            let len = (rows * columns * batch) as usize;
            let negated = if dtype == DType::Bool { UnaryOp::Not } else { UnaryOp::Neg };
            let kernel = Kernel {
                dims,
                range_dim: true,
                buffers: vec![slot(dtype, false), slot(dtype, true)],
                scalars: Vec::new(),
                insts: vec![
                    Inst::Load { access: access(0, at(&[(0, 1), (1, rows), (2, rows * batch)])), dtype },
                    Inst::Unary { op: negated, dtype, arg: Elem(0) },
                ],
                stores: vec![Store {
                    access: access(1, at(&[(0, batch * columns), (1, columns), (2, 1)])),
                    dtype,
                    value: Elem(1),
                    combine: None,
                }],
            };
            let x: Vec<u64> = (0..len).map(|_| random.element(dtype)).collect();
            cases.push((kernel, vec![bytes(dtype, &x), vec![0; len * dtype.size()]], rows));
        }
    }
    let kernels: Vec<Kernel> = cases.iter().map(|(kernel, ..)| kernel.clone()).collect();
    let code = load(&kernels);
    for ((kernel, buffers, range), function) in cases.iter().zip(code.functions()) {
        let cut = Nest::new(kernel).cut;
        assert!(*range < 30 || cut.clone().is_some_and(|cut| cut.rows.is_some()), "{cut:?} {kernel:#?}");
        check(kernel, function, buffers, &[], 0, *range);
        check(kernel, function, buffers, &[], 3, range - 1);
    }
}

/// A block's start and a dynamic row are part of the address.
#[test]
fn addresses_know_scalars_and_dynamic_indices() {
    let dtype = DType::F32;
    let address = Affine { scalars: vec![(0, 1)], dynamic: vec![(Elem(0), 50)], ..at(&[(0, 1)]) };
    let global = Affine { scalars: vec![(0, 1)], ..at(&[(0, 1)]) };
    let kernel = Kernel {
        dims: vec![LoopDim { extent: Extent::Scalar { slot: 1, max: 30 }, reduced: false }],
        range_dim: true,
        buffers: vec![slot(DType::I64, false), slot(dtype, false), slot(dtype, true)],
        scalars: vec![
            Scalar::BlockStart(LayoutDim { size: 50, axes: vec![0] }),
            Scalar::BlockLen(LayoutDim { size: 50, axes: vec![0] }),
        ],
        insts: vec![
            Inst::LoopInvariant { buffer: 0, last: 2 },
            Inst::Load { access: access(1, address), dtype },
            Inst::Index { affine: global, dtype },
            Inst::Binary { op: BinaryOp::Add, dtype, lhs: Elem(1), rhs: Elem(2), site: None },
        ],
        stores: vec![Store { access: access(2, at(&[(0, 1)])), dtype, value: Elem(3), combine: None }],
    };
    let code = load(std::slice::from_ref(&kernel));
    let rows: Vec<u64> = (0..150).map(|i| u64::from((i as f32 / 7.0).to_bits())).collect();
    // What is no row is the last one.
    for row in [0, 1, 2, 3, 1 << 40, u64::MAX] {
        let buffers = vec![bytes(DType::I64, &[row]), bytes(dtype, &rows), vec![0; 120]];
        check(&kernel, &code.functions()[0], &buffers, &[20, 30], 0, 30);
    }
}

/// `y[i, j] = x[index[i], j]`, or `x[index[j], i]` if turned.
fn rows(of: DType, dtype: DType, (rows, columns): (u64, u64), extent: i64, turned: bool) -> Kernel {
    let (row, column) = if turned { (1, 0) } else { (0, 1) };
    let dims = if turned { [columns, rows] } else { [rows, columns] };
    let from = Affine { dynamic: vec![(Elem(2), columns as i64)], ..Affine::dim(column) };
    Kernel {
        dims: dims.map(|n| LoopDim { extent: Extent::Static(n), reduced: false }).to_vec(),
        range_dim: true,
        buffers: vec![
            slot(of, false),
            BufferSlot { len: extent as usize * columns as usize, ..slot(dtype, false) },
            slot(dtype, true),
        ],
        scalars: Vec::new(),
        insts: vec![
            Inst::Load { access: access(0, Affine::dim(row)), dtype: of },
            Inst::CheckIndex { dtype: of, arg: Elem(0), extent, site: None },
            Inst::Limit { arg: Elem(1), last: extent as u64 - 1 },
            Inst::Load { access: access(1, from), dtype },
        ],
        stores: vec![Store {
            access: access(2, at(&[(0, dims[1] as i64), (1, 1)])),
            dtype,
            value: Elem(3),
            combine: None,
        }],
    }
}

#[test]
fn computed_indices_are_checked_in_every_cut() {
    let extent = 100;
    for of in numbers().into_iter().filter(|dtype| dtype.is_integer()) {
        for (columns, turned) in [(1, false), (5, false), (5, true), (40, false), (40, true)] {
            let kernel = rows(of, DType::F32, (37, columns), extent, turned);
            let good: Vec<u64> = (0..37).map(|i| (i * 29) % 100).collect();
            let negative =
                |i: u64| number::from_int(of, if of.is_signed_integer() { -(i as i128 % 100) - 1 } else { 7 });
            let counted: Vec<u64> = (0..37).map(negative).collect();
            let mut bad = good.clone();
            (bad[20], bad[35]) = (100, 101);
            let mut least = good.clone();
            least[36] = number::from_int(of, of.integer_bounds().0 - i128::from(of.is_unsigned_integer()));
            for cut in Nest::all(&kernel) {
                let code = load_as(std::slice::from_ref(&kernel), &|_| cut.clone());
                let x: Vec<u64> = (0..100 * columns).map(|i| u64::from((i as f32).to_bits())).collect();
                for (indices, value) in [(&good, None), (&counted, None), (&bad, Some(100)), (&least, Some(least[36]))]
                {
                    let buffers = vec![bytes(of, indices), bytes(DType::F32, &x), vec![0; 4 * 37 * columns as usize]];
                    let range = if turned { columns } else { 37 } as i64;
                    check(&kernel, &code.functions()[0], &buffers, &[], 0, range);
                    let found = call(&code.functions()[0], &mut buffers.clone(), &[], 0, range);
                    let value = value.map(|bits| number::to_int(of, bits).min(i128::from(i64::MAX)) as i64);
                    assert_eq!(found, value.map_or(trap::NONE, |value| trap::code(0, value)), "{of:?} {indices:?}");
                }
            }
        }
    }
}

#[test]
fn float_sums_do_not_depend_on_the_range() {
    let kernel = Kernel {
        dims: vec![parallel(9), reduced(103)],
        range_dim: true,
        buffers: vec![slot(DType::F32, false), slot(DType::F32, true)],
        scalars: Vec::new(),
        insts: vec![Inst::Load { access: access(0, at(&[(0, 103), (1, 1)])), dtype: DType::F32 }],
        stores: vec![Store {
            access: access(1, at(&[(0, 1)])),
            dtype: DType::F32,
            value: Elem(0),
            combine: Some(Combine::Reduce(ReduceOp::Sum)),
        }],
    };
    let code = load(std::slice::from_ref(&kernel));
    let x: Vec<u64> = (0..9 * 103).map(|i| u64::from((1.0 / (1.0 + i as f32)).to_bits())).collect();
    let mut whole = vec![bytes(DType::F32, &x), vec![0; 36]];
    let mut parts = whole.clone();
    call(&code.functions()[0], &mut whole, &[], 0, 9);
    for i in 0..9 {
        call(&code.functions()[0], &mut parts, &[], i, i + 1);
    }
    assert_eq!(whole[1], parts[1]);
    let mut expected = vec![bytes(DType::F32, &x), vec![0; 36]];
    interpret::run(&kernel, &mut expected, &[], 0, 9);
    assert_eq!(whole[1], expected[1]);
}

/// Of known lengths some loops are unrolled, and have no code of a loop. Sums begin with zero all the same: of negative zeros they are zero.
#[test]
fn short_reductions_begin_as_long_ones_do() {
    const ROWS: u64 = 5;
    let mut random = Random(17);
    let lengths = [1, 2, 3, 4, 7, 8, 9, 16, 17, 20, 32, 48, 64, 80];
    for dtype in numbers() {
        let ops: &[ReduceOp] = if dtype == DType::Bool {
            &[ReduceOp::And, ReduceOp::Or]
        } else {
            &[ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min]
        };
        let kernels: Vec<Kernel> = lengths
            .iter()
            .flat_map(|&length| ops.iter().map(move |&op| short_reduction(dtype, op, ROWS, length)))
            .collect();
        in_all_nests(&kernels, |at, function| {
            let kernel = &kernels[at];
            let row = kernel.buffers[0].len / ROWS as usize;
            let first = if dtype.is_float() { 1 << (8 * dtype.size() - 1) } else { 1 };
            let mut x = vec![first; row];
            x.extend((row..kernel.buffers[0].len).map(|_| random.element(dtype)));
            let buffers = [bytes(dtype, &x), vec![0; ROWS as usize * dtype.size()]];
            check(kernel, function, &buffers, &[], 0, ROWS as i64);
        });
    }
}

/// `y[i] = op(x[i, ..])`
fn short_reduction(dtype: DType, op: ReduceOp, rows: u64, length: u64) -> Kernel {
    let slot = |written, len: u64| BufferSlot { dtype, written, len: len as usize, streamed: false };
    Kernel {
        dims: vec![parallel(rows), reduced(length)],
        range_dim: true,
        buffers: vec![slot(false, rows * length), slot(true, rows)],
        scalars: Vec::new(),
        insts: vec![Inst::Load { access: access(0, at(&[(0, length as i64), (1, 1)])), dtype }],
        stores: vec![Store {
            access: access(1, at(&[(0, 1)])),
            dtype,
            value: Elem(0),
            combine: Some(Combine::Reduce(op)),
        }],
    }
}

/// `y[i] = sum(x[i, j] * w[j])`, or of `x[j, i]`, of the part of a range: unrolled loops keep `w` in registers, and the rows around them
/// overlap.
#[test]
fn products_with_vectors_are_sums_in_the_same_order() {
    const ROWS: u64 = 37;
    let mut random = Random(23);
    for dtype in numbers().into_iter().filter(|&dtype| dtype != DType::Bool) {
        let shapes = [8, 16, 17, 32, 40, 48, 64, 256].into_iter().flat_map(|length| [(length, false), (length, true)]);
        let kernels: Vec<Kernel> =
            shapes.map(|(length, turned)| product_with_vector(dtype, ROWS, length, turned)).collect();
        in_all_nests(&kernels, |at, function| {
            let kernel = &kernels[at];
            let mut input = |at: usize| {
                bytes(dtype, &(0..kernel.buffers[at].len).map(|_| random.element(dtype)).collect::<Vec<_>>())
            };
            let buffers = [input(0), input(1), vec![0; ROWS as usize * dtype.size()]];
            for (begin, end) in [(0, ROWS as i64), (5, 6), (36, 37), (9, 9)] {
                check(kernel, function, &buffers, &[], begin, end);
            }
        });
    }
}

/// `y[i] = sum(x[i, j] * w[j])`, or of `x[j, i]`
fn product_with_vector(dtype: DType, rows: u64, length: u64, turned: bool) -> Kernel {
    let slot = |written, len: u64| BufferSlot { dtype, written, len: len as usize, streamed: false };
    let matrix = if turned { [(0, 1), (1, rows as i64)] } else { [(0, length as i64), (1, 1)] };
    Kernel {
        dims: vec![parallel(rows), reduced(length)],
        range_dim: true,
        buffers: vec![slot(false, rows * length), slot(false, length), slot(true, rows)],
        scalars: Vec::new(),
        insts: vec![
            Inst::Load { access: access(0, at(&matrix)), dtype },
            Inst::Load { access: access(1, at(&[(1, 1)])), dtype },
            Inst::Binary { op: BinaryOp::Mul, dtype, lhs: Elem(0), rhs: Elem(1), site: None },
        ],
        stores: vec![Store {
            access: access(2, at(&[(0, 1)])),
            dtype,
            value: Elem(2),
            combine: Some(Combine::Reduce(ReduceOp::Sum)),
        }],
    }
}
