//! Calls of the runtime's functions on whole lines and matrices, such as a sort.

use crate::matrix::MatrixFunction;
use crate::mesh::{DeviceMesh, share};
use crate::mesh_programs::Message;
use crate::streams::StreamRows;
use crate::{AxisSet, Check, CollectiveKind, DType, Place, ReduceOp, Scalar, Site, Width};
use serde::{Deserialize, Serialize};

/// A function of the runtime, called once for each combination of the batch dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibraryStep {
    /// The function.
    pub function: LibraryFunction,
    /// The arrays that it reads, in the order that the function expects.
    pub operands: Vec<LibraryArray>,
    /// The arrays that it writes: the results, then its scratch memory. Calls for different indices of the batch write different
    /// elements.
    pub results: Vec<LibraryArray>,
    /// Extents of the batch dimensions, outermost first.
    pub batch: Vec<Scalar>,
    /// Set if operands are read from the devices that hold their blocks.
    pub owners: Option<LibraryOwners>,
    /// As in [`KernelStep::split`](crate::KernelStep::split): the calls are divided among these devices.
    pub split: AxisSet,
    /// Estimated nanoseconds of one call.
    pub cost: f32,
    /// The statement that is computed.
    pub site: Site,
    /// The checks of the calls, in source order; as in [`KernelStep::checks`](crate::KernelStep::checks).
    pub checks: Vec<Check>,
}

impl LibraryStep {
    /// The number of parts of a call, which threads and devices can make separately. `resolve` gives a device's numbers.
    pub fn parts(&self, resolve: impl Fn(&Scalar) -> i64) -> i64 {
        let Some(dim) = self.function.divided() else { return 1 };
        self.results.first().and_then(|result| result.dims.get(dim)).map_or(1, |dim| resolve(&dim.extent))
    }

    /// The parts that a device computes of the parts that it shares with others.
    pub fn share(&self, mesh: &DeviceMesh, device: usize) -> std::ops::Range<i64> {
        let batch: i64 = self.batch.iter().map(|extent| mesh.resolve(extent, device)).product();
        let all = batch * self.parts(|scalar| mesh.resolve(scalar, device));
        let (rank, count) = mesh.rank(device, self.split);
        share(all, rank, count)
    }
}

/// An array of one call, and its distance from the array of the next call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibraryArray {
    /// The place of the device's block.
    pub place: Place,
    /// The element type.
    pub dtype: DType,
    /// Strides along the batch dimensions, in elements; 0 along dimensions that the array does not have.
    pub batch: Vec<i64>,
    /// The dimensions of the array of one call.
    pub dims: Vec<LibraryDim>,
}

/// A dimension of the array of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibraryDim {
    /// Elements on the device; of an operand with owners, on the owner.
    pub extent: Scalar,
    /// The distance between elements, in elements of the array; not negative.
    pub stride: i64,
}

/// The devices whose operands a call reads: it gets the blocks of all devices along the axes, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibraryOwners {
    /// The axes, major to minor.
    pub axes: Vec<u8>,
    /// The kind of the collective in reports.
    pub kind: CollectiveKind,
    /// Bytes of one device's operands, for `--stats`.
    pub bytes: u64,
}

/// A function of the runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LibraryFunction {
    /// Sorts lines: see [`SortLines`].
    Sort(SortLines),
    /// Combines sorted lines of several devices: see [`MergeLines`].
    Merge(MergeLines),
    /// Writes or combines elements at indices: see [`ScatterRows`].
    Scatter(ScatterRows),
    /// Factorizes matrices, or solves with them: see [`MatrixFunction`].
    Matrix(MatrixFunction),
    /// Reads rows of a stream: see [`StreamRows`].
    Rows(StreamRows),
    /// Sends the only operand to the devices of another mesh, without a result.
    Send(Message),
    /// Receives the only result from the devices of another mesh, without an operand.
    Receive(Message),
    /// A Fourier transform: every operand and every result is a line of the same length, at least 1.
    Fft(Transform),
    /// Takes the first elements of lines in an order: see [`SelectLines`].
    Select(SelectLines),
}

/// A discrete Fourier transform of a line, not scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transform {
    /// Of complex numbers, whose real and imaginary parts are two lines, or of real numbers; the results are two lines.
    Complex {
        /// Whether the exponents are positive.
        inverse: bool,
    },
    /// Of `n` real numbers: the real parts of the elements 0 to n/2, then the imaginary parts of the elements before n/2, from the
    /// last to element 1.
    OfReal,
    /// The inverse of that.
    ToReal,
}

impl LibraryFunction {
    /// Whether the last result is scratch memory divided into slots, which the threads of a device use for one call after another.
    /// Otherwise each call has its own scratch memory.
    pub fn has_slots(&self) -> bool {
        match self {
            LibraryFunction::Matrix(_) => true,
            LibraryFunction::Sort(_)
            | LibraryFunction::Merge(_)
            | LibraryFunction::Select(_)
            | LibraryFunction::Scatter(_)
            | LibraryFunction::Rows(_)
            | LibraryFunction::Send(_)
            | LibraryFunction::Receive(_)
            | LibraryFunction::Fft(_) => false,
        }
    }

    /// The dimension of the first result along which a call may be cut into parts, each made by one thread; None if it is made as a
    /// whole.
    pub fn divided(&self) -> Option<usize> {
        match self {
            LibraryFunction::Sort(_)
            | LibraryFunction::Merge(_)
            | LibraryFunction::Matrix(_)
            | LibraryFunction::Fft(_) => None,
            LibraryFunction::Select(_) => Some(0),
            LibraryFunction::Scatter(ScatterRows { divided: ScatterParts::Result(dim), .. }) => Some(*dim),
            LibraryFunction::Scatter(ScatterRows { divided: ScatterParts::Updates, .. }) => Some(0),
            LibraryFunction::Send(_) => None,
            LibraryFunction::Receive(message) => (!message.layout.dims.is_empty()).then_some(0),
            // The dimensions of a row alone are read as a whole.
            LibraryFunction::Rows(rows) => rows.has_several.then_some(0),
        }
    }
}

/// A stable sort of lines of elements by one or several keys: the results are the operands in the order of the first operands.
/// NaNs are equal and larger than all numbers. Every operand and every result is a line of the same length.
///
/// The scratch memory is one contiguous line: see [`SortLines::scratch`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SortLines {
    /// The number of operands that are keys; the first key decides first.
    pub keys: usize,
    /// Whether the largest comes first. Equal elements stay in their order.
    pub descending: bool,
    /// Whether -0 is less than 0, not equal to it.
    pub signed_zeros: bool,
}

impl SortLines {
    /// The scratch memory for sorting lines of `len` elements of these types: its type and number of elements.
    ///
    /// A lone line needs another of its size, and one more if the elements of the result are not contiguous. Several lines are sorted
    /// by two arrays of records, each a key of 32 or 64 bits and a place.
    pub fn scratch(&self, operands: &[DType], contiguous: bool, len: u64) -> (DType, u64) {
        debug_assert!((1..=operands.len()).contains(&self.keys), "{} keys of {}", self.keys, operands.len());
        match operands {
            [dtype] => (*dtype, if contiguous { len } else { 2 * len }),
            _ if self.has_wide_keys(operands) => (DType::I64, 4 * len),
            _ => (DType::I64, 2 * len),
        }
    }

    /// Whether records need 64 bits for keys.
    pub fn has_wide_keys(&self, operands: &[DType]) -> bool {
        operands.iter().take(self.keys).any(|dtype| dtype.width() == Width::W64)
    }
}

/// Takes from each piece of a line its first elements in an order, as [`SortLines`] sorts them. Every operand is a line of the same length,
/// and the first one has the keys. The results are those elements of each operand, then the places of those elements if they are wanted:
/// arrays of the pieces and their elements. The pieces are shares of about the same length.
///
/// The scratch memory is an i64 array: for each piece as many elements as [`SelectLines::scratch`] says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectLines {
    /// The order, by one key.
    pub order: SortLines,
    /// The index of the first element of the device's block, if places are wanted, as i32.
    pub first: Option<Scalar>,
}

impl SelectLines {
    /// The elements that are held at a time to find `count` of them: at least twice as many, so that moving them costs a constant for
    /// each element of the line.
    pub fn candidates(count: u64) -> u64 {
        2 * count + 64
    }

    /// The scratch memory for `count` elements with keys of this type, in elements of i64.
    pub fn scratch(key: DType, count: u64) -> u64 {
        let words = if key.width() == Width::W64 { 2 } else { 1 };
        (words * SelectLines::candidates(count)).next_multiple_of(8)
    }
}

/// Combines updates into the elements of the result at their indices, in the order of the updates.
///
/// The dimensions of the result are the `n` indexed ones, then the dimensions of a row. The first operand is the updates, with the
/// dimensions of the index arrays followed by the dimensions of a row. The other `n` operands are the index arrays, of integers, with the
/// same extents. An update is skipped if its index is not in the device's block of an indexed dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScatterRows {
    /// The operation; None: the last update of an element replaces it.
    pub combine: Option<ReduceOp>,
    /// The bits with which all elements of the result begin; None: it has elements.
    pub start: Option<u64>,
    /// For each indexed dimension, the index of the first element of the device's block.
    pub first: Vec<Scalar>,
    /// For each indexed dimension, the meaning of its index array.
    pub indices: Vec<ScatterIndex>,
    /// The parts into which calls are cut.
    pub divided: ScatterParts,
}

/// The meaning of the elements of an index array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScatterIndex {
    /// The index; a negative one selects no element.
    Plain,
    /// The index; 0, if it is negative.
    AtLeastZero,
    /// The index, counted from the end of the dimension if it is negative. The number identifies the step's check for this dimension.
    Checked(usize),
}

/// The parts of a [`ScatterRows`], each computed by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScatterParts {
    /// The elements of the result along this dimension: each part scans all indices.
    Result(usize),
    /// The updates, in shares of about the same size: the result has a dimension in front, with an array for each of them.
    Updates,
}

/// Takes elements of the joint sorted order of all owners' lines, each of which is sorted by [`SortLines`]; among equal elements, the first
/// owner's come first. The scratch memory is the scratch memory for sorting the results, followed by [`MergeLines::SPLITS`] numbers of i64
/// for each owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeLines {
    /// The order of the lines.
    pub order: SortLines,
    /// The positions in the sorted order.
    pub taken: TakenPlaces,
}

impl MergeLines {
    /// Numbers for each owner, in scratch memory.
    pub const SPLITS: usize = 4;
}

/// Positions in a sorted order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TakenPlaces {
    /// As many as the result has, from this one on.
    From(Scalar),
    /// These, in this order.
    Places(Vec<i64>),
}
