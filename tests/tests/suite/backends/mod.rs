//! Kernels on every back end, against the interpreter: they give the same bits, however their loops are cut.

mod draws;
mod nests;
mod operations;
mod random;
mod strips;

use spmdc_abi::{DType, Kind, trap};
use spmdc_compiler::backends::IN_MEMORY;
use spmdc_kernel::backend::{Backend, LoadedCode};
use spmdc_kernel::interpret;
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Elem, Extent, Inst, Kernel, LoopDim, Store};
use spmdc_kernel::nest::{Nest, NestOf};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use std::rc::Rc;

/// Kernels on every back end.
pub struct Code {
    functions: Vec<Function>,
}

/// One of them.
pub struct Function {
    everywhere: Rc<Vec<Box<dyn LoadedCode>>>,
    at: usize,
}

pub fn load(kernels: &[Kernel]) -> Code {
    load_as(kernels, &Nest::new)
}

/// Kernels that run as `nest` says. A back end that can store code loads it from what it stored.
pub fn load_as(kernels: &[Kernel], nest: &NestOf) -> Code {
    let load = |backend: &&dyn Backend| {
        let code = backend.load_as(kernels, nest).unwrap();
        match code.stored() {
            // SAFETY: the same back end made them here.
            Some(bytes) => unsafe { backend.load_stored(&bytes) }.unwrap(),
            None => code,
        }
    };
    let everywhere = IN_MEMORY.iter().map(load).collect();
    let everywhere = Rc::new(everywhere);
    let functions = (0..kernels.len()).map(|at| Function { everywhere: Rc::clone(&everywhere), at });
    Code { functions: functions.collect() }
}

/// Loads kernels in each way in which one of them can run, and hands on the number of each kernel with its function of that way.
pub fn in_all_nests(kernels: &[Kernel], mut checked: impl FnMut(usize, &Function)) {
    let nests: Vec<Vec<Nest>> = kernels.iter().map(Nest::all).collect();
    for cut in 0..nests.iter().map(Vec::len).max().unwrap() {
        let which: Vec<usize> = (0..kernels.len()).filter(|&at| cut < nests[at].len()).collect();
        let kernels: Vec<Kernel> = which.iter().map(|&at| kernels[at].clone()).collect();
        let code = load_as(&kernels, &|kernel| Nest::all(kernel)[cut].clone());
        which.iter().zip(code.functions()).for_each(|(&at, function)| checked(at, function));
    }
}

impl Code {
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }
}

/// Runs a kernel on the first back end.
pub fn call(function: &Function, buffers: &mut [Vec<u8>], scalars: &[i64], begin: i64, end: i64) -> i64 {
    function.everywhere[0].run(function.at, buffers, scalars, begin, end)
}

/// Runs a kernel on every back end and compares every buffer with what the interpreter makes.
pub fn check(kernel: &Kernel, function: &Function, buffers: &[Vec<u8>], scalars: &[i64], begin: i64, end: i64) {
    let mut expected = buffers.to_vec();
    let code = interpret::run(kernel, &mut expected, scalars, begin, end);
    for (loaded, backend) in function.everywhere.iter().zip(IN_MEMORY) {
        let (mut found, name) = (buffers.to_vec(), backend.name());
        assert_eq!(loaded.run(function.at, &mut found, scalars, begin, end), code, "{name}: {kernel:#?}");
        if code != trap::NONE {
            continue;
        }
        for ((slot, expected), found) in kernel.buffers.iter().zip(&expected).zip(&found) {
            let pairs = elements(slot.dtype, expected).into_iter().zip(elements(slot.dtype, found));
            for (at, (expected, found)) in pairs.enumerate() {
                assert!(
                    same(slot.dtype, expected, found),
                    "{name}: element {at} of {}: expected {expected:#x}, found {found:#x} in {begin}..{end}\n{kernel:#?}",
                    slot.dtype.name()
                );
            }
        }
    }
}

/// Checks kernels of one dimension on whole ranges and on parts whose ends are not whole bundles.
pub fn check_elementwise(kernels: &[(Kernel, Vec<Vec<u8>>)], len: usize) {
    let all: Vec<Kernel> = kernels.iter().map(|(kernel, _)| kernel.clone()).collect();
    let code = load(&all);
    for ((kernel, buffers), function) in kernels.iter().zip(code.functions()) {
        check(kernel, function, buffers, &[], 0, len as i64);
        check(kernel, function, buffers, &[], 1, len as i64 - 2);
    }
}

/// Every type but keys.
pub fn numbers() -> Vec<DType> {
    DType::ALL.into_iter().filter(|&dtype| dtype != DType::Key).collect()
}

pub fn floats() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_float()).collect()
}

pub const COMPARE: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

/// A small generator of numbers, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Any element of a type: small numbers, special ones, or any bits.
    pub fn element(&mut self, dtype: DType) -> u64 {
        let cast = |from, bits| number::cast(from, dtype, bits).unwrap();
        match self.below(4) {
            0 => cast(DType::I64, self.below(9) as u64),
            1 => cast(DType::I64, (self.below(200) as i64 - 100) as u64),
            2 => cast(DType::F64, (self.bits() as i64 as f64 / 1e18).to_bits()),
            _ if dtype == DType::Bool => self.bits() & 1,
            _ => self.bits() & (u64::MAX >> (64 - 8 * dtype.size())),
        }
    }
}

/// Elements at the edges of a type.
pub fn edges(dtype: DType) -> Vec<u64> {
    let width = 8 * dtype.size();
    let mut bits = match (dtype.kind(), dtype.format()) {
        (Kind::Bool, _) => return vec![0, 1],
        (_, Some(format)) if dtype.is_narrow() => {
            let smallest_normal = 1 << format.mantissa;
            let third = dtype.narrow(1.0 / 3.0);
            let limits = [format.largest(), format.last(), format.nan(), 1, smallest_normal - 1, smallest_normal];
            [&[format.one()][..], &limits, &[third]].concat()
        }
        (_, Some(_)) if width == 32 => {
            [1.0, f32::MAX, f32::INFINITY, f32::NAN, 1e-45, f32::MIN_POSITIVE, 0.1, 2147483648.0, 16777217.0, 65520.0]
                .map(|x: f32| u64::from(x.to_bits()))
                .to_vec()
        }
        (_, Some(_)) => {
            [1.0, f64::MAX, f64::INFINITY, f64::NAN, 5e-324, f64::MIN_POSITIVE, 0.1, 2147483648.5, 1e-46, 9.3e18]
                .map(f64::to_bits)
                .to_vec()
        }
        (_, None) => vec![1, 2, 3, 7, 100, width as u64 - 1, width as u64, u64::MAX >> (65 - width)],
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

pub fn bytes(dtype: DType, elements: &[u64]) -> Vec<u8> {
    elements.iter().flat_map(|bits| bits.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

pub fn elements(dtype: DType, bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(dtype.size())
        .map(|chunk| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
        .collect()
}

/// NaNs are free but for being NaN.
fn same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || (dtype.is_float() && number::to_float(dtype, a).is_nan() && number::to_float(dtype, b).is_nan())
}

pub fn at(terms: &[(usize, i64)]) -> Affine {
    Affine { terms: terms.to_vec(), ..Affine::default() }
}

pub fn access(buffer: usize, address: Affine) -> Access {
    Access { buffer, address }
}

pub fn parallel(extent: u64) -> LoopDim {
    LoopDim { extent: Extent::Static(extent), reduced: false }
}

pub fn reduced(extent: u64) -> LoopDim {
    LoopDim { extent: Extent::Static(extent), reduced: true }
}

/// A buffer of unknown length, so that every guard stays.
pub fn slot(dtype: DType, written: bool) -> BufferSlot {
    BufferSlot { dtype, written, len: 0, streamed: false }
}

/// `out[i] = f(inputs[i] ..)` over a range.
pub fn elementwise(len: usize, inputs: &[DType], output: DType, body: impl Fn(&[Elem]) -> Vec<Inst>) -> Kernel {
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
