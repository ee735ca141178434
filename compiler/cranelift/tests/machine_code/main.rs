//! Properties of machine code: functions, their addresses, and texts. The results of kernels are tested on all back ends
//! (`tests/tests/suite/backends`).
#![allow(clippy::unwrap_used)]

mod objects;
mod throughput;

use spmdc_abi::{DType, trap};
use spmdc_cranelift::{Cranelift, Vectors};
use spmdc_kernel::backend::{Backend, Cpu, Destination, TextForm};
use spmdc_kernel::interpret;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use spmdc_math::MathFn;

const CRANELIFT: Cranelift = Cranelift { cpu: Cpu::Native, vectors: Vectors::Narrow };

fn bytes(dtype: DType, elements: &[u64]) -> Vec<u8> {
    elements.iter().flat_map(|bits| bits.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

fn elements(dtype: DType, bytes: &[u8]) -> Vec<u64> {
    let element = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    bytes.chunks(dtype.size()).map(element).collect()
}

/// `out[i] = f(inputs[i] ..)` over a range.
fn elementwise(len: usize, inputs: &[DType], output: DType, body: impl Fn(&[Elem]) -> Vec<Inst>) -> Kernel {
    let mut buffers: Vec<BufferSlot> =
        inputs.iter().map(|&dtype| BufferSlot { dtype, written: false, len, streamed: false }).collect();
    buffers.push(BufferSlot { dtype: output, written: true, len, streamed: false });
    let mut insts: Vec<Inst> = inputs
        .iter()
        .enumerate()
        .map(|(buffer, &dtype)| Inst::Load { access: Access { buffer, address: Affine::dim(0) }, dtype })
        .collect();
    let loads: Vec<Elem> = (0..inputs.len() as u32).map(Elem).collect();
    insts.extend(body(&loads));
    let value = Elem(insts.len() as u32 - 1);
    let stores = vec![Store {
        access: Access { buffer: inputs.len(), address: Affine::dim(0) },
        dtype: output,
        value,
        combine: None,
    }];
    Kernel {
        dims: vec![LoopDim { extent: Extent::Static(len as u64), reduced: false }],
        range_dim: true,
        buffers,
        scalars: Vec::new(),
        insts,
        stores,
    }
}

#[test]
fn an_output_may_lie_where_an_input_does() {
    let body = |x: &[Elem]| {
        vec![
            Inst::Unary { op: UnaryOp::Math(MathFn::Exp), dtype: DType::F32, arg: x[0] },
            Inst::Binary { op: BinaryOp::Add, dtype: DType::F32, lhs: Elem(2), rhs: x[1], site: None },
        ]
    };
    let kernel = elementwise(37, &[DType::F32, DType::F32], DType::F32, body);
    let code = CRANELIFT.load(std::slice::from_ref(&kernel)).unwrap();
    let function = code.functions().unwrap()[0];
    let x: Vec<u64> = (0..37).map(|i| u64::from((i as f32 / 10.0).to_bits())).collect();
    let mut separate = vec![bytes(DType::F32, &x), bytes(DType::F32, &x), vec![0; 4 * 37]];
    interpret::run(&kernel, &mut separate, &[], 0, 37);
    let (mut first, mut second) = (bytes(DType::F32, &x), bytes(DType::F32, &x));
    let pointers = [first.as_mut_ptr(), second.as_mut_ptr(), second.as_mut_ptr()];
    // SAFETY: all buffers have 37 elements.
    assert_eq!(unsafe { function(pointers.as_ptr(), std::ptr::null(), 0, 37) }, trap::NONE);
    assert_eq!(second, separate[2]);
}

#[test]
fn equal_kernels_share_a_function() {
    let kernel =
        |op| elementwise(8, &[DType::F32], DType::F32, |x| vec![Inst::Unary { op, dtype: DType::F32, arg: x[0] }]);
    let code = CRANELIFT.load(&[kernel(UnaryOp::Neg), kernel(UnaryOp::Abs), kernel(UnaryOp::Neg)]).unwrap();
    let addresses: Vec<usize> = code.functions().unwrap().iter().map(|&function| function as usize).collect();
    assert_eq!(addresses[0], addresses[2]);
    assert_ne!(addresses[0], addresses[1]);
}

#[test]
fn texts_show_vector_instructions() {
    let kernel = elementwise(64, &[DType::F32], DType::F32, |x| {
        vec![Inst::Binary { op: BinaryOp::Add, dtype: DType::F32, lhs: x[0], rhs: x[0], site: None }]
    });
    assert!(CRANELIFT.text(&kernel, TextForm::Intermediate, Destination::Memory).unwrap().contains("fadd"));
    let asm = CRANELIFT.text(&kernel, TextForm::Assembly, Destination::Memory).unwrap();
    assert!(asm.contains(if cfg!(target_arch = "x86_64") { "vaddps" } else { "fadd" }), "{asm}");
}
