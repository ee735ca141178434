//! Kernels and products that run tile by tile, in terms of values.

use crate::lower::product::ProductDim;
use crate::program::origin::Origin;
use crate::program::value::Value;
use spmdc_abi::{DType, Scalar, TileRows};
use spmdc_kernel::loops::Kernel;

/// As [`spmdc_abi::TileStep`].
#[derive(Clone, Debug, PartialEq)]
pub struct TiledGroup {
    /// The number of matrices is the product of these.
    pub matrices: Vec<Scalar>,
    /// The rows of each matrix.
    pub rows: Scalar,
    /// The most rows of a tile.
    pub tile: u64,
    /// The most rows for which neighbouring kernels run one after the other.
    pub panel: u64,
    /// The number of neighbouring matrices along which sums continue; 0 without sums over tiles.
    pub chain: u64,
    /// The parts, in the order in which they run on each tile.
    pub members: Vec<TiledWork>,
    /// The scratch memory: an array of f64 with a row for each slot.
    pub scratch: Value,
    /// The number of slots.
    pub slots: u64,
    /// The bytes of a slot.
    pub slot_bytes: u64,
    /// Estimated nanoseconds of a row.
    pub cost: f64,
    /// Bytes of the arrays of a device of which there is a tile at a time.
    pub unstored: u64,
}

/// A part of a [`TiledGroup`].
// Parts are built once and then only read.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum TiledWork {
    /// A loop nest over the rows of a matrix.
    Kernel(TiledKernel),
    /// A product of matrices.
    Product(TiledProduct),
}

/// A buffer of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TiledBuffer {
    /// A value in memory.
    Memory(Value),
    /// As [`spmdc_abi::TileBuffer::Scratch`].
    Scratch {
        /// The first byte in the slot.
        offset: u64,
        /// The bytes of a row.
        row: u64,
    },
}

/// As [`spmdc_abi::TileKernel`]. The last scalars of the loop nest are the indices of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct TiledKernel {
    /// The loop nest.
    pub kernel: Kernel,
    /// Its buffers, in their order.
    pub buffers: Vec<TiledBuffer>,
    /// The number of matrices as a product, outermost first.
    pub matrices: Vec<Scalar>,
    /// The statement whose work it is.
    pub origin: Origin,
}

/// As [`spmdc_abi::TileProduct`].
#[derive(Clone, Debug, PartialEq)]
pub struct TiledProduct {
    /// The element type of operands and result.
    pub dtype: DType,
    /// Both operands and the result.
    pub buffers: [TiledBuffer; 3],
    /// The rows of `a` and of `c`.
    pub m: ProductDim,
    /// The columns of `b` and of `c`.
    pub n: ProductDim,
    /// The contracted dimension.
    pub k: ProductDim,
    /// The number of matrices as a product, outermost first.
    pub matrices: Vec<ProductDim>,
    /// Further contracted dimensions within the rows.
    pub contracted: Vec<ProductDim>,
    /// The dimension that a tile has a part of.
    pub rows: TileRows,
    /// The statement whose work it is.
    pub origin: Origin,
}

impl TiledGroup {
    /// The values that the parts read and do not write.
    pub fn reads(&self) -> Vec<Value> {
        let written = self.results();
        let mut reads: Vec<Value> = self.buffers().filter(|(_, written)| !written).map(|(value, _)| value).collect();
        reads.retain(|value| !written.contains(value));
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// The values that the parts write, without the scratch memory.
    pub fn results(&self) -> Vec<Value> {
        let mut results: Vec<Value> = self.buffers().filter(|(_, written)| *written).map(|(value, _)| value).collect();
        results.dedup();
        results
    }

    /// The values of the parts' buffers, each with whether it is written.
    fn buffers(&self) -> impl Iterator<Item = (Value, bool)> {
        let all = self.members.iter().flat_map(|member| -> Vec<(TiledBuffer, bool)> {
            match member {
                TiledWork::Kernel(part) => part
                    .buffers
                    .iter()
                    .zip(&part.kernel.buffers)
                    .map(|(&buffer, slot)| (buffer, slot.written))
                    .collect(),
                TiledWork::Product(part) => {
                    let [a, b, c] = part.buffers;
                    vec![(a, false), (b, false), (c, true)]
                }
            }
        });
        all.filter_map(|(buffer, written)| match buffer {
            TiledBuffer::Memory(value) => Some((value, written)),
            TiledBuffer::Scratch { .. } => None,
        })
    }

    /// Replaces every value.
    pub fn rename(&mut self, name: &dyn Fn(Value) -> Value) {
        self.scratch = name(self.scratch);
        for member in &mut self.members {
            let buffers = match member {
                TiledWork::Kernel(part) => part.buffers.as_mut_slice(),
                TiledWork::Product(part) => part.buffers.as_mut_slice(),
            };
            for buffer in buffers {
                if let TiledBuffer::Memory(value) = buffer {
                    *value = name(*value);
                }
            }
        }
    }
}
