//! Scatters as calls of the runtime's function.
//!
//! The function itself checks indices and clips them at 0, and reads them in their own type, so these arrays are not necessarily in memory.
//! Many updates of few elements are divided into shares with an array each, which threads compute in parallel; a kernel combines them.

use crate::cast::Cast;
use crate::check_indices::CheckIndices;
use crate::constant::Constant;
use crate::elementwise::Binary;
use crate::gather::DimSource;
use crate::scatter::{Onto, Scatter, operation};
use spmdc_abi::{LibraryDim, LibraryFunction, ReduceOp, Scalar, ScatterIndex, ScatterParts, ScatterRows};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::{Definitions, Infer, Library, NestLowering, Reads, Users};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::cost;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;

/// Maximum number of shares of the updates on the devices of a host, each for a thread at a time.
const SHARES: usize = 8;
/// Minimum number of updates of elements in a share, for each element of the result: the results of all shares are combined.
const UPDATES_OF_ELEMENT: usize = 4;
/// Minimum number of updates of elements that are divided into shares.
const MANY_UPDATES: usize = 1 << 15;
/// Minimum length of a dimension of rows that is divided among threads; of shorter rows the indexed dimension is.
const LONG_ROW: usize = 256;

impl NestLowering for Scatter {
    /// A copy of the array, which vanishes if the old one is not needed any more, and calls that update it.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let result = stmt.results[0];
        if self.onto == Onto::Operand {
            lowering.copy(stmt.args[0], result);
        }
        let mut calls = self.calls(lowering, stmt, result);
        if let Some((op, count)) = self.combine.zip(self.shares(lowering, stmt, &calls)) {
            let shares = share_updates(lowering, &mut calls, result, count);
            lowering.library(calls);
            combine_shares(lowering, op, (shares, count), result);
        } else {
            lowering.library(calls);
        }
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Scatter {
    fn calls(&self, lowering: &Lowering<'_>, stmt: &Stmt, result: Value) -> LibraryCalls {
        let ty = lowering.ty(result);
        let (updates, arrays) = (stmt.args[self.skipped()], &stmt.args[self.skipped() + 1..]);
        let types: Vec<&ArrayType> = stmt.args.iter().map(|&arg| &lowering.ty(arg).array).collect();
        let full = self.places.infer(&self.gathered(&ty.array, &types)).expect("the scatter has been typed");
        let full = &full[0].shape;
        let rank = full.len() + self.places.dims.len() + self.places.batch.len() - ty.rank();
        let roles = self.places.roles(ty.rank(), rank);
        let place = |of: usize| self.places.at + of;
        // Dimensions before the first indexed one, and those of the index arrays, make calls of their own; the others are rows.
        let first = self.places.dims[0];
        let (mut batch, mut rows) = (Vec::new(), Vec::new());
        for (dim, source) in roles.iter().enumerate() {
            match source {
                DimSource::Indexed(_) => {}
                DimSource::Batch(of) => batch.push((dim, place(*of))),
                DimSource::Kept(at) if dim < first => batch.push((dim, *at)),
                DimSource::Kept(at) => rows.push((dim, *at)),
            }
        }
        let is_batch = |at: usize| batch.iter().any(|&(_, of)| of == at);
        let inner: Vec<usize> = (0..rank).map(place).filter(|&at| !is_batch(at)).collect();
        let length = |dim: usize| lowering.kernel().context.block_len(ty, dim);
        let whole = |at: usize| self.extent(lowering, (updates, arrays), full, at);
        // An operand with these dimensions of the updates, aligned at `end`.
        let array = |value: Value, end: usize, dims: &[(usize, Scalar)]| {
            let own = lowering.ty(value);
            let strides = lowering.kernel().context.strides(own);
            let stride = |at: usize| match (at + own.rank()).checked_sub(end).filter(|_| at < end) {
                Some(dim) if own.shape()[dim] != 1 || full[at] == 1 => strides[dim],
                Some(_) | None => 0,
            };
            let dims = dims.iter().map(|(at, extent)| LibraryDim { extent: extent.clone(), stride: stride(*at) });
            CallArray { value, batch: batch.iter().map(|&(_, at)| stride(at)).collect(), dims: dims.collect() }
        };
        let of_places: Vec<(usize, Scalar)> = inner.iter().map(|&at| (at, whole(at))).collect();
        let of_rows = rows.iter().map(|&(dim, at)| (at, length(dim)));
        let of_updates: Vec<(usize, Scalar)> = of_places.iter().cloned().chain(of_rows).collect();
        let mut operands = vec![array(updates, full.len(), &of_updates)];
        let definition = |value: Value, _: Users| lowering.inlined.get(value.0 as usize).copied().flatten();
        let sources: Vec<IndexSource> =
            arrays.iter().map(|&index| IndexSource::of(index, lowering.func, &definition)).collect();
        operands.extend(sources.iter().map(|source| array(source.value, place(rank), &of_places)));
        let mut checks = Vec::new();
        let indices = sources.iter().map(|source| source.meaning(&mut checks)).collect();
        let strides = lowering.kernel().context.strides(ty);
        let to = self.places.dims.iter().copied().chain(rows.iter().map(|&(dim, _)| dim));
        let to: Vec<usize> = to.collect();
        let results = vec![CallArray {
            value: result,
            batch: batch.iter().map(|&(dim, _)| strides[dim]).collect(),
            dims: to.iter().map(|&dim| LibraryDim { extent: length(dim), stride: strides[dim] }).collect(),
        }];
        let block = ty.block_shape(lowering.mesh);
        let longest = rows.iter().map(|&(dim, _)| dim).max_by_key(|&dim| block[dim]);
        let divided =
            longest.filter(|&dim| block[dim] >= LONG_ROW).and_then(|dim| to.iter().position(|&own| own == dim));
        let row: usize = rows.iter().map(|&(dim, _)| block[dim]).product();
        let updates: usize = inner.iter().map(|&at| full[at]).product();
        LibraryCalls {
            function: LibraryFunction::Scatter(ScatterRows {
                combine: self.combine,
                start: self.start(ty.dtype()),
                first: self.places.dims.iter().map(|&dim| lowering.kernel().context.block_start(ty, dim)).collect(),
                indices,
                divided: ScatterParts::Result(divided.unwrap_or(0)),
            }),
            operands,
            results,
            batch: batch.iter().map(|&(dim, _)| length(dim)).collect(),
            owners: None,
            cost: cost::of_scatter(updates, row),
            checks,
        }
    }

    /// The number of shares into which the updates are divided, if that is worthwhile. It depends on sizes and the mesh alone, as the order
    /// of the updates does.
    fn shares(&self, lowering: &Lowering<'_>, stmt: &Stmt, calls: &LibraryCalls) -> Option<usize> {
        if self.onto == Onto::Operand || !calls.batch.is_empty() {
            return None;
        }
        let most = |scalar: &Scalar| match scalar {
            Scalar::Const(extent) => *extent as usize,
            Scalar::BlockLen(dim) => {
                let axes: Vec<u8> = dim.axes.clone();
                dim.size.div_ceil(lowering.mesh.size_of(&axes))
            }
            Scalar::BlockStart(_)
            | Scalar::Coordinate(_)
            | Scalar::Table { .. }
            | Scalar::Add(..)
            | Scalar::Mul(..)
            | Scalar::Min(..)
            | Scalar::Max(..) => 0,
        };
        let ty = lowering.ty(stmt.results[0]);
        let elements: usize = ty.block_shape(lowering.mesh).iter().product();
        let updates: usize = calls.operands[0].dims.iter().map(|dim| most(&dim.extent)).product();
        let worthwhile = updates / (UPDATES_OF_ELEMENT * elements.max(1));
        let count = worthwhile.min(SHARES / lowering.mesh.device_count());
        (count > 1 && updates >= MANY_UPDATES).then_some(count)
    }

    /// The number of updates along a dimension of the index arrays on the device.
    fn extent(
        &self,
        lowering: &Lowering<'_>,
        (updates, arrays): (Value, &[Value]),
        full: &[usize],
        at: usize,
    ) -> Scalar {
        let rank = arrays.iter().map(|&index| lowering.ty(index).rank()).max().unwrap_or(0);
        let ends =
            std::iter::once((updates, full.len())).chain(arrays.iter().map(|&index| (index, self.places.at + rank)));
        for (value, end) in ends.filter(|&(_, end)| at < end) {
            let ty = lowering.ty(value);
            if let Some(dim) = (at + ty.rank()).checked_sub(end).filter(|&dim| ty.shape()[dim] == full[at]) {
                return lowering.kernel().context.block_len(ty, dim);
            }
        }
        Scalar::Const(full[at] as i64)
    }
}

/// Turns calls into those for shares of the updates; gives the arrays of the shares, one after another.
fn share_updates(lowering: &mut Lowering<'_>, calls: &mut LibraryCalls, result: Value, count: usize) -> Value {
    let mut ty = lowering.ty(result).clone();
    ty.array.shape.insert(0, count);
    ty.sharding.dims.insert(0, Default::default());
    let shares = lowering.temporary(ty);
    let stride = lowering.kernel().context.strides(lowering.ty(shares))[0];
    let [array] = calls.results.as_mut_slice() else { unreachable!("a scatter has one result") };
    array.value = shares;
    array.dims.insert(0, LibraryDim { extent: Scalar::Const(count as i64), stride });
    let LibraryFunction::Scatter(scatter) = &mut calls.function else { unreachable!("calls of a scatter") };
    scatter.divided = ScatterParts::Updates;
    shares
}

/// Combines the arrays of shares in pairs of neighbours, then in pairs of pairs.
fn combine_shares(lowering: &mut Lowering<'_>, op: ReduceOp, (shares, count): (Value, usize), result: Value) {
    let mut kernel = lowering.kernel();
    let ty = kernel.context.ty(result);
    let index = kernel.block_dims(ty, false);
    let mut parts: Vec<Elem> = (0..count as i64)
        .map(|share| kernel.operand(shares, &[&[Affine::constant(share)], index.as_slice()].concat()))
        .collect();
    while parts.len() > 1 {
        let pair = |pair: &[Elem]| match *pair {
            [a, b] => kernel.binary(operation(op), ty.dtype(), a, b),
            _ => pair[0],
        };
        parts = parts.chunks(2).map(pair).collect();
    }
    kernel.store(result, &index, parts[0]);
    lowering.run(kernel);
}

/// The array that is read as indices, and the remaining work on them.
struct IndexSource {
    value: Value,
    form: IndexForm,
    /// The values between it and the operand.
    between: Vec<Value>,
}

/// As [`ScatterIndex`].
enum IndexForm {
    Plain,
    AtLeastZero,
    /// The statement that checks, and the size of the dimension.
    Checked(Span, usize),
}

impl IndexSource {
    /// The operand from which an index array of i64 is computed. `definition` returns the statement of a value that is not necessarily in
    /// memory.
    fn of<'a>(value: Value, func: &'a Func, definition: Definitions<'a, '_>) -> IndexSource {
        let mut source = IndexSource { value, form: IndexForm::Plain, between: Vec::new() };
        let Some((op, stmt)) = definition(value, Users::One) else { return source };
        if let Some(check) = op.as_op::<CheckIndices>() {
            source.form = IndexForm::Checked(stmt.origin.span, check.extent);
            source.skip(stmt);
            return source;
        }
        if op.is::<Cast>() && func.ty(stmt.args[0]).dtype().is_integer() {
            source.skip(stmt);
        }
        if let Some((op, stmt)) = definition(source.value, Users::One)
            && op.as_op() == Some(&Binary(BinaryOp::Maximum))
            && func.ty(stmt.args[0]).sharding == func.ty(source.value).sharding
            && func.ty(stmt.args[0]).shape() == func.ty(source.value).shape()
            && is_zero(func, stmt.args[1])
        {
            source.form = IndexForm::AtLeastZero;
            source.skip(stmt);
        }
        source
    }

    /// Reads the first operand of a statement instead of its result.
    fn skip(&mut self, stmt: &Stmt) {
        self.between.push(self.value);
        self.value = stmt.args[0];
    }

    /// The meaning of the indices, with the check among the checks of the calls.
    fn meaning(&self, checks: &mut Vec<(Span, usize)>) -> ScatterIndex {
        match self.form {
            IndexForm::Plain => ScatterIndex::Plain,
            IndexForm::AtLeastZero => ScatterIndex::AtLeastZero,
            IndexForm::Checked(span, extent) => {
                checks.push((span, extent));
                ScatterIndex::Checked(checks.len() - 1)
            }
        }
    }
}

/// Whether a value is a literal of zeros.
fn is_zero(func: &Func, value: Value) -> bool {
    let mut zero = false;
    func.body.walk(&mut |stmt| {
        if let (Some(literal), [result]) = (stmt.as_op::<Constant>(), stmt.results.as_slice()) {
            zero |= *result == value && literal.array.bits.iter().all(|&bits| bits == 0);
        }
    });
    zero
}

impl Library for Scatter {
    /// The indices are checked by the function, or cut off at 0, and it reads them in their type.
    fn computes<'a>(
        &self,
        operand: usize,
        stmt: &Stmt,
        func: &'a Func,
        _: &Mesh,
        definition: Definitions<'a, '_>,
    ) -> Vec<Value> {
        if operand <= self.skipped() {
            return Vec::new();
        }
        IndexSource::of(stmt.args[operand], func, definition).between
    }

    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }
}
