//! Every operation on every element type, at the edges of the type and on any bits.

use super::*;

#[test]
fn unary_operations_equal_their_definition() {
    let mut random = Random(1);
    let mut kernels = Vec::new();
    let len = 75;
    for op in UnaryOp::all() {
        for dtype in numbers() {
            if number::eval_unary(op, dtype, 1).is_none() {
                continue;
            }
            let output = op.result_dtype(dtype);
            let kernel = elementwise(len, &[dtype], output, |x| vec![Inst::Unary { op, dtype, arg: x[0] }]);
            let mut values = edges(dtype);
            values.resize_with(len, || random.element(dtype));
            kernels.push((kernel, vec![bytes(dtype, &values), vec![0; len * output.size()]]));
        }
    }
    check_elementwise(&kernels, len);
}

#[test]
fn binary_operations_equal_their_definition() {
    let mut random = Random(2);
    let mut kernels = Vec::new();
    let len = 461;
    for &op in BinaryOp::ALL {
        for dtype in numbers() {
            if number::eval_binary(op, dtype, 1, 1).is_none() {
                continue;
            }
            let kernel = elementwise(len, &[dtype, dtype], dtype, |x| {
                vec![Inst::Binary { op, dtype, lhs: x[0], rhs: x[1], site: None }]
            });
            // Every edge with every other, then anything.
            let edges = edges(dtype);
            let mut pairs: Vec<(u64, u64)> = edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))).collect();
            pairs.truncate(len - 61);
            pairs.resize_with(len, || (random.element(dtype), random.element(dtype)));
            let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::Rem) && dtype.is_integer();
            pairs.iter_mut().filter(|pair| divides && pair.1 == 0).for_each(|pair| pair.1 = 1);
            let (x, y): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            kernels.push((kernel, vec![bytes(dtype, &x), bytes(dtype, &y), vec![0; len * dtype.size()]]));
        }
    }
    check_elementwise(&kernels, len);
}

#[test]
fn operations_with_a_constant_equal_their_definition() {
    let mut random = Random(3);
    let mut kernels = Vec::new();
    let len = 45;
    let ops = [BinaryOp::Minimum, BinaryOp::Maximum, BinaryOp::Shl, BinaryOp::Shr, BinaryOp::FloorDiv, BinaryOp::Pow];
    for op in ops {
        for dtype in numbers() {
            for bits in edges(dtype) {
                let divides = matches!(op, BinaryOp::FloorDiv) && dtype.is_integer();
                if number::eval_binary(op, dtype, 1, 1).is_none() || (divides && bits == 0) || random.chance(50) {
                    continue;
                }
                let swapped = random.chance(50) && !divides;
                let kernel = elementwise(len, &[dtype], dtype, |x| {
                    let constant = Elem(1);
                    let (lhs, rhs) = if swapped { (constant, x[0]) } else { (x[0], constant) };
                    vec![Inst::Const { dtype, bits }, Inst::Binary { op, dtype, lhs, rhs, site: None }]
                });
                let mut values = edges(dtype);
                values.resize_with(len, || random.element(dtype));
                kernels.push((kernel, vec![bytes(dtype, &values), vec![0; len * dtype.size()]]));
            }
        }
    }
    check_elementwise(&kernels, len);
}

#[test]
fn comparisons_equal_their_definition() {
    let mut random = Random(4);
    let mut kernels = Vec::new();
    let len = 300;
    for op in COMPARE {
        for dtype in numbers() {
            let kernel = elementwise(len, &[dtype, dtype], DType::Bool, |x| {
                vec![Inst::Compare { op, dtype, lhs: x[0], rhs: x[1] }]
            });
            let edges = edges(dtype);
            let mut pairs: Vec<(u64, u64)> = edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))).collect();
            pairs.truncate(len - 20);
            pairs.resize_with(len, || (random.element(dtype), random.element(dtype)));
            let (x, y): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            kernels.push((kernel, vec![bytes(dtype, &x), bytes(dtype, &y), vec![0; len]]));
        }
    }
    check_elementwise(&kernels, len);
}

#[test]
fn casts_equal_their_definition() {
    let mut random = Random(5);
    let mut kernels = Vec::new();
    let len = 99;
    for from in numbers() {
        for to in numbers() {
            let kernel = elementwise(len, &[from], to, |x| vec![Inst::Cast { from, to, arg: x[0] }]);
            let mut values = edges(from);
            values.resize_with(len, || random.element(from));
            kernels.push((kernel, vec![bytes(from, &values), vec![0; len * to.size()]]));
        }
    }
    check_elementwise(&kernels, len);
}

#[test]
fn fused_sums_and_words_of_keys_equal_their_definition() {
    let mut random = Random(7);
    let mut kernels = Vec::new();
    let len = 61;
    for dtype in floats() {
        let kernel = elementwise(len, &[dtype; 3], dtype, |x| vec![Inst::Fma { dtype, x: x[0], y: x[1], z: x[2] }]);
        let mut buffers: Vec<Vec<u8>> =
            (0..3).map(|_| bytes(dtype, &(0..len).map(|_| random.element(dtype)).collect::<Vec<u64>>())).collect();
        buffers.push(vec![0; len * dtype.size()]);
        kernels.push((kernel, buffers));
    }
    for (from, to) in [(DType::Key, DType::U64), (DType::U64, DType::Key)] {
        let kernel = elementwise(len, &[from], to, |x| vec![Inst::Cast { from, to, arg: x[0] }]);
        let words: Vec<u64> = (0..len).map(|_| random.element(DType::U64)).collect();
        kernels.push((kernel, vec![bytes(DType::U64, &words), vec![0; len * 8]]));
    }
    check_elementwise(&kernels, len);
}

/// The numbers of a narrow float, the middles between neighbours and what is next to those, and what is out of range.
fn around_every_number(narrow: DType) -> Vec<f32> {
    let format = narrow.format().unwrap();
    let numbers = (0..=format.last()).map(|bits| narrow.widen(bits) as f32);
    let numbers: Vec<f32> = numbers.filter(|x| x.is_finite()).collect();
    let middles = numbers.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
    let largest = numbers[numbers.len() - 1];
    let limit = largest + (largest - numbers[numbers.len() - 2]) / 2.0;
    let beyond = [limit, 2.0 * largest, f32::MAX, f32::INFINITY, f32::NAN];
    let around = |x: f32| [x.next_down(), x, x.next_up()];
    let positive = numbers.iter().copied().chain(middles).chain(beyond).flat_map(around);
    positive.flat_map(|x| [x, -x]).collect()
}

#[test]
fn narrow_floats_round_and_widen_as_defined() {
    for dtype in floats().into_iter().filter(|dtype| dtype.is_narrow()) {
        let values = around_every_number(dtype);
        // All numbers of eight bits; of sixteen a part, another one in each kernel.
        for (part, values) in values.chunks(3001).enumerate().filter(|(part, _)| part % 7 == 0 || dtype.size() == 1) {
            let len = values.len();
            let singles: Vec<u64> = values.iter().map(|x| x.to_bits().into()).collect();
            let doubles: Vec<u64> = values.iter().map(|&x| f64::from(x).to_bits()).collect();
            let codes: Vec<u64> = (0..len as u64).map(|i| i + (part * len) as u64).collect();
            let mut kernels = Vec::new();
            let casts = [(DType::F32, dtype, singles), (DType::F64, dtype, doubles), (dtype, DType::F32, codes)];
            for (from, to, elements) in casts {
                let kernel = elementwise(len, &[from], to, |x| vec![Inst::Cast { from, to, arg: x[0] }]);
                kernels.push((kernel, vec![bytes(from, &elements), vec![0; len * to.size()]]));
            }
            check_elementwise(&kernels, len);
        }
    }
}

#[test]
fn selects_of_any_type_under_masks_of_any_width() {
    let mut random = Random(6);
    let mut kernels = Vec::new();
    let len = 53;
    for dtype in numbers() {
        for compared in numbers() {
            let kernel = elementwise(len, &[compared, compared, dtype, dtype], dtype, |x| {
                vec![
                    Inst::Compare { op: CompareOp::Lt, dtype: compared, lhs: x[0], rhs: x[1] },
                    Inst::Select { dtype, cond: Elem(4), then: x[2], otherwise: x[3] },
                ]
            });
            let mut buffers: Vec<Vec<u8>> = [compared, compared, dtype, dtype]
                .iter()
                .map(|&dtype| bytes(dtype, &(0..len).map(|_| random.element(dtype)).collect::<Vec<_>>()))
                .collect();
            buffers.push(vec![0; len * dtype.size()]);
            kernels.push((kernel, buffers));
        }
    }
    check_elementwise(&kernels, len);
}

/// NaNs are compared bit by bit here: signalling ones, with payloads and signs.
#[test]
fn bitcasts_keep_every_bit() {
    let mut random = Random(12);
    let mut kernels = Vec::new();
    let len = 131;
    for from in numbers().into_iter().filter(|&dtype| dtype != DType::Bool) {
        for to in numbers().into_iter().filter(|&dtype| dtype != DType::Bool && dtype.size() == from.size()) {
            let mut kernel = elementwise(len, &[from, from], to, |x| {
                vec![
                    Inst::Compare { op: CompareOp::Lt, dtype: from, lhs: x[0], rhs: x[1] },
                    Inst::Select { dtype: from, cond: Elem(2), then: x[1], otherwise: x[0] },
                    Inst::Bitcast { from, to, arg: Elem(3) },
                ]
            });
            // The result is compared as an integer.
            let integer = numbers().into_iter().find(|dtype| dtype.is_integer() && dtype.size() == to.size());
            kernel.buffers[2].dtype = integer.unwrap();
            let all = u64::MAX >> (64 - 8 * from.size());
            let special = [from, to].into_iter().filter_map(DType::format).flat_map(|format| {
                let nan = [format.last(), format.last() + 1, format.nan(), format.nan() + 1, all];
                nan.into_iter().flat_map(move |bits| [bits & all, (bits | format.sign()) & all])
            });
            let mut values: Vec<u64> = special.chain(edges(from)).chain(edges(to)).collect();
            values.resize_with(len, || random.bits() & all);
            let mut buffers = vec![bytes(from, &values)];
            values.rotate_left(7);
            buffers.extend([bytes(from, &values), vec![0; len * to.size()]]);
            kernels.push((kernel, buffers));
        }
    }
    check_elementwise(&kernels, len);
}
