//! Loop nests as data: the form of kernels before machine code.
//!
//! A kernel has loop dimensions, outermost first, the reduced ones last. Its body is straight-line code in SSA form, evaluated at
//! every point; its stores write values at addresses given by affine maps, or combine them over the reduced dimensions. For a row
//! sum of `2 * x`: dims `[rows, columns (reduced)]`, body `load x[d0*c + d1]; const 2; mul`, store sum at `[d0]`.
//!
//! Semantics of the body: an instruction on narrow floats computes in f32 and rounds its result. Integers wrap.

use crate::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_abi::{Checked, DType, ReduceOp, Scalar, trap};
use spmdc_grammar::span::Span;

/// A value of the body: the index of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elem(pub u32);

/// `constant + sum of loop index x stride + sum of per-device scalar x stride + sum of dynamic index x stride`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// (loop dimension, stride), sorted by dimension, no zero strides.
    pub terms: Vec<(usize, i64)>,
    /// (index into [`Kernel::scalars`], stride)
    pub scalars: Vec<(usize, i64)>,
    /// (i64 value of the body, stride): dynamic indices, each limited by [`Inst::LoopInvariant`] or [`Inst::Limit`].
    pub dynamic: Vec<(Elem, i64)>,
    /// The constant summand.
    pub constant: i64,
}

impl Affine {
    /// A number that is the same at every point and on every device.
    pub fn constant(constant: i64) -> Affine {
        Affine { constant, ..Affine::default() }
    }

    /// The index of a loop dimension, with stride 1.
    pub fn dim(dim: usize) -> Affine {
        Affine { terms: vec![(dim, 1)], ..Affine::default() }
    }

    /// `self + other`; terms of one dimension, scalar or dynamic index are merged, and dropped where the strides cancel.
    pub fn plus(&self, other: &Affine) -> Affine {
        let mut sum = self.clone();
        sum.constant += other.constant;
        for &(dim, stride) in &other.terms {
            add_term(&mut sum.terms, dim, stride);
        }
        for &(slot, stride) in &other.scalars {
            add_term(&mut sum.scalars, slot, stride);
        }
        for &(elem, stride) in &other.dynamic {
            add_term(&mut sum.dynamic, elem, stride);
        }
        sum
    }

    /// `self + constant`
    pub fn offset(&self, constant: i64) -> Affine {
        Affine { constant: self.constant + constant, ..self.clone() }
    }

    /// `self * factor`
    pub fn times(&self, factor: i64) -> Affine {
        if factor == 0 {
            return Affine::default();
        }
        let mut product = self.clone();
        product.constant *= factor;
        product.terms.iter_mut().for_each(|(_, stride)| *stride *= factor);
        product.scalars.iter_mut().for_each(|(_, stride)| *stride *= factor);
        product.dynamic.iter_mut().for_each(|(_, stride)| *stride *= factor);
        product
    }
}

fn add_term<K: Ord + Copy>(terms: &mut Vec<(K, i64)>, key: K, stride: i64) {
    match terms.binary_search_by_key(&key, |&(k, _)| k) {
        Ok(at) => {
            terms[at].1 += stride;
            if terms[at].1 == 0 {
                terms.remove(at);
            }
        }
        Err(at) if stride != 0 => terms.insert(at, (key, stride)),
        Err(_) => {}
    }
}

/// The number of iterations of a loop dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The same number on all devices.
    Static(u64),
    /// A number for each device: an index into [`Kernel::scalars`], and its maximum over the devices.
    Scalar {
        /// Index into [`Kernel::scalars`].
        slot: usize,
        /// The maximum over the devices.
        max: u64,
    },
}

impl Extent {
    /// The maximum on any device.
    pub fn most(&self) -> u64 {
        match *self {
            Extent::Static(extent) => extent,
            Extent::Scalar { max, .. } => max,
        }
    }
}

/// One loop of the nest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoopDim {
    /// The number of its iterations.
    pub extent: Extent,
    /// Whether the stores combine values over it; reduced dimensions come after all others.
    pub reduced: bool,
}

/// A buffer argument of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferSlot {
    /// The type of its elements.
    pub dtype: DType,
    /// Whether a store writes to it; otherwise it is read only.
    pub written: bool,
    /// Its length in elements: a load that cannot exceed it needs no condition.
    pub len: usize,
    /// Whether elements that are written leave the caches before somebody reads them: their stores may bypass these.
    pub streamed: bool,
}

/// An element of a buffer: `address` counts elements from the start of the buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Index into [`Kernel::buffers`].
    pub buffer: usize,
    /// The index of the element in the buffer.
    pub address: Affine,
}

/// One instruction of the body. Its operands are results of earlier instructions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// The element of a buffer.
    Load {
        /// Its address.
        access: Access,
        /// The type of the buffer's elements.
        dtype: DType,
    },
    /// A constant.
    Const {
        /// The type of the constant.
        dtype: DType,
        /// The bits of the constant, in the low bytes.
        bits: u64,
    },
    /// An index as a value: `affine` (in i64) converted to `dtype` as a cast would.
    Index {
        /// The index, in i64.
        affine: Affine,
        /// The type of the result.
        dtype: DType,
    },
    /// An i64 read once before the loops from a scalar buffer of i64: a dynamic index. A value outside `0..=last`, compared as an
    /// unsigned number, becomes `last`: no address is computed from an unchecked number.
    LoopInvariant {
        /// Index into [`Kernel::buffers`] of the scalar buffer.
        buffer: usize,
        /// The maximum value, which replaces all values outside `0..=last`.
        last: u64,
    },
    /// An index of type `dtype` as an i64, counted from the start of a dimension; a negative index counts from its end. Stops the
    /// program if the dimension has no such element, and continues with any number.
    CheckIndex {
        /// The type of the operand, an integer.
        dtype: DType,
        /// The index.
        arg: Elem,
        /// The size of the dimension.
        extent: i64,
        /// The source position of the statement.
        site: Option<Span>,
    },
    /// An i64 computed in the body, to be used in addresses. A value outside `0..=last` becomes `last`: no address is computed from
    /// an unchecked number.
    Limit {
        /// The i64.
        arg: Elem,
        /// The maximum value.
        last: u64,
    },
    /// `op(arg)`
    Unary {
        /// The operation.
        op: UnaryOp,
        /// The type of the operand, and of the result unless that is bool by [`UnaryOp::result_dtype`].
        dtype: DType,
        /// The operand.
        arg: Elem,
    },
    /// Operands and result have the type `dtype`.
    Binary {
        /// The operation.
        op: BinaryOp,
        /// The type of both operands and of the result.
        dtype: DType,
        /// The first operand.
        lhs: Elem,
        /// The second operand.
        rhs: Elem,
        /// The source position of an integer division, which stops the program if the divisor is zero.
        site: Option<Span>,
    },
    /// Operands have the type `dtype`, the result is bool.
    Compare {
        /// The comparison.
        op: CompareOp,
        /// The type of both operands.
        dtype: DType,
        /// The first operand.
        lhs: Elem,
        /// The second operand.
        rhs: Elem,
    },
    /// `if cond { then } else { otherwise }`
    Select {
        /// The type of `then`, `otherwise` and the result.
        dtype: DType,
        /// A bool.
        cond: Elem,
        /// The result where `cond` is true.
        then: Elem,
        /// The result where `cond` is false.
        otherwise: Elem,
    },
    /// `x * y + z`, rounded once; narrow floats are rounded again.
    Fma {
        /// The float type of the operands and the result.
        dtype: DType,
        /// The first factor.
        x: Elem,
        /// The second factor.
        y: Elem,
        /// The summand.
        z: Elem,
    },
    /// The operand converted to another type, as [`cast`](crate::number::cast) does it.
    Cast {
        /// The type of the operand.
        from: DType,
        /// The type of the result.
        to: DType,
        /// The operand.
        arg: Elem,
    },
    /// The bits of the operand, unchanged, as another number type of the same size.
    Bitcast {
        /// The type of the operand.
        from: DType,
        /// The type of the result.
        to: DType,
        /// The operand.
        arg: Elem,
    },
    /// The random bits of a counter under a key, as [`spmdc_threefry::element`] has them.
    RandomBits {
        /// The type of the result: an unsigned integer, or a key.
        dtype: DType,
        /// The key.
        key: Elem,
        /// The counter, in i64; its bits are interpreted as u64.
        at: Affine,
    },
    /// A value that a loop of the body carries from trip to trip, at the beginning of a trip; used inside the loop only
    /// ([`repeats`](crate::repeats)).
    Carried {
        /// Tells the carried values of a kernel apart.
        number: u32,
        /// The type of the value.
        dtype: DType,
        /// The value in the first trip.
        init: Elem,
    },
    /// A counted loop of the body. It computes all that depends on its carried values; its own value is the number of trips.
    Repeat {
        /// The number of trips, in i64, the same at all points; no trips if it is negative.
        trips: Elem,
        /// Each [`Inst::Carried`] of the loop with its value in the next trip, which has the same type.
        carried: Vec<(Elem, Elem)>,
    },
    /// A carried value after the last trip of its loop.
    Last {
        /// The type of the value.
        dtype: DType,
        /// The [`Inst::Repeat`].
        repeat: Elem,
        /// Its position among the carried values of the loop.
        place: usize,
    },
    /// Whether `low <= affine < high`: for pads, masks and ranges.
    InRange {
        /// The index to test.
        affine: Affine,
        /// The lower bound, inclusive.
        low: Affine,
        /// The upper bound, exclusive.
        high: Affine,
    },
}

/// The combination over the reduced dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// A reduction; sums and products of narrow floats accumulate in f32.
    Reduce(ReduceOp),
    /// The i32 position, row-major over the reduced dimensions, of the first largest element; NaN counts as largest.
    ArgMax,
    /// As [`Combine::ArgMax`], for the smallest; NaN counts as smallest.
    ArgMin,
    /// The running total, stored at every point; it begins with `first`, which is the same for all reduced points. If it is exclusive, each
    /// point has the total of the points before it.
    Scan {
        /// The operation; its sums and products of narrow floats accumulate in f32.
        op: ReduceOp,
        /// The value with which the scan begins.
        first: Elem,
        /// Whether a point's own element is left out of its total.
        exclusive: bool,
    },
}

impl Combine {
    /// A value of the body that it uses.
    pub fn operand(self) -> Option<Elem> {
        match self {
            Combine::Scan { first, .. } => Some(first),
            Combine::Reduce(_) | Combine::ArgMax | Combine::ArgMin => None,
        }
    }

    /// Whether it finds the position of a value.
    pub fn is_position(self) -> bool {
        matches!(self, Combine::ArgMax | Combine::ArgMin)
    }

    /// Whether it stores a value at every point.
    pub fn is_scan(self) -> bool {
        matches!(self, Combine::Scan { .. })
    }

    /// Whether it stores the total of the points before each.
    pub fn is_exclusive(self) -> bool {
        matches!(self, Combine::Scan { exclusive: true, .. })
    }
}

/// A value of the body that is stored, at every point or combined over the reduced dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The address of the element.
    pub access: Access,
    /// The element type of `value`; the buffer's too, except for `ArgMax` and `ArgMin`, which store i32.
    pub dtype: DType,
    /// The value to store or to combine.
    pub value: Elem,
    /// None: stored at every point. Some: once per point of the dimensions that are not reduced, except for scans.
    pub combine: Option<Combine>,
}

impl Store {
    /// The values of the body that it uses.
    pub fn operands(&self) -> impl Iterator<Item = Elem> + use<> {
        std::iter::once(self.value).chain(self.combine.and_then(Combine::operand))
    }
}

/// A check that stops the program if it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelCheck {
    /// The source position of the statement; if None, the position of the kernel.
    pub span: Option<Span>,
    /// The checked condition.
    pub of: Checked,
}

/// One loop nest. It is called for parts of the range of `dims[0]`, or of `0..1` when `range_dim` is false.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The loops, outermost first, the reduced ones last.
    pub dims: Vec<LoopDim>,
    /// Whether `begin` and `end` are a part of the outermost dimension; a reduced one is not divided.
    pub range_dim: bool,
    /// The buffers, in the order of the arguments.
    pub buffers: Vec<BufferSlot>,
    /// The numbers per device, in the order of the arguments.
    pub scalars: Vec<Scalar>,
    /// The body in SSA form: instruction `i` defines `Elem(i)`.
    pub insts: Vec<Inst>,
    /// The stores of the kernel. At each point every load comes before any store.
    pub stores: Vec<Store>,
}

impl Inst {
    /// Whether this stops the program if its second operand is zero.
    pub fn divides_integers(&self) -> bool {
        matches!(self, Inst::Binary { op: BinaryOp::FloorDiv | BinaryOp::Rem, dtype, .. } if dtype.is_integer())
    }

    /// The check that it makes; None if it cannot stop the program.
    pub fn check(&self) -> Option<KernelCheck> {
        match *self {
            Inst::Binary { site, .. } if self.divides_integers() => {
                Some(KernelCheck { span: site, of: Checked::Divisor })
            }
            Inst::CheckIndex { extent, site, .. } => Some(KernelCheck { span: site, of: Checked::Index { extent } }),
            Inst::Load { .. }
            | Inst::Const { .. }
            | Inst::Index { .. }
            | Inst::LoopInvariant { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Compare { .. }
            | Inst::Select { .. }
            | Inst::Fma { .. }
            | Inst::Cast { .. }
            | Inst::Bitcast { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::InRange { .. } => None,
        }
    }

    /// The address that this loads from, and the element type.
    pub fn load(&self) -> Option<(&Access, DType)> {
        match self {
            Inst::Load { access, dtype } => Some((access, *dtype)),
            Inst::Const { .. }
            | Inst::Index { .. }
            | Inst::LoopInvariant { .. }
            | Inst::CheckIndex { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Compare { .. }
            | Inst::Select { .. }
            | Inst::Fma { .. }
            | Inst::Cast { .. }
            | Inst::Bitcast { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::InRange { .. } => None,
        }
    }

    /// The kernel's return value if this check fails for the value, given its [`Kernel::checks`].
    pub fn trap(&self, checks: &[KernelCheck], value: i64) -> i64 {
        let own = self.check();
        let at = checks.iter().position(|check| Some(*check) == own).expect("the checks are those of the kernel");
        trap::code(at, value)
    }
}

impl Kernel {
    /// The addresses of all loads and stores by index, with their element types.
    pub fn accesses(&self) -> impl Iterator<Item = (&Access, DType)> {
        let loads = self.insts.iter().filter_map(Inst::load);
        loads.chain(self.stores.iter().map(|store| (&store.access, store.dtype)))
    }

    /// The type of a value that a loop of the body carries.
    pub fn carried_dtype(&self, value: Elem) -> DType {
        let Inst::Carried { dtype, .. } = self.insts[value.0 as usize] else { panic!("{value:?} is not carried") };
        dtype
    }

    /// Its checks, in source order.
    pub fn checks(&self) -> Vec<KernelCheck> {
        let mut checks: Vec<KernelCheck> = self.insts.iter().filter_map(Inst::check).collect();
        checks.sort_by_key(|check| (check.span.map(|span| (span.file, span.start, span.end)), check.of));
        checks.dedup();
        checks
    }
}

/// The operands of an instruction, without the dynamic indices of its addresses.
pub fn operands(inst: &Inst) -> impl Iterator<Item = Elem> {
    let (operands, pairs) = match inst {
        Inst::Load { .. }
        | Inst::Const { .. }
        | Inst::Index { .. }
        | Inst::LoopInvariant { .. }
        | Inst::InRange { .. } => ([None; 3], [].as_slice()),
        Inst::Unary { arg, .. }
        | Inst::Cast { arg, .. }
        | Inst::Bitcast { arg, .. }
        | Inst::CheckIndex { arg, .. }
        | Inst::RandomBits { key: arg, .. }
        | Inst::Carried { init: arg, .. }
        | Inst::Last { repeat: arg, .. }
        | Inst::Limit { arg, .. } => ([Some(*arg), None, None], [].as_slice()),
        Inst::Binary { lhs, rhs, .. } | Inst::Compare { lhs, rhs, .. } => {
            ([Some(*lhs), Some(*rhs), None], [].as_slice())
        }
        Inst::Select { cond, then, otherwise, .. } => ([Some(*cond), Some(*then), Some(*otherwise)], [].as_slice()),
        Inst::Fma { x, y, z, .. } => ([Some(*x), Some(*y), Some(*z)], [].as_slice()),
        Inst::Repeat { trips, carried } => ([Some(*trips), None, None], carried.as_slice()),
    };
    operands.into_iter().flatten().chain(pairs.iter().flat_map(|&(value, next)| [value, next]))
}

/// As [`operands`], mutable.
pub fn operands_mut(inst: &mut Inst) -> impl Iterator<Item = &mut Elem> {
    let (operands, pairs) = match inst {
        Inst::Load { .. }
        | Inst::Const { .. }
        | Inst::Index { .. }
        | Inst::LoopInvariant { .. }
        | Inst::InRange { .. } => ([None, None, None], [].as_mut_slice()),
        Inst::Unary { arg, .. }
        | Inst::Cast { arg, .. }
        | Inst::Bitcast { arg, .. }
        | Inst::CheckIndex { arg, .. }
        | Inst::RandomBits { key: arg, .. }
        | Inst::Carried { init: arg, .. }
        | Inst::Last { repeat: arg, .. }
        | Inst::Limit { arg, .. } => ([Some(arg), None, None], [].as_mut_slice()),
        Inst::Binary { lhs, rhs, .. } | Inst::Compare { lhs, rhs, .. } => {
            ([Some(lhs), Some(rhs), None], [].as_mut_slice())
        }
        Inst::Select { cond, then, otherwise, .. } => ([Some(cond), Some(then), Some(otherwise)], [].as_mut_slice()),
        Inst::Fma { x, y, z, .. } => ([Some(x), Some(y), Some(z)], [].as_mut_slice()),
        Inst::Repeat { trips, carried } => ([Some(trips), None, None], carried.as_mut_slice()),
    };
    operands.into_iter().flatten().chain(pairs.iter_mut().flat_map(|(value, next)| [value, next]))
}

/// The indices and addresses of an instruction.
pub fn affines(inst: &Inst) -> impl Iterator<Item = &Affine> {
    let affines = match inst {
        Inst::Load { access: Access { address, .. }, .. } => [Some(address), None, None],
        Inst::Index { affine, .. } | Inst::RandomBits { at: affine, .. } => [Some(affine), None, None],
        Inst::InRange { affine, low, high } => [Some(affine), Some(low), Some(high)],
        Inst::Const { .. }
        | Inst::LoopInvariant { .. }
        | Inst::CheckIndex { .. }
        | Inst::Limit { .. }
        | Inst::Unary { .. }
        | Inst::Binary { .. }
        | Inst::Compare { .. }
        | Inst::Select { .. }
        | Inst::Fma { .. }
        | Inst::Cast { .. }
        | Inst::Bitcast { .. }
        | Inst::Carried { .. }
        | Inst::Repeat { .. }
        | Inst::Last { .. } => [None; 3],
    };
    affines.into_iter().flatten()
}

/// As [`affines`], mutable.
pub fn affines_mut(inst: &mut Inst) -> impl Iterator<Item = &mut Affine> {
    let affines = match inst {
        Inst::Load { access: Access { address, .. }, .. } => [Some(address), None, None],
        Inst::Index { affine, .. } | Inst::RandomBits { at: affine, .. } => [Some(affine), None, None],
        Inst::InRange { affine, low, high } => [Some(affine), Some(low), Some(high)],
        Inst::Const { .. }
        | Inst::LoopInvariant { .. }
        | Inst::CheckIndex { .. }
        | Inst::Limit { .. }
        | Inst::Unary { .. }
        | Inst::Binary { .. }
        | Inst::Compare { .. }
        | Inst::Select { .. }
        | Inst::Fma { .. }
        | Inst::Cast { .. }
        | Inst::Bitcast { .. }
        | Inst::Carried { .. }
        | Inst::Repeat { .. }
        | Inst::Last { .. } => [None, None, None],
    };
    affines.into_iter().flatten()
}
