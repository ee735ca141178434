"""Makes the golden arrays of factorizations of matrices and of what is computed from them: each program below is computed by JAX. Signs
of vectors are free, so that products are compared.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_linalg.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import expm

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261123)
KINDS = {"f32": np.float32, "f64": np.float64}


def noise(dtype, *shape):
    return rng.standard_normal(shape).astype(KINDS[dtype])


def positive(dtype, *shape):
    """Symmetric positive definite matrices."""
    b = noise(dtype, *shape)
    return b @ np.swapaxes(b, -1, -2) + np.eye(shape[-1], dtype=KINDS[dtype])


def regular(dtype, *shape):
    """Square matrices far from singular ones."""
    return noise(dtype, *shape) + 3 * np.eye(shape[-1], dtype=KINDS[dtype])


def mT(x):
    return jnp.swapaxes(x, -1, -2)


def with_bad(x):
    """One matrix of a batch that is not positive definite."""
    x = x.copy()
    x[1] = -x[1]
    return x


def systems(a, b, c):
    solve = lax.linalg.triangular_solve
    return (solve(a, b, left_side=True, lower=True), solve(a, b, left_side=True, transpose_a=True),
            solve(a, c), solve(a, c, lower=True, transpose_a=True, unit_diagonal=True),
            solve(a, b[..., 0], left_side=True, lower=True), solve(a, c[:, 0], lower=True))


def factors(x):
    q, r = jnp.linalg.qr(x)
    whole, upper = jnp.linalg.qr(x, mode="complete")
    return q, r, whole @ mT(whole), upper, jnp.linalg.qr(x, mode="r")


def spectrum(x):
    w, v = jnp.linalg.eigh(x)
    low, _ = jnp.linalg.eigh(x, UPLO="L", symmetrize_input=False)
    high, _ = jnp.linalg.eigh(x, UPLO="U", symmetrize_input=False)
    return w, (v * w[..., None, :]) @ mT(v), low, high


def values(x):
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    whole, _, other = jnp.linalg.svd(x)
    return s, (u * s[..., None, :]) @ v, jnp.linalg.svd(x, compute_uv=False), mT(whole) @ whole, other @ mT(other)


def inverses(a, b, c):
    sign, logarithm = jnp.linalg.slogdet(a)
    return (jnp.linalg.solve(a, b), jnp.linalg.solve(a, c), jnp.linalg.inv(a), jnp.linalg.det(a), sign, logarithm,
            jnp.linalg.matrix_power(a, -2))


def elimination(x):
    factors, exchanged, source = lax.linalg.lu(x)
    return factors, exchanged.astype(np.int32), source.astype(np.int32)


def squares(a, b):
    x, residuals, rank, s = jnp.linalg.lstsq(a, b)
    return x, residuals, rank.astype(np.int32), s


def low_rank(m, n, rank):
    return (rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))).astype(np.float64)


def cholesky_program(name, dtype, x):
    dims = ", ".join(f"{size}{at}" for size, at in zip(x.shape, ["@X", "", ""] if x.ndim == 3 else ["@X", ""]))
    own = ", ".join(map(str, x.shape))
    text = (f"fn main(x: {dtype}[{dims}]) -> ({dtype}[{own}], {dtype}[{own}], {dtype}[{own}]) {{\n"
            "  (cholesky(x), cholesky(x, upper=true), cholesky(tril(x), symmetrize_input=false))\n}")
    return name, "reduction", text, [x], lambda x: (
        jnp.linalg.cholesky(x), jnp.linalg.cholesky(x, upper=True), jnp.linalg.cholesky(jnp.tril(x), symmetrize_input=False))


def qr_program(name, dtype, x, rows=""):
    *batch, m, n = x.shape
    text = (f"fn main(x: {dtype}[{', '.join(map(str, batch + [f'{m}{rows}', n]))}]) {{\n"
            "  let (q, r) = qr(x);\n  let (whole, upper) = qr(x, mode=\"complete\");\n"
            "  (q, r, whole @ swapaxes(whole, -1, -2), upper, qr(x, mode=\"r\"))\n}")
    return name, "reduction", text, [x], factors


def svd_program(name, dtype, x):
    text = (f"fn main(x: {dtype}[{', '.join(map(str, x.shape))}]) {{\n"
            "  let (u, s, v) = svd(x, full_matrices=false);\n  let (whole, t, other) = svd(x);\n"
            "  (s, (u * s[..., None, :]) @ v, svd(x, compute_uv=false), swapaxes(whole, -1, -2) @ whole, other @ swapaxes(other, -1, -2))\n}")
    return name, "reduction", text, [x], values


def eigh_program(name, dtype, x):
    text = (f"fn main(x: {dtype}[{', '.join(map(str, x.shape))}]) {{\n  let (w, v) = eigh(x);\n"
            "  let (low, a) = eigh(x, UPLO=\"L\", symmetrize_input=false);\n  let (high, b) = eigh(x, \"U\", symmetrize_input=false);\n"
            "  (w, (v * w[..., None, :]) @ swapaxes(v, -1, -2), low, high)\n}")
    return name, "reduction", text, [x], spectrum


INVERSES = ("  let (sign, logarithm) = slogdet(a);\n"
            "  (solve(a, b), solve(a, c), inv(a), det(a), sign, logarithm, matrix_power(a, -2))\n}")
SYSTEMS = ("  (triangular_solve(a, b, left_side=true, lower=true), triangular_solve(a, b, left_side=true, transpose_a=true),\n"
           "    triangular_solve(a, c), triangular_solve(a, c, lower=true, transpose_a=true, unit_diagonal=true),\n"
           "    triangular_solve(a, b[..., 0], left_side=true, lower=true), triangular_solve(a, c[:, 0], lower=true))\n}")
LSTSQ = "  lstsq(a, b)\n}"

rank_two = low_rank(7, 4, 2)
PROGRAMS = [
    cholesky_program("cholesky_one", "f32", positive("f32", 1, 1)),
    cholesky_program("cholesky_f32", "f32", positive("f32", 40, 40)),
    cholesky_program("cholesky_f64", "f64", positive("f64", 7, 7)),
    cholesky_program("cholesky_batch", "f32", with_bad(positive("f32", 5, 4, 4))),
    ("cholesky_of_integers", "reduction", "fn main(x: i16[2@X, 2]) -> f32[2, 2] { cholesky(x) }", [np.array([[4, 2], [2, 5]], np.int16)],
     lambda x: jnp.linalg.cholesky(x.astype(np.float32))),
    ("triangular_systems", "reduction", "fn main(a: f32[3@X, 6, 6], b: f32[3@X, 6, 4@Y], c: f32[3@X, 2, 6]) {\n" + SYSTEMS,
     [regular("f32", 3, 6, 6), noise("f32", 3, 6, 4), noise("f32", 3, 2, 6)], systems),
    ("triangular_systems_f64", "reduction", "fn main(a: f64[1, 50, 50], b: f64[1, 50, 3@Y], c: f64[1, 2@X, 50]) {\n" + SYSTEMS,
     [regular("f64", 1, 50, 50) / 8, noise("f64", 1, 50, 3), noise("f64", 1, 2, 50)], systems),
    qr_program("qr_tall", "f32", noise("f32", 9, 4), "@X"),
    qr_program("qr_wide", "f64", noise("f64", 3, 7)),
    qr_program("qr_batch", "f32", noise("f32", 2, 3, 5, 5)),
    qr_program("qr_large", "f64", noise("f64", 70, 40), "@(X, Y)"),
    qr_program("qr_split_batch", "f32", noise("f32", 2, 41, 3), "@Y"),
    qr_program("qr_of_columns", "f32", np.array([[0, 0, 1], [0, 2, 0], [0, 0, -3]], np.float32)),
    eigh_program("eigh_f32", "f32", noise("f32", 9, 9)),
    eigh_program("eigh_f64", "f64", noise("f64", 3, 6, 6)),
    eigh_program("eigh_equal", "f64", np.ones((5, 5))),
    eigh_program("eigh_large", "f64", noise("f64", 60, 60)),
    svd_program("svd_tall", "f32", noise("f32", 8, 3)),
    svd_program("svd_wide", "f64", noise("f64", 2, 3, 6)),
    svd_program("svd_deficient", "f64", rank_two),
    svd_program("svd_of_nothing", "f32", np.zeros((3, 4), np.float32)),
    ("eliminations", "reduction", "fn main(x: f64[3@X, 6, 6]) -> (f64[3, 6, 6], i32[3, 6], i32[3, 6]) { lu(x) }", [noise("f64", 3, 6, 6)], elimination),
    ("eliminations_tall", "reduction", "fn main(x: f32[9, 4]) -> (f32[9, 4], i32[4], i32[9]) { lu(x) }", [noise("f32", 9, 4)], elimination),
    ("eliminations_wide", "reduction", "fn main(x: f64[4, 7]) -> (f64[4, 7], i32[4], i32[4]) { lu(x) }", [noise("f64", 4, 7)], elimination),
    ("inverses", "reduction", "fn main(a: f32[3@X, 5, 5], b: f32[5], c: f32[5, 4@Y]) {\n" + INVERSES,
     [regular("f32", 3, 5, 5), noise("f32", 5), noise("f32", 5, 4)], inverses),
    ("inverses_of_two", "reduction", "fn main(a: f64[2, 2], b: f64[2], c: f64[6@X, 2, 3]) {\n" + INVERSES,
     [regular("f64", 2, 2), noise("f64", 2), noise("f64", 6, 2, 3)], inverses),
    ("inverses_of_one", "reduction", "fn main(a: f32[4@Y, 1, 1], b: f32[1], c: f32[1, 3]) {\n" + INVERSES,
     [regular("f32", 4, 1, 1), noise("f32", 1), noise("f32", 1, 3)], inverses),
    ("least_squares", "reduction", "fn main(a: f32[12@X, 4], b: f32[12@X]) {\n" + LSTSQ, [noise("f32", 12, 4), noise("f32", 12)], squares),
    ("least_squares_wide", "reduction", "fn main(a: f64[3, 5], b: f64[3, 2]) {\n  let (x, residuals, rank, s) = lstsq(a, b);\n  (x, rank, s)\n}",
     [noise("f64", 3, 5), noise("f64", 3, 2)], lambda a, b: squares(a, b)[::2] + squares(a, b)[3:]),
    ("least_squares_deficient", "reduction", "fn main(a: f64[7@X, 4], b: f64[7@X, 2]) {\n" + LSTSQ, [rank_two, noise("f64", 7, 2)], squares),
    ("pseudoinverses", "reduction", "fn main(a: f64[2, 5, 3], b: f64[7, 4], c: f32[4, 4]) { (pinv(a), pinv(b), pinv(c, rtol=0.5), pinv(c, rcond=0.2)) }",
     [noise("f64", 2, 5, 3), rank_two, noise("f32", 4, 4)],
     lambda a, b, c: (jnp.linalg.pinv(a), jnp.linalg.pinv(b), jnp.linalg.pinv(c, rtol=0.5), jnp.linalg.pinv(c, rcond=0.2))),
    ("exponentials_of_matrices", "reduction",
     "fn main(a: f32[5, 5], b: f64[3@X, 4, 4], c: f64[2, 2]) { (expm(a), expm(b), expm(b * 4), expm(triu(a), upper_triangular=true), expm(c, max_squarings=3), expm(b / 100)) }",
     [noise("f32", 5, 5) / 2, noise("f64", 3, 4, 4), np.array([[99.0, 1], [2, 3]])],
     lambda a, b, c: (expm(a), expm(b), expm(b * 4), expm(jnp.triu(a), upper_triangular=True), expm(c, max_squarings=3), expm(b / 100))),
]

if __name__ == "__main__":
    store(PROGRAMS)
