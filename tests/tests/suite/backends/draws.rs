//! Random bits: in tiles where counters are consecutive, by instructions where they are not, and the same bits in both.

use super::*;
use spmdc_abi::ReduceOp;
use spmdc_kernel::loops::Combine;

const SEED: u64 = 0x0123_4567_89ab_cdef;

/// `y[address] = random bits of the counter `at``, over these dimensions.
fn drawn(dims: &[u64], dtype: DType, counter: Affine, address: Affine) -> Kernel {
    let insts =
        vec![Inst::Const { dtype: DType::Key, bits: SEED }, Inst::RandomBits { dtype, key: Elem(0), at: counter }];
    let stores = vec![Store { access: access(0, address), dtype, value: Elem(1), combine: None }];
    let dims = dims.iter().map(|&extent| parallel(extent)).collect();
    Kernel { dims, range_dim: true, buffers: vec![slot(dtype, true)], scalars: Vec::new(), insts, stores }
}

/// Checks every cut of a kernel on parts of its range; the buffers are its own but for the last, which it writes.
fn check_all(kernel: &Kernel, inputs: &[Vec<u8>], len: usize, range: i64) {
    let written = kernel.buffers.last().unwrap().dtype;
    let buffers = [inputs, &[vec![0; len * written.size()]]].concat();
    in_all_nests(std::slice::from_ref(kernel), |_, function| {
        for (begin, end) in [(0, range), (range / 3, range), (1, range - 1), (range / 2, range / 2 + 1)] {
            check(kernel, function, &buffers, &[], begin, end);
        }
    });
}

fn tile_points(kernel: &Kernel) -> Option<u32> {
    Nest::new(kernel).tiles.map(|tiles| tiles.points)
}

#[test]
fn consecutive_counters_come_in_tiles() {
    for (dtype, points) in
        [(DType::U8, 512), (DType::U16, 512), (DType::U32, 512), (DType::U64, 512), (DType::Key, 512)]
    {
        // The counters pass the end of the lower word, and may be negative.
        for first in [0, 9, (1 << 32) - 700, -650] {
            let kernel = drawn(&[1300], dtype, at(&[(0, 1)]).offset(first), at(&[(0, 1)]));
            assert_eq!(tile_points(&kernel), Some(points));
            check_all(&kernel, &[], 1300, 1300);
        }
        // A part of each row, and rows that lie one after another.
        for row in [100, 70] {
            let kernel = drawn(&[9, 70], dtype, at(&[(0, row), (1, 1)]), at(&[(0, 70), (1, 1)]));
            assert_eq!(tile_points(&kernel), Some(512));
            check_all(&kernel, &[], 630, 9);
        }
    }
}

#[test]
fn other_counters_have_instructions() {
    for counter in [at(&[(0, 2), (1, 200)]), at(&[(1, -1)]), at(&[(0, 1), (1, 50)]), at(&[])] {
        let kernel = drawn(&[7, 50], DType::U32, counter, at(&[(0, 50), (1, 1)]));
        assert_eq!(tile_points(&kernel), None);
        check_all(&kernel, &[], 350, 7);
    }
    // Too short for a tile.
    let kernel = drawn(&[7, 8], DType::U32, at(&[(0, 100), (1, 1)]), at(&[(0, 8), (1, 1)]));
    assert_eq!(tile_points(&kernel), None);
    check_all(&kernel, &[], 56, 7);
}

/// Stores `f(bits)`, combined over the reduced dimensions.
fn combined(mut kernel: Kernel, of: usize, body: &[Inst], dtype: DType, combine: Combine) -> Kernel {
    let rank = kernel.dims.len();
    kernel.dims[rank - of..].iter_mut().for_each(|dim| dim.reduced = true);
    kernel.insts.extend(body.iter().cloned());
    let value = Elem(kernel.insts.len() as u32 - 1);
    let buffer = kernel.buffers.len() - 1;
    let written = if combine.is_position() { DType::I32 } else { dtype };
    kernel.buffers[buffer].dtype = written;
    let address = at(&[(0, 1)]);
    kernel.stores = vec![Store { access: access(buffer, address), dtype, value, combine: Some(combine) }];
    kernel
}

#[test]
fn sums_of_drawn_numbers_keep_their_order() {
    let float = [Inst::Cast { from: DType::U32, to: DType::F32, arg: Elem(1) }];
    let exp = [
        float[0].clone(),
        Inst::Const { dtype: DType::F32, bits: u64::from((-1e-9f32).to_bits()) },
        Inst::Binary { op: BinaryOp::Mul, dtype: DType::F32, lhs: Elem(2), rhs: Elem(3), site: None },
        Inst::Unary { op: UnaryOp::Math(spmdc_math::MathFn::Exp), dtype: DType::F32, arg: Elem(4) },
    ];
    let sum = Combine::Reduce(ReduceOp::Sum);
    for combine in [sum, Combine::Reduce(ReduceOp::Max), Combine::ArgMax] {
        for body in [&float[..], &exp] {
            // Along the counters, by lanes; 1100 is two tiles and a part of one with remaining elements.
            for row in [1100, 1105] {
                let kernel = drawn(&[5, row], DType::U32, at(&[(0, 1105), (1, 1)]), at(&[]));
                let kernel = combined(kernel, 1, body, DType::F32, combine);
                assert_eq!(tile_points(&kernel), Some(512));
                check_all(&kernel, &[], 5, 5);
            }
            // Across the counters, in strips.
            let kernel = drawn(&[300, 40], DType::U32, at(&[(0, 1), (1, 300)]), at(&[]));
            let kernel = combined(kernel, 1, body, DType::F32, combine);
            let nest = Nest::new(&kernel);
            assert!(nest.tiles.is_some() && nest.cut.is_some_and(|cut| cut.strips.is_some()));
            check_all(&kernel, &[], 300, 300);
        }
    }
}

#[test]
fn each_row_may_have_a_key_of_its_own() {
    let dtype = DType::U32;
    let mut kernel = drawn(&[6, 600], dtype, at(&[(1, 1)]), at(&[(0, 600), (1, 1)]));
    kernel.buffers.insert(0, slot(DType::Key, false));
    kernel.stores[0].access.buffer = 1;
    kernel.insts[0] = Inst::Load { access: access(0, at(&[(0, 1)])), dtype: DType::Key };
    assert_eq!(tile_points(&kernel), Some(512));
    let keys = bytes(DType::Key, &[1, 2, SEED, u64::MAX, 0, 1 << 32]);
    check_all(&kernel, std::slice::from_ref(&keys), 3600, 6);
    // A key for each column leaves no tile.
    kernel.insts[0] = Inst::Load { access: access(0, at(&[(1, 1)])), dtype: DType::Key };
    assert_eq!(tile_points(&kernel), None);
    check_all(&kernel, &[keys.repeat(100)], 3600, 6);
}

#[test]
fn many_draws_share_the_room() {
    // The exclusive or of many draws, each from its own part of the counters.
    for (count, points, in_tiles) in [(3, 512, 3), (10, 128, 10), (40, 64, 32)] {
        let dtype = DType::U32;
        let mut kernel = drawn(&[1000], dtype, at(&[(0, 1)]), at(&[(0, 1)]));
        for i in 1..count {
            let before = Elem(kernel.insts.len() as u32 - 1);
            let counter = at(&[(0, 1)]).offset(5000 * i);
            kernel.insts.push(Inst::RandomBits { dtype, key: Elem(0), at: counter });
            let rhs = Elem(kernel.insts.len() as u32 - 1);
            kernel.insts.push(Inst::Binary { op: BinaryOp::Xor, dtype, lhs: before, rhs, site: None });
        }
        kernel.stores[0].value = Elem(kernel.insts.len() as u32 - 1);
        let tiles = Nest::new(&kernel).tiles.unwrap();
        assert_eq!((tiles.points, tiles.draws.len()), (points, in_tiles));
        check_all(&kernel, &[], 1000, 1000);
    }
}
