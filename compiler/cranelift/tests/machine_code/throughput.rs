//! The speed of generated loops; run by hand: `cargo test -p spmdc-cranelift --test machine_code throughput -- --ignored --nocapture`.

use spmdc_abi::{DType, ReduceOp};
use spmdc_cranelift::{Cranelift, Vectors};
use spmdc_kernel::backend::{Backend, Cpu, Destination, TextForm};
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use spmdc_math::MathFn;
use std::time::Instant;

fn dim(extent: u64, reduced: bool) -> LoopDim {
    LoopDim { extent: Extent::Static(extent), reduced }
}

fn at(terms: &[(usize, i64)]) -> Affine {
    Affine { terms: terms.to_vec(), ..Affine::default() }
}

struct Case {
    name: &'static str,
    kernel: Kernel,
    /// The number of elements by which the time is divided.
    elements: u64,
}

/// One input, one output, a body on the loaded element.
#[allow(clippy::too_many_arguments)]
fn case(
    name: &'static str,
    dtype: DType,
    dims: Vec<LoopDim>,
    input: Affine,
    output: Affine,
    combine: Option<Combine>,
    body: Vec<Inst>,
) -> Case {
    let elements = dims.iter().map(|dim| if let Extent::Static(n) = dim.extent { n } else { 1 }).product();
    let mut insts = vec![Inst::Load { access: Access { buffer: 0, address: input }, dtype }];
    insts.extend(body);
    let value = Elem(insts.len() as u32 - 1);
    let written = if matches!(combine, Some(Combine::ArgMax | Combine::ArgMin)) { DType::I32 } else { dtype };
    let kernel = Kernel {
        dims,
        range_dim: true,
        buffers: vec![
            BufferSlot { dtype, written: false, len: 1 << 22, streamed: false },
            BufferSlot { dtype: written, written: true, len: 1 << 22, streamed: false },
        ],
        scalars: Vec::new(),
        insts,
        stores: vec![Store { access: Access { buffer: 1, address: output }, dtype, value, combine }],
    };
    Case { name, kernel, elements }
}

fn flat(name: &'static str, dtype: DType, body: Vec<Inst>) -> Case {
    case(name, dtype, vec![dim(65536, false)], at(&[(0, 1)]), at(&[(0, 1)]), None, body)
}

fn unary(op: UnaryOp, dtype: DType, arg: u32) -> Inst {
    Inst::Unary { op, dtype, arg: Elem(arg) }
}

fn binary(op: BinaryOp, dtype: DType, lhs: u32, rhs: u32) -> Inst {
    Inst::Binary { op, dtype, lhs: Elem(lhs), rhs: Elem(rhs), site: None }
}

fn constant(dtype: DType, value: f64) -> Inst {
    Inst::Const { dtype, bits: number::cast(DType::F64, dtype, value.to_bits()).unwrap() }
}

fn cases() -> Vec<Case> {
    let f = DType::F32;
    let relu = |dtype| {
        vec![
            constant(dtype, 1.5),
            constant(dtype, 0.25),
            binary(BinaryOp::Mul, dtype, 0, 1),
            binary(BinaryOp::Add, dtype, 3, 2),
            constant(dtype, 0.0),
            binary(BinaryOp::Maximum, dtype, 4, 5),
        ]
    };
    let sum = Some(Combine::Reduce(ReduceOp::Sum));
    let max = Some(Combine::Reduce(ReduceOp::Max));
    let rows = || vec![dim(64, false), dim(1024, true)];
    let columns = || vec![dim(1024, false), dim(64, true)];
    let whole = at(&[(0, 1024), (1, 1)]);
    // The product with a vector that lies at the beginning of the matrix.
    let by_vector = |at: Affine| {
        vec![Inst::Load { access: Access { buffer: 0, address: at }, dtype: f }, binary(BinaryOp::Mul, f, 0, 1)]
    };
    let matrix = |columns: u64| at(&[(0, columns as i64), (1, 1)]);
    let times_vector = |name, columns: u64| {
        let dims = vec![dim(1024, false), dim(columns, true)];
        case(name, f, dims, matrix(columns), at(&[(0, 1)]), sum, by_vector(at(&[(1, 1)])))
    };
    let transposed_times_vector = |name, columns: u64| {
        let dims = vec![dim(columns, false), dim(1024, true)];
        let transposed = at(&[(0, 1), (1, columns as i64)]);
        case(name, f, dims, transposed, at(&[(0, 1)]), sum, by_vector(at(&[(1, 1)])))
    };
    vec![
        flat("2*sin(x)+1", f, {
            let (two, one) = (constant(f, 2.0), constant(f, 1.0));
            vec![
                unary(UnaryOp::Math(MathFn::Sin), f, 0),
                two,
                one,
                binary(BinaryOp::Mul, f, 1, 2),
                binary(BinaryOp::Add, f, 4, 3),
            ]
        }),
        flat("exp(-x)", f, vec![unary(UnaryOp::Neg, f, 0), unary(UnaryOp::Math(MathFn::Exp), f, 1)]),
        flat("tanh", f, vec![unary(UnaryOp::Math(MathFn::Tanh), f, 0)]),
        flat("log", f, vec![unary(UnaryOp::Math(MathFn::Log), f, 0)]),
        flat("erf", f, vec![unary(UnaryOp::Math(MathFn::Erf), f, 0)]),
        flat("relu(x*a+b)", f, relu(f)),
        flat("relu(x*a+b) bf16", DType::Bf16, relu(DType::Bf16)),
        flat("relu(x*a+b) f16", DType::F16, relu(DType::F16)),
        flat("relu(x*a+b) f64", DType::F64, relu(DType::F64)),
        flat("exp f64", DType::F64, vec![unary(UnaryOp::Math(MathFn::Exp), DType::F64, 0)]),
        flat("x // 7 i32", DType::I32, vec![constant(DType::I32, 7.0), binary(BinaryOp::FloorDiv, DType::I32, 0, 1)]),
        case("row sum", f, rows(), whole.clone(), at(&[(0, 1)]), sum, vec![]),
        times_vector("matrix 16 @ vector", 16),
        times_vector("matrix 32 @ vector", 32),
        times_vector("matrix 40 @ vector", 40),
        times_vector("matrix 64 @ vector", 64),
        times_vector("matrix 256 @ vector", 256),
        transposed_times_vector("transposed 32", 32),
        transposed_times_vector("transposed 256", 256),
        case("row max", f, rows(), whole.clone(), at(&[(0, 1)]), max, vec![]),
        case("row argmax", f, rows(), whole, at(&[(0, 1)]), Some(Combine::ArgMax), vec![]),
        case("column sum", f, columns(), at(&[(0, 1), (1, 1024)]), at(&[(0, 1)]), sum, vec![]),
        case(
            "column sum 2048",
            f,
            vec![dim(2048, false), dim(2048, true)],
            at(&[(0, 1), (1, 2048)]),
            at(&[(0, 1)]),
            sum,
            vec![],
        ),
        case(
            "column sum 4092",
            f,
            vec![dim(1024, false), dim(4092, true)],
            at(&[(0, 1), (1, 1024)]),
            at(&[(0, 1)]),
            sum,
            vec![],
        ),
        case("copy 2048", f, vec![dim(2048 * 2048, false)], at(&[(0, 1)]), at(&[(0, 1)]), None, vec![]),
        case("sum 4 Mi", f, vec![dim(1, false), dim(2048 * 2048, true)], at(&[(1, 1)]), at(&[(0, 1)]), sum, vec![]),
        case(
            "transpose 256",
            f,
            vec![dim(256, false), dim(256, false)],
            at(&[(0, 1), (1, 256)]),
            at(&[(0, 256), (1, 1)]),
            None,
            vec![],
        ),
        case(
            "transpose 2048",
            f,
            vec![dim(2048, false), dim(2048, false)],
            at(&[(0, 1), (1, 2048)]),
            at(&[(0, 2048), (1, 1)]),
            None,
            vec![],
        ),
        case(
            "transpose 1024 bf16",
            DType::Bf16,
            vec![dim(1024, false), dim(1024, false)],
            at(&[(0, 1), (1, 1024)]),
            at(&[(0, 1024), (1, 1)]),
            None,
            vec![],
        ),
        case("every other", f, vec![dim(32768, false)], at(&[(0, 2)]), at(&[(0, 1)]), None, vec![]),
        case(
            "reversed",
            f,
            vec![dim(65536, false)],
            Affine { constant: 65535, ..at(&[(0, -1)]) },
            at(&[(0, 1)]),
            None,
            vec![],
        ),
    ]
}

#[test]
#[ignore = "prints times"]
fn throughput() {
    for case in cases() {
        let started = Instant::now();
        let code =
            Cranelift { cpu: Cpu::Native, vectors: Vectors::Narrow }.load(std::slice::from_ref(&case.kernel)).unwrap();
        let function = code.functions().unwrap()[0];
        let compiled = started.elapsed();
        let Extent::Static(range) = case.kernel.dims[0].extent else { unreachable!() };
        let mut input = vec![0u8; 8 << 22];
        let dtype = case.kernel.buffers[0].dtype;
        for (i, chunk) in input.chunks_mut(dtype.size()).enumerate() {
            let value = (0.01 + (i % 997) as f64 * 0.01).to_bits();
            chunk.copy_from_slice(&number::cast(DType::F64, dtype, value).unwrap().to_le_bytes()[..dtype.size()]);
            if i > 1 << 22 {
                break;
            }
        }
        let mut output = vec![0u8; 8 << 22];
        let buffers = [input.as_mut_ptr(), output.as_mut_ptr()];
        let repeats = (1 << 20) / case.elements + 1;
        let best = (0..40)
            .map(|_| {
                let started = Instant::now();
                for _ in 0..repeats {
                    // SAFETY: both buffers are larger than any case.
                    unsafe { function(buffers.as_ptr(), std::ptr::null(), 0, range as i64) };
                }
                started.elapsed().as_secs_f64() / repeats as f64
            })
            .fold(f64::INFINITY, f64::min);
        let each = best * 1e9 / case.elements as f64;
        println!("{:20} {each:7.3} ns   compiled in {:.1} ms", case.name, compiled.as_secs_f64() * 1e3);
    }
}

#[test]
#[ignore = "prints machine code"]
fn listing() {
    let wanted = std::env::var("KERNEL").expect("the name of a kernel in KERNEL");
    assert!(cases().iter().any(|case| case.name == wanted), "KERNEL names no kernel: `{wanted}`");
    for case in cases().iter().filter(|case| case.name == wanted) {
        println!(
            "{}",
            Cranelift { cpu: Cpu::Native, vectors: Vectors::Narrow }
                .text(&case.kernel, TextForm::Assembly, Destination::Memory)
                .unwrap()
        );
    }
}
