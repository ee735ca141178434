//! Random factorizations of matrices, and what is computed from them.

use super::Draw;
use super::call::Call;
use spmdc_abi::DType;

/// Functions whose results depend on sums of floats.
pub const NAMES: [&str; 17] = [
    "cholesky",
    "triangular_solve",
    "lu",
    "qr",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "tridiagonal_solve",
    "svd",
    "solve",
    "inv",
    "det",
    "slogdet",
    "lstsq",
    "pinv",
    "expm",
];

/// A few matrices of few rows, some without any.
fn shape(draw: &mut Draw, rows: usize, columns: usize) -> Vec<usize> {
    let rank = draw.below(3);
    let mut shape: Vec<usize> = (0..rank).map(|_| draw.size().min(5)).collect();
    shape.extend([rows, columns]);
    shape
}

fn flag(draw: &mut Draw, name: &str) -> String {
    if draw.chance(50) { String::new() } else { format!(", {name}={}", draw.chance(50)) }
}

/// A random call of a function of matrices, which are far from singular where the result would depend on that.
pub(super) fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    let dtype = draw.pick(&[DType::F32, DType::F32, DType::F64, DType::Bool]);
    let (n, m) = (draw.size().min(6), draw.size().min(6));
    let square = shape(draw, n, n);
    let regular = |n: usize| {
        let floats = if dtype == DType::F64 { "a" } else { "f32(a)" };
        format!("let x = {floats} / 4 + 2 * eye({n});")
    };
    let diagonal = regular(n);
    let with = |params: &[(DType, &[usize])], before: String, expr: String| Call { before, ..Call::new(params, expr) };
    Some(match name {
        "cholesky" => {
            let flags = flag(draw, "upper") + &flag(draw, "symmetrize_input");
            let before = diagonal + " let s = x @ swapaxes(x, -1, -2);";
            with(&[(dtype, &square)], before, format!("cholesky(s{flags})"))
        }
        "triangular_solve" => {
            let left = draw.chance(60);
            // Of large matrices the rows may be split, which are more than the right sides.
            let (n, m) = if draw.chance(30) { (7 + draw.below(4), 1 + draw.below(3)) } else { (n, m) };
            let square = shape(draw, n, n);
            let mut sides = square.clone();
            let last = sides.len() - 1;
            sides[last - usize::from(!left)] = m;
            if draw.chance(20) {
                sides.remove(if left { last } else { last - 1 });
            }
            let flags = flag(draw, "lower") + &flag(draw, "transpose_a") + &flag(draw, "unit_diagonal");
            let expr = format!("triangular_solve(x, b, left_side={left}{flags})");
            with(&[(dtype, &square), (DType::F32, &sides)], regular(n), expr)
        }
        "lu" => {
            let before = "let (factors, exchanged, source) = lu(a);".to_string();
            let expr = draw.pick(&["factors", "exchanged", "source"]);
            with(&[(dtype, &shape(draw, m, n))], before, expr.to_string())
        }
        "qr" => {
            let mode = draw.pick(&["", ", mode=\"reduced\"", ", mode=\"complete\"", ", mode=\"r\""]);
            let shape = shape(draw, m, n);
            // R is not determined where a matrix has no full rank.
            let is_whole = dtype != DType::Bool;
            let expr = if is_whole { draw.pick(&["q @ r", "r", "abs(r)"]) } else { "q @ r" };
            let dtype = if is_whole || !mode.contains("\"r\"") { dtype } else { DType::F32 };
            if mode.contains("\"r\"") {
                with(&[(dtype, &shape)], String::new(), format!("qr(a{mode})"))
            } else {
                with(&[(dtype, &shape)], format!("let (q, r) = qr(a{mode});"), expr.to_string())
            }
        }
        "eigh" => {
            let uplo = draw.pick(&["", ", UPLO=\"L\"", ", UPLO=\"U\""]);
            let flags = format!("{uplo}{}", flag(draw, "symmetrize_input"));
            let made = "(v * w[..., None, :]) @ swapaxes(v, -1, -2)";
            let expr = draw.pick(&["w", made, "swapaxes(v, -1, -2) @ v"]);
            with(&[(dtype, &square)], format!("let (w, v) = eigh(a{flags});"), expr.to_string())
        }
        "eig" | "eigvals" => {
            // The order of the eigenvalues is free, and so are those of a matrix without as many vectors, up to rounding: their sum is not.
            let value = if draw.chance(40) { "complex(a, roll(a, 1, axis=-1))" } else { "a" };
            if name == "eigvals" {
                let before = format!("let w = eigvals({value});");
                return Some(with(
                    &[(dtype, &square)],
                    before,
                    draw.pick(&["sum(w, axis=-1)", "sum(w * w)"]).to_string(),
                ));
            }
            let before = format!("let m = {value}; let (w, v) = eig(m);");
            let expr =
                draw.pick(&["sum(w, axis=-1)", "1 + abs(m @ v - v * w[..., None, :])", "sum(square(abs(v)), axis=-2)"]);
            with(&[(dtype, &square)], before, expr.to_string())
        }
        "eigvalsh" => {
            let uplo = draw.pick(&["", ", UPLO=\"L\"", ", UPLO=\"U\""]);
            Call::new(&[(dtype, &square)], format!("eigvalsh(a{uplo})"))
        }
        "tridiagonal_solve" => {
            let diagonal = square[..square.len() - 1].to_vec();
            let sides = [&diagonal[..], &[1 + draw.below(3)]].concat();
            let params: &[(DType, &[usize])] = &[(dtype, &diagonal), (dtype, &diagonal), (dtype, &sides)];
            Call::new(params, "tridiagonal_solve(a, b * b + 9, a * 0.5, c)")
        }
        "svd" => {
            let shape = shape(draw, m, n);
            if draw.chance(25) {
                return Some(Call::new(&[(dtype, &shape)], "svd(a, compute_uv=false)"));
            }
            let flags = flag(draw, "full_matrices");
            let least = m.min(n);
            let made = format!("(u[..., :{least}] * s[..., None, :]) @ v[..., :{least}, :]");
            let expr = draw.pick(&["s", &made, "u @ swapaxes(u, -1, -2)"]).to_string();
            // Products of thin vectors are projections, which are not determined where a matrix has no full rank.
            let expr = if expr.starts_with("u @") && dtype == DType::Bool { "s".to_string() } else { expr };
            with(&[(dtype, &shape)], format!("let (u, s, v) = svd(a{flags});"), expr)
        }
        "solve" => {
            // The rows of large matrices may be split, too; their rows are exchanged.
            let (n, m) = if draw.chance(30) { (16 + draw.below(12), 1 + draw.below(3)) } else { (n, m) };
            let square = shape(draw, n, n);
            let sides = match draw.below(3) {
                0 => vec![n],
                1 => vec![n, m],
                _ => [&square[..square.len() - 1], &[m]].concat(),
            };
            let shifts = draw.pick(&["", "", "roll(x, 3, axis=-2)"]);
            let before = regular(n) + &if shifts.is_empty() { String::new() } else { format!(" let x = {shifts};") };
            with(&[(dtype, &square), (DType::F32, &sides)], before, "solve(x, b)".to_string())
        }
        "inv" | "det" => with(&[(dtype, &square)], diagonal, format!("{name}(x)")),
        "slogdet" => {
            let before = diagonal + " let (sign, logarithm) = slogdet(x);";
            with(&[(dtype, &square)], before, draw.pick(&["sign", "logarithm"]).to_string())
        }
        "lstsq" => {
            let (rows, columns) = (m, n);
            let before =
                format!("let x = a / 4 + 2 * eye({rows}, {columns}); let (y, residuals, rank, s) = lstsq(x, b);");
            let sides = if draw.chance(50) { vec![rows] } else { vec![rows, 2] };
            let dtype = if dtype == DType::Bool { DType::F32 } else { dtype };
            let expr = draw.pick(&["y", "residuals", "rank", "s"]).to_string();
            with(&[(dtype, &[rows, columns]), (dtype, &sides)], before, expr)
        }
        "pinv" => with(&[(dtype, &shape(draw, m, n))], String::new(), "pinv(a)".to_string()),
        "expm" => {
            let scale = draw.pick(&["a / 4", "a / 2", "a * 1"]);
            let flags = draw.pick(&["", "", ", max_squarings=3"]);
            with(&[(dtype, &square)], String::new(), format!("expm({scale}{flags})"))
        }
        _ => return None,
    })
}
