//! Whole arrays for the evaluator, and the errors that stop it.

use spmdc_grammar::codes::Code;
use spmdc_kernel::number;
use spmdc_layout::types::{ArrayType, DType};

/// A runtime error of a program: a code and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// E0801 (index), E0802 (division) or E0806 (assertion); E0701 if the arguments do not fit, E0999 if devices disagree.
    pub code: Code,
    /// The message.
    pub message: String,
}

impl Trap {
    /// E0802: an integer division by zero.
    pub fn division_by_zero() -> Trap {
        Trap { code: Code::E0802, message: "integer division by zero".to_string() }
    }
}

/// A whole array; each element's bits in the low bytes of a word (sign bits are not extended), in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The element type and the shape.
    pub ty: ArrayType,
    /// The elements, as many as the shape has.
    pub bits: Vec<u64>,
}

impl Array {
    /// An array of these elements; their number must match the shape.
    pub fn new(ty: ArrayType, bits: Vec<u64>) -> Array {
        debug_assert_eq!(ty.len(), bits.len());
        Array { ty, bits }
    }

    /// An array without dimensions.
    pub fn scalar(dtype: DType, bits: u64) -> Array {
        Array { ty: ArrayType::scalar(dtype), bits: vec![bits] }
    }

    /// An array of equal elements.
    pub fn filled(ty: ArrayType, bits: u64) -> Array {
        let len = ty.len();
        Array { ty, bits: vec![bits; len] }
    }

    /// Floats rounded to the element type.
    pub fn from_floats(dtype: DType, shape: &[usize], values: &[f64]) -> Array {
        let bits = values.iter().map(|&value| number::from_float(dtype, value)).collect();
        Array::new(ArrayType::new(dtype, shape), bits)
    }

    /// Integers cut to the width of the element type.
    pub fn from_ints(dtype: DType, shape: &[usize], values: &[i128]) -> Array {
        let bits = values.iter().map(|&value| number::from_int(dtype, value)).collect();
        Array::new(ArrayType::new(dtype, shape), bits)
    }

    /// An array with an element computed for each index.
    pub fn from_fn(ty: ArrayType, mut element: impl FnMut(&[usize]) -> u64) -> Array {
        let mut bits = Vec::with_capacity(ty.len());
        let mut index = vec![0; ty.rank()];
        for _ in 0..ty.len() {
            bits.push(element(&index));
            // The next index: the last dimension that is not at its end counts on, and those after it begin again.
            for (at, &size) in index.iter_mut().zip(&ty.shape).rev() {
                *at += 1;
                if *at < size {
                    break;
                }
                *at = 0;
            }
        }
        Array::new(ty, bits)
    }

    /// The element at an index.
    pub fn get(&self, index: &[usize]) -> u64 {
        let position = index.iter().zip(&self.ty.shape).fold(0, |position, (&i, &size)| position * size + i);
        self.bits[position]
    }

    /// The element at an index of a larger shape after NumPy broadcasting.
    pub fn get_broadcast(&self, index: &[usize]) -> u64 {
        let aligned = index[index.len() - self.ty.rank()..].iter().zip(&self.ty.shape);
        let position = aligned.fold(0, |at, (&i, &size)| at * size + if size == 1 { 0 } else { i });
        self.bits[position]
    }

    /// The elements of a float array.
    pub fn floats(&self) -> Vec<f64> {
        self.bits.iter().map(|&bits| number::to_float(self.ty.dtype, bits)).collect()
    }

    /// The elements of a bool or integer array.
    pub fn ints(&self) -> Vec<i128> {
        self.bits.iter().map(|&bits| number::to_int(self.ty.dtype, bits)).collect()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The size of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }
}

/// Every index of a shape, row-major.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    let len: usize = shape.iter().product();
    (0..len).map(move |mut rest| {
        let mut index = vec![0; shape.len()];
        for (at, &size) in index.iter_mut().zip(&shape).rev() {
            *at = rest % size;
            rest /= size;
        }
        index
    })
}
