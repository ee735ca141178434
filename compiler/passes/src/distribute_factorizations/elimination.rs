//! Systems with a matrix whose rows are split, by elimination. Meanwhile the columns are split. Panels of some columns go to all devices,
//! one after the other. Each device factorizes all of them (with the same bits), and updates its own columns and the right-hand sides.
//!
//! ```text
//! let x: f32[512@Y, 3] = lu_solve(a, b);                                 // a: f32[512@Y, 512], b: f32[512@Y, 3], Y = 4
//! =>
//! let m: f32[512, 512@Y] = reshard(a, P(_, Y));                          // all-to-all
//! let s: f32[512, 3] = reshard(b, P(_, _));
//! let panel: f32[512, 16] = m[:, 0:16];
//! let (f, e, source) = lu(panel);
//! let (m1, s1) = (gather(m, source, dims=(0,)), gather(s, source, dims=(0,)));
//! let l = f[0:16];
//! let u1: f32[16, 512@Y] = triangular_solve(l, m1[0:16], left_side=true, lower=true, unit_diagonal=true);
//! let y1: f32[16, 3] = triangular_solve(l, s1[0:16], left_side=true, lower=true, unit_diagonal=true);
//! let (m2, s2) = (m1[16:] - f[16:] @ u1, s1[16:] - f[16:] @ y1);         // of 496 rows, and so on with columns 16 to 32
//! let u: f32[512, 512@Y] = concatenate([u1, ..], axis=0);
//! let y: f32[512, 3] = concatenate([y1, ..], axis=0);
//! let x: f32[512@Y, 3] = triangular_solve(u.T, y, left_side=true, lower=true, transpose_a=true);
//! ```
//!
//! Determinants need the diagonal of U and the exchanged rows, which every device has for each panel.
//!
//! The pivots are the pivots of the whole matrix. Eliminated columns are updated, too, and never read again. A device receives its part of
//! the matrix, and the panels, which are half of the matrix plus half of a panel. If this does not save bytes, for example on few devices,
//! all devices get the matrix.

use super::{computed_whole, part, triangular_solve, with_rows};
use spmdc_abi::{CollectiveKind, MatrixFunction, TriangularSystem};
use spmdc_einsum_ops::diagonal::Diagonal;
use spmdc_einsum_ops::einsum::Einsum;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::cost;
use spmdc_layout::crossings;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::plan;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_linalg_ops::factorization::Factorization;
use spmdc_ops::cast::Cast;
use spmdc_ops::concatenate::Concatenate;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::gather::Gather;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::slice::{Slice, SliceRange};
use spmdc_ops::transpose::Transpose;
use std::ops::Range;

/// Panels of a matrix, if there are not more devices: narrow ones are fewer bytes, and each is some statements.
const PANELS: usize = 32;

/// Minimum columns of a panel, unless a device has fewer.
const LEAST_COLUMNS: usize = 8;

/// The columns of each panel: a part of the columns of one device.
fn panels(n: usize, parts: usize) -> Vec<Range<usize>> {
    let own = n.div_ceil(parts).max(1);
    let pieces = (PANELS / parts).min(own / LEAST_COLUMNS).max(1);
    let width = own.div_ceil(pieces);
    let of_block = |first: usize| {
        let end = n.min(first + own);
        (first..end).step_by(width).map(move |start| start..end.min(start + width))
    };
    (0..n).step_by(own).flat_map(of_block).collect()
}

/// A matrix whose rows are split, and how it is eliminated.
struct Layouts {
    /// The panels.
    panels: Vec<Range<usize>>,
    /// The type of the matrix while its columns are split.
    columns: Type,
    /// The cost of all exchanges of the matrix, minus the cost of a gather.
    more: f64,
}

fn layouts(a: &Type, parts: usize, mesh: &Mesh) -> Layouts {
    let rank = a.rank() - 2;
    let n = a.shape()[rank];
    let mut columns = a.clone();
    columns.sharding.dims.swap(rank, rank + 1);
    let panels = panels(n, parts);
    let bytes = a.block_shape(mesh)[..rank].iter().product::<usize>() * a.dtype().size();
    let split = split_axes(a);
    let of_panel = |panel: &Range<usize>| {
        let received = (n - panel.start) * panel.len() * bytes;
        // Of all panels together a host has the same share as of a gather.
        let crossing = crossings::of_group(CollectiveKind::AllGather, split, received.div_ceil(parts) as u64, mesh);
        crossings::exchange(true, received as f64, crossing as f64, mesh)
    };
    let of_panels: f64 = panels.iter().map(of_panel).sum();
    let whole = with_rows(a, [n, n], &DimSharding::default());
    Layouts { panels, more: moved(a, &columns, mesh) + of_panels - moved(a, &whole, mesh), columns }
}

/// The axes that split the rows of a matrix, and all that split it.
fn split_axes(a: &Type) -> (AxisSet, AxisSet) {
    let rows = a.sharding.dims[a.rank() - 2].axes.iter().map(|&axis| usize::from(axis)).collect();
    (rows, a.sharding.used_axes())
}

/// The cost of another layout.
fn moved(from: &Type, to: &Type, mesh: &Mesh) -> f64 {
    plan(&from.array, &from.sharding, &to.sharding, mesh).cost
}

/// The reason for the steps.
const WHY: &str = "the rows of the matrix are split: its columns are split meanwhile, and go to all devices in panels";

/// The reason for a matrix that all devices get.
const FEW: &str = "an elimination of a matrix whose rows are split among few devices needs the matrix whole";

/// The diagonal of U of a matrix whose rows are split, and the exchanged rows.
pub fn diagonal(stmt: &Stmt, parts: usize, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let a = func.ty(stmt.args[0]).clone();
    let Layouts { panels, columns, more } = layouts(&a, parts, mesh);
    if more >= 0.0 {
        return computed_whole(stmt, MatrixFunction::LuDiagonal, FEW, func, mesh);
    }
    let origin = stmt.origin.because(WHY.to_string());
    let mut elimination = Elimination { build: Builder::new(func, mesh), origin: origin.clone(), rank: a.rank() - 2 };
    let m = elimination.requested_as(stmt.args[0], columns);
    let found = elimination.eliminated(vec![m], &panels);
    for (parts, &result) in [found.diagonal, found.exchanged].iter().zip(&stmt.results) {
        let n = panels.iter().map(Range::len).sum();
        let all = elimination.joined(parts, n);
        let own = elimination.build.func.ty(result).sharding.clone();
        elimination.build.define(Reshard::request(own), &[all], &[result], &origin);
    }
    elimination.build.finish()
}

/// Solves a system whose rows are split.
pub fn solve(stmt: &Stmt, parts: usize, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let [a, sides] = [stmt.args[0], stmt.args[1]].map(|value| func.ty(value).clone());
    let rank = a.rank() - 2;
    let (n, rows) = (a.shape()[rank], a.sharding.dims[rank].clone());
    let Layouts { panels, columns, more } = layouts(&a, parts, mesh);
    let block = with_rows(&sides, [n.div_ceil(parts), sides.shape()[rank + 1]], &DimSharding::default());
    let block = block.block_bytes(mesh) as u64;
    let crossing = crossings::of_group(CollectiveKind::AllReduce, split_axes(&a), block, mesh);
    let of_sum = crossings::exchange(true, cost::all_reduce(parts as u64, block) as f64, crossing as f64, mesh);
    let of_sums = (parts - 1) as f64 * of_sum;
    // The solution is wanted on all devices, as far as is known here.
    let solution = with_rows(&sides, [n, sides.shape()[rank + 1]], &DimSharding::default());
    if more + of_sums + moved(&sides, &solution, mesh) >= 0.0 {
        return computed_whole(stmt, MatrixFunction::Solve, FEW, func, mesh);
    }
    let origin = stmt.origin.because(WHY.to_string());
    let mut elimination = Elimination { build: Builder::new(func, mesh), origin: origin.clone(), rank };
    let m = elimination.requested_as(stmt.args[0], columns);
    let s = elimination.requested(stmt.args[1], &DimSharding::default());
    let found = elimination.eliminated(vec![m, s], &panels);
    let [u, y] = [0, 1].map(|at| elimination.joined(&found.done[at], n));
    let upper = elimination.transposed(u, &rows);
    let own = elimination.requested(y, &rows);
    let mut stmts = elimination.build.finish();
    // U is read by rows of its transpose, which lie where its columns do.
    let system = TriangularSystem { left: true, lower: true, transposed: true, unit: false };
    let function = Factorization(MatrixFunction::TriangularSolve(system));
    let back = Stmt::new(function.into(), vec![upper, own], stmt.results.clone(), origin);
    stmts.extend(triangular_solve(&back, system, parts, func, mesh));
    stmts
}

/// The result of an elimination, in parts: one for each panel.
struct Eliminated {
    /// Of U, and of the right sides without L: their rows.
    done: Vec<Vec<Value>>,
    /// The diagonal of U.
    diagonal: Vec<Value>,
    /// The exchanged rows.
    exchanged: Vec<Value>,
}

/// Makes the steps of an elimination.
struct Elimination<'a> {
    build: Builder<'a>,
    origin: Origin,
    /// The number of dimensions before the dimensions of the matrix.
    rank: usize,
}

impl Elimination<'_> {
    fn ty(&self, value: Value) -> Type {
        self.build.func.ty(value).clone()
    }

    /// The type of matrices like these with another number of rows, which are whole.
    fn with_rows(&self, like: Value, rows: usize) -> Type {
        let mut ty = self.ty(like);
        ty.array.shape[self.rank] = rows;
        ty
    }

    /// The type of a value that is computed from others, too.
    fn joint(&self, like: Value, others: &[Value]) -> Type {
        let mut ty = self.ty(like);
        ty.varying = others.iter().fold(ty.varying, |all, &other| all.union(self.build.func.ty(other).varying));
        ty
    }

    /// Eliminates the first of these matrices, and does the same to the rows of the others.
    fn eliminated(&mut self, mut rest: Vec<Value>, panels: &[Range<usize>]) -> Eliminated {
        let origin = self.origin.clone();
        let n = self.ty(rest[0]).shape()[self.rank];
        let mut found = Eliminated { done: vec![Vec::new(); rest.len()], diagonal: Vec::new(), exchanged: Vec::new() };
        for panel in panels {
            let (rows, width) = (n - panel.start, panel.len());
            let mut whole = self.ty(rest[0]);
            whole.sharding.dims[self.rank + 1] = DimSharding::default();
            let own = part(&mut self.build, rest[0], &whole, [0..rows, panel.clone()], &origin);
            let [factors, exchanged, sources] = self.factors(own);
            let upper = self.rows(factors, 0..width);
            found.diagonal.push(self.diagonal(upper));
            found.exchanged.push(self.below(exchanged, panel.start));
            let system = TriangularSystem { left: true, lower: true, transposed: false, unit: true };
            for (value, done) in rest.iter_mut().zip(&mut found.done) {
                let all = self.exchanged(*value, sources);
                let first = self.rows(all, 0..width);
                let function = Factorization(MatrixFunction::TriangularSolve(system));
                let ty = self.joint(first, &[upper]);
                let solved = self.build.emit(function, &[upper, first], ty, &origin);
                done.push(solved);
                if width < rows {
                    let (lower, others) = (self.rows(factors, width..rows), self.rows(all, width..rows));
                    *value = self.less_product(others, lower, solved);
                }
            }
        }
        found
    }

    /// L and U of a panel in one matrix, the exchanged rows, and the source of each row as an index.
    fn factors(&mut self, panel: Value) -> [Value; 3] {
        let ty = self.ty(panel);
        let [rows, columns] = [ty.shape()[self.rank], ty.shape()[self.rank + 1]];
        let types =
            [ty.clone(), self.vector(panel, DType::I32, rows.min(columns)), self.vector(panel, DType::I32, rows)];
        let wide = self.vector(panel, DType::I64, rows);
        let results = types.map(|ty| self.build.func.new_value(ty, self.origin.clone()));
        self.build.define(Factorization(MatrixFunction::Lu), &[panel], &results, &self.origin);
        let sources = self.build.emit(Cast { to: DType::I64 }, &results[2..], wide, &self.origin);
        [results[0], results[1], sources]
    }

    /// The type of vectors in the place of these matrices, on all devices.
    fn vector(&self, matrix: Value, dtype: DType, len: usize) -> Type {
        let mut own = self.ty(matrix);
        own.array.dtype = dtype;
        own.array.shape.splice(self.rank.., [len]);
        own.sharding.dims.splice(self.rank.., [DimSharding::default()]);
        own
    }

    fn diagonal(&mut self, square: Value) -> Value {
        let ty = self.ty(square);
        let ty = self.vector(square, ty.dtype(), ty.shape()[self.rank]);
        let dims = (0..self.rank + 1).chain([self.rank]).collect();
        self.build.emit(Diagonal { dims, summed: Vec::new() }, &[square], ty, &self.origin)
    }

    /// These rows of an array that begins at this row of the matrix, as rows of the matrix.
    fn below(&mut self, rows: Value, first: usize) -> Value {
        if first == 0 {
            return rows;
        }
        let ty = self.ty(rows);
        let array = ArrayType::new(ty.dtype(), &[]);
        let number = Type { array, sharding: Sharding::replicated(0), varying: AxisSet::EMPTY };
        let first = self.build.emit(Constant::float(ty.dtype(), first as f64), &[], number, &self.origin);
        self.build.emit(Binary(BinaryOp::Add), &[rows, first], ty, &self.origin)
    }

    /// The rows in another order.
    fn exchanged(&mut self, value: Value, sources: Value) -> Value {
        let ty = self.joint(value, &[sources]);
        let batch = (0..self.rank).map(|dim| (dim, dim)).collect();
        self.build.emit(Gather::new(vec![self.rank], batch, 0), &[value, sources], ty, &self.origin)
    }

    fn rows(&mut self, value: Value, rows: Range<usize>) -> Value {
        let ty = self.with_rows(value, rows.len());
        if ty.array == self.ty(value).array {
            return value;
        }
        let mut slice = Slice::identity(&self.build.func.ty(value).array);
        slice.ranges[self.rank].0 = SliceRange::between(rows.start, rows.end);
        self.build.emit(slice, &[value], ty, &self.origin)
    }

    /// `c - a b`
    fn less_product(&mut self, c: Value, a: Value, b: Value) -> Value {
        let batch: String = ('a'..='w').take(self.rank).collect();
        let text = |letters: &str| format!("{batch}{letters}");
        let einsum = Einsum { lhs: text("xy"), rhs: text("yz"), result: text("xz"), out: None };
        let ty = self.joint(c, &[a, b]);
        let product = self.build.emit(einsum, &[a, b], ty.clone(), &self.origin);
        self.build.emit(Binary(BinaryOp::Sub), &[c, product], ty, &self.origin)
    }

    fn joined(&mut self, parts: &[Value], rows: usize) -> Value {
        if let [all] = parts[..] {
            return all;
        }
        let ty = self.with_rows(parts[0], rows);
        self.build.emit(Concatenate { axis: self.rank }, parts, ty, &self.origin)
    }

    /// The transposed matrix, whose rows are split as the columns are.
    fn transposed(&mut self, matrix: Value, rows: &DimSharding) -> Value {
        let mut ty = self.ty(matrix);
        debug_assert_eq!(ty.sharding.dims[self.rank + 1], *rows, "the columns lie where the rows did");
        ty.sharding.dims.swap(self.rank, self.rank + 1);
        let mut axes: Vec<usize> = (0..self.rank + 2).collect();
        axes.swap(self.rank, self.rank + 1);
        self.build.emit(Transpose { axes }, &[matrix], ty, &self.origin)
    }

    /// The value in the layout of this type.
    fn requested_as(&mut self, value: Value, ty: Type) -> Value {
        self.build.emit(Reshard::request(ty.sharding.clone()), &[value], ty, &self.origin)
    }

    /// The value with its rows split so.
    fn requested(&mut self, value: Value, rows: &DimSharding) -> Value {
        let mut ty = self.ty(value);
        ty.sharding.dims[self.rank] = rows.clone();
        self.requested_as(value, ty)
    }
}
