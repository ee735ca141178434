//! Random bits: values, which equal JAX's, and types.

use crate::testing::words;
use spmdc_grammar::codes::Code;
use spmdc_ir::array::Array;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_kernel::number;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::random_bits::RandomBits;

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
