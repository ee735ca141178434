//! Types: element type, shape, sharding, and the manual axes along which a value varies.

use crate::mesh::Mesh;
use crate::sharding::Sharding;
pub use spmdc_abi::{AxisSet, DType};

/// Maximum rank of an array: an einsum of two arrays has 52 letters for their dimensions.
pub const MAX_RANK: usize = 26;

/// Maximum number of elements of an array.
pub const MAX_ELEMENTS: usize = 1 << 48;

/// An element type and a shape: the type of an op's result without its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayType {
    /// The element type.
    pub dtype: DType,
    /// The size of each dimension; empty for a scalar.
    pub shape: Vec<usize>,
    /// Whether it is a stream: an array that stays in its file; only `read_rows` takes rows of it.
    pub is_stream: bool,
}

impl ArrayType {
    /// An array type of this element type and shape.
    pub fn new(dtype: DType, shape: &[usize]) -> ArrayType {
        ArrayType::of(dtype, shape.to_vec())
    }

    /// As [`ArrayType::new`], of an owned shape.
    pub fn of(dtype: DType, shape: Vec<usize>) -> ArrayType {
        ArrayType { dtype, shape, is_stream: false }
    }

    /// An array type without dimensions.
    pub fn scalar(dtype: DType) -> ArrayType {
        ArrayType::of(dtype, Vec::new())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements; 1 for a scalar.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements, because some dimension has size 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same shape with another element type.
    pub fn with_dtype(&self, dtype: DType) -> ArrayType {
        ArrayType::of(dtype, self.shape.clone())
    }
}

impl std::fmt::Display for ArrayType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_stream { "stream " } else { "" })?;
        f.write_str(self.dtype.name())?;
        if !self.shape.is_empty() {
            let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
            write!(f, "[{}]", dims.join(","))?;
        }
        Ok(())
    }
}

/// The type of a value. Inside a `manual` region `array.shape` is the shape that one device sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The element type and the shape.
    pub array: ArrayType,
    /// The layout. Before propagation, dimensions may be open: then only the axes known so far are listed.
    pub sharding: Sharding,
    /// Manual axes along which devices may hold different values; empty outside `manual`.
    pub varying: AxisSet,
}

impl Type {
    /// A type with an open layout.
    pub fn open(array: ArrayType) -> Type {
        let sharding = Sharding::open(array.rank());
        Type { array, sharding, varying: AxisSet::EMPTY }
    }

    /// A replicated type.
    pub fn replicated(array: ArrayType) -> Type {
        let sharding = Sharding::replicated(array.rank());
        Type { array, sharding, varying: AxisSet::EMPTY }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.array.dtype
    }

    /// The size of each dimension, of the whole array and not of its blocks.
    pub fn shape(&self) -> &[usize] {
        &self.array.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.array.rank()
    }

    /// Whether it has no dimensions.
    pub fn is_scalar(&self) -> bool {
        self.array.rank() == 0
    }

    /// The shape of the largest block, `ceil(size / n)` for each dimension without an alignment: every device stores its block in
    /// this shape.
    pub fn block_shape(&self, mesh: &Mesh) -> Vec<usize> {
        let dims = self.array.shape.iter().zip(&self.sharding.dims);
        dims.map(|(&size, dim)| dim.block(size, mesh)).collect()
    }

    /// Bytes of the largest block.
    pub fn block_bytes(&self, mesh: &Mesh) -> usize {
        self.block_shape(mesh).iter().product::<usize>() * self.array.dtype.size()
    }

    /// The axes along which devices hold different data: split, partial or varying ones.
    pub fn distinct_axes(&self) -> AxisSet {
        self.sharding.used_axes().union(self.sharding.unreduced).union(self.varying)
    }

    /// The type in the syntax of the language: `f32[4@X,8@(Y,Z)]{U:W}{V:A}`.
    pub fn display(&self, mesh: &Mesh) -> String {
        let mut text = format!("{}{}", if self.array.is_stream { "stream " } else { "" }, self.array.dtype.name());
        if !self.array.shape.is_empty() {
            let quiet = self.sharding.dims.iter().all(|dim| dim.axes.is_empty());
            let dims = self.array.shape.iter().zip(&self.sharding.dims).map(|(size, dim)| {
                if dim.axes.is_empty() && (quiet || !dim.open) {
                    size.to_string()
                } else {
                    format!("{size}@{}", dim.display(mesh))
                }
            });
            text += &format!("[{}]", dims.collect::<Vec<_>>().join(","));
        }
        text += &self.sharding.display_whole(mesh);
        if !self.varying.is_empty() {
            text += &format!("{{V:{}}}", mesh.display_set(self.varying));
        }
        text
    }
}
