"""Makes the golden arrays of functions on bits, statistics that skip NaN, shapes and layers: each program below is computed by JAX, and
inputs and outputs are stored beside its spmd text, as `make.py` does.

    pip install "jax==0.10.2" numpy scipy ml_dtypes
    python3 tests/golden/make_compositions.py
"""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax, nn
from scipy import special

from store import write

jax.config.update("jax_platforms", "cpu")
rng = np.random.default_rng(20261124)
NAN, INF = np.nan, np.inf
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1, -1, 2.5, -3, 1e-7, -65504, INF, -INF, NAN]
BF16 = ml_dtypes.bfloat16
FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": BF16}


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def ints(dtype, *shape):
    ends = np.iinfo(dtype)
    return rng.integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


def small(*shape, low=-9, high=10):
    return rng.integers(low, high, shape).astype(np.int32)


def holes(*shape):
    """Numbers, of which a third is NaN, and the first row or number, too."""
    x = f32(*shape, scale=3)
    x[rng.random(shape) < 0.3] = NAN
    x[0] = NAN
    return x


def pairs(dtype):
    x = np.array(SPECIAL + [np.finfo(np.float16).tiny, np.finfo(np.float16).smallest_subnormal], np.float32).astype(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def of_floats(name, tolerance, text, inputs, function):
    """The program for each float type, whose name replaces `T` in the text."""
    for dtype, numpy in FLOATS.items():
        yield (f"{name}_{dtype}", tolerance, text.replace("T[", f"{dtype}["), [value.astype(numpy) for value in inputs], function)


def divisors(x, y, a, b):
    return (jnp.gcd(x, y), jnp.lcm(x, y), *jnp.divmod(x, y), jnp.gcd(a, b), jnp.lcm(a, b), jnp.gcd(x, 12), jnp.lcm(x, 0))


def closeness(x, y):
    return (jnp.isclose(x, y), jnp.isclose(x, y, equal_nan=True), jnp.isclose(x, y, rtol=0.5), jnp.isclose(x, 1.0, atol=0.6),
            jnp.heaviside(x, y), jnp.heaviside(x, 0.5))


def replaced(x):
    return jnp.nan_to_num(x), jnp.nan_to_num(x, nan=7.5, posinf=1, neginf=-2), jnp.nan_to_num(x, nan=INF, posinf=3)


def averages(x, w, v, u):
    (a, total) = jnp.average(x, axis=1, weights=v, returned=True)
    return (jnp.average(x), jnp.average(x, axis=0, keepdims=True), jnp.average(x, weights=w), jnp.average(x, axis=1, weights=v), a, total,
            jnp.average(x, axis=(1, 0), weights=u, keepdims=True), jnp.average(x, axis=0, weights=w, keepdims=True))


def without_nan(x):
    results = []
    for f in (jnp.nansum, jnp.nanmean, jnp.nanmax, jnp.nanmin, jnp.nanvar, jnp.nanstd):
        results += [f(x), f(x, axis=0), f(x, axis=1, keepdims=True), f(x, axis=(0, 1))]
    return (*results, jnp.nanvar(x, axis=1, ddof=3), jnp.nanstd(x, axis=0, ddof=1))


WITHOUT_NAN = ", ".join(f"{f}(x), {f}(x, axis=0), {f}(x, axis=1, keepdims=true), {f}(x, axis=(0, 1))"
                        for f in ("nansum", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd"))


def differences(x, y, m):
    return (jnp.diff(x), jnp.diff(x, axis=0), jnp.diff(x, n=3, axis=1), jnp.diff(x, n=0), jnp.diff(x, n=9), jnp.diff(m),
            jnp.diff(x, axis=0, prepend=0), jnp.diff(x, prepend=y, append=5), jnp.diff(y[:, :1]))


def turned(x):
    return jnp.rot90(x), jnp.rot90(x, 2), jnp.rot90(x, -1), jnp.rot90(x, 4), jnp.rot90(x, 1, (1, 2)), jnp.rot90(x, 3, (-1, 0))


def grids(x, y, z):
    return (*jnp.meshgrid(x, y), *jnp.meshgrid(x, y, indexing="ij"), *jnp.meshgrid(x, y, z), *jnp.meshgrid(x, y, z, sparse=True))


def stacks(x, y, v):
    return (jnp.hstack([x, x]), jnp.hstack([v, v, v[:1]]), jnp.vstack([x, y]), jnp.vstack([v, v]), jnp.hstack([1, 2]), jnp.vstack([v[0], 3]),
            jnp.kron(x, y), jnp.kron(v, x), jnp.kron(y[:, :0], x), jnp.vdot(x, x), jnp.vdot(x, x.reshape(-1)))


def spaces():
    return jnp.logspace(0, 3, 7), jnp.logspace(-1, 1, 5, base=2.0), jnp.logspace(1, 2, 4, endpoint=False), jnp.logspace(0, 1, 1)


def crosses(x, y, z, w):
    return (jnp.cross(x, y), jnp.cross(z, w, axis=0), jnp.cross(x[:, :2], y), jnp.cross(x[0], y), jnp.cross(x[:, :2], y[:, :2]),
            jnp.cross(x, w, axisb=0, axisc=0))


def powers(x, y):
    return tuple(jnp.linalg.matrix_power(x, n) for n in (0, 1, 2, 3, 5)) + (jnp.linalg.matrix_power(y, 4),)


def layer_norm(x, g, b):
    def norm(x, axis, eps, scale=1, bias=0):
        return nn.standardize(x, axis=axis, epsilon=eps) * scale + bias

    return (norm(x, -1, 1e-5, g, b), norm(x, -1, 1e-5), norm(x, 0, 1e-3), norm(x, (0, 1), 1e-5),
            norm(x, 1, 1e-5, g), x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * g,
            x * lax.rsqrt(jnp.mean(x * x, 0, keepdims=True) + 0.1))


def attention(q, k, v, m, b):
    f = nn.dot_product_attention
    return (f(q, k, v), f(q, k, v, is_causal=True), f(q, k, v, mask=m), f(q, k, v, mask=m[:1, :1], is_causal=True), f(q, k, v, bias=b),
            f(q[0], k[0], v[0], scale=0.5), f(q[:, :, :2], k, v), f(q, k[:, :, :1], v[:, :, :1], mask=m[1, 2]))


def gamma_functions(x, i, h):
    """SciPy's numbers, in double precision, where JAX's results are finite: in f32 the latter are off by up to 5e-7 around zeros."""
    def rounded(f, scipy, x):
        own = np.asarray(f(x))
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(own.astype(np.float64)), scipy(x.astype(np.float64)), own).astype(own.dtype)

    lgamma, digamma = (jax.scipy.special.gammaln, special.gammaln), (jax.scipy.special.digamma, special.digamma)
    return (rounded(*lgamma, x), rounded(*digamma, x), rounded(*lgamma, i), rounded(*digamma, i), rounded(*lgamma, h))


def programs():
    yield ("bits_of_integers", "exact", "fn main(x: i32[17@X], y: u8[9@Y], z: i16[5]) -> (i32[17], i32[17], u8[9], u8[9], i16[5], i16[5]) "
           "{ (popcount(x), clz(x), popcount(y), clz(y), popcount(z), clz(z)) }",
           [np.append(ints(np.int32, 14), [0, 1, -1]).astype(np.int32), np.append(ints(np.uint8, 7), [0, 255]).astype(np.uint8),
            np.array([0, -1, 1, 256, -32768], np.int16)],
           lambda x, y, z: tuple(f(a) for a in (x, y, z) for f in (lax.population_count, lax.clz)))
    x, y = np.repeat(np.arange(-9, 10), 19), np.tile(np.arange(-9, 10), 19)
    y[y == 0] = 12
    yield ("common_divisors", "exact",
           "fn main(x: i32[361@X], y: i32[361@Y], a: u8[40@X], b: u8[40])\n"
           "  -> (i32[361], i32[361], i32[361], i32[361], u8[40], u8[40], i32[361], i32[361]) {\n"
           "  let (q, r) = divmod(x, y);\n  (gcd(x, y), lcm(x, y), q, r, gcd(a, b), lcm(a, b), gcd(x, 12), lcm(x, 0))\n}",
           [(x * 6).astype(np.int32), y.astype(np.int32), ints(np.uint8, 40), ints(np.uint8, 40)], divisors)
    n = len(pairs(np.float32)[0])
    yield from of_floats("neighbours_and_signs", "exact",
                         f"fn main(x: T[{n}@X], y: T[{n}]) -> (T[{n}], T[{n}], bool[{n}], T[{n}]) "
                         "{ (nextafter(x, y), copysign(x, y), signbit(x), copysign(x, -1)) }", pairs(np.float32),
                         lambda x, y: (jnp.nextafter(x, y), jnp.copysign(x, y), jnp.signbit(x), jnp.copysign(x, -1)))
    yield from of_floats("closeness", "exact", f"fn main(x: T[{n}@X], y: T[{n}]) "
                         f"-> (bool[{n}], bool[{n}], bool[{n}], bool[{n}], T[{n}], T[{n}]) {{\n"
                         "  (isclose(x, y), isclose(x, y, equal_nan=true), isclose(x, y, rtol=0.5), isclose(x, 1.0, atol=0.6),\n"
                         "    heaviside(x, y), heaviside(x, 0.5))\n}", pairs(np.float32), closeness)
    yield from of_floats("nan_replaced", "exact", f"fn main(x: T[{n}@X]) -> (T[{n}], T[{n}], T[{n}]) "
                         "{ (nan_to_num(x), nan_to_num(x, nan=7.5, posinf=1, neginf=-2), nan_to_num(x, nan=1.0 / 0.0, posinf=3)) }",
                         pairs(np.float32)[:1], replaced)
    yield ("sinc_and_logit", "elementwise", "fn main(x: f32[16@X], p: f32[11@Y], n: i32[5]) -> (f32[16], f32[11], f32[5], f32[5]) "
           "{ (sinc(x), logit(p), sinc(n), heaviside(n, 0.5)) }",
           [np.append(f32(13, scale=4), [0, -0.0, NAN]).astype(np.float32),
            np.array([0, 1, 0.5, 0.25, 0.75, 0.1, 0.9, 1e-6, 0.99999, -1, 2], np.float32), np.array([-2, 0, 1, 2, 3], np.int32)],
           lambda x, p, n: (jnp.sinc(x), jax.scipy.special.logit(p), jnp.where(n == 0, 1, jnp.sinc(n)), jnp.heaviside(n, 0.5)))

    values = [0.5, 1.0, 2.0, 1.4616321, 3.0, 7.5, 20.25, 1e6, -0.5, -1.25, -2.5, -7.75, 1e-6, -1e-6, 0.0, -0.0, -1.0, -3.0, INF, -INF, NAN]
    n = len(values)
    yield ("gamma_functions", "elementwise", f"fn main(x: f32[{n}@X], i: i32[4], h: f16[4@Y]) -> (f32[{n}], f32[{n}], f32[4], f32[4], f16[4]) "
           "{ (lgamma(x), digamma(x), lgamma(i), digamma(i), lgamma(h)) }",
           [np.array(values, np.float32), np.array([1, 2, 3, 40], np.int32), np.array([0.5, 3, 10, 100], np.float16)],
           gamma_functions)

    yield ("averages", "reduction", "fn main(x: f32[5@X, 7@Y], w: f32[5, 7@Y], v: f32[7@Y], u: f32[7, 5])\n"
           "  -> (f32, f32[1, 7], f32, f32[5], f32[5], f32[5], f32[1, 1], f32[1, 7]) {\n"
           "  let (a, total) = average(x, axis=1, weights=v, returned=true);\n"
           "  (average(x), average(x, axis=0, keepdims=true), average(x, weights=w), average(x, axis=1, weights=v), a, total,\n"
           "    average(x, axis=(1, 0), weights=u, keepdims=true), average(x, axis=0, weights=w, keepdims=true))\n}",
           [f32(5, 7), np.abs(f32(5, 7)), np.abs(f32(7)), np.abs(f32(7, 5))], averages)
    yield ("peaks", "exact", "fn main(x: f32[5@X, 7@Y], n: i32[6@X, 1], m: u8[9@Y]) -> (f32, f32[7], f32[5, 1], i32[1], u8) "
           "{ (ptp(x), ptp(x, axis=0), ptp(x, axis=1, keepdims=true), ptp(n, axis=0), ptp(m)) }",
           [f32(5, 7), small(6, 1), ints(np.uint8, 9)],
           lambda x, n, m: (jnp.ptp(x), jnp.ptp(x, 0), jnp.ptp(x, 1, keepdims=True), jnp.ptp(n, 0), jnp.ptp(m)))
    types = ", ".join(["f32, f32[7], f32[5, 1], f32"] * 6)
    yield ("without_nan", "reduction", f"fn main(x: f32[5@X, 7@Y]) -> ({types}, f32[5], f32[7]) {{\n"
           f"  ({WITHOUT_NAN}, nanvar(x, axis=1, ddof=3), nanstd(x, axis=0, ddof=1))\n}}", [holes(5, 7)], without_nan)
    yield ("without_nan_of_integers", "reduction", "fn main(x: i32[5@X, 7@Y], y: f16[9@Y]) -> (i32, f32, i32[7], i32, f32[5], f16, f16, f16) "
           "{ (nansum(x), nanmean(x), nanmax(x, axis=0), nanmin(x), nanstd(x, axis=1), nanmax(y), nansum(y), nanmin(y)) }",
           [small(5, 7), np.array([-INF, 3, NAN, 0.5, -2, 4, NAN, 1, 2], np.float16)],
           lambda x, y: (jnp.nansum(x), jnp.nanmean(x), jnp.nanmax(x, 0), jnp.nanmin(x), jnp.nanstd(x, 1), jnp.nanmax(y), jnp.nansum(y),
                         jnp.nanmin(y)))
    yield ("differences", "exact", "fn main(x: i32[5@X, 7@Y], y: i32[5, 2], m: bool[9@Y])\n"
           "  -> (i32[5, 6], i32[4, 7], i32[5, 4], i32[5, 7], i32[5, 0], bool[8], i32[5, 7], i32[5, 9], i32[5, 0]) {\n"
           "  (diff(x), diff(x, axis=0), diff(x, n=3, axis=1), diff(x, n=0), diff(x, n=9), diff(m), diff(x, axis=0, prepend=0),\n"
           "    diff(x, prepend=y, append=5), diff(y[:, :1]))\n}", [small(5, 7), small(5, 2), rng.random(9) < 0.5], differences)

    yield ("turned", "exact", "fn main(x: i32[4@X, 6@Y, 3]) "
           "-> (i32[6, 4, 3], i32[4, 6, 3], i32[6, 4, 3], i32[4, 6, 3], i32[4, 3, 6], i32[3, 6, 4]) {\n"
           "  (rot90(x), rot90(x, 2), rot90(x, -1), rot90(x, 4), rot90(x, 1, (1, 2)), rot90(x, 3, (-1, 0)))\n}", [small(4, 6, 3)], turned)
    yield ("grids", "exact", "fn main(x: f32[5@X], y: i32[4@Y], z: bool[1])\n"
           "  -> (f32[4, 5], i32[4, 5], f32[5, 4], i32[5, 4], f32[4, 5, 1], i32[4, 5, 1], bool[4, 5, 1], f32[1, 5, 1], i32[4, 1, 1], "
           "bool[1, 1, 1]) {\n"
           "  let (a, b) = meshgrid(x, y);\n  let (c, d) = meshgrid(x, y, indexing=\"ij\");\n  let (e, f, g) = meshgrid(x, y, z);\n"
           "  let (h, i, j) = meshgrid(x, y, z, sparse=true);\n  (a, b, c, d, e, f, g, h, i, j)\n}",
           [f32(5), small(4), np.array([True])], grids)
    yield ("stacks", "exact", "fn main(x: i32[3@X, 4@Y], y: i32[2, 4@Y], v: i32[4@X])\n"
           "  -> (i32[3, 8], i32[9], i32[5, 4], i32[2, 4], i32[2], i32[2, 1], i32[6, 16], i32[3, 16], i32[6, 0], i32, i32) {\n"
           "  (hstack([x, x]), hstack([v, v, v[:1]]), vstack([x, y]), vstack([v, v]), hstack([1, 2]), vstack([v[0], 3]), kron(x, y), kron(v, x),\n"
           "    kron(y[:, :0], x), vdot(x, x), vdot(x, ravel(x)))\n}", [small(3, 4), small(2, 4), small(4)], stacks)
    yield ("spaces", "reduction", "fn main(n: f32[1]) -> (f32[7], f32[5], f32[4], f32[1], f32[1]) "
           "{ (logspace(0, 3, 7), logspace(-1, 1, 5, base=2.0), logspace(1, 2, 4, endpoint=false), logspace(0, 1, 1), n) }",
           [f32(1)], lambda n: (*spaces(), n))
    yield ("crosses", "exact", "fn main(x: i32[5@X, 3], y: i32[5, 3@Y], z: i32[3@Y, 5], w: i32[3, 5])\n"
           "  -> (i32[5, 3], i32[3, 5], i32[5, 3], i32[5, 3], i32[5], i32[3, 5]) {\n"
           "  (cross(x, y), cross(z, w, axis=0), cross(x[:, :2], y), cross(x[0], y), cross(x[:, :2], y[:, :2]), cross(x, w, axisb=0, axisc=0))\n}",
           [small(5, 3), small(5, 3), small(3, 5), small(3, 5)], crosses)
    yield ("matrix_powers", "exact", "fn main(x: i32[3@X, 3@Y], y: i32[4@Y, 2, 2]) "
           "-> (i32[3, 3], i32[3, 3], i32[3, 3], i32[3, 3], i32[3, 3], i32[4, 2, 2]) {\n"
           f"  ({', '.join(f'matrix_power(x, {n})' for n in (0, 1, 2, 3, 5))}, matrix_power(y, 4))\n}}", [small(3, 3), small(4, 2, 2)], powers)

    yield ("units", "elementwise", "fn main(x: f32[13@X], n: i32[5@Y]) -> (f32[13], f32[13], f32[13], f32[13], f32[5], f32[5]) "
           "{ (elu(x), elu(x, alpha=0.5), leaky_relu(x), leaky_relu(x, 0.2), elu(n), leaky_relu(n)) }",
           [np.array(SPECIAL, np.float32), np.array([-2, -1, 0, 1, 9], np.int32)],
           lambda x, n: (nn.elu(x), nn.elu(x, 0.5), nn.leaky_relu(x), nn.leaky_relu(x, 0.2), nn.elu(n), nn.leaky_relu(n)))
    yield ("layer_norms", "reduction", "fn main(x: f32[5@X, 8@Y], g: f32[8@Y], b: f32[8]) "
           "-> (f32[5, 8], f32[5, 8], f32[5, 8], f32[5, 8], f32[5, 8], f32[5, 8], f32[5, 8]) {\n"
           "  (layer_norm(x, g, b), layer_norm(x), layer_norm(x, axis=0, eps=1e-3), layer_norm(x, axis=(0, 1)), layer_norm(x, g, axis=1),\n"
           "    rms_norm(x, g), rms_norm(x, axis=0, eps=0.1))\n}", [f32(5, 8, scale=2) + 3, f32(8), f32(8)], layer_norm)
    shapes = "f32[2, 5, 4, 3], f32[2, 5, 4, 3], f32[2, 5, 4, 3], f32[2, 5, 4, 3], f32[2, 5, 4, 3], f32[5, 4, 3], f32[2, 5, 2, 3], f32[2, 5, 4, 3]"
    mask = rng.random((2, 4, 5, 6)) < 0.6
    mask[0, 0, 0] = False
    yield ("grouped_attention", "reduction", "fn main(q: f32[2@X, 5, 4@Y, 3], k: f32[2@X, 6, 2, 3], v: f32[2@X, 6, 2, 3], m: bool[2, 4, 5, 6], "
           f"b: f32[1, 4, 5, 6])\n  -> ({shapes}) {{\n"
           "  (attention(q, k, v), attention(q, k, v, causal=true), attention(q, k, v, mask=m), attention(q, k, v, mask=m[:1, :1], causal=true),\n"
           "    attention(q, k, v, bias=b), attention(q[0], k[0], v[0], scale=0.5), attention(q[:, :, :2], k, v),\n"
           "    attention(q, k[:, :, :1], v[:, :, :1], mask=m[1, 2]))\n}",
           [f32(2, 5, 4, 3), f32(2, 6, 2, 3), f32(2, 6, 2, 3), mask, f32(1, 4, 5, 6)], attention)


def main():
    for name, tolerance, text, inputs, function in programs():
        write(name, tolerance, text, inputs, (function if function is gamma_functions else jax.jit(function))(*inputs))


if __name__ == "__main__":
    main()
