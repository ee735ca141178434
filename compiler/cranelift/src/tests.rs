//! Generated code against the interpreter.
#![allow(clippy::unwrap_used)]

use super::jit;
use super::machine::{self, Destination};
#[cfg(target_arch = "x86_64")]
use super::machine::{Cpu, isa_of};
use spmdc_abi::{DType, KernelFn, LayoutDim, ReduceOp, Scalar, trap};
use spmdc_kernel::interpret;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::nest::Nest;
use spmdc_kernel::number;
use spmdc_kernel::order::Order;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;

/// Every type but keys.
const NUMBERS: [DType; 13] = [
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::Bf16,
    DType::F32,
    DType::F64,
];

const FLOATS: [DType; 4] = [DType::F16, DType::Bf16, DType::F32, DType::F64];

const UNARY: [UnaryOp; 38] = [
    UnaryOp::Neg,
    UnaryOp::Not,
    UnaryOp::Abs,
    UnaryOp::Sign,
    UnaryOp::Square,
    UnaryOp::Reciprocal,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Cbrt,
    UnaryOp::Exp,
    UnaryOp::Exp2,
    UnaryOp::Expm1,
    UnaryOp::Log,
    UnaryOp::Log2,
    UnaryOp::Log10,
    UnaryOp::Log1p,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Asin,
    UnaryOp::Acos,
    UnaryOp::Atan,
    UnaryOp::Sinh,
    UnaryOp::Cosh,
    UnaryOp::Tanh,
    UnaryOp::Asinh,
    UnaryOp::Acosh,
    UnaryOp::Atanh,
    UnaryOp::Erf,
    UnaryOp::Erfc,
    UnaryOp::ErfInv,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::Round,
    UnaryOp::Trunc,
    UnaryOp::IsNan,
    UnaryOp::IsInf,
    UnaryOp::IsFinite,
];

const BINARY: [BinaryOp; 18] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::FloorDiv,
    BinaryOp::Rem,
    BinaryOp::Pow,
    BinaryOp::Minimum,
    BinaryOp::Maximum,
    BinaryOp::Atan2,
    BinaryOp::Hypot,
    BinaryOp::Logaddexp,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Shr,
];

const COMPARE: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

/// A small generator of numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Any element of a type: small numbers, special ones, or any bits.
    fn element(&mut self, dtype: DType) -> u64 {
        let cast = |from, bits| number::cast(from, dtype, bits).unwrap();
        match self.below(4) {
            0 => cast(DType::I64, self.below(9) as u64),
            1 => cast(DType::I64, (self.below(200) as i64 - 100) as u64),
            2 => cast(DType::F64, (self.next() as i64 as f64 / 1e18).to_bits()),
            _ if dtype == DType::Bool => self.next() & 1,
            _ => self.next() & (u64::MAX >> (64 - 8 * dtype.size())),
        }
    }
}

/// Elements at the edges of a type.
fn edges(dtype: DType) -> Vec<u64> {
    let width = 8 * dtype.size();
    let mut bits = match dtype {
        DType::Bool => return vec![0, 1],
        DType::F16 => vec![0x3c00, 0x7bff, 0x7c00, 0x7e00, 1, 0x3ff, 0x400, 0x3555],
        DType::Bf16 => vec![0x3f80, 0x7f7f, 0x7f80, 0x7fc0, 1, 0x7f, 0x80, 0x3eab],
        DType::F32 => {
            [1.0, f32::MAX, f32::INFINITY, f32::NAN, 1e-45, f32::MIN_POSITIVE, 0.1, 2147483648.0, 16777217.0, 65520.0]
                .map(|x: f32| u64::from(x.to_bits()))
                .to_vec()
        }
        DType::F64 => {
            [1.0, f64::MAX, f64::INFINITY, f64::NAN, 5e-324, f64::MIN_POSITIVE, 0.1, 2147483648.5, 1e-46, 9.3e18]
                .map(f64::to_bits)
                .to_vec()
        }
        _ => vec![1, 2, 3, 7, 100, width as u64 - 1, width as u64, u64::MAX >> (65 - width)],
    };
    bits.push(0);
    let sign = 1 << (width - 1);
    let negated: Vec<u64> = bits
        .iter()
        .map(|&x| if dtype.is_float() { x | sign } else { x.wrapping_neg() & (u64::MAX >> (64 - width)) })
        .collect();
    bits.extend(negated);
    bits
}

pub(super) fn bytes(dtype: DType, elements: &[u64]) -> Vec<u8> {
    elements.iter().flat_map(|bits| bits.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

pub(super) fn elements(dtype: DType, bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(dtype.size())
        .map(|chunk| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
        .collect()
}

/// NaNs are free but for being NaN.
fn same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || (dtype.is_float() && number::to_float(dtype, a).is_nan() && number::to_float(dtype, b).is_nan())
}

fn call(function: KernelFn, buffers: &mut [Vec<u8>], scalars: &[i64], begin: i64, end: i64) -> i64 {
    let pointers: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr()).collect();
    // SAFETY: the test's kernels stay within their buffers, as the interpreter has checked.
    unsafe { function(pointers.as_ptr(), scalars.as_ptr(), begin, end) }
}

/// Runs both and compares every buffer.
pub(super) fn check(kernel: &Kernel, function: KernelFn, buffers: &[Vec<u8>], scalars: &[i64], begin: i64, end: i64) {
    let (mut expected, mut found) = (buffers.to_vec(), buffers.to_vec());
    let code = interpret::run(kernel, &mut expected, scalars, begin, end);
    assert_eq!(call(function, &mut found, scalars, begin, end), code, "{kernel:#?}");
    if code != trap::NONE {
        return;
    }
    for ((slot, expected), found) in kernel.buffers.iter().zip(&expected).zip(&found) {
        let pairs = elements(slot.dtype, expected).into_iter().zip(elements(slot.dtype, found));
        for (at, (expected, found)) in pairs.enumerate() {
            assert!(
                same(slot.dtype, expected, found),
                "element {at} of {}: expected {expected:#x}, found {found:#x} in {begin}..{end}\n{kernel:#?}",
                slot.dtype.name()
            );
        }
    }
}

fn at(terms: &[(usize, i64)]) -> Affine {
    Affine { terms: terms.to_vec(), ..Affine::default() }
}

fn access(buffer: usize, address: Affine) -> Access {
    Access { buffer, address }
}

fn parallel(extent: u64) -> LoopDim {
    LoopDim { extent: Extent::Static(extent), reduced: false }
}

fn reduced(extent: u64) -> LoopDim {
    LoopDim { extent: Extent::Static(extent), reduced: true }
}

/// A buffer of unknown length, so that every guard stays.
fn slot(dtype: DType, written: bool) -> BufferSlot {
    BufferSlot { dtype, written, len: 0 }
}

/// `out[i] = f(inputs[i] ..)` over a range.
pub(super) fn elementwise(len: usize, inputs: &[DType], output: DType, body: impl Fn(&[Elem]) -> Vec<Inst>) -> Kernel {
    let mut buffers: Vec<BufferSlot> = inputs.iter().map(|&dtype| slot(dtype, false)).collect();
    buffers.push(slot(output, true));
    let mut insts: Vec<Inst> = inputs
        .iter()
        .enumerate()
        .map(|(buffer, &dtype)| Inst::Load { access: access(buffer, at(&[(0, 1)])), dtype })
        .collect();
    let loads: Vec<Elem> = (0..inputs.len() as u32).map(Elem).collect();
    insts.extend(body(&loads));
    let value = Elem(insts.len() as u32 - 1);
    let stores = vec![Store { access: access(inputs.len(), at(&[(0, 1)])), dtype: output, value, combine: None }];
    Kernel { dims: vec![parallel(len as u64)], range_dim: true, buffers, scalars: Vec::new(), insts, stores }
}

/// Checks kernels of one dimension on whole ranges and on parts whose ends are not whole bundles.
fn check_elementwise(kernels: &[(Kernel, Vec<Vec<u8>>)], len: usize) {
    let all: Vec<Kernel> = kernels.iter().map(|(kernel, _)| kernel.clone()).collect();
    let mut levels = vec![jit::compile(&all).unwrap()];
    // Results are the same bits on every processor, also where there is no fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    levels.push({
        let shuffle: extern "C" fn(__m128i, __m128i) -> __m128i = shuffle_bytes;
        let library = [("__cranelift_x86_pshufb", shuffle as *const u8)];
        jit::compile_as(isa_of(Cpu::X86_64, false).unwrap(), &all, &Nest::new, &library).unwrap()
    });
    for jit in levels {
        for ((kernel, buffers), &function) in kernels.iter().zip(jit.functions()) {
            check(kernel, function, buffers, &[], 0, len as i64);
            check(kernel, function, buffers, &[], 1, len as i64 - 2);
        }
    }
}

/// Executables bring their own. The code generator passes vectors as C does, and so do functions of its convention.
#[cfg(target_arch = "x86_64")]
#[allow(improper_ctypes_definitions)]
extern "C" fn shuffle_bytes(bytes: __m128i, picks: __m128i) -> __m128i {
    // SAFETY: all of these are sixteen bytes, of which every pattern is valid.
    unsafe {
        let [bytes, picks] = std::mem::transmute::<[__m128i; 2], [[u8; 16]; 2]>([bytes, picks]);
        let picked = picks.map(|pick| if pick & 0x80 == 0 { bytes[usize::from(pick & 15)] } else { 0 });
        std::mem::transmute::<[u8; 16], __m128i>(picked)
    }
}

#[test]
fn unary_operations_equal_their_definition() {
    let mut random = Random(1);
    let mut kernels = Vec::new();
    let len = 75;
    for op in UNARY {
        for dtype in NUMBERS {
            if number::eval_unary(op, dtype, 1).is_none() {
                continue;
            }
            let is_test = matches!(op, UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite);
            let output = if is_test { DType::Bool } else { dtype };
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
    for op in BINARY {
        for dtype in NUMBERS {
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
        for dtype in [DType::I8, DType::I32, DType::U64, DType::F16, DType::F32, DType::F64] {
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
        for dtype in NUMBERS {
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
    for from in NUMBERS {
        for to in NUMBERS {
            let kernel = elementwise(len, &[from], to, |x| vec![Inst::Cast { from, to, arg: x[0] }]);
            let mut values = edges(from);
            values.resize_with(len, || random.element(from));
            kernels.push((kernel, vec![bytes(from, &values), vec![0; len * to.size()]]));
        }
    }
    check_elementwise(&kernels, len);
}

#[test]
fn selects_of_any_type_under_masks_of_any_width() {
    let mut random = Random(6);
    let mut kernels = Vec::new();
    let len = 53;
    for dtype in NUMBERS {
        for compared in [DType::I8, DType::F16, DType::F32, DType::U64, DType::Bool] {
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
    let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
    let mut random = Random(7);
    let mut input = |dtype| bytes(dtype, &(0..len).map(|_| random.element(dtype)).collect::<Vec<_>>());
    let buffers = vec![input(DType::I8), input(DType::F32), vec![0; 4 * len]];
    for length in 0..=40 {
        for begin in [0, 1, 40 - length] {
            check(&kernel, jit.functions()[0], &buffers, &[], begin, begin + length);
        }
    }
}

#[test]
fn a_division_by_zero_is_reported() {
    for dtype in [DType::I8, DType::I32, DType::U32, DType::I64] {
        let kernel = elementwise(40, &[dtype, dtype], dtype, |x| {
            vec![Inst::Binary { op: BinaryOp::FloorDiv, dtype, lhs: x[0], rhs: x[1], site: None }]
        });
        let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
        for zero_at in [0, 13, 39] {
            let divisors: Vec<u64> = (0..40).map(|i| u64::from(i != zero_at)).collect();
            let mut buffers = vec![bytes(dtype, &[5; 40]), bytes(dtype, &divisors), vec![0; 40 * dtype.size()]];
            assert_eq!(call(jit.functions()[0], &mut buffers, &[], 0, 40), trap::DIVISION_BY_ZERO);
            let elsewhere = if zero_at == 0 { (1, 40) } else { (0, zero_at as i64) };
            assert_eq!(call(jit.functions()[0], &mut buffers, &[], elsewhere.0, elsewhere.1), trap::NONE);
        }
    }
}

#[test]
fn an_output_may_lie_where_an_input_does() {
    let body = |x: &[Elem]| {
        vec![
            Inst::Unary { op: UnaryOp::Exp, dtype: DType::F32, arg: x[0] },
            Inst::Binary { op: BinaryOp::Add, dtype: DType::F32, lhs: Elem(2), rhs: x[1], site: None },
        ]
    };
    let kernel = elementwise(37, &[DType::F32, DType::F32], DType::F32, body);
    let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
    let x: Vec<u64> = (0..37).map(|i| u64::from((i as f32 / 10.0).to_bits())).collect();
    let mut separate = vec![bytes(DType::F32, &x), bytes(DType::F32, &x), vec![0; 4 * 37]];
    interpret::run(&kernel, &mut separate, &[], 0, 37);
    let (mut first, mut second) = (bytes(DType::F32, &x), bytes(DType::F32, &x));
    let pointers = [first.as_mut_ptr(), second.as_mut_ptr(), second.as_mut_ptr()];
    // SAFETY: all buffers have 37 elements.
    assert_eq!(unsafe { jit.functions()[0](pointers.as_ptr(), std::ptr::null(), 0, 37) }, trap::NONE);
    assert_eq!(second, separate[2]);
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
    let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
    let x: Vec<u64> = (100..130).collect();
    let y: Vec<u64> = (1..31).collect();
    let buffers = vec![bytes(dtype, &x), bytes(dtype, &y), vec![0; 4 * 50]];
    for (begin, end) in [(0, 50), (3, 41), (5, 35), (0, 5), (34, 50)] {
        check(&kernel, jit.functions()[0], &buffers, &[], begin, end);
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
    let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
    check(&kernel, jit.functions()[0], &[vec![0; 4], vec![0; 4 * 128]], &[], 0, 2);
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
    let jit = jit::compile(&kernels).unwrap();
    for ((kernel, buffers, range), &function) in cases.iter().zip(jit.functions()) {
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
    let jit = jit::compile(&kernels).unwrap();
    for ((kernel, buffers, range), &function) in cases.iter().zip(jit.functions()) {
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
    let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
    let rows: Vec<u64> = (0..150).map(|i| u64::from((i as f32 / 7.0).to_bits())).collect();
    // What is no row is the last one.
    for row in [0, 1, 2, 3, 1 << 40, u64::MAX] {
        let buffers = vec![bytes(DType::I64, &[row]), bytes(dtype, &rows), vec![0; 120]];
        check(&kernel, jit.functions()[0], &buffers, &[20, 30], 0, 30);
    }
}

/// A random kernel over buffers that are just large enough, with values of small integers where sums must be exact.
struct Generated {
    kernel: Kernel,
    buffers: Vec<Vec<u8>>,
    scalars: Vec<i64>,
    range: i64,
}

/// With `sums` mostly long sums and products of floats.
fn generate(random: &mut Random, sums: bool) -> Generated {
    let mut scalars = Vec::new();
    let mut kernel_scalars = Vec::new();
    let mut lengths = Vec::new();
    let mut dims = Vec::new();
    let parallel_count = 1 + random.below(if sums { 2 } else { 3 });
    let reduced_count = if sums || random.chance(50) { 1 + random.below(2) } else { 0 };
    let lengths_of_sums = [3, 16, 17, 33, 40, 70, 96];
    for dim in 0..parallel_count + reduced_count {
        let room = 3000 / lengths.iter().product::<i64>().max(1);
        let max = if sums && dim >= parallel_count {
            random.pick(&lengths_of_sums)
        } else {
            random.pick(&[1, 2, 3, 4, 5, 8, 16, 17, 33, 40])
        };
        let max = max.min(room.max(1) as usize);
        let is_dynamic = random.chance(25);
        let length = if is_dynamic { 1 + random.below(max) } else { max };
        let extent = if is_dynamic {
            scalars.push(length as i64);
            kernel_scalars.push(Scalar::BlockLen(LayoutDim { size: 1000 + dim, axes: vec![0] }));
            Extent::Scalar { slot: scalars.len() - 1, max: max as u64 }
        } else {
            Extent::Static(max as u64)
        };
        lengths.push(length as i64);
        dims.push(LoopDim { extent, reduced: dim >= parallel_count });
    }
    let maxima: Vec<i64> = dims
        .iter()
        .map(|dim| match dim.extent {
            Extent::Static(n) => n as i64,
            Extent::Scalar { max, .. } => max as i64,
        })
        .collect();
    let mut kernel = Kernel {
        range_dim: parallel_count > 0,
        dims,
        buffers: Vec::new(),
        scalars: kernel_scalars,
        insts: Vec::new(),
        stores: Vec::new(),
    };
    let mut buffers = Vec::new();
    let family = if sums { random.pick(&FLOATS) } else { random.pick(&NUMBERS) };
    let mut values: Vec<(Elem, DType)> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let dtype = if random.chance(if sums { 90 } else { 60 }) { family } else { random.pick(&NUMBERS) };
        let address = random_address(random, &maxima);
        let len = buffer_len(&address, &maxima);
        kernel.buffers.push(slot(dtype, false));
        let elements: Vec<u64> =
            (0..len).map(|_| if sums { uneven(random, dtype) } else { small(random, dtype) }).collect();
        buffers.push(bytes(dtype, &elements));
        kernel.insts.push(Inst::Load { access: access(buffers.len() - 1, address), dtype });
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
    }
    for _ in 0..random.below(if sums { 3 } else { 8 }) {
        let inst = random_inst(random, &values, maxima.len());
        let Some((inst, dtype)) = inst else { continue };
        kernel.insts.push(inst);
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
    }
    for _ in 0..1 + random.below(2) {
        let (value, dtype) = random.pick(&values[values.len() / 2..]);
        let rounded = sums && dtype.is_float() && random.chance(70);
        let combine = (reduced_count > 0).then(|| match rounded {
            true => Combine::Reduce(random.pick(&[ReduceOp::Sum, ReduceOp::Product])),
            false => random_combine(random, &mut kernel, dtype),
        });
        let position = matches!(combine, Some(Combine::ArgMax | Combine::ArgMin));
        let stored = if position { DType::I32 } else { dtype };
        let is_scan = combine.is_some_and(Combine::is_scan);
        let written = if is_scan { maxima.len() } else { parallel_count };
        let address = output_address(random, &maxima[..written]);
        let len = buffer_len(&address, &maxima);
        kernel.buffers.push(slot(stored, true));
        buffers.push(vec![0; len * stored.size()]);
        kernel.stores.push(Store { access: access(buffers.len() - 1, address), dtype, value, combine });
    }
    Generated { kernel, buffers, scalars, range: lengths[0] }
}

/// A whole number, of which sums are exact.
fn small(random: &mut Random, dtype: DType) -> u64 {
    number::cast(DType::I64, dtype, random.below(4) as u64).unwrap()
}

/// A number of which sums are rounded at every step, so that they show their order.
fn uneven(random: &mut Random, dtype: DType) -> u64 {
    let value = random.below(2000) as f64 / 700.0 - 0.9;
    number::cast(DType::F64, dtype, value.to_bits()).unwrap()
}

/// Scans begin with a small number.
fn random_combine(random: &mut Random, kernel: &mut Kernel, dtype: DType) -> Combine {
    match random.below(6) {
        0 => Combine::ArgMax,
        1 => Combine::ArgMin,
        2 | 3 if dtype != DType::Bool => {
            kernel.insts.push(Inst::Const { dtype, bits: number::cast(DType::U8, dtype, 2).unwrap() });
            let first = Elem(kernel.insts.len() as u32 - 1);
            Combine::Scan { op: random.pick(&[ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]), first }
        }
        _ if dtype == DType::Bool => Combine::Reduce(random.pick(&[ReduceOp::And, ReduceOp::Or, ReduceOp::Max])),
        _ => Combine::Reduce(random.pick(&[ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min])),
    }
}

/// Row-major, broadcast, transposed, strided, backwards, or a mixture; every address within the buffer.
fn random_address(random: &mut Random, maxima: &[i64]) -> Affine {
    let mut order: Vec<usize> = (0..maxima.len()).collect();
    if random.chance(30) {
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
    }
    let mut stride = if random.chance(15) { 2 } else { 1 };
    let mut address = Affine::default();
    for &dim in order.iter().rev() {
        if random.chance(20) {
            continue;
        }
        let backwards = random.chance(10);
        address = address.plus(&Affine::dim(dim).times(if backwards { -stride } else { stride }));
        if backwards {
            address.constant += stride * (maxima[dim] - 1);
        }
        stride *= maxima[dim];
    }
    address.offset(random.below(3) as i64)
}

/// Row-major over the dimensions that stay, sometimes in another order: no two points share an element.
fn output_address(random: &mut Random, maxima: &[i64]) -> Affine {
    let mut order: Vec<usize> = (0..maxima.len()).collect();
    if random.chance(25) {
        order.reverse();
    }
    let mut stride = 1;
    let mut address = Affine::default();
    for &dim in order.iter().rev() {
        address = address.plus(&Affine::dim(dim).times(stride));
        stride *= maxima[dim];
    }
    address
}

fn buffer_len(address: &Affine, maxima: &[i64]) -> usize {
    let last: i64 = address.terms.iter().map(|&(dim, stride)| (stride * (maxima[dim] - 1)).max(0)).sum();
    (address.constant + last + 1) as usize
}

/// An instruction on known values that keeps small integers exact.
fn random_inst(random: &mut Random, values: &[(Elem, DType)], rank: usize) -> Option<(Inst, DType)> {
    let (arg, dtype) = random.pick(values);
    let others: Vec<Elem> = values.iter().filter(|(_, other)| *other == dtype).map(|&(elem, _)| elem).collect();
    let other = random.pick(&others);
    let bools: Vec<Elem> = values.iter().filter(|(_, other)| *other == DType::Bool).map(|&(elem, _)| elem).collect();
    Some(match random.below(8) {
        0 => {
            let to = random.pick(&NUMBERS);
            (Inst::Cast { from: dtype, to, arg }, to)
        }
        1 => (Inst::Compare { op: random.pick(&COMPARE), dtype, lhs: arg, rhs: other }, DType::Bool),
        2 if !bools.is_empty() => {
            (Inst::Select { dtype, cond: random.pick(&bools), then: arg, otherwise: other }, dtype)
        }
        3 => {
            let to = random.pick(&NUMBERS[1..]);
            (Inst::Index { affine: Affine::dim(random.below(rank)), dtype: to }, to)
        }
        4 => {
            let affine = Affine::dim(random.below(rank));
            let low = Affine::dim(random.below(rank)).offset(-2);
            (Inst::InRange { affine, low, high: Affine::constant(9) }, DType::Bool)
        }
        5 => {
            let bits = number::cast(DType::I64, dtype, random.below(4) as u64)?;
            (Inst::Const { dtype, bits }, dtype)
        }
        6 => {
            let op = random.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign, UnaryOp::Not]);
            number::eval_unary(op, dtype, 1)?;
            (Inst::Unary { op, dtype, arg }, dtype)
        }
        _ => {
            let op = random.pick(&[BinaryOp::Add, BinaryOp::Minimum, BinaryOp::Maximum, BinaryOp::And, BinaryOp::Sub]);
            number::eval_binary(op, dtype, 1, 1)?;
            (Inst::Binary { op, dtype, lhs: arg, rhs: other, site: None }, dtype)
        }
    })
}

#[test]
fn random_kernels_equal_the_interpreter() {
    let mut random = Random(8);
    for _ in 0..20 {
        let generated: Vec<Generated> = (0..30).map(|_| generate(&mut random, false)).collect();
        let kernels: Vec<Kernel> = generated.iter().map(|generated| generated.kernel.clone()).collect();
        let jit = jit::compile(&kernels).unwrap();
        for (generated, &function) in generated.iter().zip(jit.functions()) {
            let Generated { kernel, buffers, scalars, range } = generated;
            check(kernel, function, buffers, scalars, 0, *range);
            check(kernel, function, buffers, scalars, range / 3, *range);
        }
    }
}

/// Whatever the cutter could choose, the terms of sums come in the order of the kernel.
#[test]
fn every_cut_gives_the_same_bits() {
    let mut random = Random(11);
    let mut seen = [0; 3];
    for _ in 0..5 {
        let generated: Vec<Generated> = (0..40).map(|at| generate(&mut random, at % 4 != 0)).collect();
        let kernels: Vec<Kernel> = generated.iter().map(|generated| generated.kernel.clone()).collect();
        let nests: Vec<Vec<Nest>> = kernels.iter().map(Nest::all).collect();
        for nests in &nests {
            match nests[0].sums {
                Order::Any => seen[0] += 1,
                Order::InTurn => seen[1] += 1,
                Order::Lanes { .. } => seen[2] += 1,
            }
        }
        let most = nests.iter().map(Vec::len).max().unwrap();
        for cut in 0..most {
            let which: Vec<usize> = (0..kernels.len()).filter(|&at| cut < nests[at].len()).collect();
            let kernels: Vec<Kernel> = which.iter().map(|&at| kernels[at].clone()).collect();
            let isa = machine::isa(Destination::Memory).unwrap();
            let jit = jit::compile_as(isa, &kernels, &|kernel| Nest::all(kernel)[cut].clone(), &[]).unwrap();
            for (&at, &function) in which.iter().zip(jit.functions()) {
                let Generated { kernel, buffers, scalars, range } = &generated[at];
                check(kernel, function, buffers, scalars, 0, *range);
                check(kernel, function, buffers, scalars, range / 3, *range);
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
}

#[test]
fn equal_kernels_share_a_function() {
    let kernel =
        |op| elementwise(8, &[DType::F32], DType::F32, |x| vec![Inst::Unary { op, dtype: DType::F32, arg: x[0] }]);
    let jit = jit::compile(&[kernel(UnaryOp::Neg), kernel(UnaryOp::Abs), kernel(UnaryOp::Neg)]).unwrap();
    let addresses: Vec<usize> = jit.functions().iter().map(|&function| function as usize).collect();
    assert_eq!(addresses[0], addresses[2]);
    assert_ne!(addresses[0], addresses[1]);
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
    let jit = jit::compile(std::slice::from_ref(&kernel)).unwrap();
    let x: Vec<u64> = (0..9 * 103).map(|i| u64::from((1.0 / (1.0 + i as f32)).to_bits())).collect();
    let mut whole = vec![bytes(DType::F32, &x), vec![0; 36]];
    let mut parts = whole.clone();
    call(jit.functions()[0], &mut whole, &[], 0, 9);
    for i in 0..9 {
        call(jit.functions()[0], &mut parts, &[], i, i + 1);
    }
    assert_eq!(whole[1], parts[1]);
    let mut expected = vec![bytes(DType::F32, &x), vec![0; 36]];
    interpret::run(&kernel, &mut expected, &[], 0, 9);
    assert_eq!(whole[1], expected[1]);
}

#[test]
fn texts_show_vector_instructions() {
    let kernel = elementwise(64, &[DType::F32], DType::F32, |x| {
        vec![Inst::Binary { op: BinaryOp::Add, dtype: DType::F32, lhs: x[0], rhs: x[0], site: None }]
    });
    assert!(super::machine::clif_text(&kernel, Destination::Memory).unwrap().contains("fadd"));
    let asm = super::machine::asm_text(&kernel, Destination::Memory).unwrap();
    assert!(asm.contains(if cfg!(target_arch = "x86_64") { "vaddps" } else { "fadd" }), "{asm}");
}
