//! A product of two matrices: its extents and strides.

use spmdc_abi::{DType, GemmDim};

/// A dimension of the product on one device; strides are in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GemmExtent {
    pub len: usize,
    pub a: isize,
    pub b: isize,
    pub c: isize,
}

impl GemmExtent {
    /// A dimension with this number of elements.
    pub fn new(dim: &GemmDim, len: i64) -> GemmExtent {
        GemmExtent { len: len.max(0) as usize, a: dim.a as isize, b: dim.b as isize, c: dim.c as isize }
    }
}

/// A product of two matrices, summed over contracted dimensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixProduct<'a> {
    /// The element types of `a` and `b`.
    pub operands: [DType; 2],
    pub a: *const u8,
    pub b: *const u8,
    pub c: *mut u8,
    pub m: GemmExtent,
    pub n: GemmExtent,
    pub k: GemmExtent,
    /// Further contracted dimensions.
    pub contracted: &'a [GemmExtent],
    /// Whether the product is added to the present contents of the result.
    pub adds: bool,
    /// Whether sums are along the contraction: see [`sums_lines`](spmdc_product::packed::sums_lines).
    pub lines: bool,
}

/// The code of products of one element type.
pub(crate) type ProductFn = unsafe fn(&MatrixProduct<'_>);

impl MatrixProduct<'_> {
    /// Calls `multiply` for each combination of the further contracted dimensions, whose products are summed. Its arguments are the first
    /// elements of `a` and `b`, the length of the contraction, and whether the product is added.
    pub fn each_pass(&self, mut multiply: impl FnMut((isize, isize), usize, bool)) {
        let passes: usize = self.contracted.iter().map(|dim| dim.len).product();
        // For an empty contraction, one pass over no elements writes the zeros.
        let depth = if passes == 0 { 0 } else { self.k.len };
        if depth > 0 || !self.adds {
            (0..passes.max(1)).for_each(|pass| multiply(self.offsets(pass), depth, pass > 0 || self.adds));
        }
    }

    /// The first elements of `a` and `b` in a pass.
    fn offsets(&self, pass: usize) -> (isize, isize) {
        let (mut a, mut b) = (0, 0);
        let mut index = pass;
        for dim in self.contracted.iter().rev().filter(|dim| dim.len > 0) {
            let i = (index % dim.len) as isize;
            index /= dim.len;
            (a, b) = (a + i * dim.a, b + i * dim.b);
        }
        (a, b)
    }
}
