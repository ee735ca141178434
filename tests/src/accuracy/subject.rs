//! The measured subject: one function in one element type, as machine code and in the evaluator.

use super::Function;
use crate::engine;
use spmdc_abi::{DType, KernelFn, trap};
use spmdc_compiler::backends;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use std::ptr;

/// How many numbers a compiled function takes at once.
pub const CHUNK: usize = 1 << 16;

/// A function compiled for arrays of [`CHUNK`] elements: what `y = f(x)` becomes in any program.
pub struct Subject {
    pub function: Function,
    pub dtype: DType,
    kernel: KernelFn,
    /// For each buffer of the kernel whether it is written.
    written: Vec<bool>,
}

/// The Rust type of an array's element.
pub trait Element: Copy + Default {}
/// Half precision, as bits.
impl Element for u16 {}
impl Element for f32 {}
impl Element for f64 {}

impl Subject {
    /// Compiles a program of this one function, as the command would; the code stays in memory.
    pub fn new(function: Function, dtype: DType) -> Result<Subject, String> {
        let (name, ty) = (function.name(), format!("{}[{CHUNK}]", dtype.name()));
        let text = match function {
            Function::One(_) => format!("fn main(x: {ty}) -> {ty} {{ {name}(x) }}"),
            Function::Two(_) => format!("fn main(x: {ty}, y: {ty}) -> {ty} {{ {name}(x, y) }}"),
        };
        let compilation = engine::compiled("ulp.spmd", &text, "", None).map_err(|errors| format!("{errors:?}"))?;
        let [kernel] = compilation.kernels.as_slice() else {
            return Err(format!("`{name}` became {} kernels", compilation.kernels.len()));
        };
        let written: Vec<bool> = kernel.buffers.iter().map(|buffer| buffer.written).collect();
        if written.len() != function.operands() + 1 || !kernel.scalars.is_empty() {
            return Err(format!("the kernel of `{name}` has other operands than the function"));
        }
        let code = backends::DEFAULT.load(&compilation.kernels).and_then(|code| code.into_kernels());
        let kernels = code.map_err(|error| format!("{error:?}"))?;
        Ok(Subject { function, dtype, kernel: kernels.functions()[0], written })
    }

    /// Runs the machine code on a chunk: one operand per entry of `inputs`.
    pub fn run<E: Element>(&self, inputs: &[&[E]], output: &mut [E]) {
        assert_eq!(size_of::<E>(), self.dtype.size());
        assert!(inputs.len() == self.function.operands() && output.len() == CHUNK);
        assert!(inputs.iter().all(|input| input.len() == CHUNK));
        let mut inputs = inputs.iter();
        let mut buffers = Vec::with_capacity(self.written.len());
        for &written in &self.written {
            let input = if written { None } else { inputs.next() };
            buffers.push(input.map_or(output.as_mut_ptr(), |input| input.as_ptr().cast_mut()).cast::<u8>());
        }
        // SAFETY: the kernel was made for arrays of this type and length, only reads the inputs, and has no scalars.
        let code = unsafe { (self.kernel)(buffers.as_ptr(), ptr::null(), 0, CHUNK as i64) };
        assert_eq!(code, trap::NONE);
    }

    /// As [`Subject::run`], with numbers of the type held as `f64`.
    pub fn answers(&self, x: &[f64], y: Option<&[f64]>) -> Vec<f64> {
        let dtype = self.dtype;
        if dtype == DType::F64 {
            return self.converted(x, y, |x| x, |y| y);
        }
        if dtype == DType::F32 {
            return self.converted(x, y, |x| x as f32, f64::from);
        }
        let number = |bits: u16| number::to_float(dtype, u64::from(bits));
        self.converted(x, y, |x| number::from_float(dtype, x) as u16, number)
    }

    fn converted<E: Element>(
        &self,
        x: &[f64],
        y: Option<&[f64]>,
        to: impl Fn(f64) -> E,
        from: impl Fn(E) -> f64,
    ) -> Vec<f64> {
        let operands: Vec<Vec<E>> =
            [Some(x), y].into_iter().flatten().map(|x| x.iter().map(|&x| to(x)).collect()).collect();
        let operands: Vec<&[E]> = operands.iter().map(Vec::as_slice).collect();
        let mut output = vec![E::default(); CHUNK];
        self.run(&operands, &mut output);
        output.into_iter().map(from).collect()
    }

    /// The result of the evaluator, which computes one number at a time.
    pub fn evaluated(&self, x: f64, y: Option<f64>) -> f64 {
        let (name, dtype) = (self.function.name(), self.dtype);
        let bits = |x| number::from_float(dtype, x);
        let result = match y {
            None => UnaryOp::from_name(name).and_then(|op| number::eval_unary(op, dtype, bits(x))),
            Some(y) => BinaryOp::from_name(name).and_then(|op| number::eval_binary(op, dtype, bits(x), bits(y))),
        };
        number::to_float(dtype, result.unwrap_or_else(|| panic!("the evaluator has no `{name}`")))
    }
}
