//! The interface between compiler and runtime: a program as data, and the signature of its kernels.
//!
//! All loops over elements are native code: *kernels*, one function per loop nest. Everything around them (the order of kernels and
//! collectives, loops and branches over whole arrays) is the *schedule*: a tree of [`Step`]s, the same for every device. A device runs the
//! schedule until it must wait for others; its worker thread then continues with another device. So a device needs neither a thread nor a
//! stack, and a barrier costs a counter.
//!
//! # Memory
//! Every buffer has a [`Place`]: an arena and a byte offset, fixed at compile time and equal on all devices. An arena exists once for each
//! combination of coordinates along its `axes`; devices that differ only along other axes share it. A value split over X alone thus exists
//! once per X coordinate, and a replicated one once per process. Devices that share a buffer also share the work of filling it (`split`),
//! with a [`Step::Sync`] before and after.
//!
//! A block is stored row-major in the shape of the *largest* block (`ceil(N / n)` per dimension), so strides are compile-time constants.
//! The valid length on a device is a [`Scalar`] that the loader resolves once per device.
#![warn(missing_docs)]

mod codes;
mod components;
mod dtype;
mod encoded;
mod features;
mod float_format;
mod format;
mod library;
mod matrix;
pub mod mesh;
mod mesh_programs;
mod panels;
mod products;
pub mod sorted;
mod streams;
pub mod threefry;
mod tiles;
pub mod trap;
mod visit;
pub mod words;

use serde::{Deserialize, Serialize};

pub use codes::RunCode;
pub use components::Component;
pub use dtype::{DType, Kind, Stored, Width};
pub use encoded::EncodedProgram;
pub use features::CPU_FEATURES;
pub use float_format::FloatFormat;
pub use format::{Align, Form, Piece, Spec, pieces, places};
pub use library::{
    LibraryArray, LibraryDim, LibraryFunction, LibraryOwners, LibraryStep, MergeLines, ScatterIndex, ScatterParts,
    ScatterRows, SelectLines, SortLines, TakenPlaces, Transform,
};
pub use matrix::{MATRICES_SIDE_BY_SIDE, MatrixFunction, RIGHT_SIDES, SIDE_BY_SIDE, TriangularSystem};
pub use mesh_programs::{Channel, MeshProgram, Message};
pub use panels::GroupPanels;
pub use products::{GemmDim, GemmRing, GemmStep, product_elements};
pub use streams::StreamRows;
pub use tiles::{TileBuffer, TileKernel, TileMember, TileProduct, TileRows, TileStep};

/// Bumped whenever the encoding of [`Program`] changes; checked when a program is decoded.
pub const ABI_VERSION: u32 = 29;

/// The index counted from the start of a dimension, for one that may be negative; None unless this element and the `len - 1` after
/// it exist.
pub fn counted_index(index: i128, extent: i128, len: i128) -> Option<i128> {
    let counted = if index < 0 { index + extent } else { index };
    (0..=extent - len).contains(&counted).then_some(counted)
}

/// The message for an index that is out of bounds.
pub fn out_of_bounds(index: i128, extent: i128, len: i128) -> String {
    match len {
        1 => format!("index {index} is out of bounds for a dimension of size {extent}"),
        len => format!("a slice of {len} elements at index {index} is out of bounds for a dimension of size {extent}"),
    }
}

/// One loop nest: `begin..end` is a part of the range that [`Step::Kernel`] names; `buffers` and `scalars` are in that step's
/// order. Returns 0, or a [`trap`] code. Stores may bypass the caches, in no order with others: the caller orders them before it lets
/// another thread read the results.
pub type KernelFn = unsafe extern "C" fn(buffers: *const *mut u8, scalars: *const i64, begin: i64, end: i64) -> i64;

/// The kernels of a program, in the order of [`Program::kernels`].
#[derive(Clone, Debug)]
pub struct Kernels(Vec<KernelFn>);

impl Kernels {
    /// # Safety
    /// These must be the kernels of the one program that they are loaded with, and stay in memory as long as they are used. Each kernel,
    /// called with the buffers and scalars of a step for any part of its range, may touch only the parts of these buffers that the program
    /// assigns to it. The steps of the program must be ordered, by `Sync` steps and collectives, so that no device writes memory that
    /// another one may be using.
    pub unsafe fn new(functions: Vec<KernelFn>) -> Kernels {
        Kernels(functions)
    }

    /// The functions, in the order of [`Program::kernels`].
    pub fn functions(&self) -> &[KernelFn] {
        &self.0
    }
}

/// A program in an object file: the argument of the runtime's entry functions. The compiler writes it word by word.
#[repr(C)]
#[derive(Debug)]
pub struct Image {
    /// An encoded [`Program`].
    pub program: *const u8,
    /// Bytes of the encoded program.
    pub program_len: u64,
    /// The table of kernels.
    pub kernels: *const KernelFn,
    /// The number of entries of that table, in the order of [`Program::kernels`].
    pub kernel_count: u64,
    /// The features of the processor that the kernels need: a bit for each of [`CPU_FEATURES`].
    pub features: u64,
    /// A table of the same kernels for processors with more features, for instance with wider vectors. It has as many entries, whose
    /// results have the same bits.
    pub wide_kernels: *const KernelFn,
    /// The features that these need; 0 if such a table does not exist.
    pub wide_features: u64,
    /// The addresses of the components of the runtime that the program needs, in the order of [`Program::components`].
    pub components: *const *const core::ffi::c_void,
    /// The number of components.
    pub component_count: u64,
}

/// A check in the body of a kernel, which continues after a failure and returns a [`trap`] code at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The source position of the statement.
    pub site: Site,
    /// The checked condition.
    pub of: Checked,
}

/// The condition that a kernel checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Checked {
    /// An index into a dimension, counted from its end if negative.
    Index {
        /// The size of the dimension.
        extent: i64,
    },
    /// The divisor of integers: not zero.
    Divisor,
}

/// A set of mesh axes, by bit: axis `i` of [`Program::mesh`] is bit `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AxisSet(pub u32);

impl AxisSet {
    /// No axes.
    pub const EMPTY: AxisSet = AxisSet(0);

    /// A single axis, by its index in the mesh: less than 32.
    pub fn of(axis: usize) -> AxisSet {
        AxisSet(1 << axis)
    }

    /// The first `n` axes.
    pub fn all(n: usize) -> AxisSet {
        AxisSet(((1u64 << n) - 1) as u32)
    }

    /// Whether the axis is in the set; its index is less than 32.
    pub fn contains(self, axis: usize) -> bool {
        self.0 & (1 << axis) != 0
    }

    /// Whether no axis is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The axes that are in either set.
    pub fn union(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 | other.0)
    }

    /// The axes that are in both sets.
    pub fn intersect(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 & other.0)
    }

    /// The axes that are in this set and not in the other.
    pub fn minus(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 & !other.0)
    }

    /// The axes that are in one of both sets and not in the other one.
    pub fn either(self, other: AxisSet) -> AxisSet {
        AxisSet(self.0 ^ other.0)
    }

    /// Whether every axis of this set is in the other.
    pub fn is_subset_of(self, other: AxisSet) -> bool {
        self.minus(other).is_empty()
    }

    /// The number of axes in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The axes in mesh order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&axis| self.contains(axis))
    }
}

impl FromIterator<usize> for AxisSet {
    fn from_iter<I: IntoIterator<Item = usize>>(axes: I) -> AxisSet {
        axes.into_iter().fold(AxisSet::EMPTY, |set, axis| set.union(AxisSet::of(axis)))
    }
}

/// One axis of the mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeshAxis {
    /// The name in the source.
    pub name: String,
    /// Devices along the axis.
    pub size: usize,
}

/// A compiled program, without the machine code of its kernels. Device `d` has the row-major coordinates of `d` in `mesh`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The [`ABI_VERSION`] of the compiler; the runtime refuses any other than its own.
    pub abi_version: u32,
    /// The name of the entry function.
    pub entry: String,
    /// Source files, as the user named them; [`Site::file`] indexes them.
    pub files: Vec<String>,
    /// The axes of the mesh, major to minor: the last one varies fastest in device numbers.
    pub mesh: Vec<MeshAxis>,
    /// The arenas of memory; [`Place::arena`] indexes them.
    pub arenas: Vec<Arena>,
    /// The contents of the arenas, for messages and reports: an out-of-memory error names the largest.
    pub buffers: Vec<BufferInfo>,
    /// The parameters of the entry function, in order.
    pub params: Vec<Binding>,
    /// The results of the entry function, in order.
    pub results: Vec<Binding>,
    /// Constants, written once before the first run.
    pub constants: Vec<ConstantData>,
    /// The schedule, the same for every device.
    pub body: Vec<Step>,
    /// Names of the kernels, in the order of their function table.
    pub kernels: Vec<String>,
    /// A hash of the program and its kernels, but for the names of files and times.
    pub fingerprint: u64,
    /// Milliseconds of compilation, for `--stats`.
    pub compile_ms: f64,
    /// The programs of several meshes, which run concurrently instead of steps of this one. This program then has no steps, arenas,
    /// constants or axes, its parameters and results have no memory, and its kernels are the kernels of all parts.
    pub mesh_programs: Vec<MeshProgram>,
    /// The numbers of all devices of several meshes, in ascending order, also of those on which nothing happens.
    pub devices: Vec<u32>,
    /// The transfers between the parts.
    pub channels: Vec<Channel>,
}

/// An arena of memory that the compiler has planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arena {
    /// The axes along which each coordinate has its own copy.
    pub axes: AxisSet,
    /// Size of one copy.
    pub bytes: u64,
}

/// One buffer of an arena, for messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferInfo {
    /// The user's name for the value, or the operation that made it.
    pub name: String,
    /// The type as printed in messages, with its sharding.
    pub ty: String,
    /// The place of the buffer.
    pub place: Place,
    /// Size of the buffer in one copy of its arena.
    pub bytes: u64,
    /// The statement that makes the value; line 0 for temporaries of the compiler.
    pub site: Site,
}

/// A parameter or result of the entry function. Structs and tuples come as one binding per leaf, named by path: `p.w`, `0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The path of the leaf.
    pub name: String,
    /// Its path in the JAX program from which it comes: `state.params['w']`.
    pub second_name: Option<String>,
    /// As printed, with its sharding: `f32[8@X, 8@Y]`; both planes of complex numbers have the type of these.
    pub ty: String,
    /// Set for a plane of complex numbers: two bindings of one name, the real one first, are one array.
    pub plane: Option<Plane>,
    /// Element type, shape and sharding of the whole array.
    pub layout: Layout,
    /// The place of a device's block; None for a stream, which stays in its file.
    pub place: Option<Place>,
}

/// A plane of an array of complex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plane {
    /// The real parts.
    Real,
    /// The imaginary parts.
    Imaginary,
}

impl Plane {
    /// Both, in the order of their arrays.
    pub const BOTH: [Plane; 2] = [Plane::Real, Plane::Imaginary];

    /// The name of the plane as a part of the array: `re`, `im`.
    pub fn name(self) -> &'static str {
        match self {
            Plane::Real => "re",
            Plane::Imaginary => "im",
        }
    }
}

/// The elements of a constant: no step writes their place, in any instance of its arena.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantData {
    /// The place of the elements.
    pub place: Place,
    /// The bytes of the elements.
    pub bytes: Vec<u8>,
}

/// A source position; line and column are one-based, 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// An index of [`Program::files`].
    pub file: u16,
    /// The line, from 1 on; 0 if unknown.
    pub line: u32,
    /// The column in characters, from 1 on; 0 if unknown.
    pub column: u32,
}

/// A buffer: on a device, `base of its instance of the arena + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// An index of [`Program::arenas`].
    pub arena: u16,
    /// In bytes, a multiple of 64.
    pub offset: u64,
}

/// The distribution of a whole array over the devices: for each dimension its size and the axes that split it, major to minor.
///
/// With `n` the product of the axes' sizes, blocks have `b = ceil(size / n)` elements, and the device with linear coordinate
/// `t` along the axes holds `[min(t*b, size), min((t+1)*b, size))`: flat over several axes, trailing blocks perhaps empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, outermost first; empty for a scalar.
    pub dims: Vec<LayoutDim>,
}

/// One dimension of a whole array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LayoutDim {
    /// Elements of the whole dimension, not of a block.
    pub size: usize,
    /// The axes that split it, by index in the mesh, major to minor; empty if it is not split.
    pub axes: Vec<u8>,
}

/// A number that the loader resolves once per device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// The same on all devices.
    Const(i64),
    /// The length of this device's block of the dimension.
    BlockLen(LayoutDim),
    /// The index of the first element of this device's block.
    BlockStart(LayoutDim),
    /// This device's linear coordinate along the axes, major to minor.
    Coordinate(Vec<u8>),
    /// The entry at this device's linear coordinate along the axes.
    Table {
        /// The axes, major to minor.
        axes: Vec<u8>,
        /// One entry for each combination of coordinates along the axes.
        values: Vec<i64>,
    },
    /// The sum; wraps.
    Add(Box<Scalar>, Box<Scalar>),
    /// The product; wraps.
    Mul(Box<Scalar>, Box<Scalar>),
    /// The smaller of the two.
    Min(Box<Scalar>, Box<Scalar>),
    /// The larger of the two.
    Max(Box<Scalar>, Box<Scalar>),
}

/// An integer whose value is known when the step runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Bound {
    /// Known at compile time.
    Const(i64),
    /// A scalar of an integer type in memory.
    Memory(Place, DType),
}

impl Bound {
    /// The trip count of a loop from `start` up to `end`; None if it is only known when the loop runs.
    pub fn trips(start: &Bound, end: &Bound) -> Option<u64> {
        match (start, end) {
            (Bound::Const(start), Bound::Const(end)) => Some(end.saturating_sub(*start).max(0) as u64),
            (Bound::Const(_) | Bound::Memory(..), Bound::Const(_) | Bound::Memory(..)) => None,
        }
    }
}

/// One entry of the schedule. Devices run the entries of a list in order.
// Steps are built once and then only read; boxing each would cost more than the memory.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// A loop nest as native code.
    Kernel(KernelStep),
    /// Kernels with one range and one `split`, none of which stops the program. All run for one panel of the range, then for the next, so
    /// that intermediate results stay in the cache. On panel `p` each kernel runs for the units of the range between `p * panel - lag` and
    /// `(p + 1) * panel - lag`.
    ///
    /// Without lags, consider the elements that one kernel writes and another kernel uses. For any part of the range, the second kernel
    /// uses only elements that the first kernel writes for the same part. With lags, unit `i` of the later kernel uses only elements that
    /// the earlier kernel writes for units up to `i` plus the difference of the lags. The earlier kernel does not use elements that unit
    /// `i` writes for later units. With lags, devices do not divide the range, and kernels may have several ranges.
    Panels {
        /// At least one, in the order in which they run on each panel.
        kernels: Vec<KernelStep>,
        /// For each kernel, the units of the range by which it stays behind.
        lags: Vec<u64>,
        /// Units of the range in a panel.
        panel: u64,
    },
    /// Kernels and reductions that groups of devices run panel by panel, each device for all members of its group.
    GroupPanels(GroupPanels),
    /// Kernels and products that run tile by tile.
    Tiles(Box<TileStep>),
    /// A matrix product done by the library.
    Gemm(GemmStep),
    /// A function of the runtime on whole lines or matrices.
    Library(LibraryStep),
    /// Moves blocks between the devices of each group into the layout of `to`: every device fetches exact ranges.
    Exchange(ExchangeStep),
    /// Combines partial values of the devices along `reduce`: pairs of neighbours by device number, then pairs of pairs.
    Reduce(ReduceStep),
    /// Permutes whole local buffers between the members of each group.
    Permute(PermuteStep),
    /// Fetches parts of the blocks of other devices, such as neighbouring rows.
    Fetch(FetchStep),
    /// A barrier: waits until every device of the group (all devices that differ from this one along `group` only) has arrived.
    /// Collectives themselves do not wait: a barrier separates a device's access to memory from a conflicting access of another
    /// device.
    Sync {
        /// The axes along which the devices of the group differ.
        group: AxisSet,
        /// The collective that needs the barrier; None if a step of another kind does.
        kind: Option<CollectiveKind>,
        /// The statement that needs the barrier.
        site: Site,
    },
    /// Arrives at a barrier without waiting: the first half of a [`Step::Sync`]. The [`Step::Await`] of the same group follows in
    /// the same list, with no other barrier of that group and no loop or branch between. The barrier does not order the accesses
    /// that the device makes between the two.
    Post {
        /// The axes along which the devices of the group differ.
        group: AxisSet,
        /// The statement that needs the barrier.
        site: Site,
    },
    /// Waits until every device of the group has posted.
    Await {
        /// The axes along which the devices of the group differ.
        group: AxisSet,
        /// The collective that needs the barrier; None if a step of another kind does.
        kind: Option<CollectiveKind>,
        /// The statement that needs the barrier.
        site: Site,
    },
    /// Copies `bytes` within the device's memory. Devices that share `to` divide the work as in [`KernelStep::split`].
    Copy {
        /// The first byte that is read.
        from: Place,
        /// The first byte that is written.
        to: Place,
        /// The number of bytes.
        bytes: u64,
        /// Devices that differ along these axes only share `to`.
        split: AxisSet,
    },
    /// Checks that `i + (i < 0 ? extent : 0)` and the `len - 1` indices after it are among `0..extent`, and writes the sum to `to`
    /// as i64; stops the program otherwise.
    CheckIndex {
        /// A scalar: the index `i`, which may be negative.
        index: Place,
        /// The integer type of the index.
        dtype: DType,
        /// Elements of the dimension.
        extent: i64,
        /// The number of elements used from the index on: 1 for an index, more for a slice.
        len: i64,
        /// An i64 scalar: the index, counted from the front.
        to: Place,
        /// The statement with the index, for the message.
        site: Site,
    },
    /// `counter` (an i32 scalar) takes the values `start..end`. Its arena has all axes: without a barrier between trips, one device
    /// may begin its next trip while another still reads its counter.
    For {
        /// The i32 scalar that holds the current value.
        counter: Place,
        /// The first value.
        start: Bound,
        /// The exclusive end; the body does not run if it is not above `start`.
        end: Bound,
        /// One trip.
        body: Vec<Step>,
        /// The loop in the source.
        site: Site,
    },
    /// Runs `cond`, then reads the bool `flag`; while it is true, runs `body` and starts again.
    While {
        /// The steps that compute `flag`.
        cond: Vec<Step>,
        /// A bool scalar: whether there is another trip.
        flag: Place,
        /// One trip.
        body: Vec<Step>,
        /// The loop in the source.
        site: Site,
    },
    /// Runs one of two lists of steps.
    If {
        /// A bool scalar that chooses.
        flag: Place,
        /// The steps that run if the flag is true.
        then: Vec<Step>,
        /// The steps that run if the flag is false; may be empty.
        otherwise: Vec<Step>,
        /// The branch in the source.
        site: Site,
    },
    /// Makes a text once per process, in program order: each [`Piece::Value`] is replaced by the next value, in NumPy's format unless the
    /// specification says otherwise.
    Print {
        /// The text with placeholders for values: see [`pieces`].
        text: String,
        /// The values, in the order of their placeholders; a condition comes before them, and the arrays of a file after them.
        values: Vec<PrintValue>,
        /// The purpose of the text.
        purpose: TextPurpose,
        /// The statement that prints, asserts or saves.
        site: Site,
    },
}

/// The purpose of the text of a [`Step::Print`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TextPurpose {
    /// A line of output.
    Line,
    /// The error with which the program stops if the first value, a bool, is false.
    Error,
    /// The name of a file that keeps these arrays.
    FileName(Vec<SavedArray>),
}

/// An array in a file that a program saves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedArray {
    /// Its name in the file, such as `layers.0.w`.
    pub name: String,
    /// Whether two values are its real and imaginary parts.
    pub complex: bool,
}

impl SavedArray {
    /// The number of values that it is made of.
    pub fn values(&self) -> usize {
        if self.complex { 2 } else { 1 }
    }
}

/// A value of [`Step::Print`]: the whole array is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrintValue {
    /// The place of a device's block.
    pub place: Place,
    /// Element type, shape and sharding.
    pub layout: Layout,
    /// Axes along which devices may hold different values (inside `manual`): one line for each of their coordinates.
    pub varying: AxisSet,
}

/// A call of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelStep {
    /// An index of [`Program::kernels`].
    pub kernel: u32,
    /// The buffers of the kernel, in the order of its parameters.
    pub buffers: Vec<Place>,
    /// The scalar arguments of the kernel, in the order of its parameters.
    pub scalars: Vec<Scalar>,
    /// The range; the kernel is called for parts of `0..range`.
    pub range: Scalar,
    /// The units of `range` that the kernel computes; None for all of them.
    pub part: Option<RangePart>,
    /// Devices that differ along these axes only share the written buffers: `range` is divided among them, and each calls the
    /// kernel for those units of its share that are in `part`. So `range` is equal on all of them; `part` need not be.
    pub split: AxisSet,
    /// The number of units of `range`, from its first one on, that one device and one thread compute together, because they use
    /// adjacent memory. At least 1.
    pub grain: u32,
    /// Estimated nanoseconds per unit of the range, so that tiny kernels are not spread over threads.
    pub cost: f32,
    /// The statement that the kernel computes; of several that are fused, the last.
    pub site: Site,
    /// The kernel's checks, in source order: see [`trap::code`].
    pub checks: Vec<Check>,
}

/// Units `first..first + len` of a range: unit 0 of a kernel that was cut out of a larger one is unit `first` of the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangePart {
    /// The first unit of the part, in the whole range.
    pub first: Scalar,
    /// The number of units.
    pub len: Scalar,
}

/// The kinds of collectives in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CollectiveKind {
    /// Every device of a group receives the combination of all their partial values.
    AllReduce,
    /// Every device of a group receives the blocks of all of them.
    AllGather,
    /// Partial values are combined; every device of a group keeps one part of the combination.
    ReduceScatter,
    /// Every device of a group receives a part of each block: another dimension is split.
    AllToAll,
    /// Every device receives data of particular other devices of its group.
    CollectivePermute,
    /// A value is sent to the devices of another mesh.
    Transfer,
}

impl ReduceOp {
    /// All operations, in the order of the variants.
    pub const ALL: [ReduceOp; 6] =
        [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min, ReduceOp::And, ReduceOp::Or];

    /// The name in symbols, such as `sum`.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Product => "product",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::And => "and",
            ReduceOp::Or => "or",
        }
    }
}

impl CollectiveKind {
    /// All kinds, in the order of the variants.
    pub const ALL: [CollectiveKind; 6] = [
        CollectiveKind::AllReduce,
        CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter,
        CollectiveKind::AllToAll,
        CollectiveKind::CollectivePermute,
        CollectiveKind::Transfer,
    ];

    /// The name in listings, such as `all_reduce`.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::AllToAll => "all_to_all",
            CollectiveKind::CollectivePermute => "collective_permute",
            CollectiveKind::Transfer => "transfer",
        }
    }
}

/// One side of a collective. The arena of a side has at least the axes that split the value. A device that shares the target takes
/// part in the collective, whether in its group or not, and writes a part of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shards {
    /// The place of a device's block.
    pub place: Place,
    /// The layout of the whole array.
    pub layout: Layout,
}

/// A change of the sharding of an array: see [`Step::Exchange`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExchangeStep {
    /// The kind of the collective in reports.
    pub kind: CollectiveKind,
    /// The axes along which the devices of a group differ.
    pub group: AxisSet,
    /// The blocks before the change.
    pub from: Shards,
    /// The blocks after the change.
    pub to: Shards,
    /// Bytes of one device's operand, for `--stats`.
    pub bytes: u64,
    /// Whether it is the first part of a collective, or all of it, and so counts as one.
    pub counts: bool,
    /// The statement that communicates.
    pub site: Site,
}

/// The operation that combines partial values, element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReduceOp {
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Product,
    /// The maximum; NaN if an operand is NaN.
    Max,
    /// The minimum; NaN if an operand is NaN.
    Min,
    /// Logical and, of bools only.
    And,
    /// Logical or, of bools only.
    Or,
}

/// A combination of partial values: see [`Step::Reduce`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReduceStep {
    /// The kind of the collective in reports.
    pub kind: CollectiveKind,
    /// The operation that combines the partial values.
    pub op: ReduceOp,
    /// The axes along which the devices of a group differ; a superset of `reduce`.
    pub group: AxisSet,
    /// The axes along which every device holds a partial value.
    pub reduce: AxisSet,
    /// The partial values.
    pub from: Shards,
    /// The combined value, in its layout on the devices.
    pub to: Shards,
    /// Bytes of one device's operand, for `--stats`.
    pub bytes: u64,
    /// As in [`ExchangeStep::counts`].
    pub counts: bool,
    /// The product that computes the partial values, if nothing else uses them: devices may compute it in the course of the reduction, each
    /// for others too. The barrier before the step orders the operands as well.
    pub product: Option<Box<GemmStep>>,
    /// The statement that communicates.
    pub site: Site,
}

/// A permutation of whole local buffers: see [`Step::Permute`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermuteStep {
    /// The axes of the group, major to minor, which number its positions.
    pub axes: Vec<u8>,
    /// For each position in the group, the position whose buffer it receives; None for zeros.
    pub source: Vec<Option<u32>>,
    /// The buffer that other devices receive.
    pub from: Place,
    /// The buffer that the device fills.
    pub to: Place,
    /// Bytes of the local buffer.
    pub bytes: u64,
    /// The statement that communicates.
    pub site: Site,
}

/// Every device copies boxes from the blocks of others into its own buffers. Other elements of these buffers are unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchStep {
    /// The kind of the collective in reports.
    pub kind: CollectiveKind,
    /// The axes along which the devices of a group differ; a group holds all elements that its devices copy.
    pub group: AxisSet,
    /// The boxes that every device copies.
    pub parts: Vec<FetchBoxes>,
    /// Maximum bytes provided by any device, for `--stats`.
    pub bytes: u64,
    /// The statement that communicates.
    pub site: Site,
}

/// The boxes copied from one buffer into another: all combinations of one [`FetchRun`] for each dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchBoxes {
    /// The element type of both buffers.
    pub dtype: DType,
    /// The buffer of the owners.
    pub from: Place,
    /// The buffer of the device that copies.
    pub to: Place,
    /// The dimensions of both buffers, outermost first.
    pub dims: Vec<FetchDim>,
}

/// One dimension of the boxes of a [`FetchBoxes`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchDim {
    /// Stored length of the dimension in the buffer that is read.
    pub from_len: usize,
    /// Stored length of the dimension in the buffer that is written.
    pub to_len: usize,
    /// The axes, major to minor, along which the owners of a run have positions.
    pub owners: Vec<u8>,
    /// The axes, major to minor, along which devices copy different runs.
    pub axes: Vec<u8>,
    /// For each position along `axes`, the runs to copy.
    pub runs: Vec<Vec<FetchRun>>,
}

/// Elements `from`, `from + step`, ... of the owner's block are copied to `to`, `to + 1`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRun {
    /// A position along [`FetchDim::owners`].
    pub owner: u32,
    /// The first index in the owner's block.
    pub from: usize,
    /// The distance between elements in the owner's block; negative: backwards.
    pub step: i64,
    /// The first index in the buffer that is written.
    pub to: usize,
    /// The number of elements.
    pub len: usize,
}
