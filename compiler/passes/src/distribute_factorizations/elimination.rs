//! Systems with a matrix whose rows are split, by elimination. The columns are split meanwhile: panels of some columns, one after the other, go
//! to all devices, which factorize each of them by themselves (with the same bits) and update their own columns and the right sides.
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
//! The pivots are those of the whole matrix. Columns that have been eliminated are updated, too, and never read again. A device receives its part
//! of the matrix, and the panels, which are half of it and half of a panel more. If these are not fewer bytes than the matrix, as where devices are
//! few, all devices get the matrix.

use super::{part, triangular_solve, with_rows};
use spmdc_abi::{MatrixFunction, TriangularSystem};
use spmdc_ir::cost;
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::layout::sharding::DimSharding;
use spmdc_ir::layout::types::{DType, Type};
use spmdc_ir::ops::cast::Cast;
use spmdc_ir::ops::concatenate::Concatenate;
use spmdc_ir::ops::einsum::Einsum;
use spmdc_ir::ops::elementwise::Binary;
use spmdc_ir::ops::gather::Gather;
use spmdc_ir::ops::linalg::Factorization;
use spmdc_ir::ops::slice::{Slice, SliceRange};
use spmdc_ir::ops::transpose::Transpose;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::reshard::plan;
use spmdc_ir::reshard::step::Reshard;
use spmdc_kernel::scalar::BinaryOp;
use std::ops::Range;

/// Panels of a matrix, if there are not more devices: narrow ones are fewer bytes, and each is some statements.
const PANELS: usize = 32;

/// Minimum columns of a panel, unless a device has fewer.
const LEAST_COLUMNS: usize = 8;

/// The columns of each panel: a part of those of one device.
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

/// Solves a system whose rows are split.
pub fn solve(stmt: &Stmt, parts: usize, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let [a, sides] = [stmt.args[0], stmt.args[1]].map(|value| func.ty(value).clone());
    let rank = a.rank() - 2;
    let (n, rows) = (a.shape()[rank], a.sharding.dims[rank].clone());
    let mut columns = a.clone();
    columns.sharding.dims.swap(rank, rank + 1);
    let panels = panels(n, parts);
    let bytes = a.block_shape(mesh)[..rank].iter().product::<usize>() * a.dtype().size();
    let exchange = |elements: usize| cost::exchange(elements > 0, (elements * bytes) as f64);
    let of_panels: f64 = panels.iter().map(|panel| exchange((n - panel.start) * panel.len())).sum();
    let block = cost::all_reduce(parts as u64, (n.div_ceil(parts) * sides.shape()[rank + 1]) as u64) as usize;
    let of_sums = (parts - 1) as f64 * exchange(block);
    let whole = with_rows(&a, [n, n], &DimSharding::default());
    let eliminated = plan(&a.array, &a.sharding, &columns.sharding, mesh).cost + of_panels + of_sums;
    if eliminated >= plan(&a.array, &a.sharding, &whole.sharding, mesh).cost {
        return solve_whole(stmt, func, mesh);
    }
    let why = "the rows of the matrix are split: its columns are split meanwhile, and go to all devices in panels";
    let origin = stmt.origin.because(why.to_string());
    let mut elimination = Elimination { build: Builder::new(func, mesh), origin: origin.clone(), rank };
    let [u, y] = elimination.eliminated(stmt, columns, &panels);
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

/// Solves the system on every device.
fn solve_whole(stmt: &Stmt, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let why = "an elimination of a matrix whose rows are split among few devices needs the matrix whole";
    let origin = stmt.origin.because(why.to_string());
    let types: Vec<Type> = func.types(&stmt.args).into_iter().cloned().collect();
    let rank = types[0].rank() - 2;
    let mut build = Builder::new(func, mesh);
    let mut wholes = Vec::new();
    for (&arg, ty) in stmt.args.iter().zip(&types) {
        let ty = with_rows(ty, [ty.shape()[rank], ty.shape()[rank + 1]], &DimSharding::default());
        wholes.push(build.emit(Reshard::request(ty.sharding.clone()), &[arg], ty, &origin));
    }
    let ty = build.func.ty(wholes[1]).clone();
    let x = build.emit(Factorization(MatrixFunction::Solve), &wholes, ty, &stmt.origin);
    let back = build.func.ty(stmt.results[0]).sharding.clone();
    build.define(Reshard::request(back), &[x], &stmt.results, &origin);
    build.finish()
}

/// Makes the steps of an elimination.
struct Elimination<'a> {
    build: Builder<'a>,
    origin: Origin,
    /// The number of dimensions before those of the matrix.
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

    /// U, and the right sides without L.
    fn eliminated(&mut self, stmt: &Stmt, columns: Type, panels: &[Range<usize>]) -> [Value; 2] {
        let origin = self.origin.clone();
        let n = columns.shape()[self.rank];
        let m = self.build.emit(Reshard::request(columns.sharding.clone()), &stmt.args[..1], columns, &origin);
        let s = self.requested(stmt.args[1], &DimSharding::default());
        let mut rest = [m, s];
        let mut done = [Vec::new(), Vec::new()];
        for panel in panels {
            let (rows, width) = (n - panel.start, panel.len());
            let mut whole = self.ty(rest[0]);
            whole.sharding.dims[self.rank + 1] = DimSharding::default();
            let own = part(&mut self.build, rest[0], &whole, [0..rows, panel.clone()], &origin);
            let [factors, sources] = self.factors(own);
            let upper = self.rows(factors, 0..width);
            rest = rest.map(|value| self.exchanged(value, sources));
            let system = TriangularSystem { left: true, lower: true, transposed: false, unit: true };
            for (value, done) in rest.iter_mut().zip(&mut done) {
                let first = self.rows(*value, 0..width);
                let function = Factorization(MatrixFunction::TriangularSolve(system));
                let ty = self.ty(first);
                let solved = self.build.emit(function, &[upper, first], ty, &origin);
                done.push(solved);
                if width < rows {
                    let (lower, others) = (self.rows(factors, width..rows), self.rows(*value, width..rows));
                    *value = self.less_product(others, lower, solved);
                }
            }
        }
        done.map(|parts| self.joined(&parts, n))
    }

    /// L and U of a panel in one matrix, and the source of each row as an index.
    fn factors(&mut self, panel: Value) -> [Value; 2] {
        let ty = self.ty(panel);
        let [rows, columns] = [ty.shape()[self.rank], ty.shape()[self.rank + 1]];
        let of_rows = |dtype: DType, len: usize| {
            let mut own = ty.clone();
            own.array.dtype = dtype;
            own.array.shape.splice(self.rank.., [len]);
            own.sharding.dims.splice(self.rank.., [DimSharding::default()]);
            own
        };
        let types = [ty.clone(), of_rows(DType::I32, rows.min(columns)), of_rows(DType::I32, rows)];
        let wide = of_rows(DType::I64, rows);
        let results = types.map(|ty| self.build.func.new_value(ty, self.origin.clone()));
        self.build.define(Factorization(MatrixFunction::Lu), &[panel], &results, &self.origin);
        let sources = self.build.emit(Cast { to: DType::I64 }, &results[2..], wide, &self.origin);
        [results[0], sources]
    }

    /// The rows in another order.
    fn exchanged(&mut self, value: Value, sources: Value) -> Value {
        let ty = self.ty(value);
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
        let ty = self.ty(c);
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

    /// The value with its rows split so.
    fn requested(&mut self, value: Value, rows: &DimSharding) -> Value {
        let mut ty = self.ty(value);
        ty.sharding.dims[self.rank] = rows.clone();
        self.build.emit(Reshard::request(ty.sharding.clone()), &[value], ty, &self.origin)
    }
}
