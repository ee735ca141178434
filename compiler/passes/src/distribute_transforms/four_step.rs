//! Transforms along a dimension that stays split, in four steps (Bailey, "FFTs in external or hierarchical memory", 1990).
//!
//! A line of `n1 * n2` points is a matrix with `n1` rows, row-major. Its columns are transformed, each element is multiplied by a power of
//! the `n`-th root of unity, and the rows are transformed:
//!
//! ```text
//! let (r, i): (f32[64@Y], f32[64@Y]) = fft_lines(x, axis=0);          // x: f32[64@Y], Y = 4
//! =>
//! let v1: f32[8@Y, 8] = reshape(x, (8, 8));
//! let v2: f32[8, 8@Y] = reshard(v1, P(_, Y));                          // all-to-all
//! let (v3, v4): (f32[8, 8@Y], f32[8, 8@Y]) = fft_lines(v2, axis=0);
//! let (v5, v6) = (v3 * c - v4 * s, v3 * s + v4 * c);                   // c, s: cos and sin of -2 pi / 64 * row * column
//! let (v7, v8) = (reshard(v5, P(Y, _)), reshard(v6, P(Y, _)));         // all-to-all
//! let (v9, v10): (f32[8@Y, 8], f32[8@Y, 8]) = fft_lines(v7, v8, axis=1);
//! let (v11, v12) = (reshard(v9, P(_, Y)), reshard(v10, P(_, Y)));      // all-to-all: element (k1, k2) is k1 + 8 * k2 of the result
//! let r: f32[64@Y] = reshape(transpose(v11, (1, 0)), (64,));
//! let i: f32[64@Y] = reshape(transpose(v12, (1, 0)), (64,));
//! ```
//!
//! `v9` and `v10` are the result in *turned* order. A transform of values computed from it element by element begins in this order, and
//! takes the inverse steps.
//!
//! If blocks of points are not blocks of whole rows, the line is padded with zeros until they are, and the rows of zeros are removed again.
//! A device fetches the missing elements of its rows.
//!
//! Half of the transform of real numbers follows by symmetry: only the rows `0..=n1/2` are transformed, and both halves of the half-complex
//! order are made from them.

use spmdc_abi::{CollectiveKind, Transform};
use spmdc_fft_ops::fft::Fft;
use spmdc_ir::op::Op;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::crossings;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, Sharding, block_range, blocks_hold_whole};
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::cast::Cast;
use spmdc_ops::concatenate::Concatenate;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select, Unary};
use spmdc_ops::flip::Flip;
use spmdc_ops::iota::Iota;
use spmdc_ops::pad::Pad;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::roll::Roll;
use spmdc_ops::slice::{Slice, SliceRange};
use spmdc_ops::transpose::Transpose;
use std::f64::consts::TAU;

/// Lines of `rows * columns` points as matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct LineMatrix {
    /// The dimension of the lines.
    pub axis: usize,
    /// The rows of a matrix.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// The axes that split the lines.
    pub axes: Vec<u8>,
}

/// The number of rows that are transformed, of so many, if the numbers are real.
fn half(rows: usize) -> usize {
    rows / 2 + 1
}

/// An exchange of a transform, with the elements that it moves for a line of each operand.
#[derive(Clone, Copy)]
enum LineExchange {
    /// The split moves from the rows of matrices to their columns.
    Turn {
        /// Maximum that any device receives.
        received: usize,
        /// Maximum that any device has before.
        held: usize,
    },
    /// Blocks of points become blocks of whole rows, or the reverse: most devices receive this number of elements from their neighbours.
    Shift { received: usize },
}

/// The exchanges of a transform whose lines are split into this number of parts.
struct LineExchanges {
    parts: usize,
    all: Vec<LineExchange>,
}

impl LineExchanges {
    /// The split moves from the rows of matrices to their columns.
    fn turn(&mut self, planes: usize, rows: usize, columns: usize) {
        let of = |size: usize, part: usize| block_range(size, self.parts, part).len();
        let most = (0..self.parts).map(|part| (rows - of(rows, part)) * of(columns, part)).max();
        let turn = LineExchange::Turn { received: most.unwrap_or(0), held: of(rows, 0) * columns };
        self.all.extend(vec![turn; planes]);
    }

    /// Blocks of points become blocks of whole rows, or those become blocks of points.
    fn shift(&mut self, planes: usize, rows: usize, columns: usize, is_back: bool) {
        let lacking = |part: usize| {
            let points = block_range(rows * columns, self.parts, part);
            let whole = block_range(rows, self.parts, part);
            let whole = whole.start * columns..whole.end * columns;
            let held = points.end.min(whole.end).saturating_sub(points.start.max(whole.start));
            if is_back { points.len() - held } else { whole.len() - held }
        };
        let most = (0..self.parts).map(lacking).max();
        self.all.extend(vec![LineExchange::Shift { received: most.unwrap_or(0) }; planes]);
    }

    /// In bytes that a device receives. `bytes`: the bytes of an element of all lines of a device; `axes`: the axes that split the lines,
    /// and all axes that split the operand.
    fn cost(&self, bytes: usize, (axes, all): (AxisSet, AxisSet), mesh: &Mesh) -> f64 {
        let of_one = |exchange: &LineExchange| {
            let (received, crossing) = match *exchange {
                LineExchange::Turn { received, held } => {
                    (received, crossings::of_group(CollectiveKind::AllToAll, (axes, all), (held * bytes) as u64, mesh))
                }
                LineExchange::Shift { received } => {
                    (received, (received * bytes) as u64 * crossings::beside_others(axes, mesh))
                }
            };
            crossings::exchange(received > 0, (received * bytes) as f64, crossing as f64, mesh)
        };
        self.all.iter().map(of_one).sum()
    }
}

impl LineMatrix {
    /// The cheapest matrices for a transform of operands of this type along a split dimension, and its cost; None if their size has no factors.
    pub fn cheapest(
        transform: Transform,
        planes: usize,
        ty: &Type,
        axis: usize,
        mesh: &Mesh,
    ) -> Option<(LineMatrix, f64)> {
        let n = ty.shape()[axis];
        let axes = &ty.sharding.dims[axis].axes;
        let mut block = ty.block_shape(mesh);
        block[axis] = 1;
        let bytes = block.iter().product::<usize>() * ty.dtype().size();
        let split = (axes.iter().map(|&axis| usize::from(axis)).collect(), ty.sharding.used_axes());
        let least = match transform {
            Transform::Complex { .. } => 2,
            Transform::OfReal | Transform::ToReal => 3,
        };
        let small = (2..).take_while(|factor| factor * factor <= n).filter(|factor| n.is_multiple_of(*factor));
        let factors = small.flat_map(|factor| [factor, n / factor]);
        let cuts = factors.filter(|rows| *rows >= least).map(|rows| {
            let cut = LineMatrix { axis, rows, columns: n / rows, axes: axes.clone() };
            let cost = cut.exchanges(transform, planes, mesh.size_of(axes)).cost(bytes, split, mesh);
            (cut, cost)
        });
        // Of equal costs the rows and columns that differ least.
        let unlike = |cut: &LineMatrix| cut.rows.abs_diff(cut.columns);
        cuts.min_by(|(a, first), (b, second)| first.total_cmp(second).then(unlike(a).cmp(&unlike(b))))
    }

    fn exchanges(&self, transform: Transform, planes: usize, parts: usize) -> LineExchanges {
        let (rows, columns, half) = (self.rows, self.columns, half(self.rows));
        let mut found = LineExchanges { parts, all: Vec::new() };
        match transform {
            Transform::Complex { .. } => {
                found.shift(planes, rows, columns, false);
                found.turn(planes, rows, columns);
                found.turn(2, columns, rows);
                found.turn(2, rows, columns);
                found.shift(2, columns, rows, true);
            }
            Transform::OfReal => {
                found.shift(1, rows, columns, false);
                found.turn(1, rows, columns);
                found.turn(2, columns, half);
                found.turn(2, half, columns);
                found.shift(1, columns, rows, true);
            }
            Transform::ToReal => {
                found.shift(1, columns, rows, false);
                found.turn(2, columns, half);
                found.turn(2, half, columns);
                found.turn(1, columns, rows);
                found.shift(1, rows, columns, true);
            }
        }
        found
    }

    fn points(&self) -> usize {
        self.rows * self.columns
    }
}

/// The side of a matrix that is split.
#[derive(Clone, Copy, PartialEq)]
enum SplitSide {
    Rows,
    Columns,
}

/// Makes the steps of transforms of lines that are divided in the same way.
pub struct FourStep<'a> {
    build: Builder<'a>,
    /// The type of a line, of any element type and length.
    line: Type,
    cut: LineMatrix,
    parts: usize,
    origin: Origin,
}

impl<'a> FourStep<'a> {
    /// The steps of transforms of values of this type.
    pub fn new(func: &'a mut Func, mesh: &'a Mesh, line: Type, cut: LineMatrix, origin: Origin) -> FourStep<'a> {
        let parts = mesh.size_of(&cut.axes);
        debug_assert_eq!(line.shape()[cut.axis], cut.points(), "a matrix has the elements of its line");
        FourStep { build: Builder::new(func, mesh), line, cut, parts, origin }
    }

    /// The statements, in the order of their creation.
    pub fn finish(self) -> Vec<Stmt> {
        self.build.finish()
    }

    /// The results in the order of the lines of transforms of operands in that order; for complex numbers also the planes in turned order.
    pub fn transform(&mut self, transform: Transform, planes: &[Value], results: &[Value]) -> Option<[Value; 2]> {
        match transform {
            Transform::Complex { inverse } => {
                let rows: Vec<Value> = planes.iter().map(|&plane| self.as_rows(plane, self.sizes())).collect();
                let columns: Vec<Value> = rows.iter().map(|&rows| self.split(rows, SplitSide::Columns)).collect();
                let transformed = self.fft(&columns, self.cut.axis, inverse);
                let twisted = self.twisted(transformed, inverse).map(|plane| self.split(plane, SplitSide::Rows));
                let turned = self.fft(&twisted, self.cut.axis + 1, inverse);
                for (plane, &result) in turned.iter().zip(results) {
                    self.ordered(*plane, result);
                }
                Some(turned)
            }
            Transform::OfReal => {
                self.half_complex(planes[0], results[0]);
                None
            }
            Transform::ToReal => {
                self.real_lines(planes[0], results[0]);
                None
            }
        }
    }

    /// The transforms of operands in turned order, in the order of the lines.
    pub fn transform_back(&mut self, inverse: bool, planes: &[Value], results: &[Value]) {
        let transformed = self.fft(planes, self.cut.axis + 1, inverse);
        let twisted = self.twisted(transformed, inverse).map(|plane| self.split(plane, SplitSide::Columns));
        let columns = self.fft(&twisted, self.cut.axis, inverse);
        for (plane, &result) in columns.iter().zip(results) {
            let rows = self.split(*plane, SplitSide::Rows);
            self.as_lines(rows, self.sizes(), result);
        }
    }

    /// A value in the order of the lines in turned order.
    pub fn turned(&mut self, line: Value) -> Value {
        let rows = self.as_rows(line, self.turned_sizes());
        let transposed = self.transposed(rows, self.sizes(), SplitSide::Columns);
        self.split(transposed, SplitSide::Rows)
    }

    /// The shape of values in turned order.
    pub fn turned_shape(&self) -> Vec<usize> {
        self.matrix(self.line.dtype(), self.sizes(), SplitSide::Rows).array.shape
    }

    /// The result of an op on values in turned order, element by element.
    pub fn turned_result(&mut self, op: impl Into<Op>, args: &[Value], dtype: DType) -> Value {
        let mut ty = self.matrix(dtype, self.sizes(), SplitSide::Rows);
        ty.varying = self.varying(args);
        self.emit(op, args, ty)
    }

    /// The indices of a line, or those along another dimension, in turned order.
    pub fn turned_indices(&mut self, axis: usize, dtype: DType) -> Value {
        let ty = self.matrix(dtype, self.sizes(), SplitSide::Rows);
        if axis != self.cut.axis {
            let axis = if axis < self.cut.axis { axis } else { axis + 1 };
            return self.emit(Iota { ty: ty.array.clone(), axis }, &[], ty);
        }
        self.indices_of(ty)
    }

    fn sizes(&self) -> [usize; 2] {
        [self.cut.rows, self.cut.columns]
    }

    fn turned_sizes(&self) -> [usize; 2] {
        [self.cut.columns, self.cut.rows]
    }

    fn emit(&mut self, op: impl Into<Op>, args: &[Value], ty: Type) -> Value {
        self.build.emit(op, args, ty, &self.origin)
    }

    fn dtype(&self, value: Value) -> DType {
        self.build.func.ty(value).dtype()
    }

    fn varying(&self, values: &[Value]) -> AxisSet {
        values.iter().fold(AxisSet::EMPTY, |all, &value| all.union(self.build.func.ty(value).varying))
    }

    fn shape(&self, value: Value) -> &[usize] {
        self.build.func.ty(value).shape()
    }

    /// The type of lines of this length.
    fn lines(&self, like: Value, len: usize) -> Type {
        let mut ty = self.line.clone();
        (ty.array.dtype, ty.varying) = (self.dtype(like), self.varying(&[like]));
        ty.array.shape[self.cut.axis] = len;
        ty
    }

    /// As [`Self::matrix`], of the element type of a value that is computed from it.
    fn matrix_like(&self, like: Value, sizes: [usize; 2], side: SplitSide) -> Type {
        Type { varying: self.varying(&[like]), ..self.matrix(self.dtype(like), sizes, side) }
    }

    /// The type of matrices in the place of the lines, which depend on no values.
    fn matrix(&self, dtype: DType, sizes: [usize; 2], side: SplitSide) -> Type {
        let mut ty = self.line.clone();
        (ty.array.dtype, ty.varying) = (dtype, AxisSet::EMPTY);
        ty.array.shape.splice(self.cut.axis..=self.cut.axis, sizes);
        ty.sharding.dims.splice(self.cut.axis..=self.cut.axis, self.split_dims(side));
        ty
    }

    /// The type of one matrix that is the same for all lines.
    fn table(&self, dtype: DType, sizes: [usize; 2], side: SplitSide) -> Type {
        let behind = self.line.rank() - self.cut.axis - 1;
        let shape: Vec<usize> = sizes.into_iter().chain(vec![1; behind]).collect();
        let mut ty = self.line.clone();
        (ty.array, ty.varying) = (ArrayType::new(dtype, &shape), AxisSet::EMPTY);
        ty.sharding.dims = self.split_dims(side).into_iter().chain(vec![DimSharding::default(); behind]).collect();
        ty
    }

    fn split_dims(&self, side: SplitSide) -> [DimSharding; 2] {
        let (split, whole) = (DimSharding::closed(self.cut.axes.clone()), DimSharding::default());
        match side {
            SplitSide::Rows => [split, whole],
            SplitSide::Columns => [whole, split],
        }
    }

    /// The matrices of lines, split by rows.
    fn as_rows(&mut self, line: Value, [rows, columns]: [usize; 2]) -> Value {
        let fits = blocks_hold_whole(rows, columns, self.parts);
        let height = if fits { rows } else { rows.next_multiple_of(self.parts) };
        let mut at = line;
        if !fits {
            let mut widths = vec![(0, 0); self.line.rank()];
            widths[self.cut.axis].1 = (height - rows) * columns;
            let ty = self.lines(line, height * columns);
            at = self.emit(Pad { widths, value: 0 }, &[at], ty);
        }
        let ty = self.matrix_like(line, [height, columns], SplitSide::Rows);
        at = self.emit(Reshape::new(self.shape(at), ty.shape()), &[at], ty);
        if fits {
            return at;
        }
        let ty = self.matrix_like(line, [rows, columns], SplitSide::Rows);
        self.emit(self.part(at, self.cut.axis, SliceRange::between(0, rows)), &[at], ty)
    }

    /// Defines lines by their matrices, split by rows.
    fn as_lines(&mut self, matrix: Value, [rows, columns]: [usize; 2], line: Value) {
        if blocks_hold_whole(rows, columns, self.parts) {
            let reshape = Reshape::new(self.shape(matrix), self.shape(line));
            return self.build.define(reshape, &[matrix], &[line], &self.origin);
        }
        let height = rows.next_multiple_of(self.parts);
        debug_assert!(height > rows, "rows that divide are whole in every block");
        let mut widths = vec![(0, 0); self.line.rank() + 1];
        widths[self.cut.axis].1 = height - rows;
        let ty = self.matrix_like(matrix, [height, columns], SplitSide::Rows);
        let more = self.emit(Pad { widths, value: 0 }, &[matrix], ty);
        let ty = self.lines(matrix, height * columns);
        let at = self.emit(Reshape::new(self.shape(more), ty.shape()), &[more], ty);
        let own = self.part(at, self.cut.axis, SliceRange::between(0, rows * columns));
        self.build.define(own, &[at], &[line], &self.origin);
    }

    /// Elements of a dimension.
    fn part(&self, value: Value, dim: usize, range: SliceRange) -> Slice {
        let mut slice = Slice::identity(&self.build.func.ty(value).array);
        slice.ranges[dim].0 = range;
        slice
    }

    /// The value with a split of this side.
    fn split(&mut self, matrix: Value, side: SplitSide) -> Value {
        let mut ty = self.build.func.ty(matrix).clone();
        ty.sharding.dims.splice(self.cut.axis..=self.cut.axis + 1, self.split_dims(side));
        self.emit(Reshard::request(ty.sharding.clone()), &[matrix], ty)
    }

    /// The transposed matrices, which have these sizes and this split.
    fn transposed(&mut self, matrix: Value, sizes: [usize; 2], side: SplitSide) -> Value {
        let mut axes: Vec<usize> = (0..self.line.rank() + 1).collect();
        axes.swap(self.cut.axis, self.cut.axis + 1);
        let ty = self.matrix_like(matrix, sizes, side);
        self.emit(Transpose { axes }, &[matrix], ty)
    }

    /// Defines lines by the matrices that have them in turned order.
    fn ordered(&mut self, turned: Value, line: Value) {
        let columns = self.split(turned, SplitSide::Columns);
        let transposed = self.transposed(columns, self.turned_sizes(), SplitSide::Rows);
        self.as_lines(transposed, self.turned_sizes(), line);
    }

    fn fft(&mut self, planes: &[Value], axis: usize, inverse: bool) -> [Value; 2] {
        let mut ty = self.build.func.ty(planes[0]).clone();
        ty.varying = self.varying(planes);
        let results = [(); 2].map(|()| self.build.func.new_value(ty.clone(), self.origin.clone()));
        let transform = Transform::Complex { inverse };
        self.build.define(Fft { axis, transform }, planes, &results, &self.origin);
        results
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value, ty: &Type) -> Value {
        self.emit(Binary(op), &[a, b], ty.clone())
    }

    fn number(&mut self, dtype: DType, number: f64) -> Value {
        let array = ArrayType::new(dtype, &[]);
        let ty = Type { array, sharding: Sharding::replicated(0), varying: AxisSet::EMPTY };
        self.emit(Constant::float(dtype, number), &[], ty)
    }

    /// The planes times the roots of unity: the element in row `i` and column `j` times the power `i * j`.
    fn twisted(&mut self, [re, im]: [Value; 2], inverse: bool) -> [Value; 2] {
        let ty = self.build.func.ty(re).clone();
        let (dtype, at) = (ty.dtype(), self.cut.axis);
        let side = if ty.sharding.dims[at].axes.is_empty() { SplitSide::Columns } else { SplitSide::Rows };
        let [cos, sin] = self.roots(dtype, [ty.shape()[at], ty.shape()[at + 1]], side, inverse);
        let [rc, rs, ic, is] = [(re, cos), (re, sin), (im, cos), (im, sin)]
            .map(|(plane, factor)| self.binary(BinaryOp::Mul, plane, factor, &ty));
        [self.binary(BinaryOp::Sub, rc, is, &ty), self.binary(BinaryOp::Add, rs, ic, &ty)]
    }

    /// The powers of the roots of unity. Their exponents are integers below the number of points, and the angles are between -pi and pi, so
    /// each is rounded once or twice, in f64.
    fn roots(&mut self, dtype: DType, sizes: [usize; 2], side: SplitSide, inverse: bool) -> [Value; 2] {
        let n = self.cut.points();
        let whole = if i32::try_from(n).is_ok() { DType::I32 } else { DType::I64 };
        let ty = self.table(whole, sizes, side);
        let [row, column] = [0, 1].map(|axis| self.emit(Iota { ty: ty.array.clone(), axis }, &[], ty.clone()));
        let power = self.binary(BinaryOp::Mul, row, column, &ty);
        let (most, all) = (self.number(whole, (n / 2) as f64), self.number(whole, n as f64));
        let below = self.binary(BinaryOp::Sub, power, all, &ty);
        let bools = self.table(DType::Bool, sizes, side);
        let is_small = self.emit(Compare(CompareOp::Le), &[power, most], bools);
        let nearest = self.emit(Select, &[is_small, power, below], ty);
        let wide = self.table(DType::F64, sizes, side);
        let turns = self.emit(Cast { to: DType::F64 }, &[nearest], wide.clone());
        let step = self.number(DType::F64, if inverse { TAU } else { -TAU } / n as f64);
        let angle = self.binary(BinaryOp::Mul, turns, step, &wide);
        let own = self.table(dtype, sizes, side);
        [MathFn::Cos, MathFn::Sin].map(|function| {
            let root = self.emit(Unary(UnaryOp::Math(function)), &[angle], wide.clone());
            if dtype == DType::F64 { root } else { self.emit(Cast { to: dtype }, &[root], own.clone()) }
        })
    }

    /// The indices in the line of all elements of these matrices, or of this table, in turned order: row `i` and column `j` have `i + rows * j`.
    fn indices_of(&mut self, ty: Type) -> Value {
        // A table has no dimensions before that of the lines.
        let first = if ty.rank() == self.line.rank() + 1 { self.cut.axis } else { 0 };
        let dtype = ty.dtype();
        let [row, column] =
            [first, first + 1].map(|axis| self.emit(Iota { ty: ty.array.clone(), axis }, &[], ty.clone()));
        let rows = self.number(dtype, self.cut.rows as f64);
        let scaled = self.binary(BinaryOp::Mul, column, rows, &ty);
        self.binary(BinaryOp::Add, row, scaled, &ty)
    }

    /// The values where their indices are at most `last`, and the others elsewhere.
    fn up_to(&mut self, indices: Value, last: usize, values: Value, others: Value) -> Value {
        self.chosen(CompareOp::Le, indices, last, values, others)
    }

    fn chosen(&mut self, op: CompareOp, indices: Value, number: usize, values: Value, others: Value) -> Value {
        let ty = self.build.func.ty(indices).clone();
        let number = self.number(ty.dtype(), number as f64);
        let bools = Type { array: ArrayType { dtype: DType::Bool, ..ty.array.clone() }, ..ty };
        let condition = self.emit(Compare(op), &[indices, number], bools);
        let values_ty = self.build.func.ty(values).clone();
        let others_ty = self.build.func.ty(others).clone();
        let ty = if values_ty.rank() > 0 { values_ty } else { others_ty };
        self.emit(Select, &[condition, values, others], ty)
    }

    /// The same type with another size of a dimension that is whole.
    fn sized(&self, value: Value, dim: usize, size: usize) -> Type {
        let mut ty = self.build.func.ty(value).clone();
        debug_assert!(ty.sharding.dims[dim].axes.is_empty(), "the dimension is whole");
        ty.array.shape[dim] = size;
        ty
    }

    /// A range of a dimension that is whole.
    fn taken(&mut self, value: Value, dim: usize, range: SliceRange) -> Value {
        let ty = self.sized(value, dim, range.len);
        self.emit(self.part(value, dim, range), &[value], ty)
    }

    /// Values one after another along a dimension that is whole.
    fn joined(&mut self, first: Value, second: Value, dim: usize) -> Value {
        let ty = self.sized(first, dim, self.shape(first)[dim] + self.shape(second)[dim]);
        self.emit(Concatenate { axis: dim }, &[first, second], ty)
    }

    fn reversed(&mut self, value: Value, dim: usize) -> Value {
        let ty = self.build.func.ty(value).clone();
        self.emit(Flip { axes: vec![dim] }, &[value], ty)
    }

    fn negated(&mut self, value: Value) -> Value {
        let ty = self.build.func.ty(value).clone();
        self.emit(Unary(UnaryOp::Neg), &[value], ty)
    }

    /// The indices of the lines in the first half of the rows in turned order, those rows split.
    fn half_indices(&mut self) -> Value {
        let whole = if i32::try_from(self.cut.points()).is_ok() { DType::I32 } else { DType::I64 };
        let ty = self.table(whole, [half(self.cut.rows), self.cut.columns], SplitSide::Rows);
        self.indices_of(ty)
    }

    /// The half-complex transform of real numbers.
    fn half_complex(&mut self, line: Value, result: Value) {
        let (at, rows, half) = (self.cut.axis, self.cut.rows, half(self.cut.rows));
        let own = self.as_rows(line, self.sizes());
        let columns = self.split(own, SplitSide::Columns);
        let ty = self.build.func.ty(columns).clone();
        let packed = self.emit(Fft { axis: at, transform: Transform::OfReal }, &[columns], ty);
        let re = self.taken(packed, at, SliceRange::between(0, half));
        // The imaginary parts of rows 1 to (n1 - 1)/2 come last, in reverse; those of row 0 and of row n1/2 are zero.
        let im = self.taken(packed, at, SliceRange { start: rows - 1, step: -1, len: rows - half });
        let mut widths = vec![(0, 0); self.line.rank() + 1];
        widths[at] = (1, 2 * half - rows - 1);
        let ty = self.sized(im, at, half);
        let im = self.emit(Pad { widths, value: 0 }, &[im], ty);
        let twisted = self.twisted([re, im], false).map(|plane| self.split(plane, SplitSide::Rows));
        let [re, im] = self.fft(&twisted, at + 1, false);
        // Element q is the real part of the transform up to n/2, and beyond it the imaginary part of element n - q, its conjugate. The other rows
        // are those of the first half in reverse, conjugate, as n - (k1 + n1 k2) = (n1 - k1) + n1 (n2 - 1 - k2).
        let indices = self.half_indices();
        let middle = self.cut.points() / 2;
        let negative = self.negated(im);
        let first = self.up_to(indices, middle, re, negative);
        let [re, im] = [re, im].map(|plane| self.reversed(plane, at + 1));
        // Row i holds row n1 - i: q is at most n/2 where n - q, the index in reverse order of columns, is at least n/2.
        let mirrored = self.mirrored_indices();
        let second = self.up_to(mirrored, middle, re, im);
        let [first, second] = [first, second].map(|plane| self.split(plane, SplitSide::Columns));
        let second = self.taken(second, at, SliceRange { start: rows - half, step: -1, len: rows - half });
        let all = self.joined(first, second, at);
        let transposed = self.transposed(all, self.turned_sizes(), SplitSide::Rows);
        self.as_lines(transposed, self.turned_sizes(), result);
    }

    /// As [`Self::half_indices`], of rows counted from the end: row `i` has the indices of row `n1 - i`.
    fn mirrored_indices(&mut self) -> Value {
        let whole = if i32::try_from(self.cut.points()).is_ok() { DType::I32 } else { DType::I64 };
        let ty = self.table(whole, [half(self.cut.rows), self.cut.columns], SplitSide::Rows);
        let [row, column] = [0, 1].map(|axis| self.emit(Iota { ty: ty.array.clone(), axis }, &[], ty.clone()));
        let rows = self.number(whole, self.cut.rows as f64);
        let scaled = self.binary(BinaryOp::Mul, column, rows, &ty);
        let above = self.binary(BinaryOp::Add, scaled, rows, &ty);
        self.binary(BinaryOp::Sub, above, row, &ty)
    }

    /// The real numbers of a half-complex transform.
    fn real_lines(&mut self, line: Value, result: Value) {
        let (at, rows, half) = (self.cut.axis, self.cut.rows, half(self.cut.rows));
        let n = self.cut.points();
        let own = self.as_rows(line, self.turned_sizes());
        let all = self.transposed(own, self.sizes(), SplitSide::Columns);
        let first = self.taken(all, at, SliceRange::between(0, half));
        // Row i of the second half is row n1 - i; row 0 is its own.
        let zeroth = self.taken(all, at, SliceRange::between(0, 1));
        let others = self.taken(all, at, SliceRange { start: rows - 1, step: -1, len: half - 1 });
        let second = self.joined(zeroth, others, at);
        let [first, second] = [first, second].map(|plane| self.split(plane, SplitSide::Rows));
        // Element n - q of the line.
        let ty = self.build.func.ty(second).clone();
        let reversed = self.reversed(second, at + 1);
        let mut shifts = vec![0; self.line.rank() + 1];
        shifts[at + 1] = 1;
        let rolled = self.emit(Roll { shifts }, &[reversed], ty);
        let whole = if i32::try_from(n).is_ok() { DType::I32 } else { DType::I64 };
        let row_ty = self.table(whole, [half, self.cut.columns], SplitSide::Rows);
        let row = self.emit(Iota { ty: row_ty.array.clone(), axis: 0 }, &[], row_ty);
        let opposite = self.chosen(CompareOp::Eq, row, 0, rolled, reversed);
        let indices = self.half_indices();
        let re = self.up_to(indices, n / 2, first, opposite);
        let negative = self.negated(first);
        let im = self.up_to(indices, (n - 1) / 2, opposite, negative);
        let zero = self.number(self.dtype(im), 0.0);
        let mut im = self.chosen(CompareOp::Eq, indices, 0, zero, im);
        if n.is_multiple_of(2) {
            im = self.chosen(CompareOp::Eq, indices, n / 2, zero, im);
        }
        let transformed = self.fft(&[re, im], at + 1, true);
        let [re, im] = self.twisted(transformed, true).map(|plane| self.split(plane, SplitSide::Columns));
        let im = self.taken(im, at, SliceRange { start: rows - half, step: -1, len: rows - half });
        let packed = self.joined(re, im, at);
        let ty = self.build.func.ty(packed).clone();
        let columns = self.emit(Fft { axis: at, transform: Transform::ToReal }, &[packed], ty);
        let own = self.split(columns, SplitSide::Rows);
        self.as_lines(own, self.sizes(), result);
    }
}
