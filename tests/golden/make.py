"""Makes the golden arrays: each program below is computed by JAX, and inputs and outputs are stored beside its spmd text.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make.py

A program is (name, tolerance, spmd text, inputs, JAX function). `exact` compares bits (integers and bools), `elementwise` within
2e-6 relative, `reduction` within 1e-5. JAX is needed only here, never by the tests themselves.
"""

import jax
import jax.numpy as jnp
import numpy as np

from store import store

jax.config.update("jax_platforms", "cpu")
rng = np.random.default_rng(20261121)


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def positive(*shape):
    return (rng.random(shape) * 4 + 0.05).astype(np.float32)


def unit(*shape):
    return (rng.random(shape) * 1.98 - 0.99).astype(np.float32)


def i32(*shape, low=-50, high=50):
    return rng.integers(low, high, shape).astype(np.int32)


def u8(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def boolean(*shape):
    return rng.random(shape) < 0.5


SPECIAL = np.array([0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 3, -3, np.inf, -np.inf, np.nan], np.float32)
ONE = {
    "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "cbrt": jnp.cbrt, "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1,
    "log": jnp.log, "log2": jnp.log2, "log10": jnp.log10, "log1p": jnp.log1p, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan,
    "asin": jnp.asin, "acos": jnp.acos, "atan": jnp.atan, "sinh": jnp.sinh, "cosh": jnp.cosh, "tanh": jnp.tanh,
    "asinh": jnp.asinh, "acosh": jnp.acosh, "atanh": jnp.atanh, "erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc,
    "erf_inv": jax.scipy.special.erfinv, "floor": jnp.floor, "ceil": jnp.ceil, "round": jnp.round, "trunc": jnp.trunc,
    "deg2rad": jnp.deg2rad, "rad2deg": jnp.rad2deg,
}
TWO = {"pow": jnp.pow, "atan2": jnp.atan2, "hypot": jnp.hypot, "logaddexp": jnp.logaddexp}


def special(results):
    y = jnp.stack(results)
    return y, jnp.reciprocal(y)


PROGRAMS = [
    ("double_sine", "elementwise", "fn main(x: f32[5@X, 7@Y]) -> f32[5, 7] { 2 * sin(x) + 1 }", [f32(5, 7, scale=3)],
     lambda x: 2 * jnp.sin(x) + 1),
    ("exponentials", "elementwise", "fn main(x: f32[5@X, 7@Y]) -> (f32[5, 7], f32[5, 7], f32[5, 7]) { (exp(x), exp2(x), expm1(x)) }",
     [f32(5, 7, scale=4)], lambda x: (jnp.exp(x), jnp.exp2(x), jnp.expm1(x))),
    ("logarithms", "elementwise",
     "fn main(x: f32[5@X, 7@Y]) -> (f32[5, 7], f32[5, 7], f32[5, 7], f32[5, 7]) { (log(x), log2(x), log10(x), log1p(x)) }",
     [positive(5, 7)], lambda x: (jnp.log(x), jnp.log2(x), jnp.log10(x), jnp.log1p(x))),
    ("trigonometry", "elementwise", "fn main(x: f32[6@Y, 5]) -> (f32[6, 5], f32[6, 5], f32[6, 5]) { (sin(x), cos(x), tan(x)) }",
     [f32(6, 5, scale=5)], lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x))),
    ("inverse_trigonometry", "elementwise",
     "fn main(x: f32[6@Y, 5]) -> (f32[6, 5], f32[6, 5], f32[6, 5]) { (asin(x), acos(x), atan(x)) }",
     [unit(6, 5)], lambda x: (jnp.asin(x), jnp.acos(x), jnp.atan(x))),
    ("hyperbolics", "elementwise",
     "fn main(x: f32[6@Y, 5]) -> (f32[6, 5], f32[6, 5], f32[6, 5], f32[6, 5], f32[6, 5]) "
     "{ (sinh(x), cosh(x), tanh(x), asinh(x), atanh(x / 8)) }",
     [f32(6, 5, scale=1.5)], lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.tanh(x), jnp.asinh(x), jnp.atanh(x / 8))),
    ("error_functions", "elementwise", "fn main(x: f32[9@X]) -> (f32[9], f32[9], f32[9]) { (erf(x), erfc(x), erf_inv(x / 4)) }",
     [unit(9) * 3], lambda x: (jax.scipy.special.erf(x), jax.scipy.special.erfc(x), jax.scipy.special.erfinv(x / 4))),
    ("roots", "elementwise", "fn main(x: f32[9@X]) -> (f32[9], f32[9], f32[9], f32[9], f32[9]) "
     "{ (sqrt(x), rsqrt(x), cbrt(x), square(x), reciprocal(x)) }",
     [positive(9)], lambda x: (jnp.sqrt(x), jax.lax.rsqrt(x), jnp.cbrt(x), jnp.square(x), jnp.reciprocal(x))),
    ("rounding", "exact", "fn main(x: f32[12@X]) -> (f32[12], f32[12], f32[12], f32[12], f32[12]) "
     "{ (floor(x), ceil(x), round(x), trunc(x), sign(x)) }",
     [np.array([-2.5, -1.5, -1.2, -0.5, -0.0, 0.0, 0.5, 1.2, 1.5, 2.5, 3.5, 1e9], np.float32)],
     lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.trunc(x), jnp.sign(x))),
    ("two_arguments", "elementwise",
     "fn main(x: f32[8@Y], y: f32[8@X]) -> (f32[8], f32[8], f32[8], f32[8]) { (pow(x, y), atan2(y, x), hypot(x, y), logaddexp(x, y)) }",
     [positive(8), f32(8)], lambda x, y: (jnp.pow(x, y), jnp.atan2(y, x), jnp.hypot(x, y), jnp.logaddexp(x, y))),
    ("extremes_with_nan", "exact", "fn main(x: f32[6@X], y: f32[6]) -> (f32[6], f32[6], f32) { (minimum(x, y), maximum(x, y), max(y)) }",
     [np.array([1, np.nan, -np.inf, 3, 4, 5], np.float32), np.array([2, 1, 1, np.inf, -4, 5], np.float32)],
     lambda x, y: (jnp.minimum(x, y), jnp.maximum(x, y), jnp.max(y))),
    ("classify", "exact", "fn main(x: f32[5@X]) -> (bool[5], bool[5], bool[5]) { (isnan(x), isinf(x), isfinite(x)) }",
     [np.array([1, np.nan, -np.inf, np.inf, 0], np.float32)], lambda x: (jnp.isnan(x), jnp.isinf(x), jnp.isfinite(x))),
    ("integer_arithmetic", "exact",
     "fn main(x: i32[9@X], y: i32[9]) -> (i32[9], i32[9], i32[9], i32[9], i32[9]) { (x + y, x - y, x * y, x // y, x % y) }",
     [i32(9), np.array([3, -3, 7, -7, 1, -1, 5, 11, -13], np.int32)],
     lambda x, y: (x + y, x - y, x * y, x // y, x % y)),
    ("integer_bits", "exact",
     "fn main(x: u8[8@X], y: u8[8]) -> (u8[8], u8[8], u8[8], u8[8], u8[8], u8[8]) "
     "{ (x & y, x | y, x ^ y, !x, x << u8(3), x >> u8(2)) }",
     [u8(8), u8(8)], lambda x, y: (x & y, x | y, x ^ y, ~x, x << np.uint8(3), x >> np.uint8(2))),
    ("integer_wraps", "exact", "fn main(x: i32[3@X]) -> (i32[3], i32[3]) { (x + 1, x * x) }",
     [np.array([2147483647, 65536, -2147483648], np.int32)], lambda x: (x + 1, x * x)),
    ("comparisons", "exact",
     "fn main(x: f32[6@X], y: f32[6@X]) -> (bool[6], bool[6], bool[6], bool[6], bool[6], bool[6]) "
     "{ (x == y, x != y, x < y, x <= y, x > y, x >= y) }",
     [np.array([1, 2, np.nan, 0, -0.0, 3], np.float32), np.array([1, 3, np.nan, -0.0, 0, 2], np.float32)],
     lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y)),
    ("promotion", "elementwise", "fn main(x: i32[4@X], y: f32[4], z: u8[4]) -> (f32[4], i32[4], f32[4], f32[4]) "
     "{ (x + y, x + z, z * y, x / 3) }",
     [i32(4), f32(4), u8(4)], lambda x, y, z: (x + y, x + z, z * y, x / 3)),
    ("casts", "exact", "fn main(x: f32[8@X]) -> (i32[8], u8[8], bool[8], i8[8]) { (i32(x), u8(clip(x, 0, 255)), bool(x), i8(clip(x, -128, 127))) }",
     [np.array([-3.7, -0.5, 0, 0.5, 1.5, 100.9, 3e9, -3e9], np.float32)],
     lambda x: (x.astype(jnp.int32), jnp.clip(x, 0, 255).astype(jnp.uint8), x.astype(bool), jnp.clip(x, -128, 127).astype(jnp.int8))),
    ("where_and_clip", "exact", "fn main(x: f32[4@X, 6@Y]) -> (f32[4, 6], f32[4, 6]) { (where(x > 0, x, -1.0), clip(x, -0.5, 0.5)) }",
     [f32(4, 6)], lambda x: (jnp.where(x > 0, x, -1.0), jnp.clip(x, -0.5, 0.5))),
    ("activations", "elementwise",
     "fn main(x: f32[5@X, 6@Y]) -> (f32[5, 6], f32[5, 6], f32[5, 6], f32[5, 6]) { (relu(x), sigmoid(x), silu(x), softplus(x)) }",
     [f32(5, 6, scale=3)], lambda x: (jax.nn.relu(x), jax.nn.sigmoid(x), jax.nn.silu(x), jax.nn.softplus(x))),
    ("gelu", "reduction", "fn main(x: f32[5@X, 6@Y]) -> f32[5, 6] { gelu(x) }", [f32(5, 6)], jax.nn.gelu),
    ("sums", "reduction", "fn main(x: f32[7@X, 9@Y]) -> (f32, f32[9], f32[7], f32[7, 1]) "
     "{ (sum(x), sum(x, axis=0), x.sum(axis=1), sum(x, axis=-1, keepdims=true)) }",
     [f32(7, 9)], lambda x: (x.sum(), x.sum(0), x.sum(1), x.sum(-1, keepdims=True))),
    ("integer_sums", "exact", "fn main(x: i32[7@X, 9@Y], b: bool[7@X]) -> (i32, i32[9], i32, i32) "
     "{ (sum(x), sum(x, axis=0), sum(b), count_nonzero(x)) }",
     [i32(7, 9, low=-2, high=3), boolean(7)], lambda x, b: (x.sum(), x.sum(0), b.sum(), jnp.count_nonzero(x))),
    ("products", "reduction", "fn main(x: f32[5@X, 6@Y]) -> (f32, f32[6], f32[5]) { (prod(x), prod(x, axis=0), prod(x, axis=1)) }",
     [positive(5, 6)], lambda x: (x.prod(), x.prod(0), x.prod(1))),
    ("moments", "reduction", "fn main(x: f32[7@X, 9@Y]) -> (f32, f32[9], f32[7], f32) "
     "{ (mean(x), var(x, axis=0), std(x, axis=1), norm(x)) }",
     [f32(7, 9)], lambda x: (x.mean(), x.var(0), x.std(1), jnp.linalg.norm(x))),
    ("extremes", "exact", "fn main(x: f32[7@X, 9@Y]) -> (f32, f32[9], f32[7], f32[7, 1]) "
     "{ (max(x), min(x, axis=0), max(x, axis=1), min(x, axis=1, keepdims=true)) }",
     [f32(7, 9)], lambda x: (x.max(), x.min(0), x.max(1), x.min(1, keepdims=True))),
    ("arg_extremes", "exact", "fn main(x: f32[7@X, 9@Y]) -> (i32, i32[9], i32[7], i32[7]) "
     "{ (argmax(x), argmin(x, axis=0), argmax(x, axis=1), argmin(x, axis=-1)) }",
     [f32(7, 9)], lambda x: (x.argmax(), x.argmin(0), x.argmax(1), x.argmin(-1))),
    ("any_and_all", "exact", "fn main(x: bool[4@X, 5@Y]) -> (bool, bool[5], bool[4]) { (any(x), all(x, axis=0), any(x, axis=1)) }",
     [boolean(4, 5)], lambda x: (x.any(), x.all(0), x.any(1))),
    ("log_sum_exp", "reduction", "fn main(x: f32[4@X, 9@Y]) -> (f32, f32[4], f32[4, 9], f32[4, 9]) "
     "{ (logsumexp(x), logsumexp(x, axis=1), softmax(x, axis=1), log_softmax(x, axis=1)) }",
     [f32(4, 9, scale=5)], lambda x: (jax.nn.logsumexp(x), jax.nn.logsumexp(x, 1), jax.nn.softmax(x, 1), jax.nn.log_softmax(x, 1))),
    ("matmul_2d", "reduction", "fn main(a: f32[7@X, 12@Y], b: f32[12@Y, 5]) -> f32[7, 5] { a @ b }", [f32(7, 12), f32(12, 5)],
     lambda a, b: a @ b),
    ("matmul_batched", "reduction", "fn main(a: f32[3@X, 4, 6], b: f32[3, 6, 5@Y]) -> f32[3, 4, 5] { matmul(a, b) }",
     [f32(3, 4, 6), f32(3, 6, 5)], jnp.matmul),
    ("matmul_vectors", "reduction", "fn main(a: f32[9@X, 6@Y], v: f32[6], w: f32[9]) -> (f32[9], f32[6], f32) { (a @ v, w @ a, dot(v, v)) }",
     [f32(9, 6), f32(6), f32(9)], lambda a, v, w: (a @ v, w @ a, jnp.dot(v, v))),
    ("einsum_attention", "reduction",
     'fn main(q: f32[2@X, 5, 3], k: f32[2@X, 7@Y, 3]) -> f32[2, 5, 7] { einsum("bqd,bkd->bqk", q, k) }',
     [f32(2, 5, 3), f32(2, 7, 3)], lambda q, k: jnp.einsum("bqd,bkd->bqk", q, k)),
    ("einsum_kinds", "reduction",
     'fn main(a: f32[5@X, 5], b: f32[5, 4@Y]) -> (f32[5], f32, f32[5], f32[4, 5], f32[5, 5, 5, 4]) {\n'
     '  (einsum("ii->i", a), einsum("ii", a), einsum("ij->i", a), einsum("ij->ji", b), einsum("ab,cd->abcd", a, b))\n}',
     [f32(5, 5), f32(5, 4)],
     lambda a, b: (jnp.einsum("ii->i", a), jnp.einsum("ii", a), jnp.einsum("ij->i", a), jnp.einsum("ij->ji", b), jnp.einsum("ab,cd->abcd", a, b))),
    ("einsum_three", "reduction",
     'fn main(a: f32[3@X, 4], b: f32[4, 5@Y], c: f32[5@Y, 6]) -> f32[3, 6] { einsum("ij,jk,kl->il", a, b, c) }',
     [f32(3, 4), f32(4, 5), f32(5, 6)], lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c)),
    ("outer_and_tensordot", "reduction",
     "fn main(u: f32[5@X], v: f32[4@Y], a: f32[3, 4, 5@X], b: f32[5@X, 4, 2]) -> (f32[5, 4], f32[3, 2]) "
     "{ (outer(u, v), tensordot(a, b, axes=((2, 1), (0, 1)))) }",
     [f32(5), f32(4), f32(3, 4, 5), f32(5, 4, 2)],
     lambda u, v, a, b: (jnp.outer(u, v), jnp.tensordot(a, b, axes=((2, 1), (0, 1))))),
    ("integer_matmul", "exact", "fn main(a: i32[5@X, 6@Y], b: i32[6@Y, 4]) -> i32[5, 4] { a @ b }", [i32(5, 6), i32(6, 4)],
     lambda a, b: a @ b),
    ("reshapes", "exact", "fn main(x: i32[6@X, 8@Y]) -> (i32[48], i32[2, 3, 8], i32[6, 2, 4], i32[8, 6]) "
     "{ (x.ravel(), reshape(x, (2, 3, 8)), reshape(x, (6, 2, -1)), reshape(x, (8, 6))) }",
     [i32(6, 8)], lambda x: (x.ravel(), x.reshape(2, 3, 8), x.reshape(6, 2, -1), x.reshape(8, 6))),
    ("transposes", "exact", "fn main(x: i32[3@X, 4@Y, 5]) -> (i32[5, 4, 3], i32[4, 3, 5], i32[5, 3, 4], i32[4, 5, 3]) "
     "{ (x.T, swapaxes(x, 0, 1), moveaxis(x, 2, 0), transpose(x, (1, 2, 0))) }",
     [i32(3, 4, 5)], lambda x: (x.T, x.swapaxes(0, 1), jnp.moveaxis(x, 2, 0), x.transpose(1, 2, 0))),
    ("slices", "exact", "fn main(x: i32[9@X, 7@Y]) -> (i32[3, 7], i32[9, 3], i32[5, 5], i32[7], i32[9, 1], i32[9, 7]) "
     "{ (x[2:5], x[:, 1::2], x[-6:-1, 1:-1], x[-2], x[:, None, 3], x[::-1, ::-1]) }",
     [i32(9, 7)], lambda x: (x[2:5], x[:, 1::2], x[-6:-1, 1:-1], x[-2], x[:, None, 3], x[::-1, ::-1])),
    ("slice_assignment", "exact",
     "fn main(x: i32[6@X, 7@Y], v: i32[4]) -> (i32[6, 7], i32[6, 7]) {\n"
     "  let mut u = x;\n  u[1:-1, 0] = v;\n  u[0, :] = 9;\n  let mut w = x;\n  w[::2, 1:3] += 100;\n  (u, w)\n}",
     [i32(6, 7), i32(4)],
     lambda x, v: (x.at[1:-1, 0].set(v).at[0, :].set(9), x.at[::2, 1:3].add(100))),
    ("joins", "exact", "fn main(x: i32[3@X, 4@Y], y: i32[2, 4@Y]) -> (i32[5, 4], i32[2, 3, 4], i32[3, 2, 4]) "
     "{ (concatenate([x, y], axis=0), stack([x, x]), stack([x, -x], axis=1)) }",
     [i32(3, 4), i32(2, 4)], lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, x]), jnp.stack([x, -x], axis=1))),
    ("splits", "exact", "fn main(x: i32[6@X, 4@Y]) -> (i32[3, 4], i32[3, 4], i32[6, 2]) "
     "{ let (a, b) = split(x, 2); let (c, d) = split(x, 2, axis=1); (a, b, c - d) }",
     [i32(6, 4)], lambda x: (*jnp.split(x, 2), jnp.subtract(*jnp.split(x, 2, axis=1)))),
    ("pads_and_rolls", "exact", "fn main(x: i32[5@X, 4@Y]) -> (i32[8, 5], i32[5, 4], i32[5, 4], i32[5, 4]) "
     "{ (pad(x, ((1, 2), (0, 1))), roll(x, 2, axis=0), roll(x, -1, axis=1), flip(x, axis=0)) }",
     [i32(5, 4)], lambda x: (jnp.pad(x, ((1, 2), (0, 1))), jnp.roll(x, 2, 0), jnp.roll(x, -1, 1), jnp.flip(x, 0))),
    ("repeats", "exact", "fn main(x: i32[3@X, 4@Y]) -> (i32[6, 4], i32[3, 12], i32[6, 4]) "
     "{ (tile(x, (2, 1)), repeat(x, 3, axis=1), repeat(x, 2, axis=0)) }",
     [i32(3, 4)], lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 3, 1), jnp.repeat(x, 2, 0))),
    ("makers", "elementwise", "fn main(n: f32[5@X]) -> (f32[5, 3], i32[5], f32[5], f32[4, 4], i32[2, 6], f32[5]) "
     "{ (full(f32[5, 3], 7), arange(3, 13, 2), linspace(0.0, 1.0, 5), eye(4), iota(i32[2, 6], axis=1), n + ones_like(n)) }",
     [f32(5)], lambda n: (jnp.full((5, 3), 7.0, jnp.float32), jnp.arange(3, 13, 2), jnp.linspace(0, 1, 5), jnp.eye(4),
                          jax.lax.broadcasted_iota(jnp.int32, (2, 6), 1), n + jnp.ones_like(n))),
    ("triangles", "exact", "fn main(x: i32[5@X, 4@Y]) -> (i32[5, 4], i32[5, 4], f32[5, 6]) "
     "{ (tril(x), triu(x, k=1), one_hot(x[:, 0], 6)) }",
     [i32(5, 4, low=0, high=6)], lambda x: (jnp.tril(x), jnp.triu(x, k=1), jax.nn.one_hot(x[:, 0], 6, dtype=jnp.float32))),
    ("half_precision", "exact", "fn main(x: f16[9@X], y: f16[9]) -> (f16[9], f16[9], f32[9]) { (x + y, x * y, f32(x)) }",
     [f32(9).astype(np.float16), f32(9).astype(np.float16)], lambda x, y: (x + y, x * y, x.astype(jnp.float32))),
    ("heat_steps", "elementwise",
     "fn main(x: f32[8@X, 9@Y]) -> f32[8, 9] {\n  let mut u = x;\n  for i in 0..10 {\n"
     "    u = u + 0.1 * (roll(u, 1, axis=0) + roll(u, -1, axis=0) + roll(u, 1, axis=1) + roll(u, -1, axis=1) - 4 * u);\n  }\n  u\n}",
     [positive(8, 9)], None),
    ("running_products", "reduction",
     "fn main(w: f32[5, 6@X, 6], h: f32[4@Y, 6]) -> (f32[4, 6], f32[5]) {\n  let mut h = h;\n"
     "  let sums = for t in 0..5 collect { h = tanh(h @ w[t]); sum(h) };\n  (h, sums)\n}",
     [f32(5, 6, 6, scale=0.5), f32(4, 6)], None),
    ("newton", "elementwise",
     "fn main(a: f32[6@X]) -> (f32[6], i32) {\n  let mut x = a;\n  let mut n = 0;\n"
     "  while max(abs(x * x - a)) > 1e-3 { x = 0.5 * (x + a / x); n += 1; }\n  (x, n)\n}",
     [positive(6)], None),
    # Where functions have poles, limits and signed zeros; the reciprocals tell zeros apart.
    ("special_arguments", "elementwise",
     f"fn main(x: f32[{len(SPECIAL)}@X]) -> (f32[{len(ONE)}, {len(SPECIAL)}], f32[{len(ONE)}, {len(SPECIAL)}]) {{\n"
     f"  let y = stack([{', '.join(f'{name}(x)' for name in ONE)}]);\n  (y, reciprocal(y))\n}}", [SPECIAL],
     lambda x: special([f(x) for f in ONE.values()])),
    ("special_pairs", "elementwise",
     f"fn main(x: f32[{len(SPECIAL)}@X, 1], y: f32[{len(SPECIAL)}@Y]) "
     f"-> (f32[4, {len(SPECIAL)}, {len(SPECIAL)}], f32[4, {len(SPECIAL)}, {len(SPECIAL)}]) {{\n"
     f"  let z = stack([{', '.join(f'{name}(x, y)' for name in TWO)}]);\n  (z, reciprocal(z))\n}}", [SPECIAL[:, None], SPECIAL],
     lambda x, y: special([f(x, y) for f in TWO.values()])),
    ("scans", "reduction", "fn main(x: f32[7@X, 9@Y], b: f32[5@Y, 3]) -> (f32[63], f32[7, 9], f32[7, 9], f32[7, 9], f32[7, 9], f32[5, 3]) "
     "{ (cumsum(x), cumsum(x, axis=0), cumsum(x, axis=1, reverse=true), cumprod(x, axis=-1), cummax(x, axis=1), cummin(b, reverse=true)) }",
     [f32(7, 9), f32(5, 3)], lambda x, b: (jnp.cumsum(x), jnp.cumsum(x, 0), jax.lax.cumsum(x, 1, reverse=True), jnp.cumprod(x, -1),
                                           jax.lax.cummax(x, 1), jax.lax.cummin(b, reverse=True))),
    ("scans_of_integers", "exact", "fn main(x: i32[11@Y], y: i32[6@X, 5], m: bool[9@Y]) -> (i32[11], i32[6, 5], i32[6, 5], i32[9]) "
     "{ (cumsum(x, reverse=true), cumprod(y, axis=0), cummax(y), cumsum(m)) }",
     [i32(11), i32(6, 5), boolean(9)], lambda x, y, m: (jax.lax.cumsum(x, reverse=True), jnp.cumprod(y, 0), jax.lax.cummax(y),
                                                       jnp.cumsum(m))),
    ("scans_with_nan", "exact", "fn main(x: f32[13@Y]) -> (f32[13], f32[13], f32[13]) "
     "{ (cummax(x), cummin(x), cummax(x, reverse=true)) }",
     [SPECIAL], lambda x: (jax.lax.cummax(x), jax.lax.cummin(x), jax.lax.cummax(x, reverse=True))),
    ("angles", "elementwise", "fn main(x: f32[5@X, 7@Y]) -> (f32[5, 7], f32[5, 7]) { (deg2rad(x), rad2deg(x)) }",
     [f32(5, 7, scale=300)], lambda x: (jnp.deg2rad(x), jnp.rad2deg(x))),
    ("log_sums_so_far", "reduction", "fn main(x: f32[7@X, 9@Y], y: f32[13@Y], z: f32[1, 5@X], e: f32[0, 3], i: f32[46@(X, Y)]) "
     "-> (f32[7, 9], f32[7, 9], f32[13], f32[13], f32[1, 5], f32[0, 3], f32[46]) { (logcumsumexp(x), logcumsumexp(x, axis=-1, reverse=true), "
     "logcumsumexp(y), logcumsumexp(y, 0, true), logcumsumexp(z), logcumsumexp(e), logcumsumexp(i)) }",
     [f32(7, 9, scale=40), SPECIAL, f32(1, 5), f32(0, 3), np.where(np.arange(46) < 20, -np.inf, f32(46, scale=200)).astype(np.float32)],
     lambda x, y, z, e, i: (jax.lax.cumlogsumexp(x), jax.lax.cumlogsumexp(x, 1, True), jax.lax.cumlogsumexp(y),
                            jax.lax.cumlogsumexp(y, 0, True), jax.lax.cumlogsumexp(z), jax.lax.cumlogsumexp(e),
                            jax.lax.cumlogsumexp(i))),
    ("associative_scans", "exact", "fn main(a: i32[7@X, 11@Y], b: i32[7@X, 11@Y], u: u8[46@Y], m: bool[5@Y, 2], one: i32[1]) "
     "-> (i32[7, 11], i32[7, 11], i32[7, 11], i32[7, 11], u8[46], u8[46], bool[5, 2], i32[1]) {\n"
     "  let compose = |p, q| (q.0 * p.0, q.0 * p.1 + q.1);\n"
     "  let (c, d) = associative_scan(compose, (a, b));\n"
     "  let (e, f) = associative_scan(compose, (a, b), reverse=true, axis=-1);\n"
     "  let last = associative_scan(|x, y| where(y % 3 != 0, y, x), u);\n"
     "  (c, d, e, f, last, associative_scan(maximum, u, true), associative_scan(|x, y| x ^ y, m), associative_scan(|x, y| x + y, one))\n}",
     [i32(7, 11), i32(7, 11), u8(46), boolean(5, 2), i32(1)], None),
    ("associative_scans_of_matrices", "reduction", "fn main(x: f32[19@Y, 3, 3], y: f32[2@X, 12@Y, 2]) -> (f32[19, 3, 3], f32[19, 3, 3], f32[2, 12, 2]) "
     "{ (associative_scan(|a, b| a @ b, x), associative_scan(|a, b| einsum(\"nij,njk->nik\", a, b), x, reverse=true), "
     "associative_scan(logaddexp, y, axis=1)) }",
     [f32(19, 3, 3, scale=0.6), f32(2, 12, 2, scale=30)],
     lambda x, y: (jax.lax.associative_scan(lambda a, b: a @ b, x), jax.lax.associative_scan(lambda a, b: a @ b, x, reverse=True),
                   jax.lax.associative_scan(jnp.logaddexp, y, axis=1))),
]


def heat_steps(u):
    for _ in range(10):
        u = u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)
    return u


def running_products(w, h):
    def step(h, w_t):
        h = jnp.tanh(h @ w_t)
        return h, h.sum()

    return jax.lax.scan(step, h, w)


def newton(a):
    def cond(state):
        return jnp.max(jnp.abs(state[0] * state[0] - a)) > 1e-3

    def body(state):
        return 0.5 * (state[0] + a / state[0]), state[1] + 1

    return jax.lax.while_loop(cond, body, (a, jnp.int32(0)))


def associative_scans(a, b, u, m, one):
    def compose(p, q):
        return q[0] * p[0], q[0] * p[1] + q[1]

    scan = jax.lax.associative_scan
    c, d = scan(compose, (a, b))
    e, f = scan(compose, (a, b), reverse=True, axis=1)
    last = scan(lambda x, y: jnp.where(y % 3 != 0, y, x), u)
    return c, d, e, f, last, scan(jnp.maximum, u, True), scan(lambda x, y: x ^ y, m), scan(lambda x, y: x + y, one)


LOOPS = {
    "heat_steps": heat_steps, "running_products": running_products, "newton": newton, "associative_scans": associative_scans,
}


if __name__ == "__main__":
    store(PROGRAMS, LOOPS)
