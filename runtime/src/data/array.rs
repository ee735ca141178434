//! A whole array in the host's memory: row-major, native byte order. Arguments and results of a program have this form.

use crate::errors::trap::RunError;
use crate::io::in_file::ElementsInFile;
use spmdc_abi::{DType, Kind};

/// A whole array in the host's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    /// The element type.
    pub dtype: DType,
    /// The size of each dimension; empty for a scalar.
    pub shape: Vec<usize>,
    /// `shape.product() * dtype.size()` bytes.
    pub bytes: Vec<u8>,
}

impl HostArray {
    /// The same array with every NaN replaced by the positive quiet NaN. The NaN that an operation gives depends on the processor's
    /// instructions; the bytes of results must not.
    pub fn with_one_nan(mut self) -> HostArray {
        debug_assert_eq!(self.bytes.len(), self.len() * self.dtype.size(), "the array has all its elements");
        with_one_nan(self.dtype, &mut self.bytes);
        self
    }

    /// An array of zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> HostArray {
        let len = shape.iter().product::<usize>() * dtype.size();
        HostArray { dtype, shape: shape.to_vec(), bytes: vec![0; len] }
    }

    /// The elements as `f64`, which holds all except large integers exactly; a bool is 0 or 1.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let (dtype, size) = (self.dtype, self.dtype.size());
        self.bytes.chunks_exact(size).map(move |element| number(dtype, element))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An element of this type as `f64`.
fn number(dtype: DType, element: &[u8]) -> f64 {
    let mut word = [0; 8];
    word[..element.len()].copy_from_slice(element);
    let bits = u64::from_le_bytes(word);
    // Bits above those of a signed integer are copies of its sign.
    let unused = 64 - 8 * element.len() as u32;
    match dtype.kind() {
        Kind::Float => dtype.widen(bits),
        Kind::Signed => ((bits << unused) as i64 >> unused) as f64,
        Kind::Bool | Kind::Unsigned | Kind::Key => bits as f64,
    }
}

/// As [`HostArray::with_one_nan`], for elements of this type.
pub(crate) fn with_one_nan(dtype: DType, elements: &mut [u8]) {
    /// For elements of `N` bytes; the loop has no branch, so the compiler makes it one over vectors.
    fn replace<const N: usize>(elements: &mut [u8], (sign, last, quiet): (u64, u64, u64)) {
        for element in elements.chunks_exact_mut(N) {
            let mut word = [0; 8];
            word[..N].copy_from_slice(element);
            let word = u64::from_le_bytes(word);
            let word = if word & !sign > last { quiet } else { word };
            element.copy_from_slice(&word.to_le_bytes()[..N]);
        }
    }
    let Some(format) = dtype.format() else { return };
    let words = (format.sign(), format.last(), format.nan());
    match dtype.size() {
        1 => replace::<1>(elements, words),
        2 => replace::<2>(elements, words),
        4 => replace::<4>(elements, words),
        size => {
            debug_assert_eq!(size, 8, "a float has at most 8 bytes");
            replace::<8>(elements, words);
        }
    }
}

/// A whole array for a file or a text: of numbers of its type, or of complex numbers.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    /// The element type; for complex numbers, the type of their planes.
    pub dtype: DType,
    /// The size of each dimension; empty for a scalar.
    pub shape: &'a [usize],
    /// The elements, row-major; a complex one is its real part and its imaginary part.
    pub bytes: &'a [u8],
    /// Whether the elements are complex.
    pub complex: bool,
}

impl<'a> From<&'a HostArray> for ArrayView<'a> {
    fn from(array: &'a HostArray) -> ArrayView<'a> {
        ArrayView { dtype: array.dtype, shape: &array.shape, bytes: &array.bytes, complex: false }
    }
}

/// A whole array of complex numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ComplexArray {
    /// The real and the imaginary part of each element are the last dimension.
    pairs: HostArray,
}

impl ComplexArray {
    /// The numbers with these planes, which have one type and shape.
    pub fn new(re: &HostArray, im: &HostArray) -> ComplexArray {
        debug_assert!(re.dtype == im.dtype && re.shape == im.shape, "planes of one array are alike");
        let size = re.dtype.size();
        let mut bytes = Vec::with_capacity(2 * re.bytes.len());
        for (re, im) in re.bytes.chunks_exact(size).zip(im.bytes.chunks_exact(size)) {
            bytes.extend_from_slice(re);
            bytes.extend_from_slice(im);
        }
        let shape = re.shape.iter().copied().chain([2]).collect();
        ComplexArray { pairs: HostArray { dtype: re.dtype, shape, bytes } }
    }
}

impl<'a> From<&'a ComplexArray> for ArrayView<'a> {
    fn from(array: &'a ComplexArray) -> ArrayView<'a> {
        let HostArray { dtype, shape, bytes } = &array.pairs;
        ArrayView { dtype: *dtype, shape: &shape[..shape.len() - 1], bytes, complex: true }
    }
}

impl ArrayView<'_> {
    /// Bytes of one element.
    pub fn element_size(&self) -> usize {
        self.dtype.size() * if self.complex { 2 } else { 1 }
    }
}

/// An array that is read in blocks, so that a device reads only the parts that it holds.
///
/// ```
/// use spmdc_abi::DType;
/// use spmdc_runtime::data::array::{BlockSource, HostArray};
/// let mut array = HostArray { dtype: DType::U8, shape: vec![2, 3], bytes: vec![0, 1, 2, 3, 4, 5] };
/// let mut block = [0; 4];
/// array.read_block(&[0, 1], &[2, 2], &mut block)?;
/// assert_eq!(block, [1, 2, 4, 5]);
/// # Ok::<(), spmdc_runtime::errors::trap::RunError>(())
/// ```
pub trait BlockSource {
    /// The element type.
    fn dtype(&self) -> DType;

    /// The size of each dimension of the whole array.
    fn shape(&self) -> &[usize];

    /// Fills `out` with the elements `start[i]..start[i] + len[i]` of every dimension `i`: packed, row-major, native byte order; a bool is
    /// 0 or 1. The range is within the shape, and `out` has exactly the size of these elements.
    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError>;

    /// The elements in a file, for a stream; None if they come from elsewhere. An error (E0703) if rows of them cannot be read in place.
    fn in_file(&mut self) -> Result<Option<ElementsInFile>, RunError> {
        Ok(None)
    }
}

impl BlockSource for HostArray {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        copy_block(self.dtype, &self.shape, &self.bytes, start, len, out);
        Ok(())
    }
}

/// Copies the block `start..start + len` of a row-major array.
pub fn copy_block(dtype: DType, shape: &[usize], bytes: &[u8], start: &[usize], len: &[usize], out: &mut [u8]) {
    debug_assert_eq!(bytes.len(), shape.iter().product::<usize>() * dtype.size(), "the array has all its elements");
    debug_assert_eq!(out.len(), len.iter().product::<usize>() * dtype.size(), "there is room for the block");
    for_each_row(shape, start, len, |whole, packed, count| {
        let size = dtype.size();
        out[packed * size..(packed + count) * size].copy_from_slice(&bytes[whole * size..(whole + count) * size]);
    });
}

/// Visits the block `start..start + len` of a row-major array of this shape row by row: calls `row` with the row's first element in
/// the whole array, its first element in the packed block, and its length.
pub fn for_each_row(shape: &[usize], start: &[usize], len: &[usize], mut row: impl FnMut(usize, usize, usize)) {
    assert!(shape.len() == start.len() && shape.len() == len.len(), "a block has the rank of its array");
    if len.contains(&0) {
        return;
    }
    debug_assert!((0..shape.len()).all(|dim| start[dim] + len[dim] <= shape[dim]), "a block lies within its array");
    // Trailing dimensions that are taken whole form one contiguous row.
    let mut outer = shape.len();
    let mut count = 1;
    while outer > 0 {
        outer -= 1;
        count *= len[outer];
        if len[outer] != shape[outer] {
            break;
        }
    }
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    let first: usize = (0..shape.len()).map(|i| start[i] * strides[i]).sum();
    let mut index = vec![0; outer];
    let mut packed = 0;
    loop {
        row(first + (0..outer).map(|i| index[i] * strides[i]).sum::<usize>(), packed, count);
        packed += count;
        let mut i = outer;
        loop {
            if i == 0 {
                return;
            }
            i -= 1;
            index[i] += 1;
            if index[i] < len[i] {
                break;
            }
            index[i] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_block_is_packed() {
        let mut array = HostArray { dtype: DType::U16, shape: vec![3, 2, 2], bytes: (0..24).collect() };
        let mut block = vec![0; 8];
        array.read_block(&[1, 0, 1], &[2, 2, 1], &mut block).unwrap();
        assert_eq!(block, [10, 11, 14, 15, 18, 19, 22, 23]);
        let mut tail = vec![0; 16];
        array.read_block(&[1, 0, 0], &[2, 2, 2], &mut tail).unwrap();
        assert_eq!(tail, (8..24).collect::<Vec<u8>>());
        array.read_block(&[3, 0, 0], &[0, 2, 2], &mut []).unwrap();
    }

    #[test]
    fn elements_of_every_kind_are_numbers() {
        let numbers = |dtype, bytes: &[u8]| {
            let array = HostArray { dtype, shape: vec![bytes.len() / dtype.size()], bytes: bytes.to_vec() };
            array.numbers().collect::<Vec<f64>>()
        };
        assert_eq!(numbers(DType::I8, &[0x80, 0x7f]), [-128.0, 127.0]);
        assert_eq!(numbers(DType::I64, &(-7_i64).to_ne_bytes()), [-7.0]);
        assert_eq!(numbers(DType::U16, &[0xff, 0xff]), [65535.0]);
        assert_eq!(numbers(DType::Bool, &[0, 1]), [0.0, 1.0]);
        assert_eq!(numbers(DType::F32, &(-1.5_f32).to_ne_bytes()), [-1.5]);
        assert_eq!(numbers(DType::Bf16, &[0x80, 0x3f]), [1.0]);
    }

    #[test]
    fn a_scalar_is_one_row() {
        let mut array = HostArray { dtype: DType::F32, shape: vec![], bytes: vec![1, 2, 3, 4] };
        let mut block = vec![0; 4];
        array.read_block(&[], &[], &mut block).unwrap();
        assert_eq!(block, [1, 2, 3, 4]);
    }
}
