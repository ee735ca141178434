//! Kernels and products that run tile by tile, so that the matrices between them never exist as a whole.

use crate::{AxisSet, DType, GemmDim, Place, Scalar, Site};
use serde::{Deserialize, Serialize};

/// Kernels and products over the same rows of the same matrices. All run for one tile, some rows of one matrix, then for the next. For any
/// row, each member uses only elements of the others that these write for the same row. No member stops the program.
///
/// Rows that only members use are in scratch memory, which has the rows of one tile. It is divided into slots, one for each thread at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TileStep {
    /// The number of matrices is the product of these.
    pub matrices: Vec<Scalar>,
    /// The rows of each matrix.
    pub rows: Scalar,
    /// The most rows of a tile.
    pub tile: u64,
    /// The most rows for which neighbouring kernels run one after the other, so that these rows stay in the first caches.
    pub panel: u64,
    /// The number of neighbouring matrices whose tiles one thread runs in their order, because sums continue from tile to tile. 0 if the
    /// tiles are independent. It divides the number of matrices.
    pub chain: u64,
    /// At least one, in the order in which they run on each tile.
    pub members: Vec<TileMember>,
    /// The first slot of the scratch memory.
    pub scratch: Place,
    /// The number of slots.
    pub slots: u64,
    /// The bytes of a slot; a multiple of 64.
    pub slot_bytes: u64,
    /// Devices that differ along these axes only share the memory that is written: they divide the tiles, or the chains.
    pub split: AxisSet,
    /// Estimated nanoseconds of a row.
    pub cost: f32,
    /// Bytes of the arrays of a device of which there is a tile at a time, for reports.
    pub unstored: u64,
    /// The statement of the first product.
    pub site: Site,
}

/// A part of a [`TileStep`].
// Parts are built once and then only read.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TileMember {
    /// A kernel whose range is the rows of a matrix.
    Kernel(TileKernel),
    /// A product of matrices.
    Product(TileProduct),
}

/// A buffer of a member.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TileBuffer {
    /// The memory of the program.
    Memory(Place),
    /// A part of the slot, with the rows of a tile.
    Scratch {
        /// The first byte in the slot.
        offset: u64,
        /// The bytes of a row.
        row: u64,
    },
}

/// A kernel of a [`TileStep`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TileKernel {
    /// Index into [`Program::kernels`](crate::Program::kernels).
    pub kernel: u32,
    /// The kernel's buffers. Row 0 of a matrix is the first row of the buffer.
    pub buffers: Vec<TileBuffer>,
    /// The first numbers that the kernel gets. The indices of the matrix, one for each of `matrices`, follow.
    pub scalars: Vec<Scalar>,
    /// The number of matrices as a product, outermost first.
    pub matrices: Vec<Scalar>,
}

/// The dimension of a product that runs over the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TileRows {
    /// The rows of `a` and `c`.
    M,
    /// The columns of `b` and `c`.
    N,
    /// The contracted dimension: the product is summed over the tiles of a chain.
    K,
}

/// A product of a [`TileStep`]: as [`GemmStep`](crate::GemmStep).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TileProduct {
    /// The element type of operands and result.
    pub dtype: DType,
    /// Both operands and the result.
    pub buffers: [TileBuffer; 3],
    /// The rows of `a` and of `c`.
    pub m: GemmDim,
    /// The columns of `b` and of `c`.
    pub n: GemmDim,
    /// The contracted dimension.
    pub k: GemmDim,
    /// The number of matrices as a product, outermost first, with strides. Along an innermost part of them, all of one chain, the strides in
    /// `c` may be 0: the products are summed.
    pub matrices: Vec<GemmDim>,
    /// Further contracted dimensions within the rows.
    pub contracted: Vec<GemmDim>,
    /// The dimension that a tile has a part of.
    pub rows: TileRows,
}

impl TileRows {
    /// The dimension that it names.
    pub fn of<T>(self, m: T, n: T, k: T) -> T {
        match self {
            TileRows::M => m,
            TileRows::N => n,
            TileRows::K => k,
        }
    }
}

impl TileStep {
    /// The rows of each tile but the last, and the number of tiles, of matrices with this number of rows. There is at least one tile.
    pub fn tiles(&self, rows: i64) -> (i64, i64) {
        let most = (self.tile as i64).max(1);
        let count = (rows.max(1) as u64).div_ceil(most as u64) as i64;
        let each = ((rows.max(1) as u64).div_ceil(count as u64).next_multiple_of(8) as i64).min(most);
        (each, (rows.max(1) as u64).div_ceil(each as u64) as i64)
    }

    /// The products among the members.
    pub fn products(&self) -> impl Iterator<Item = &TileProduct> {
        self.members
            .iter()
            .filter_map(|member| if let TileMember::Product(product) = member { Some(product) } else { None })
    }
}
