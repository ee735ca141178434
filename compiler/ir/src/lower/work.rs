//! From the partitioned program to the schedule: the order of kernels and their buffers.

use crate::lower::builder::{KernelBuilder, KernelContext};
use crate::lower::calls::LibraryCalls;
use crate::lower::cutout::Cutout;
use crate::lower::peel::each_affine;
pub use crate::lower::product::{Product, ProductDim};
use crate::lower::tiles::TiledGroup;
use crate::op::Op;
use crate::program::origin::Origin;
use crate::program::{Func, Stmt, Value};
use spmdc_abi::{CollectiveKind, DType, FetchDim, Layout, LayoutDim, ReduceOp, TextPurpose};
use spmdc_kernel::loops::{Affine, Extent, Kernel, LoopDim};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{AxisSet, Type};
use std::cell::OnceCell;

/// One side of a collective: a buffer, and the layout of the array that it holds a block of. Inside `manual` this array may be
/// larger than the value's type says: the blocks of all devices together.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The value whose buffer it is.
    pub value: Value,
    /// The layout of the whole array on the devices.
    pub layout: Layout,
}

/// The elements that devices fetch from the blocks of one value into those of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    /// The value whose blocks are read.
    pub from: Value,
    /// The value whose block is written.
    pub to: Value,
    /// The element type of both.
    pub dtype: DType,
    /// For each dimension the runs that are copied.
    pub dims: Vec<FetchDim>,
}

/// One unit of work, in terms of values; memory and machine code come later.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A loop nest over some buffers.
    Kernel {
        /// The loop nest.
        kernel: Kernel,
        /// The values of the kernel's buffers, in their order.
        buffers: Vec<Value>,
        /// The position of its range in the range of a larger kernel; None if it is not a cutout.
        cutout: Option<Cutout>,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// A matrix product by the library.
    Product {
        /// The operands, the result and the loops.
        product: Product,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// Kernels and products that run tile by tile.
    Tiles {
        /// The parts and their tiles.
        tiles: Box<TiledGroup>,
        /// The statement of the first product.
        origin: Origin,
    },
    /// Calls of a function of the runtime.
    Library {
        /// The function and its arrays.
        calls: Box<LibraryCalls>,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// `to` is the same bytes as `from`: a reshape, a squeeze.
    Alias {
        /// The value that is computed.
        from: Value,
        /// The value that shares its bytes.
        to: Value,
    },
    /// The bytes of `from`, in the buffer of `to`.
    Copy {
        /// The value that is read.
        from: Value,
        /// The value that is written; its block has as many bytes.
        to: Value,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// Fixed bytes of the buffer of `to`; no work.
    Constant {
        /// The value with these bytes.
        to: Value,
        /// The elements of its block, row-major and little-endian.
        bytes: Vec<u8>,
    },
    /// As [`spmdc_abi::ExchangeStep`].
    Exchange {
        /// The kind of the collective in reports.
        kind: CollectiveKind,
        /// The axes along which the devices of a group differ.
        group: AxisSet,
        /// The blocks that are read.
        from: Side,
        /// The blocks that are written.
        to: Side,
        /// Whether it is the first part of a collective, or all of it, and so counts as one.
        counts: bool,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// As [`spmdc_abi::ReduceStep`].
    Reduce {
        /// The kind of the collective in reports.
        kind: CollectiveKind,
        /// The operation that combines the partial values.
        op: ReduceOp,
        /// The axes along which the devices of a group differ; a superset of `reduce`.
        group: AxisSet,
        /// The axes along which every device holds a partial value.
        reduce: AxisSet,
        /// The partial values.
        from: Side,
        /// The combined values.
        to: Side,
        /// Whether it is the first part of a collective, or all of it, and so counts as one.
        counts: bool,
        /// The product that computes `from`, if this is its only use.
        product: Option<Box<Product>>,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// As [`spmdc_abi::PermuteStep`].
    Permute {
        /// The axes of the group, major to minor.
        axes: Vec<u8>,
        /// For each position along `axes` the position whose buffer it receives; None: zeros.
        source: Vec<Option<u32>>,
        /// The value whose buffers are read.
        from: Value,
        /// The value whose buffers are written.
        to: Value,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// As [`spmdc_abi::FetchStep`].
    Fetch {
        /// The kind of the collective in reports.
        kind: CollectiveKind,
        /// The axes along which the devices of a group differ.
        group: AxisSet,
        /// The fetches, which are made together.
        parts: Vec<Fetch>,
        /// Maximum bytes provided by any device.
        bytes: u64,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// As [`spmdc_abi::Step::CheckIndex`].
    CheckIndex {
        /// An integer scalar; a negative one counts from the end of the dimension.
        index: Value,
        /// The size of the dimension.
        extent: i64,
        /// The number of elements from the index on that must exist.
        len: i64,
        /// An i64 scalar: the index counted from the start of the dimension.
        to: Value,
        /// The statement whose work it is.
        origin: Origin,
    },
    /// A `print`, an assertion or a `save`; as [`spmdc_abi::Step::Print`].
    Print {
        /// `{}` and `{:8.3}` are placeholders for the next value; `{{` and `}}` are braces.
        text: String,
        /// The values of the text, in order, after a condition and before the arrays of a file.
        values: Vec<Value>,
        /// The purpose of the text.
        purpose: TextPurpose,
        /// The statement whose work it is.
        origin: Origin,
    },
}

impl Work {
    /// The values that it reads from memory.
    pub fn reads(&self) -> Vec<Value> {
        match self {
            Work::Kernel { kernel, buffers, .. } => {
                let pairs = buffers.iter().zip(&kernel.buffers);
                pairs.filter(|(_, slot)| !slot.written).map(|(&value, _)| value).collect()
            }
            Work::Product { product, .. } => vec![product.a, product.b],
            Work::Tiles { tiles, .. } => tiles.reads(),
            Work::Library { calls, .. } => calls.operands.iter().map(|array| array.value).collect(),
            Work::Alias { from, .. } | Work::Copy { from, .. } | Work::Permute { from, .. } => vec![*from],
            Work::Reduce { product: Some(product), .. } => vec![product.a, product.b],
            Work::Exchange { from, .. } | Work::Reduce { from, product: None, .. } => vec![from.value],
            Work::Fetch { parts, .. } => parts.iter().map(|part| part.from).collect(),
            Work::CheckIndex { index, .. } => vec![*index],
            Work::Print { values, .. } => values.clone(),
            Work::Constant { .. } => Vec::new(),
        }
    }

    /// The values whose elements devices divide if they share their memory: all that it writes, but scratch memory and partial values.
    pub fn results(&self) -> Vec<Value> {
        match self {
            Work::Tiles { tiles, .. } => tiles.results(),
            Work::Reduce { to, .. } => vec![to.value],
            Work::Library { calls, .. } => {
                let slots = usize::from(calls.function.has_slots());
                calls.results.iter().rev().skip(slots).rev().map(|array| array.value).collect()
            }
            Work::Kernel { .. }
            | Work::Product { .. }
            | Work::Alias { .. }
            | Work::Copy { .. }
            | Work::Constant { .. }
            | Work::Exchange { .. }
            | Work::Permute { .. }
            | Work::Fetch { .. }
            | Work::CheckIndex { .. }
            | Work::Print { .. } => self.writes(),
        }
    }

    /// Whether devices read each other's blocks.
    pub fn is_collective(&self) -> bool {
        match self {
            Work::Exchange { .. } | Work::Reduce { .. } | Work::Permute { .. } | Work::Fetch { .. } => true,
            Work::Product { product, .. } => product.ring.is_some(),
            Work::Library { calls, .. } => calls.owners.is_some(),
            Work::Kernel { .. }
            | Work::Tiles { .. }
            | Work::Alias { .. }
            | Work::Copy { .. }
            | Work::Constant { .. }
            | Work::CheckIndex { .. }
            | Work::Print { .. } => false,
        }
    }

    /// The values that it writes.
    pub fn writes(&self) -> Vec<Value> {
        match self {
            Work::Kernel { kernel, buffers, .. } => {
                let pairs = buffers.iter().zip(&kernel.buffers);
                pairs.filter(|(_, slot)| slot.written).map(|(&value, _)| value).collect()
            }
            Work::Product { product, .. } => vec![product.c],
            Work::Tiles { tiles, .. } => tiles.results().into_iter().chain([tiles.scratch]).collect(),
            Work::Library { calls, .. } => calls.results.iter().map(|array| array.value).collect(),
            Work::Constant { to, .. }
            | Work::Alias { to, .. }
            | Work::Copy { to, .. }
            | Work::Permute { to, .. }
            | Work::CheckIndex { to, .. } => {
                vec![*to]
            }
            Work::Reduce { from, to, product: Some(_), .. } => vec![to.value, from.value],
            Work::Exchange { to, .. } | Work::Reduce { to, product: None, .. } => vec![to.value],
            Work::Fetch { parts, .. } => parts.iter().map(|part| part.to).collect(),
            Work::Print { .. } => Vec::new(),
        }
    }

    /// Replaces every value that it reads or writes by another one of the same type.
    pub fn rename(&mut self, name: &dyn Fn(Value) -> Value) {
        let rename = |value: &mut Value| *value = name(*value);
        match self {
            Work::Kernel { buffers, .. } => buffers.iter_mut().for_each(rename),
            Work::Product { product: Product { a, b, c, .. }, .. } => [a, b, c].into_iter().for_each(rename),
            Work::Tiles { tiles, .. } => tiles.rename(name),
            Work::Library { calls, .. } => {
                let LibraryCalls { operands, results, .. } = calls.as_mut();
                operands.iter_mut().chain(results).for_each(|array| rename(&mut array.value));
            }
            Work::Alias { from, to } | Work::Copy { from, to, .. } | Work::Permute { from, to, .. } => {
                [from, to].into_iter().for_each(rename);
            }
            Work::Exchange { from, to, .. } => [from, to].into_iter().for_each(|side| rename(&mut side.value)),
            Work::Reduce { from, to, product, .. } => {
                [from, to].into_iter().for_each(|side| rename(&mut side.value));
                let product = product.iter_mut().map(AsMut::as_mut);
                product.flat_map(|Product { a, b, c, .. }| [a, b, c]).for_each(rename);
            }
            Work::Fetch { parts, .. } => {
                parts.iter_mut().flat_map(|part| [&mut part.from, &mut part.to]).for_each(rename);
            }
            Work::CheckIndex { index, to, .. } => [index, to].into_iter().for_each(rename),
            Work::Print { values, .. } => values.iter_mut().for_each(rename),
            Work::Constant { to, .. } => rename(to),
        }
    }
}

/// The layout of a value for the runtime. Inside `manual` it is the layout of the local array.
pub fn layout_of(ty: &Type) -> Layout {
    debug_assert!(!ty.sharding.is_aligned(), "only windows and local ops work on blocks of another dimension");
    let dims = ty.shape().iter().zip(&ty.sharding.dims);
    let dims = dims.map(|(&size, dim)| LayoutDim { size, axes: dim.axes.clone() }).collect();
    Layout { dtype: ty.dtype(), dims }
}

/// The types of temporary values of ops, in the order of their creation. The list only grows, so that a type can be looked up while
/// more are added.
#[derive(Debug, Default)]
pub struct Temporaries {
    /// The number of the first temporary value.
    pub first: u32,
    head: OnceCell<Box<Temporary>>,
}

#[derive(Debug)]
struct Temporary {
    ty: Type,
    next: OnceCell<Box<Temporary>>,
}

impl Temporaries {
    /// An empty list whose first value will have the number `first`.
    pub fn starting_at(first: u32) -> Temporaries {
        Temporaries { first, head: OnceCell::new() }
    }

    fn iter(&self) -> impl Iterator<Item = &Temporary> {
        std::iter::successors(self.head.get(), |temporary| temporary.next.get()).map(|temporary| &**temporary)
    }

    /// The type of a temporary value; None for all other values.
    pub fn ty(&self, value: Value) -> Option<&Type> {
        let position = value.0.checked_sub(self.first)?;
        self.iter().nth(position as usize).map(|temporary| &temporary.ty)
    }

    fn add(&self, ty: Type) -> Value {
        let position = self.iter().count();
        let end = self.iter().last().map_or(&self.head, |last| &last.next);
        end.set(Box::new(Temporary { ty, next: OnceCell::new() })).expect("the end of the list is empty");
        Value(self.first + position as u32)
    }

    /// The types of all temporary values, in the order of their numbers.
    pub fn types(&self) -> Vec<Type> {
        self.iter().map(|temporary| temporary.ty.clone()).collect()
    }
}

/// Collects the work of ops. One is made for each statement that is not fused.
pub struct Lowering<'a> {
    /// The function that is lowered.
    pub func: &'a Func,
    /// The mesh of the program.
    pub mesh: &'a Mesh,
    /// For each value that is fused, the statement to expand in place of a load; None for values in memory.
    pub inlined: &'a [Option<(&'a Op, &'a Stmt)>],
    /// The work so far, in the order in which it runs.
    pub work: Vec<Work>,
    /// Temporary values of ops, numbered after all others.
    pub temporaries: &'a Temporaries,
    /// Whether nothing needs the first operand of the statement afterwards, so that its memory may be changed.
    pub is_last_use: bool,
    /// The statement that is lowered.
    pub origin: Origin,
}

impl<'a> Lowering<'a> {
    /// A kernel without loops, to be completed and given to [`Lowering::run`].
    pub fn kernel(&self) -> KernelBuilder<'a> {
        let context =
            KernelContext { func: self.func, mesh: self.mesh, inlined: self.inlined, temporaries: self.temporaries };
        KernelBuilder::new(context, self.origin.span)
    }

    /// Adds the completed kernel: its first dimension of several elements, if it is not reduced, is divided among workers.
    pub fn run(&mut self, builder: KernelBuilder<'_>) {
        let mut kernel = builder.kernel;
        drop_leading_ones(&mut kernel);
        kernel.range_dim = kernel.dims.first().is_some_and(|dim| !dim.reduced);
        let (buffers, origin) = (builder.values, self.origin.clone());
        self.work.push(Work::Kernel { kernel, buffers, cutout: None, origin });
    }

    /// A product by the library.
    pub fn product(&mut self, product: Product) {
        self.work.push(Work::Product { product, origin: self.origin.clone() });
    }

    /// `to` has the same bytes as `from` and shares its buffer.
    pub fn alias(&mut self, from: Value, to: Value) {
        self.work.push(Work::Alias { from, to });
    }

    /// The buffer of `to` always contains these bytes.
    pub fn constant(&mut self, to: Value, bytes: Vec<u8>) {
        self.work.push(Work::Constant { to, bytes });
    }

    /// Copies the bytes to another buffer; both have the same block shape.
    pub fn copy(&mut self, from: Value, to: Value) {
        self.work.push(Work::Copy { from, to, origin: self.origin.clone() });
    }

    /// Every device fetches its block of `to` from the devices that differ from it along `group` only.
    pub fn exchange(&mut self, kind: CollectiveKind, group: AxisSet, from: Side, to: Side) {
        self.work.push(Work::Exchange { kind, group, from, to, counts: true, origin: self.origin.clone() });
    }

    /// Combines the partial values of the devices along `reduce`, which is part of `group`.
    pub fn reduce(
        &mut self,
        kind: CollectiveKind,
        op: ReduceOp,
        group: AxisSet,
        reduce: AxisSet,
        from: Side,
        to: Side,
    ) {
        let (product, origin) = (None, self.origin.clone());
        self.work.push(Work::Reduce { kind, op, group, reduce, from, to, counts: true, product, origin });
    }

    /// Makes all work so far one collective: only the first part counts.
    pub fn join(&mut self) {
        for work in self.work.iter_mut().skip(1) {
            if let Work::Exchange { counts, .. } | Work::Reduce { counts, .. } = work {
                *counts = false;
            }
        }
    }

    /// Permutes whole buffers between the positions along `axes`: each receives the buffer of its `source`, or zeros if that is None.
    pub fn permute(&mut self, axes: Vec<u8>, source: Vec<Option<u32>>, from: Value, to: Value) {
        self.work.push(Work::Permute { axes, source, from, to, origin: self.origin.clone() });
    }

    /// Every device fetches parts of other devices' blocks; `bytes` is the maximum that any device provides.
    pub fn fetch(&mut self, kind: CollectiveKind, group: AxisSet, parts: Vec<Fetch>, bytes: u64) {
        self.work.push(Work::Fetch { kind, group, parts, bytes, origin: self.origin.clone() });
    }

    /// Sets `to`, an i64 scalar, to the checked index, counted from the end if negative; the program stops unless the `len`
    /// elements from there on are among `0..extent`.
    pub fn check_index(&mut self, index: Value, (extent, len): (i64, i64), to: Value) {
        self.work.push(Work::CheckIndex { index, extent, len, to, origin: self.origin.clone() });
    }

    /// Makes a text with the values in it, for this purpose.
    pub fn print(&mut self, text: String, values: Vec<Value>, purpose: TextPurpose) {
        self.work.push(Work::Print { text, values, purpose, origin: self.origin.clone() });
    }

    /// The type of a value of the function or of a temporary one.
    pub fn ty(&self, value: Value) -> &'a Type {
        self.temporaries.ty(value).unwrap_or_else(|| self.func.ty(value))
    }

    /// A temporary buffer with this layout. It is not zeroed.
    pub fn temporary(&mut self, ty: Type) -> Value {
        self.temporaries.add(ty)
    }
}

/// Removes dimensions of one element from the beginning, as long as another one that is not reduced follows.
fn drop_leading_ones(kernel: &mut Kernel) {
    let is_range = |dim: &LoopDim| !dim.reduced;
    let ones = kernel.dims.iter().take_while(|dim| is_range(dim) && dim.extent == Extent::Static(1)).count();
    let dropped = if kernel.dims.get(ones).is_some_and(is_range) { ones } else { ones.saturating_sub(1) };
    kernel.dims.drain(..dropped);
    each_affine(kernel, &|affine| {
        let terms = affine.terms.iter().filter(|(dim, _)| *dim >= dropped);
        Affine { terms: terms.map(|&(dim, stride)| (dim - dropped, stride)).collect(), ..affine.clone() }
    });
}
