//! `random_bits(k, u32[4, 8])`: the bits of which all random numbers are made, as JAX's partitionable Threefry has them.
//!
//! The bits of an element follow from the key and from the element's index in the whole array, row-major. So every device computes its
//! own block, in any layout, and nothing moves; and as one element is an expression, no array of bits lies in memory.

use super::{Call, Mismatch};
use crate::array::{Array, Trap, indices};
use crate::layout::factors::{FactorKind, Factors};
use crate::layout::mesh::Mesh;
use crate::layout::types::{ArrayType, DType};
use crate::lower::builder::KernelBuilder;
use crate::ops::batching::Batching;
use crate::ops::call::args::Args;
use crate::ops::call::build::CallBuilder;
use crate::ops::call::signature::{Signature, signatures};
use crate::ops::call::term::Term;
use crate::ops::derivative::Derivative;
use crate::ops::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use crate::program::Stmt;
use spmdc_abi::threefry::{self, GROUPS, PARITY, ROTATIONS};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;

/// `random_bits(k, u32[4, 8])`: unsigned integers of any width, or keys. An array of keys gives an array for each of them: the sizes of
/// the result begin with those of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomBits {
    /// The element type and shape of the result.
    pub ty: ArrayType,
}

/// Operations for the bits of one element: those of 20 rounds, and of the additions of the key between them.
pub(super) const OPERATIONS: u64 = 120;

/// The element of this type that the two words of the generator give.
pub(super) fn element(dtype: DType, words: [u32; 2]) -> u64 {
    let [high, low] = words;
    match dtype {
        DType::U64 => u64::from(high) << 32 | u64::from(low),
        DType::Key => u64::from(low) << 32 | u64::from(high),
        DType::U8 => u64::from((high ^ low) as u8),
        DType::U16 => u64::from((high ^ low) as u16),
        DType::U32 => u64::from(high ^ low),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::F16
        | DType::Bf16
        | DType::F32
        | DType::F64 => unreachable!("typing refuses random bits of type {}", dtype.name()),
    }
}

/// The words of a key.
pub(super) fn words(key: u64) -> [u32; 2] {
    threefry::words(number::cast(DType::Key, DType::U64, key).expect("a key is a u64"))
}

/// [`threefry::threefry2x32`] as instructions: the two words, for a key and the two words of a counter.
pub(super) fn cipher(kernel: &mut KernelBuilder<'_>, key: Elem, counter: [Elem; 2]) -> [Elem; 2] {
    let both = kernel.cast(DType::Key, DType::U64, key);
    let half = kernel.constant(DType::U64, 32);
    let upper = kernel.binary(BinaryOp::Shr, DType::U64, both, half);
    let first = kernel.cast(DType::U64, DType::U32, upper);
    let second = kernel.cast(DType::U64, DType::U32, both);
    let mut word = |op: BinaryOp, x: Elem, y: Elem| kernel.binary(op, DType::U32, x, y);
    let mixed = word(BinaryOp::Xor, first, second);
    let [first_sum, second_sum] = [word(BinaryOp::Add, counter[0], first), word(BinaryOp::Add, counter[1], second)];
    let constant = |kernel: &mut KernelBuilder<'_>, value: u32| kernel.constant(DType::U32, u64::from(value));
    let parity = constant(kernel, PARITY);
    let third = kernel.binary(BinaryOp::Xor, DType::U32, mixed, parity);
    let schedule = [first, second, third];
    let mut x = [first_sum, second_sum];
    for group in 0..GROUPS {
        for rotation in ROTATIONS[group % 2] {
            let (by, rest) = (constant(kernel, rotation), constant(kernel, 32 - rotation));
            let mut word = |op: BinaryOp, x: Elem, y: Elem| kernel.binary(op, DType::U32, x, y);
            x[0] = word(BinaryOp::Add, x[0], x[1]);
            let (up, down) = (word(BinaryOp::Shl, x[1], by), word(BinaryOp::Shr, x[1], rest));
            let rotated = word(BinaryOp::Or, up, down);
            x[1] = word(BinaryOp::Xor, rotated, x[0]);
        }
        let number = constant(kernel, group as u32 + 1);
        let mut word = |op: BinaryOp, x: Elem, y: Elem| kernel.binary(op, DType::U32, x, y);
        x[0] = word(BinaryOp::Add, x[0], schedule[(group + 1) % 3]);
        let added = word(BinaryOp::Add, schedule[(group + 2) % 3], number);
        x[1] = word(BinaryOp::Add, x[1], added);
    }
    x
}

/// The instructions of [`element`].
pub(super) fn element_of(kernel: &mut KernelBuilder<'_>, dtype: DType, [high, low]: [Elem; 2]) -> Elem {
    if dtype.size() < 8 {
        let mixed = kernel.binary(BinaryOp::Xor, DType::U32, high, low);
        return kernel.cast(DType::U32, dtype, mixed);
    }
    let [high, low] = [high, low].map(|word| kernel.cast(DType::U32, DType::U64, word));
    let half = kernel.constant(DType::U64, 32);
    let upper = kernel.binary(BinaryOp::Shl, DType::U64, high, half);
    let both = kernel.binary(BinaryOp::Or, DType::U64, upper, low);
    kernel.cast(DType::U64, dtype, both)
}

/// An error unless the operand is a key, or an array of keys.
pub(super) fn needs_key(function: &str, key: &ArrayType) -> Result<(), Mismatch> {
    if key.dtype == DType::Key {
        return Ok(());
    }
    let message = format!("{function} need a key, not {}", key.dtype.name());
    Err(Mismatch::new(Code::E0203, message).help("key(42) is the key of the seed 42"))
}

impl Semantics for RandomBits {
    fn name(&self) -> &'static str {
        "random_bits"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> =
            results[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims[..args[0].rank()].to_vec());
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let keys = args[0];
        let each: usize = self.ty.shape[keys.ty.rank()..].iter().product();
        let bits = indices(&self.ty.shape).enumerate().map(|(at, _)| {
            let counter = threefry::words((at % each) as u64);
            element(self.ty.dtype, threefry::threefry2x32(words(keys.bits[at / each]), counter))
        });
        Ok(vec![Array::new(self.ty.clone(), bits.collect())])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("random_bits({}, {})", args[0], self.ty)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        OPERATIONS * results[0].len() as u64
    }
}

impl Infer for RandomBits {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        needs_key("random bits", args[0])?;
        if !self.ty.dtype.is_unsigned_integer() && self.ty.dtype != DType::Key {
            let message = format!("random bits are unsigned integers, not {}", self.ty.dtype.name());
            return Err(Mismatch::new(Code::E0215, message).help("`randint` draws signed ones, `bernoulli` bools"));
        }
        if !self.ty.shape.starts_with(&args[0].shape) {
            let message = format!("the sizes of {} do not begin with those of {}", self.ty, args[0]);
            return Err(Mismatch::new(Code::E0204, message));
        }
        Ok(vec![self.ty.clone()])
    }
}

impl Rules for RandomBits {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, size: usize) -> Batching<'_> {
        Batching::shifted(RandomBits {
            ty: ArrayType::new(self.ty.dtype, &[&[size], self.ty.shape.as_slice()].concat()),
        })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Drawn,
            keeps_alignment: true,
        }
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl Point for RandomBits {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.results[0]);
        let batch = kernel.context.ty(stmt.args[0]).rank();
        let key = kernel.operand(stmt.args[0], &index[..batch]);
        // The index in the whole array of this key.
        let (mut place, mut stride) = (Affine::default(), 1);
        for dim in (batch..ty.rank()).rev() {
            let global = kernel.global_index(ty, dim, &index[dim]);
            place = place.plus(&global.times(stride));
            stride *= ty.shape()[dim] as i64;
        }
        let low = kernel.index(place.clone(), DType::U32);
        let high = if stride <= 1 << 32 {
            kernel.constant(DType::U32, 0)
        } else {
            let (wide, half) = (kernel.index(place, DType::U64), kernel.constant(DType::U64, 32));
            let upper = kernel.binary(BinaryOp::Shr, DType::U64, wide, half);
            kernel.cast(DType::U64, DType::U32, upper)
        };
        let words = cipher(kernel, key, [high, low]);
        element_of(kernel, self.ty.dtype, words)
    }

    fn reads(&self, _: usize, args: &[&ArrayType]) -> Reads {
        // A key serves many elements.
        if args[0].rank() == 0 { Reads::Once } else { Reads::Often }
    }
}

impl Call for RandomBits {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Random bits.
        random_bits(key: Array, type: Type) in_dumps "" "write `bits(k, u32[4, 8])`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let key = args.array(build, "key")?;
        let ty = args.ty("type")?.array;
        Ok(Term::Array(build.emit1(RandomBits { ty }, &[key])?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(seed: u64) -> Array {
        Array::scalar(DType::Key, number::cast(DType::U64, DType::Key, seed).unwrap())
    }

    fn drawn(dtype: DType, shape: &[usize]) -> Vec<u64> {
        RandomBits { ty: ArrayType::new(dtype, shape) }.eval(&[&key(42)]).unwrap()[0].bits.clone()
    }

    #[test]
    fn bits_are_those_of_jax() {
        let six = [2098992034, 2919706841, 2646866425, 2409546199, 1935504149, 2516274904];
        assert_eq!(drawn(DType::U32, &[6]), six);
        assert_eq!(drawn(DType::U32, &[2, 3]), six);
        assert_eq!(drawn(DType::U8, &[4]), [162, 217, 249, 215]);
        assert_eq!(drawn(DType::U16, &[4]), [5026, 12505, 63993, 49623]);
        let keys: Vec<[u32; 2]> = drawn(DType::Key, &[2]).into_iter().map(words).collect();
        assert_eq!(keys, [[1832780943, 270669613], [64467757, 2916123636]]);
    }

    #[test]
    fn each_key_of_an_array_counts_from_zero() {
        let keys = Array::new(ArrayType::new(DType::Key, &[2]), drawn(DType::Key, &[2]));
        let both = RandomBits { ty: ArrayType::new(DType::U32, &[2, 3]) }.eval(&[&keys]).unwrap();
        let second = Array::scalar(DType::Key, keys.bits[1]);
        let alone = RandomBits { ty: ArrayType::new(DType::U32, &[3]) }.eval(&[&second]).unwrap();
        assert_eq!(both[0].bits[3..], alone[0].bits);
    }

    #[test]
    fn bits_are_unsigned_and_need_a_key() {
        let key = ArrayType::scalar(DType::Key);
        let floats = RandomBits { ty: ArrayType::new(DType::F32, &[2]) };
        assert_eq!(floats.infer(&[&key]).unwrap_err().code, Code::E0215);
        let bits = RandomBits { ty: ArrayType::new(DType::U32, &[2]) };
        assert_eq!(bits.infer(&[&ArrayType::scalar(DType::I32)]).unwrap_err().code, Code::E0203);
        assert_eq!(bits.infer(&[&ArrayType::new(DType::Key, &[3])]).unwrap_err().code, Code::E0204);
    }
}
