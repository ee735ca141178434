//! Factorizations of random matrices, small, large, tall, wide, and nearly singular, on one device and split over several: the factors
//! give the matrix, and any number of workers gives the same bits.
//!
//! `MATRICES=5000` tries more, `MATRIX=17` one of them.

use spmdc_runtime::data::array::HostArray;
use spmdc_tests::compare::{difference_of_bits, numbers};
use spmdc_tests::engine;
use spmdc_tests::random::Draw;

/// Numbers of workers; the first one divides nothing.
const WORKERS: [usize; 4] = [1, 2, 3, 8];

/// Residuals of f32 and of f64, relative to the magnitudes of the factors.
const RESIDUALS: [(&str, f64); 2] = [("f32", 4e-5), ("f64", 1e-13)];

/// Matrices whose columns or singular values differ by this many powers of ten.
const SPREADS: [usize; 3] = [0, 3, 6];

/// A program whose last result is a residual, which should be no more than the given number.
fn program(draw: &mut Draw) -> (String, f64) {
    let (dtype, residual) = draw.pick(&RESIDUALS);
    let most = draw.pick(&[8, 40, 70, 70, 160]);
    let (mut m, n) = (1 + draw.below(most), 1 + draw.below(most));
    let function = draw.pick(&["cholesky", "triangular", "lu", "qr", "qr_r", "eigh", "svd", "solve"]);
    if !matches!(function, "lu" | "qr" | "qr_r" | "svd") {
        m = n;
    }
    // Small ones of a batch are computed side by side.
    let most = if m.max(n) <= 40 { 50 } else { 5 };
    let batch = if draw.chance(40) { format!("{}, ", 1 + draw.below(most)) } else { String::new() };
    let sides = 1 + draw.below(40);
    let spread = draw.pick(&SPREADS);
    let is_singular = draw.chance(20) && !matches!(function, "cholesky" | "triangular" | "solve");
    let (mesh, [matrices, rows]) = match draw.below(3) {
        0 => (String::new(), ["", ""]),
        split => (format!("mesh (X = {});\n", 2 + draw.below(7)), if split == 1 { ["", "@X"] } else { ["@X", ""] }),
    };
    let batch = batch.replace(',', &format!("{matrices},"));
    let mut text =
        format!("{mesh}fn main(x: {dtype}[{batch}{m}{rows}, {n}], b: {dtype}[{batch}{n}{rows}, {sides}]) {{\n");
    text += &format!("  let mut a = x * 10.0 ** (-{spread}.0 * {dtype}(arange({n})) / {n}.0);\n");
    if is_singular {
        // Two equal rows, or one of zeros.
        text += &format!("  a = where((arange({m}) == {})[:, None], a[..., :1, :], a);\n", m - 1);
    }
    text += &match function {
        "cholesky" => format!(
            "  let s = x @ swapaxes(x, -1, -2) + {n} * eye({n});\n  let l = cholesky(s);\n  \
             (l, max(abs(f64(l) @ swapaxes(f64(l), -1, -2) - f64(s))) / max(abs(f64(s))))\n"
        ),
        "triangular" => format!(
            "  let t = tril(x) / {n} + 2 * eye({n});\n  let y = triangular_solve(t, b, left_side=true, lower=true);\n  \
             (y, max(abs(f64(t) @ f64(y) - f64(b))) / (max(abs(f64(t))) * max(abs(f64(y))) + 1))\n"
        ),
        "solve" => "  let y = solve(a, b);\n  \
             (y, max(abs(f64(a) @ f64(y) - f64(b))) / (max(abs(f64(a))) * max(abs(f64(y))) + 1))\n"
            .to_string(),
        "lu" => {
            let least = m.min(n);
            format!(
                "  let (f, p, s) = lu(a);\n  let l = f64(tril(f[..., :{least}], -1)) + eye({m}, {least});\n  \
                 let u = f64(triu(f[..., :{least}, :]));\n  let r = take_along_axis(f64(a), s[..., :, None], axis=-2);\n  \
                 (f, p, s, max(abs(l @ u - r)) / (max(abs(u)) + 1e-300))\n"
            )
        }
        "qr" => "  let (q, r) = qr(a);\n  \
             (q, r, max(abs(f64(q) @ f64(r) - f64(a))) / max(abs(f64(a))) + \
             max(abs(swapaxes(f64(q), -1, -2) @ f64(q) - eye(q.shape[q.ndim - 1]))))\n"
            .replace("eye(q.shape[q.ndim - 1])", &format!("eye({})", m.min(n))),
        "qr_r" => "  let r = qr(a, mode=\"r\");\n  \
             (r, max(abs(swapaxes(f64(r), -1, -2) @ f64(r) - swapaxes(f64(a), -1, -2) @ f64(a))) / max(abs(f64(a))) ** 2)\n"
            .to_string(),
        "eigh" => format!(
            "  let s = (a + swapaxes(a, -1, -2)) / 2;\n  let (w, v) = eigh(s);\n  let (u, e) = (f64(v), f64(w));\n  \
             (w, v, max(abs(f64(s) @ u - u * e[..., None, :])) / (max(abs(f64(s))) * {n}) + \
             max(abs(swapaxes(u, -1, -2) @ u - eye({n}))))\n"
        ),
        _ => "  let (u, s, v) = svd(a, full_matrices=false);\n  \
             (u, s, v, max(abs(f64(u) * f64(s)[..., None, :] @ f64(v) - f64(a))) / max(f64(s)))\n"
            .to_string(),
    };
    (text + "}\n", residual * m.max(n) as f64 / 10.0)
}

fn results(text: &str, workers: usize) -> Vec<HostArray> {
    let compilation =
        engine::compiled_quickly("matrices.spmd", text, "").unwrap_or_else(|failures| panic!("{text}{failures:?}"));
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).unwrap();
    engine::run(&compilation, &inputs, Some(workers)).unwrap_or_else(|failure| panic!("{text}{failure:?}")).results
}

#[test]
fn factors_give_the_matrix_with_the_same_bits_for_any_number_of_workers() {
    for number in crate::numbers("MATRIX", "MATRICES", 60) {
        let (text, most) = program(&mut Draw::new("matrices", number));
        let expected = results(&text, WORKERS[0]);
        let residual = numbers(expected.last().unwrap())[0];
        assert!(residual <= most, "MATRIX={number} has a residual of {residual}, more than {most}:\n{text}");
        for workers in &WORKERS[1..] {
            for (one, other) in expected.iter().zip(results(&text, *workers)) {
                let difference = difference_of_bits(one, &other);
                assert!(difference.is_none(), "MATRIX={number} on {workers} workers: {difference:?}\n{text}");
            }
        }
    }
}
