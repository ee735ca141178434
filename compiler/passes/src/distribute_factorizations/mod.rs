//! Distributes the QR and Cholesky factors of matrices whose rows are split, and systems. For the QR, each device factorizes its own rows,
//! and the small factors of all devices are factorized together (TSQR; Demmel et al., "Communication-optimal parallel and sequential QR and
//! LU factorizations", 2012).
//!
//! ```text
//! let (q, r): (f32[1000@Y, 8], f32[8, 8]) = qr(x);               // x: f32[1000@Y, 8], Y = 4
//! =>
//! let (b, s): (f32[1000@Y, 8], f32[32@Y, 8]) = qr_blocks(x, parts=4);
//! let stack: f32[32, 8] = reshard(s, P(_, _));
//! let (p, u): (f32[32, 8], f32[8, 8]) = qr(stack);
//! let own: f32[32@Y, 8] = reshard(p, P(Y, _));                   // moves nothing
//! let v: f32[1000@Y, 8] = multiply_blocks(b, own, parts=4);
//! let top: f32[8, 8] = v[0:8];
//! let (along, down): (f32[1, 8], f32[8, 1]) = qr_signs(top);
//! let q: f32[1000@Y, 8] = v * broadcast_to(along, (1000, 8));
//! let r: f32[8, 8] = u * broadcast_to(down, (8, 8));
//! ```
//!
//! The Cholesky factor of a matrix whose rows are split is computed row by row of blocks. Once a device has its rows of L, all following
//! devices get them, and compute their elements in the same columns.
//!
//! ```text
//! let l: f32[512@Y, 512] = cholesky(a);                          // Y = 4
//! =>
//! let s: f32[512@Y, 512] = cholesky_rows(a, parts=4);            // device 0 is done
//! let t: f32[512@Y, 512] = cholesky_rows(s, s[0:128, 0:128], parts=4);
//! let u: f32[512@Y, 512] = cholesky_rows(t, t[128:256, 0:256], parts=4);
//! let v: f32[512@Y, 512] = cholesky_rows(u, u[256:384, 0:384], parts=4);
//! let l: f32[512@Y, 512] = cholesky_checked(v, v[511:512, 511:512], parts=4);
//! ```
//!
//! The last element is NaN if the matrix is not positive definite; then all of L is. A device receives less than half of the matrix, and
//! has no more than three quarters of it at a time.
//!
//! A triangular system with a matrix whose rows are split is solved in the order of the blocks: each device receives the rows of the
//! solution that precede its own. If the matrix is transposed, it receives the sums of their products instead.
//!
//! ```text
//! let x: f32[512@Y, 3] = triangular_solve(a, b, left_side=true, lower=true);     // Y = 4
//! =>
//! let s: f32[512@Y, 3] = triangular_rows(a, b, parts=4, start=0, lower=true);
//! let t: f32[512@Y, 3] = triangular_rows(a, s, s[0:128], parts=4, start=128, lower=true);
//! let u: f32[512@Y, 3] = triangular_rows(a, t, t[128:256], parts=4, start=256, lower=true);
//! let x: f32[512@Y, 3] = triangular_rows(a, u, u[256:384], parts=4, start=384, lower=true);
//! ```
//!
//! If a device has no more rows than the matrix has columns, the small factors are as large as the matrix, which all devices get instead.
//!
//! A system with another matrix is solved by elimination in `elimination.rs`.
//!
//! For the QR, a device receives the small factors of the others and the first rows of Q: at most as many bytes as the matrix has, and much
//! fewer if it has many rows.
//!
//! It comes after `insert_reshards`, which has given operand and result the same blocks, and before `exchange_halos`, which fetches the
//! first rows.

mod elimination;

use crate::rewrite::rewritten;
use spmdc_abi::{AxisSet, MatrixFunction, ReduceOp, TriangularSystem};
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Func, Module, Stmt, Value};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::Type;
use spmdc_linalg_ops::blocks::{BlockFunction, MatrixBlocks};
use spmdc_linalg_ops::factorization::Factorization;
use spmdc_linalg_ops::systems::{SystemStep, TriangularBlocks};
use spmdc_ops::broadcast::Broadcast;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::reduce::Reduce;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::slice::{Slice, SliceRange};
use spmdc_ops::transpose::Transpose;
use std::ops::Range;

/// Gives every factorization of split rows its steps.
pub fn distribute_factorizations(module: Module) -> Module {
    rewritten(module, steps)
}

fn steps(stmt: Stmt, func: &mut Func, mesh: &Mesh, stmts: &mut Vec<Stmt>) {
    match split_rows(&stmt, func, mesh) {
        Some((MatrixFunction::Cholesky, parts)) => stmts.extend(cholesky(&stmt, parts, func, mesh)),
        Some((function @ MatrixFunction::Qr { .. }, parts)) => stmts.extend(qr(&stmt, (function, parts), func, mesh)),
        Some((MatrixFunction::TriangularSolve(system), parts)) => {
            stmts.extend(triangular_solve(&stmt, system, parts, func, mesh));
        }
        Some((MatrixFunction::Solve, parts)) => stmts.extend(elimination::solve(&stmt, parts, func, mesh)),
        Some((MatrixFunction::LuDiagonal, parts)) => stmts.extend(elimination::diagonal(&stmt, parts, func, mesh)),
        Some((
            MatrixFunction::Lu
            | MatrixFunction::LuComplete
            | MatrixFunction::QrBlock { .. }
            | MatrixFunction::QrSigns
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product
            | MatrixFunction::Eigh { .. }
            | MatrixFunction::Eig { .. }
            | MatrixFunction::Svd { .. },
            _,
        )) => unreachable!("the rules of other factorizations do not split rows"),
        None => stmts.push(stmt),
    }
}

/// A function of matrices whose rows are split, and the number of their blocks.
fn split_rows(stmt: &Stmt, func: &Func, mesh: &Mesh) -> Option<(MatrixFunction, usize)> {
    let Factorization(function) = stmt.as_op::<Factorization>()?;
    let ty = func.ty(stmt.args[0]);
    let parts = mesh.size_of(&ty.sharding.dims[ty.rank() - 2].axes);
    (parts > 1).then(|| (function.clone(), parts))
}

/// The type of one value, converted to another shape and layout of the rows.
fn with_rows(ty: &Type, shape: [usize; 2], rows: &DimSharding) -> Type {
    let rank = ty.rank() - 2;
    let mut own = ty.clone();
    own.array.shape.truncate(rank);
    own.array.shape.extend(shape);
    own.sharding.dims[rank] = rows.clone();
    own
}

/// The rows and columns of a matrix in these ranges, on all devices.
fn part(build: &mut Builder<'_>, from: Value, x: &Type, ranges: [Range<usize>; 2], origin: &Origin) -> Value {
    let rank = x.rank() - 2;
    let mut slice = Slice::identity(&x.array);
    for (dim, range) in ranges.iter().enumerate() {
        slice.ranges[rank + dim].0 = SliceRange::between(range.start, range.end);
    }
    let ty = with_rows(x, ranges.map(|range| range.len()), &DimSharding::default());
    build.emit(slice, &[from], ty, origin)
}

fn cholesky(stmt: &Stmt, parts: usize, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let x = func.ty(stmt.args[0]).clone();
    let n = x.shape()[x.rank() - 1];
    let height = n.div_ceil(parts).max(1);
    let origin = stmt.origin.because(
        "the rows of the matrix are split: each device computes its rows of the factor from those of the preceding ones".to_string(),
    );
    let mut build = Builder::new(func, mesh);
    let mut factor = stmt.args[0];
    for first in (0..n).step_by(height) {
        let mut args = vec![factor];
        if first > 0 {
            args.push(part(&mut build, factor, &x, [first - height..first, 0..first], &origin));
        }
        factor = build.emit(MatrixBlocks { function: BlockFunction::CholeskyRows, parts }, &args, x.clone(), &origin);
    }
    let last = part(&mut build, factor, &x, [n - 1..n, n - 1..n], &origin);
    let checked = MatrixBlocks { function: BlockFunction::CholeskyChecked, parts };
    build.define(checked, &[factor, last], &stmt.results, &origin);
    build.finish()
}

fn triangular_solve(stmt: &Stmt, system: TriangularSystem, parts: usize, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let (a, given) = (stmt.args[0], stmt.args[1]);
    let (ty, result) = (func.ty(a).clone(), func.ty(stmt.results[0]).clone());
    let rank = ty.rank() - 2;
    let n = ty.shape()[rank];
    let height = n.div_ceil(parts).max(1);
    let origin = stmt.origin.because(
        "the rows of the matrix are split: each device solves its rows, after those on which they depend".to_string(),
    );
    let mut build = Builder::new(func, mesh);
    // With the matrix on the right, the transposed system.
    let mut turned = result.clone();
    let mut order: Vec<usize> = (0..rank + 2).collect();
    let system = if system.left {
        system
    } else {
        turned.array.shape.swap(rank, rank + 1);
        turned.sharding.dims.swap(rank, rank + 1);
        order.swap(rank, rank + 1);
        TriangularSystem { left: true, transposed: !system.transposed, ..system }
    };
    let is_turned = !order.is_sorted();
    let mut sides = if is_turned {
        build.emit(Transpose { axes: order.clone() }, &[given], turned.clone(), &origin)
    } else {
        given
    };
    let mut starts: Vec<usize> = (0..n).step_by(height).collect();
    if !system.is_forward() {
        starts.reverse();
    }
    let (columns, whole) = (turned.shape()[rank + 1], DimSharding::default());
    let mut last: Option<Range<usize>> = None;
    for (step, &start) in starts.iter().enumerate() {
        let own = start..n.min(start + height);
        let mut args = vec![a, sides];
        match last.replace(own.clone()) {
            None => {}
            Some(solved) if system.is_of_rows() => {
                args.push(part(&mut build, sides, &turned, [solved, 0..columns], &origin));
            }
            Some(_) => {
                let sums = TriangularBlocks { step: SystemStep::Sums, system, parts, start };
                let rows = turned.sharding.dims[rank].clone();
                let of_parts = with_rows(&turned, [own.len() * parts, columns], &rows);
                let products = build.emit(sums, &args, of_parts, &origin);
                args.push(summed(
                    &mut build,
                    products,
                    (parts, rows.axes),
                    with_rows(&turned, [own.len(), columns], &whole),
                    &origin,
                ));
            }
        }
        let solved = TriangularBlocks { step: SystemStep::Rows, system, parts, start };
        if step + 1 == starts.len() && !is_turned {
            build.define(solved, &args, &stmt.results, &origin);
        } else {
            sides = build.emit(solved, &args, turned.clone(), &origin);
        }
    }
    if is_turned {
        build.define(Transpose { axes: order }, &[sides], &stmt.results, &origin);
    }
    build.finish()
}

/// The sum of the blocks of rows that devices along these axes have, on all devices.
fn summed(build: &mut Builder<'_>, blocks: Value, (parts, axes): (usize, Vec<u8>), ty: Type, origin: &Origin) -> Value {
    let rank = ty.rank() - 2;
    // Blocks of one row are added up as they are.
    let is_row = ty.shape()[rank] == 1;
    let each = if is_row {
        blocks
    } else {
        let mut apart = ty.clone();
        apart.array.shape.insert(rank, parts);
        apart.sharding.dims.insert(rank, DimSharding::closed(axes.clone()));
        build.emit(Reshape { shape: apart.shape().to_vec(), trivial: false }, &[blocks], apart, origin)
    };
    let mut partial = ty.clone();
    let axes: AxisSet = axes.iter().map(|&axis| usize::from(axis)).collect();
    partial.sharding = partial.sharding.with_unreduced(axes, ReduceOp::Sum);
    let sum = Reduce { op: ReduceOp::Sum, axes: vec![rank], keepdims: is_row };
    let sums = build.emit(sum, &[each], partial, origin);
    build.emit(Reshard::request(ty.sharding.clone()), &[sums], ty, origin)
}

/// Computes the results on every device.
fn computed_whole(stmt: &Stmt, function: MatrixFunction, why: &'static str, func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let origin = stmt.origin.because(why.to_string());
    let types: Vec<Type> = func.types(&stmt.args).into_iter().cloned().collect();
    let rank = types[0].rank() - 2;
    let mut build = Builder::new(func, mesh);
    let mut wholes = Vec::new();
    for (&arg, ty) in stmt.args.iter().zip(&types) {
        let ty = with_rows(ty, [ty.shape()[rank], ty.shape()[rank + 1]], &DimSharding::default());
        wholes.push(build.emit(Reshard::request(ty.sharding.clone()), &[arg], ty, &origin));
    }
    let whole = |build: &mut Builder<'_>, result: Value| {
        let mut ty = build.func.ty(result).clone();
        ty.sharding.dims[rank] = DimSharding::default();
        build.func.new_value(ty, origin.clone())
    };
    let made: Vec<Value> = stmt.results.iter().map(|&result| whole(&mut build, result)).collect();
    build.define(Factorization(function), &wholes, &made, &stmt.origin);
    for (&made, &result) in made.iter().zip(&stmt.results) {
        let back = build.func.ty(result).sharding.clone();
        build.define(Reshard::request(back), &[made], &[result], &origin);
    }
    build.finish()
}

fn qr(stmt: &Stmt, (function, parts): (MatrixFunction, usize), func: &mut Func, mesh: &Mesh) -> Vec<Stmt> {
    let x = func.ty(stmt.args[0]).clone();
    let rank = x.rank() - 2;
    let (rows, columns) = (x.shape()[rank], x.shape()[rank + 1]);
    debug_assert!(rows > columns && x.sharding.dims[rank].alignment.is_none(), "the rule of `qr` splits tall matrices");
    let (split, whole) = (x.sharding.dims[rank].clone(), DimSharding::default());
    let width = rows.div_ceil(parts).min(columns);
    let height = parts * width;
    debug_assert!(height >= columns, "the stack has as many rows as R");
    if height >= rows {
        let why = "the rows of the matrix are split, but the small factors of all devices are as large as the matrix";
        return computed_whole(stmt, function, why, func, mesh);
    }
    let origin = stmt.origin.because(
        "the rows of the matrix are split: each device factorizes its own, and the small factors are gathered"
            .to_string(),
    );
    let layout = |ty: &Type| -> Sharding { ty.sharding.clone() };
    let [of_blocks, small] = [[rows, width], [height, columns]].map(|shape| with_rows(&x, shape, &split));
    let [stack, of_stack, upper] =
        [[height, columns], [height, columns], [columns, columns]].map(|shape| with_rows(&x, shape, &whole));
    let (row, column) = (with_rows(&x, [1, columns], &whole), with_rows(&x, [columns, 1], &whole));
    let [b, s, p, u, along, down] =
        [of_blocks, small.clone(), of_stack, upper.clone(), row, column].map(|ty| func.new_value(ty, origin.clone()));
    let mut build = Builder::new(func, mesh);
    build.define(MatrixBlocks { function: BlockFunction::Qr, parts }, &stmt.args, &[b, s], &origin);
    let gathered = build.emit(Reshard::request(layout(&stack)), &[s], stack, &origin);
    build.define(Factorization(MatrixFunction::Qr { full: false, q: true }), &[gathered], &[p, u], &origin);
    let own = build.emit(Reshard::request(layout(&small)), &[p], small, &origin);
    let product = MatrixBlocks { function: BlockFunction::Multiply, parts };
    let v = build.emit(product, &[b, own], x.clone(), &origin);
    let top = part(&mut build, v, &x, [0..columns, 0..columns], &origin);
    build.define(Factorization(MatrixFunction::QrSigns), &[top], &[along, down], &origin);
    let mut signed = |value: Value, signs: Value, ty: Type, result: Value| {
        // A matrix of one element has one sign.
        let is_one = ty.shape().ends_with(&[1, 1]);
        let wide = Broadcast { shape: ty.shape().to_vec() };
        let wide = if is_one { signs } else { build.emit(wide, &[signs], ty, &origin) };
        build.define(Binary(BinaryOp::Mul), &[value, wide], &[result], &origin);
    };
    match stmt.results[..] {
        [q, r] => {
            signed(v, along, x, q);
            signed(u, down, upper, r);
        }
        [r] => signed(u, down, upper, r),
        _ => unreachable!("a QR has Q and R, or R"),
    }
    build.finish()
}
