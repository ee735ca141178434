//! Indexing: `x[i]`, `x[1:-1, ::2]`, `x[..., None]`, where indices are numbers, dynamic scalars or integer arrays.
//!
//! Static indices and ranges are slices; `x[k : k + 4]` with a dynamic `k` is a `dynamic_slice`. A dynamic index goes through
//! `check_index(i, n)`, an op with an effect: it returns a valid i64 or stops the program. `index(x, i, dims=(0,))` then takes the element;
//! it is pointwise. If the dimension is split, the device with the element contributes it to a sum, and the others contribute the identity
//! element.
//!
//! Integer arrays and scalar indices broadcast together, and become a `gather`. As in NumPy, their dimensions replace the indexed
//! dimensions if these are adjacent, and come first otherwise.

mod derivative;

use crate::batching::BatchForms;
use crate::cast::convert;
use crate::check_indices::CheckIndices;
use crate::constant::Constant;
use crate::dynamic_slice::DynamicSlice;
use crate::elementwise::{Binary, Compare, Select};
use crate::gather::Gather;
use crate::read_rows;
use crate::reshape::reshape;
use crate::slice::{SliceRange, slice};
use crate::take::{OutOfBounds, indices};
use spmdc_abi::{counted_index, out_of_bounds};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching, shifted};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    ChosenRegion, Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement,
    Point, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// One entry of an index in the source.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// `1:-1`, `::2`
    Range {
        /// The first index, counted from the end if negative; None: the end of the dimension at which the range begins.
        start: Option<i64>,
        /// The exclusive end of the range, counted from the end if negative; None: the range reaches the end of the dimension.
        stop: Option<i64>,
        /// The distance between indices; None means 1, and 0 is an error (E0402).
        step: Option<i64>,
        /// The source position of the entry.
        span: Span,
    },
    /// `k : k + 4` with a dynamic scalar `k`: `len` elements from `k` on.
    Window {
        /// The first index: an integer scalar, counted from the end if negative.
        start: Value,
        /// The number of elements.
        len: usize,
        /// The source position of the entry.
        span: Span,
    },
    /// An integer known at compile time, or an array.
    Place(Term, Span),
    /// `None`: a new dimension of size 1.
    NewAxis(Span),
    /// `...`: the remaining dimensions, whole.
    Ellipsis(Span),
}

/// The elements of a dimension that an index takes.
#[derive(Clone, Debug)]
pub enum Taken {
    /// `a:b`
    Range(SliceRange),
    /// One element at a static index; the dimension vanishes.
    Fixed(SliceRange),
    /// A checked i64 scalar; the dimension vanishes.
    Dynamic(Value),
    /// This many elements from a checked i64 scalar on.
    Window(Value, usize),
    /// The elements at checked indices; the dimension vanishes.
    Places(Value),
}

impl Taken {
    /// The static range of a dimension of this size that contains the elements.
    pub fn range(&self, size: usize) -> SliceRange {
        match self {
            Taken::Range(range) | Taken::Fixed(range) => *range,
            Taken::Dynamic(_) | Taken::Window(..) | Taken::Places(_) => SliceRange::all(size),
        }
    }

    /// Whether the dimension is not in the result; the dimensions of index arrays replace such dimensions, together.
    pub fn has_vanished(&self) -> bool {
        match self {
            Taken::Fixed(_) | Taken::Dynamic(_) => true,
            Taken::Range(_) | Taken::Window(..) | Taken::Places(_) => false,
        }
    }

    /// Whether a gather with index arrays indexes the dimension.
    pub fn is_indexed(&self) -> bool {
        match self {
            Taken::Dynamic(_) | Taken::Places(_) => true,
            Taken::Range(_) | Taken::Fixed(_) | Taken::Window(..) => false,
        }
    }
}

/// A part of the shape of an index's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexedDim {
    /// A dimension of the array, by number.
    Dim(usize),
    /// A new dimension of size 1.
    New,
    /// The dimensions of the index arrays after broadcasting.
    Places,
}

/// An index applied to a shape.
pub struct IndexPlan {
    /// For each dimension of the array.
    pub taken: Vec<Taken>,
    /// The shape of the result.
    pub result: Vec<IndexedDim>,
    /// The shape of the index arrays after broadcasting; empty without arrays.
    pub places: Vec<usize>,
}

impl IndexPlan {
    /// The shape of the indexed elements.
    pub fn result_shape(&self) -> Vec<usize> {
        let len = |dim: usize| match &self.taken[dim] {
            Taken::Range(range) => range.len,
            Taken::Window(_, len) => *len,
            Taken::Fixed(_) | Taken::Dynamic(_) | Taken::Places(_) => 1,
        };
        let sizes = self.result.iter().flat_map(|slot| match slot {
            IndexedDim::Dim(dim) => vec![len(*dim)],
            IndexedDim::New => vec![1],
            IndexedDim::Places => self.places.clone(),
        });
        sizes.collect()
    }

    /// Whether an index is an array.
    pub fn has_arrays(&self) -> bool {
        self.result.contains(&IndexedDim::Places)
    }

    /// The dimensions that a gather with index arrays indexes, the position of the arrays' dimensions in its result, and the arrays.
    pub fn gathered(&self) -> (Vec<usize>, usize, Vec<Value>) {
        let (mut dims, mut arrays) = (Vec::new(), Vec::new());
        for (dim, taken) in self.taken.iter().enumerate() {
            if let Taken::Dynamic(place) | Taken::Places(place) = taken {
                dims.push(dim);
                arrays.push(*place);
            }
        }
        // The dimensions in front that the gather keeps; single elements at static indices vanish later.
        let before = self.result.iter().take_while(|slot| **slot != IndexedDim::Places);
        let last = before.filter_map(|slot| match slot {
            IndexedDim::Dim(dim) => Some(*dim),
            IndexedDim::New | IndexedDim::Places => None,
        });
        (dims, last.max().map_or(0, |last| last + 1), arrays)
    }

    /// Adds the dimensions of the index arrays to the result: after the dimensions so far, or first if the arrays are not adjacent.
    /// `before` is the previous entry.
    fn put_places(&mut self, before: Option<&IndexItem>) {
        let follows = |item: &IndexItem| matches!(item, IndexItem::Place(..));
        match self.result.iter().position(|slot| *slot == IndexedDim::Places) {
            None => self.result.push(IndexedDim::Places),
            Some(_) if before.is_some_and(follows) => {}
            Some(at) => {
                self.result.remove(at);
                self.result.insert(0, IndexedDim::Places);
            }
        }
    }
}

/// Reads an index; statements check dynamic indices.
pub fn plan(
    build: &mut CallBuilder,
    shape: &[usize],
    items: &[IndexItem],
    span: Span,
) -> Result<IndexPlan, Diagnostic> {
    let given = items.iter().filter(|item| !matches!(item, IndexItem::NewAxis(_) | IndexItem::Ellipsis(_))).count();
    let dots: Vec<Span> =
        items.iter().filter_map(|item| if let IndexItem::Ellipsis(span) = item { Some(*span) } else { None }).collect();
    if let [_, second, ..] = dots.as_slice() {
        return Err(Diagnostic::error(Code::E0205, *second, "an index can contain `...` only once"));
    }
    if given > shape.len() {
        let message = format!("too many indices: {given} for an array of shape {}", shape::display(shape));
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    let has_arrays = items.iter().any(|item| is_array(build, item));
    let mut plan = IndexPlan { taken: Vec::new(), result: Vec::new(), places: Vec::new() };
    let mut previous = None;
    let whole = |plan: &mut IndexPlan, count: usize| {
        for _ in 0..count {
            let dim = plan.taken.len();
            plan.taken.push(Taken::Range(SliceRange::all(shape[dim])));
            plan.result.push(IndexedDim::Dim(dim));
        }
    };
    for item in items {
        let dim = plan.taken.len();
        let at = |mismatch: Mismatch, span: Span| {
            let mut error = Diagnostic::error(mismatch.code, span, mismatch.message);
            error.help = mismatch.help;
            error
        };
        match item {
            IndexItem::Ellipsis(_) => whole(&mut plan, shape.len() - given),
            IndexItem::NewAxis(_) => plan.result.push(IndexedDim::New),
            IndexItem::Range { start, stop, step, span } => {
                let range = SliceRange::of(*start, *stop, *step, shape[dim]).map_err(|mismatch| at(mismatch, *span))?;
                plan.taken.push(Taken::Range(range));
                plan.result.push(IndexedDim::Dim(dim));
            }
            IndexItem::Window { len: 0, .. } => {
                plan.taken.push(Taken::Range(SliceRange::between(0, 0)));
                plan.result.push(IndexedDim::Dim(dim));
            }
            IndexItem::Window { start, len, span } => {
                if *len > shape[dim] {
                    let message =
                        format!("a slice of {len} elements does not fit into a dimension of size {}", shape[dim]);
                    return Err(Diagnostic::error(Code::E0401, *span, message));
                }
                plan.taken.push(Taken::Window(checked_place(build, *start, (shape[dim], *len), *span)?, *len));
                plan.result.push(IndexedDim::Dim(dim));
            }
            IndexItem::Place(Term::Int(place), span) => {
                let place = (*place).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
                let range = SliceRange::one(place, shape[dim]).map_err(|mismatch| at(mismatch, *span))?;
                plan.taken.push(Taken::Fixed(range));
            }
            IndexItem::Place(term, span) if is_array(build, item) => {
                let places = indices(build, (term, *span), shape[dim], OutOfBounds::Raise)?.places;
                let of = build.ty(places).shape().to_vec();
                plan.places = shape::broadcast(&[&plan.places, &of]).map_err(|mismatch| at(mismatch, *span))?;
                plan.taken.push(Taken::Places(places));
            }
            IndexItem::Place(Term::Array(place), span) => {
                plan.taken.push(Taken::Dynamic(checked_place(build, *place, (shape[dim], 1), *span)?));
            }
            IndexItem::Place(other, span) => {
                let message = must_be("an index", "an integer", other.describe());
                return Err(Diagnostic::error(Code::E0210, *span, message));
            }
        }
        if has_arrays && matches!(item, IndexItem::Place(..)) {
            plan.put_places(previous);
        }
        previous = Some(item);
    }
    let left = shape.len() - plan.taken.len();
    whole(&mut plan, left);
    Ok(plan)
}

/// Whether an entry is an array of indices.
pub fn is_array(build: &CallBuilder, item: &IndexItem) -> bool {
    match item {
        IndexItem::Place(Term::Array(place), _) => build.ty(*place).rank() > 0,
        IndexItem::Place(term, _) => matches!(term, Term::List(_)),
        IndexItem::Range { .. } | IndexItem::Window { .. } | IndexItem::NewAxis(_) | IndexItem::Ellipsis(_) => false,
    }
}

/// The first index of `len` elements of a dimension, as an i64; the program stops unless all of them exist.
fn checked_place(
    build: &mut CallBuilder,
    place: Value,
    (extent, len): (usize, usize),
    span: Span,
) -> Result<Value, Diagnostic> {
    let ty = build.ty(place).array.clone();
    if ty.rank() > 0 || !ty.dtype.is_integer() {
        let message = must_be("an index", "an integer", &ty);
        return Err(Diagnostic::error(Code::E0203, span, message));
    }
    build.at(span, build.lineage(), |build| build.emit1(CheckIndex { extent, len }, &[place]))
}

/// `x[items]`
pub fn get(build: &mut CallBuilder, value: Value, items: &[IndexItem], span: Span) -> Result<Value, Diagnostic> {
    if build.ty(value).array.is_stream {
        return read_rows::index(build, value, items, span);
    }
    let shape = build.ty(value).shape().to_vec();
    let plan = plan(build, &shape, items, span)?;
    let ranges: Vec<SliceRange> = plan.taken.iter().zip(&shape).map(|(taken, &size)| taken.range(size)).collect();
    let mut value = slice(build, value, &ranges)?;
    let has_window = plan.taken.iter().any(|taken| matches!(taken, Taken::Window(..)));
    // Dimensions, with the number of elements that remain of each. Beside arrays dynamic scalars are index arrays, too.
    let mut dims = Vec::new();
    let mut args = vec![value];
    for (dim, taken) in plan.taken.iter().enumerate() {
        let (place, len) = match taken {
            Taken::Dynamic(place) if !plan.has_arrays() => (*place, 1),
            Taken::Window(place, len) => (*place, *len),
            Taken::Dynamic(_) | Taken::Places(_) | Taken::Range(_) | Taken::Fixed(_) => continue,
        };
        dims.push((dim, len));
        args.push(place);
    }
    let (of_arrays, at, arrays) = plan.gathered();
    let gather = |build: &mut CallBuilder, value: Value| {
        build.emit1(Gather::new(of_arrays.clone(), Vec::new(), at), &[&[value], &arrays[..]].concat())
    };
    // The smaller result first.
    let sizes = build.ty(value).shape().to_vec();
    let all = |dims: &[usize]| dims.iter().map(|&dim| sizes[dim]).product::<usize>();
    let windows: usize = dims.iter().map(|&(_, len)| len).product();
    let cut: Vec<usize> = dims.iter().map(|&(dim, _)| dim).collect();
    let places: usize = plan.places.iter().product();
    if has_window && plan.has_arrays() && places.saturating_mul(all(&cut)) < windows.saturating_mul(all(&of_arrays)) {
        value = gather(build, value)?;
        let kept: Vec<usize> = (0..sizes.len()).filter(|dim| !of_arrays.contains(dim)).collect();
        let moved = |dim: usize| {
            let own = kept.iter().position(|&other| other == dim).expect("an index array is of another dimension");
            if own < at { own } else { own + plan.places.len() }
        };
        args[0] = value;
        let dims = dims.into_iter().map(|(dim, len)| (moved(dim), len)).collect();
        value = build.emit1(DynamicSlice { dims }, &args)?;
        return reshape(build, value, &plan.result_shape());
    }
    if has_window {
        value = build.emit1(DynamicSlice { dims }, &args)?;
    } else if !dims.is_empty() {
        let dims = dims.into_iter().map(|(dim, _)| dim).collect();
        value = build.emit1(Index { dims }, &args)?;
    }
    if plan.has_arrays() {
        value = gather(build, value)?;
    }
    reshape(build, value, &plan.result_shape())
}

/// `check_index(i, n)`: the index as i64, counted from the front; stops the program if it is invalid. `check_index(i, n, 4)` checks
/// four elements from there on.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckIndex {
    /// The size of the indexed dimension.
    pub extent: usize,
    /// The number of elements taken from the index on, at least 1; all of them must exist.
    pub len: usize,
}

impl Semantics for CheckIndex {
    fn name(&self) -> &'static str {
        "check_index"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, _: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        Factors { operands: vec![Vec::new()], results: vec![Vec::new()], ..Factors::new() }
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let index = number::to_int(args[0].dtype(), args[0].bits[0]);
        let (extent, len) = (self.extent as i128, self.len as i128);
        match counted_index(index, extent, len) {
            Some(place) => Ok(vec![Array::scalar(DType::I64, place as u64)]),
            None => Err(Trap { code: Code::E0801, message: out_of_bounds(index, extent, len) }),
        }
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        match self.len {
            1 => format!("check_index({}, {})", args[0], self.extent),
            len => format!("check_index({}, {}, {len})", args[0], self.extent),
        }
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for CheckIndex {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args[0].rank() != 0 || !args[0].dtype.is_integer() {
            return Err(Mismatch::new(Code::E0203, must_be("an index", "an integer", args[0])));
        }
        Ok(vec![ArrayType::scalar(DType::I64)])
    }
}

impl Rules for CheckIndex {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::stops(0, 0, Batching::Rule(self))
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::Check,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl Batched for CheckIndex {
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let index = batch.mapped(build, operands[0])?;
        if self.len == 1 {
            return build.emit(CheckIndices { extent: self.extent }, &[index]);
        }
        // A region can begin at so many places. Those that count from the end are counted from the start before.
        let places = beginnings(self.extent, self.len);
        let index = convert(build, DType::I64, (&Term::Array(index), build.span()))?;
        let number = |number: usize| Constant::scalar(DType::I64, number as u64);
        let (zero, extent, none) =
            (build.emit1(number(0), &[])?, build.emit1(number(self.extent), &[])?, build.emit1(number(places), &[])?);
        let is_negative = build.emit1(Compare(CompareOp::Lt), &[index, zero])?;
        let counted = build.emit1(Binary(BinaryOp::Add), &[index, extent])?;
        let is_outside = build.emit1(Compare(CompareOp::Lt), &[counted, zero])?;
        let counted = build.emit1(Select, &[is_outside, none, counted])?;
        let place = build.emit1(Select, &[is_negative, counted, index])?;
        build.emit(CheckIndices { extent: places }, &[place])
    }
}

impl NestLowering for CheckIndex {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.check_index(stmt.args[0], (self.extent as i64, self.len as i64), stmt.results[0]);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Call for CheckIndex {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A dynamic index that is valid, or the end of the program.
        check_index(index: Array, extent: Int, len: Int = 1) in_dumps "" "write x[i]: every index is checked";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let index = args.array(build, "index")?;
        let extent = args.int("extent")?;
        let extent = usize::try_from(extent)
            .map_err(|_| Diagnostic::error(Code::E0227, args.span, "the extent of an index must be at least 0"))?;
        let len = args.optional_int("len")?.unwrap_or(1);
        let len = usize::try_from(len).ok().filter(|&len| len > 0);
        let len =
            len.ok_or_else(|| Diagnostic::error(Code::E0227, args.span, "the length of an index must be at least 1"))?;
        Ok(Term::Array(build.emit1(CheckIndex { extent, len }, &[index])?))
    }
}

/// `index(x, i, j, dims=(0, 2))`: the elements at indices i and j of dimensions 0 and 2, which vanish. The operands after x are
/// checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The indexed dimensions, in order.
    pub dims: Vec<usize>,
}

/// The number of indices at which a region of `len` can begin in a dimension of `size`.
pub fn beginnings(size: usize, len: usize) -> usize {
    (size + 1).saturating_sub(len)
}

/// A checked index below `places`, limited as in [`KernelBuilder::dynamic_index`].
pub fn checked(index: &Array, places: usize) -> usize {
    index.bits[0].min(places.saturating_sub(1) as u64) as usize
}

/// Checks that operands have the type that `check_index` returns.
pub fn are_checked(args: &[&ArrayType]) -> Result<(), Mismatch> {
    match args.iter().find(|ty| ty.rank() != 0 || ty.dtype != DType::I64) {
        Some(ty) => Err(Mismatch::new(Code::E0203, must_be("a checked index", "a scalar i64", ty))),
        None => Ok(()),
    }
}

impl Index {
    /// Whether an indexed dimension is empty; then the check before has stopped the program.
    fn has_no_place(&self, shape: &[usize]) -> bool {
        self.dims.iter().any(|&dim| shape[dim] == 0)
    }
}

impl Semantics for Index {
    fn name(&self) -> &'static str {
        "index"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let (mut operand, mut result) = (Vec::new(), Vec::new());
        let found = FactorKind::one_has(args[0].dtype);
        for (dim, &size) in args[0].shape.iter().enumerate() {
            let indexed = self.dims.contains(&dim);
            let factor = rule.add(size, if indexed { found } else { FactorKind::Pass });
            operand.push(vec![factor]);
            if !indexed {
                result.push(vec![factor]);
            }
        }
        rule.operands.push(operand);
        rule.operands.resize(args.len(), Vec::new());
        rule.results.push(result);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types: Vec<&ArrayType> = args.iter().map(|array| &array.ty).collect();
        let ty = self.infer(&types).expect("the checker has typed the index").swap_remove(0);
        if self.has_no_place(args[0].shape()) {
            return Ok(vec![Array::from_fn(ty, |_| 0)]);
        }
        Ok(vec![Array::from_fn(ty, |index| {
            let mut kept = index.iter().copied();
            let own = (0..args[0].ty.rank()).map(|dim| match self.dims.iter().position(|&indexed| indexed == dim) {
                Some(at) => checked(args[1 + at], args[0].shape()[dim]),
                None => kept.next().expect("the result has every dimension that is not indexed"),
            });
            let own: Vec<usize> = own.collect();
            args[0].get(&own)
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("index({}, dims={})", args.join(", "), shape::tuple(&self.dims))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Index {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        are_checked(&args[1..])?;
        let ordered = self.dims.windows(2).all(|pair| pair[0] < pair[1]);
        if self.dims.len() + 1 != args.len() || !ordered || self.dims.iter().any(|&dim| dim >= args[0].rank()) {
            let message =
                format!("{} indices do not match the dimensions {:?} of {}", args.len() - 1, self.dims, args[0]);
            return Err(Mismatch::new(Code::E0206, message));
        }
        let kept = args[0].shape.iter().enumerate().filter(|(dim, _)| !self.dims.contains(dim));
        let shape: Vec<usize> = kept.map(|(_, &size)| size).collect();
        Ok(vec![ArrayType::of(args[0].dtype, shape)])
    }
}

impl Rules for Index {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Places(&[0]),
            combines: Combines::Places(self.dims.clone()),
            elements: Elements::Chosen(self),
            keeps_alignment: true,
        }
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl ChosenRegion for Index {
    fn region(&self) -> Vec<(usize, usize)> {
        self.dims.iter().map(|&dim| (dim, 1)).collect()
    }
}

impl Batched for Index {
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let args: Vec<Value> = operands.iter().map(|operand| operand.value()).collect();
        if !operands[1..].iter().any(|place| place.is_mapped()) {
            return build.emit(Index { dims: shifted(&self.dims) }, &args);
        }
        let gather = Gather::new(self.dims.clone(), Vec::new(), 0);
        build.emit(gather.in_batch(batch, operands[0].is_mapped(), true), &args)
    }
}

impl Point for Index {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.args[0]);
        if self.has_no_place(ty.shape()) {
            return kernel.constant(ty.dtype(), 0);
        }
        let mut kept = index.iter().cloned();
        let mut own = Vec::new();
        let mut tests = Vec::new();
        for dim in 0..ty.rank() {
            own.push(match self.dims.iter().position(|&indexed| indexed == dim) {
                Some(at) => {
                    let place = kernel.dynamic_index(stmt.args[1 + at], ty.shape()[dim]);
                    kernel.index_in_block(ty, dim, &place, &mut tests)
                }
                None => kept.next().expect("the result has every dimension that is not indexed"),
            });
        }
        kernel.operand_if(stmt.args[0], &own, &tests)
    }

    fn reads(&self, operand: usize, _: &[&ArrayType]) -> Reads {
        if operand == 0 { Reads::Once } else { Reads::Buffer }
    }
}

impl Call for Index {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Elements at dynamic places.
        index(x: Array, [rest] places: Array, [named] dims: Ints = None) in_dumps "" "write x[i]";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let dims = args.optional_ints("dims")?;
        let value = args.array(build, "x")?;
        let rank = build.ty(value).rank();
        let Some(dims) = dims else {
            return Err(Diagnostic::error(
                Code::E0227,
                args.span,
                "`index` requires `dims=`; write x[i] to index an array",
            ));
        };
        let dims = shape::axes(&dims, rank, args.span)?;
        let mut operands = vec![value];
        for arg in args.rest("places") {
            operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
        }
        Ok(Term::Array(build.emit1(Index { dims }, &operands)?))
    }
}
