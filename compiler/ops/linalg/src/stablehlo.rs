//! Factorizations in StableHLO: calls of LAPACK, with the conventions of this crate for triangles, signs and failures.

use crate::factorization::Factorization;
use spmdc_abi::{MatrixFunction, ReduceOp, TriangularSystem};
use spmdc_ir::stablehlo::{HloBuilder, HloElement, HloGap, HloGather, HloType, HloValue, WritesStablehlo};
use spmdc_layout::types::DType;

impl WritesStablehlo for Factorization {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        if results.iter().any(HloType::is_empty) || args[0].ty.is_empty() {
            return Err(HloGap("factorization of matrices without elements".to_string()));
        }
        let a = &args[0];
        Ok(match &self.0 {
            MatrixFunction::Cholesky => vec![cholesky(hlo, a)],
            MatrixFunction::TriangularSolve(system) => vec![triangular_solve(hlo, system, a, &args[1])],
            MatrixFunction::Solve => {
                let (factors, pivots) = eliminated(hlo, a);
                let sources = sources(hlo, &pivots, a.ty.shape[batch(a)]);
                let sides = rows_at(hlo, &args[1], &sources);
                let lower = TriangularSystem { left: true, lower: true, transposed: false, unit: true };
                let middle = triangular_solve(hlo, &lower, &factors, &sides);
                let upper = TriangularSystem { lower: false, unit: false, ..lower };
                vec![triangular_solve(hlo, &upper, &factors, &middle)]
            }
            MatrixFunction::Lu => {
                let (factors, pivots) = eliminated(hlo, a);
                let sources = sources(hlo, &pivots, a.ty.shape[batch(a)]);
                vec![factors, pivots, sources]
            }
            MatrixFunction::LuDiagonal => {
                let (factors, pivots) = eliminated(hlo, a);
                let rank = a.ty.rank();
                let [row, column] = [rank - 2, rank - 1].map(|dim| hlo.iota(DType::I32, &a.ty.shape, dim));
                let is_diagonal = hlo.compare("EQ", &row, &column);
                let zero = hlo.whole_like(&factors, 0);
                let diagonal = hlo.select(&is_diagonal, &factors, &zero);
                vec![hlo.reduce(ReduceOp::Sum, &diagonal, &[rank - 1]), pivots]
            }
            MatrixFunction::LuComplete => eliminated_completely(hlo, a),
            MatrixFunction::Qr { full, q } => qr(hlo, a, *full, *q),
            MatrixFunction::Eigh { lower } => eigh(hlo, a, *lower),
            MatrixFunction::Svd { vectors } => svd(hlo, a, *vectors),
            MatrixFunction::Eig { vectors } => eig(hlo, args, *vectors),
            MatrixFunction::QrBlock { .. }
            | MatrixFunction::QrSigns
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product => return Err(HloGap("step on blocks of matrices".to_string())),
        })
    }
}

/// The number of dimensions before those of the matrices.
fn batch(a: &HloValue) -> usize {
    a.ty.rank() - 2
}

/// The type with the batch dimensions of the matrices and these.
fn of_batch(a: &HloValue, dtype: DType, sizes: &[usize]) -> HloType {
    let shape: Vec<usize> = a.ty.shape[..batch(a)].iter().chain(sizes).copied().collect();
    HloType::new(dtype, &shape)
}

/// The value where LAPACK returns success for a matrix, and NaN elsewhere.
fn succeeded(hlo: &mut HloBuilder<'_>, value: &HloValue, info: &HloValue) -> HloValue {
    let zero = hlo.whole_like(info, 0);
    let is_good = hlo.compare("EQ", info, &zero);
    let dims: Vec<usize> = (0..info.ty.rank()).collect();
    let is_good = hlo.broadcast_in_dim(&is_good, &dims, &value.ty.shape);
    let dtype = value.ty.dtype();
    let mut nan = hlo.float(dtype, f64::NAN, &value.ty.shape);
    if let HloElement::Complex(_) = value.ty.element {
        nan = hlo.complex(&nan, &nan);
    }
    hlo.select(&is_good, value, &nan)
}

/// The matrices with zeros above the diagonal, or below it.
fn triangle(hlo: &mut HloBuilder<'_>, a: &HloValue, is_lower: bool) -> HloValue {
    let rank = a.ty.rank();
    let [row, column] = [rank - 2, rank - 1].map(|dim| hlo.iota(DType::I32, &a.ty.shape, dim));
    let is_kept = hlo.compare(if is_lower { "GE" } else { "LE" }, &row, &column);
    let zero = hlo.whole_like(a, 0);
    hlo.select(&is_kept, a, &zero)
}

fn cholesky(hlo: &mut HloBuilder<'_>, a: &HloValue) -> HloValue {
    let types = [a.ty.clone(), of_batch(a, DType::I32, &[])];
    let made = hlo.lapack("potrf", &[a], &types, "uplo = 76 : ui8", batch(a));
    let factor = succeeded(hlo, &made[0], &made[1]);
    triangle(hlo, &factor, true)
}

fn triangular_solve(hlo: &mut HloBuilder<'_>, system: &TriangularSystem, a: &HloValue, b: &HloValue) -> HloValue {
    let TriangularSystem { left, lower, transposed, unit } = *system;
    let letter = |holds: bool, letters: [char; 2]| letters[usize::from(!holds)] as u32;
    let config = format!(
        "diag = {} : ui8, side = {} : ui8, trans_x = {} : ui8, uplo = {} : ui8",
        letter(unit, ['U', 'N']),
        letter(left, ['L', 'R']),
        letter(transposed, ['T', 'N']),
        letter(lower, ['L', 'U']),
    );
    hlo.lapack("trsm", &[a, b], std::slice::from_ref(&b.ty), &config, batch(a)).swap_remove(0)
}

/// L and U in one matrix, and the row exchanged in each step.
fn eliminated(hlo: &mut HloBuilder<'_>, a: &HloValue) -> (HloValue, HloValue) {
    let [m, n] = [a.ty.shape[batch(a)], a.ty.shape[batch(a) + 1]];
    let pivots = of_batch(a, DType::I32, &[m.min(n)]);
    let types = [a.ty.clone(), pivots, of_batch(a, DType::I32, &[])];
    let made = hlo.lapack("getrf", &[a], &types, "", batch(a));
    let one = hlo.whole_like(&made[1], 1);
    let pivots = hlo.binary("stablehlo.subtract", &made[1], &one);
    (made[0].clone(), pivots)
}

/// The source of each of `m` rows after the exchanges, in a loop over the steps.
fn sources(hlo: &mut HloBuilder<'_>, pivots: &HloValue, m: usize) -> HloValue {
    let rank = pivots.ty.rank();
    let steps = pivots.ty.shape[rank - 1];
    let mut shape = pivots.ty.shape.clone();
    shape[rank - 1] = m;
    let mut one = shape.clone();
    one[rank - 1] = 1;
    let places = hlo.iota(DType::I32, &shape, rank - 1);
    let zero = hlo.whole(DType::I32, 0, &[]);
    // The state is the number of the step, and the sources so far.
    let last = hlo.whole(DType::I32, steps as i64, &[]);
    let mut made = hlo.while_loop(
        &[zero, places.clone()],
        |hlo, state| hlo.compare("LT", &state[0], &last),
        |hlo, state| {
            let (step, sources) = (&state[0], &state[1]);
            let all: Vec<usize> = (0..rank).collect();
            let zero = hlo.whole(DType::I32, 0, &[]);
            let mut starts = vec![zero; rank];
            starts[rank - 1] = step.clone();
            let pivot = hlo.dynamic_slice(pivots, &starts, &one);
            let own = hlo.dynamic_slice(sources, &starts, &one);
            let [pivot, own] = [pivot, own].map(|value| hlo.broadcast_in_dim(&value, &all, &shape));
            let here = hlo.broadcast_in_dim(step, &[], &shape);
            let [is_pivot, is_here] = [&pivot, &here].map(|place| hlo.compare("EQ", &places, place));
            let zeros = hlo.whole_like(sources, 0);
            let other = hlo.select(&is_pivot, sources, &zeros);
            let other = hlo.reduce(ReduceOp::Sum, &other, &[rank - 1]);
            let other = hlo.broadcast_in_dim(&other, &all[..rank - 1], &shape);
            let moved = hlo.select(&is_pivot, &own, sources);
            let moved = hlo.select(&is_here, &other, &moved);
            let one = hlo.whole(DType::I32, 1, &[]);
            vec![hlo.binary("stablehlo.add", step, &one), moved]
        },
    );
    made.swap_remove(1)
}

/// L and U in one matrix, the source of each row and of each column: in each step the largest of all remaining elements, the first by
/// columns, becomes the pivot. LAPACK has no such function for matrices of any size, so it is a loop over the steps.
fn eliminated_completely(hlo: &mut HloBuilder<'_>, a: &HloValue) -> Vec<HloValue> {
    let rank = a.ty.rank();
    let n = a.ty.shape[rank - 1];
    let shape = a.ty.shape.clone();
    let [row, column] = [rank - 2, rank - 1].map(|dim| hlo.iota(DType::I32, &shape, dim));
    let mut lines = shape.clone();
    lines.pop();
    let places = hlo.iota(DType::I32, &lines, rank - 2);
    let zero = hlo.whole(DType::I32, 0, &[]);
    let end = hlo.whole(DType::I32, n as i64, &[]);
    let mut turned: Vec<usize> = (0..rank).collect();
    turned.swap(rank - 2, rank - 1);
    let of_batch: Vec<usize> = (0..rank - 2).collect();
    let of_lines: Vec<usize> = (0..rank - 1).collect();
    let of_columns: Vec<usize> = of_batch.iter().copied().chain([rank - 1]).collect();
    // The state is the number of the step, the matrix, and the sources of rows and columns so far.
    let mut made = hlo.while_loop(
        &[zero, a.clone(), places.clone(), places.clone()],
        |hlo, state| hlo.compare("LT", &state[0], &end),
        |hlo, state| {
            let step = &state[0];
            let here = hlo.broadcast_in_dim(step, &[], &shape);
            let [is_row_left, is_column_left] = [&row, &column].map(|place| hlo.compare("GE", place, &here));
            let is_left = hlo.binary("stablehlo.and", &is_row_left, &is_column_left);
            let magnitude = hlo.unary("stablehlo.abs", &state[1]);
            let minus = hlo.whole_like(&magnitude, -1);
            let left = hlo.select(&is_left, &magnitude, &minus);
            let by_columns = hlo.transpose(&left, &turned);
            let flat: Vec<usize> = shape[..rank - 2].iter().copied().chain([n * n]).collect();
            let by_columns = hlo.reshape(&by_columns, &flat);
            let [_, place] = hlo.extreme(true, &by_columns, rank - 2);
            let size = hlo.whole_like(&place, n as i64);
            let pivots = ["stablehlo.remainder", "stablehlo.divide"].map(|part| hlo.binary(part, &place, &size));
            // Both lines change places.
            let here = hlo.broadcast_in_dim(step, &[], &lines);
            let is_here = hlo.compare("EQ", &places, &here);
            let [rows, columns] = pivots.map(|pivot| {
                let pivot = hlo.broadcast_in_dim(&pivot, &of_batch, &lines);
                let is_pivot = hlo.compare("EQ", &places, &pivot);
                let moved = hlo.select(&is_pivot, &here, &places);
                hlo.select(&is_here, &pivot, &moved)
            });
            let by_rows = rows_at(hlo, &state[1], &rows);
            let by_rows = hlo.transpose(&by_rows, &turned);
            let exchanged = rows_at(hlo, &by_rows, &columns);
            let exchanged = hlo.transpose(&exchanged, &turned);
            let sources = [(&state[2], &rows), (&state[3], &columns)].map(|(known, order)| {
                let wide: Vec<usize> = lines.iter().copied().chain([1]).collect();
                let known = hlo.reshape(known, &wide);
                let moved = rows_at(hlo, &known, order);
                hlo.reshape(&moved, &lines)
            });
            // The rest is eliminated, unless only zeros are left.
            let here = hlo.broadcast_in_dim(step, &[], &shape);
            let [of_row, of_column] = [&row, &column].map(|place| hlo.compare("EQ", place, &here));
            let [below, behind] = [&row, &column].map(|place| hlo.compare("GT", place, &here));
            let zeros = hlo.whole_like(&exchanged, 0);
            let in_row = hlo.select(&of_row, &exchanged, &zeros);
            let upper = hlo.reduce(ReduceOp::Sum, &in_row, &[rank - 2]);
            let upper = hlo.broadcast_in_dim(&upper, &of_columns, &shape);
            let at_pivot = hlo.select(&of_column, &in_row, &zeros);
            let pivot = hlo.reduce(ReduceOp::Sum, &at_pivot, &[rank - 2, rank - 1]);
            let pivot = hlo.broadcast_in_dim(&pivot, &of_batch, &shape);
            let is_zero = hlo.compare("EQ", &pivot, &zeros);
            let quotient = hlo.binary("stablehlo.divide", &exchanged, &pivot);
            let of_factors = hlo.binary("stablehlo.and", &of_column, &below);
            let factored = hlo.select(&of_factors, &quotient, &exchanged);
            let in_column = hlo.select(&of_column, &factored, &zeros);
            let factor = hlo.reduce(ReduceOp::Sum, &in_column, &[rank - 1]);
            let factor = hlo.broadcast_in_dim(&factor, &of_lines, &shape);
            let product = hlo.binary("stablehlo.multiply", &factor, &upper);
            let reduced = hlo.binary("stablehlo.subtract", &factored, &product);
            let is_rest = hlo.binary("stablehlo.and", &below, &behind);
            let eliminated = hlo.select(&is_rest, &reduced, &factored);
            let eliminated = hlo.select(&is_zero, &exchanged, &eliminated);
            let one = hlo.whole(DType::I32, 1, &[]);
            let next = hlo.binary("stablehlo.add", step, &one);
            let [of_rows, of_columns] = sources;
            vec![next, eliminated, of_rows, of_columns]
        },
    );
    made.split_off(1)
}

/// The rows of matrices in another order.
fn rows_at(hlo: &mut HloBuilder<'_>, a: &HloValue, sources: &HloValue) -> HloValue {
    let count = batch(a);
    let mut shape = sources.ty.shape.clone();
    shape.push(1);
    let indices = hlo.reshape(sources, &shape);
    let numbers =
        HloGather { kept: vec![count + 1], indexed: vec![count], batch: (0..count).map(|dim| (dim, dim)).collect() };
    hlo.gather(&numbers, a, &indices, &a.ty.shape)
}

fn qr(hlo: &mut HloBuilder<'_>, a: &HloValue, full: bool, with_q: bool) -> Vec<HloValue> {
    let dtype = a.ty.dtype();
    let rank = a.ty.rank();
    let [m, n] = [a.ty.shape[rank - 2], a.ty.shape[rank - 1]];
    let least = m.min(n);
    let made = if full { m } else { least };
    let scales = of_batch(a, dtype, &[least]);
    let factored = hlo.lapack("geqrf", &[a], &[a.ty.clone(), scales], "", batch(a));
    let rows = hlo.slice_dim(&factored[0], rank - 2, (0, made, 1));
    let upper = triangle(hlo, &rows, false);
    if !with_q {
        return vec![upper];
    }
    // The vectors of the reflections have as many columns as Q.
    let mut vectors = hlo.slice_dim(&factored[0], rank - 1, (0, least, 1));
    if made > least {
        let zero = hlo.whole(dtype, 0, &[]);
        let mut widths = vec![(0, 0, 0); rank];
        widths[rank - 1] = (0, made - least, 0);
        vectors = hlo.pad(&vectors, &zero, &widths);
    }
    let ty = vectors.ty.clone();
    let q = hlo.lapack("orgqr", &[&vectors, &factored[1]], &[ty], "", batch(a)).swap_remove(0);
    vec![q, upper]
}

fn eigh(hlo: &mut HloBuilder<'_>, a: &HloValue, lower: bool) -> Vec<HloValue> {
    let dtype = a.ty.dtype();
    let n = a.ty.shape[batch(a)];
    let types = [a.ty.clone(), of_batch(a, dtype, &[n]), of_batch(a, DType::I32, &[])];
    let config = format!("mode = 86 : ui8, uplo = {} : ui8", if lower { 76 } else { 85 });
    let made = hlo.lapack("syevd", &[a], &types, &config, batch(a));
    let [vectors, values] = [0, 1].map(|at| succeeded(hlo, &made[at], &made[2]));
    let signs = signs(hlo, &vectors, batch(a));
    vec![values, hlo.binary("stablehlo.multiply", &vectors, &signs)]
}

fn svd(hlo: &mut HloBuilder<'_>, a: &HloValue, vectors: Option<bool>) -> Vec<HloValue> {
    let dtype = a.ty.dtype();
    let rank = a.ty.rank();
    let [m, n] = [a.ty.shape[rank - 2], a.ty.shape[rank - 1]];
    let least = m.min(n);
    let (mode, [columns, rows]) = match vectors {
        None => (78, [m, n]),
        Some(true) => (65, [m, n]),
        Some(false) => (83, [least, least]),
    };
    let sizes = [vec![least], vec![m, columns], vec![rows, n]].map(|sizes| of_batch(a, dtype, &sizes));
    let [of_values, of_left, of_right] = sizes;
    let types = [a.ty.clone(), of_values, of_left, of_right, of_batch(a, DType::I32, &[])];
    let made = hlo.lapack("gesdd", &[a], &types, &format!("mode = {mode} : ui8"), batch(a));
    let values = succeeded(hlo, &made[1], &made[4]);
    if vectors.is_none() {
        return vec![values];
    }
    let [left, right] = [2, 3].map(|at| succeeded(hlo, &made[at], &made[4]));
    let of_left = signs(hlo, &left, rank - 2);
    let left = hlo.binary("stablehlo.multiply", &left, &of_left);
    // The right vectors turn with the left ones; further ones have signs of their own.
    let of_left = hlo.slice_dim(&of_left, rank - 2, (0, 1, 1));
    let of_left = hlo.slice_dim(&of_left, rank - 1, (0, least, 1));
    let mut shape = of_left.ty.shape.clone();
    shape.swap(rank - 2, rank - 1);
    let column = hlo.reshape(&of_left, &shape);
    let mut parts = vec![column];
    if rows > least {
        let others = hlo.slice_dim(&right, rank - 2, (least, rows, 1));
        let of_others = signs(hlo, &others, rank - 1);
        parts.push(hlo.slice_dim(&of_others, rank - 1, (0, 1, 1)));
    }
    let of_right = hlo.concatenate(&parts, rank - 2);
    let all: Vec<usize> = (0..rank).collect();
    let of_right = hlo.broadcast_in_dim(&of_right, &all, &right.ty.shape);
    vec![left, values, hlo.binary("stablehlo.multiply", &right, &of_right)]
}

/// Of each vector along a dimension the sign of the first element whose magnitude is at least nine tenths of the largest, for each element.
fn signs(hlo: &mut HloBuilder<'_>, vectors: &HloValue, dim: usize) -> HloValue {
    let shape = vectors.ty.shape.clone();
    let dtype = vectors.ty.dtype();
    let others: Vec<usize> = (0..shape.len()).filter(|&other| other != dim).collect();
    let magnitude = hlo.unary("stablehlo.abs", vectors);
    let largest = hlo.reduce(ReduceOp::Max, &magnitude, &[dim]);
    let share = hlo.float(dtype, 0.9, &largest.ty.shape);
    let bound = hlo.binary("stablehlo.multiply", &largest, &share);
    let bound = hlo.broadcast_in_dim(&bound, &others, &shape);
    let is_large = hlo.compare("GE", &magnitude, &bound);
    let places = hlo.iota(DType::I32, &shape, dim);
    let end = hlo.whole_like(&places, shape[dim] as i64);
    let large = hlo.select(&is_large, &places, &end);
    let first = hlo.reduce(ReduceOp::Min, &large, &[dim]);
    let first = hlo.broadcast_in_dim(&first, &others, &shape);
    let is_first = hlo.compare("EQ", &places, &first);
    let zero = hlo.whole_like(vectors, 0);
    let chosen = hlo.select(&is_first, vectors, &zero);
    let chosen = hlo.reduce(ReduceOp::Sum, &chosen, &[dim]);
    let zero = hlo.whole_like(&chosen, 0);
    let is_negative = hlo.compare("LT", &chosen, &zero);
    let [minus, plus] = [-1, 1].map(|sign| hlo.whole_like(&chosen, sign));
    let sign = hlo.select(&is_negative, &minus, &plus);
    hlo.broadcast_in_dim(&sign, &others, &shape)
}

fn eig(hlo: &mut HloBuilder<'_>, args: &[HloValue], with_vectors: bool) -> Vec<HloValue> {
    let dtype = args[0].ty.dtype();
    let a = match args.get(1) {
        Some(im) => hlo.complex(&args[0], im),
        None => args[0].clone(),
    };
    let n = a.ty.shape[batch(&a)];
    let real = of_batch(&a, dtype, &[n]);
    let complex = HloType { element: HloElement::Complex(dtype), ..real.clone() };
    let vectors = HloType { element: HloElement::Complex(dtype), shape: a.ty.shape.clone() };
    let info = of_batch(&a, DType::I32, &[]);
    let mut types = if args.len() > 1 { vec![complex] } else { vec![real.clone(), real] };
    types.extend([vectors.clone(), vectors, info]);
    let config = format!("compute_left = 78 : ui8, compute_right = {} : ui8", if with_vectors { 86 } else { 78 });
    let made = hlo.lapack("geev", &[&a], &types, &config, batch(&a));
    let (values, of_right) = match args.len() {
        1 => (hlo.complex(&made[0], &made[1]), 3),
        _ => (made[0].clone(), 2),
    };
    let info = made[made.len() - 1].clone();
    let values = succeeded(hlo, &values, &info);
    let mut all = hlo.planes(&values).to_vec();
    if with_vectors {
        let right = succeeded(hlo, &made[of_right], &info);
        all.extend(hlo.planes(&right));
    }
    all
}
