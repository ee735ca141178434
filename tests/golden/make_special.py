"""Makes the golden arrays of entropies, covariances, choices and special functions, with derivatives, by JAX.

    pip install "jax==0.10.2" numpy scipy
    python3 tests/golden/make_special.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from store import write

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(20261126)
NAN, INF = np.nan, np.inf
# Edges of entropies: zeros, both signs, infinities.
EDGES = np.array([0.0, -0.0, 0.25, 1.0, 3.5, 1e-300, -1.0, -2.5, INF, -INF, NAN])


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def f64(*shape):
    return rng.standard_normal(shape)


def both(function):
    """The sum of a function of two arrays, for derivatives by each."""
    return lambda x, y: jnp.sum(function(x, y))


def entropies(x, y):
    def rel_entr(x, y):
        # JAX gives NaN for p = inf and q >= 1, SciPy the limit.
        return jnp.where(jnp.isinf(x) & (x > 0) & (y > 0) & jnp.isfinite(y), INF, special.rel_entr(x, y))

    pairs = (special.xlogy, special.xlog1py, rel_entr, special.kl_div)
    return tuple(function(x, y) for function in pairs) + (special.entr(x), special.xlogy(x.astype(np.float32), 2), special.xlogy(3, y))


def slopes(x, y):
    """Derivatives of the first order, and a product of the second with a vector, where they are finite."""
    pairs = (special.xlogy, special.xlog1py, special.rel_entr)
    first = sum((jax.grad(both(function), argnums=(0, 1))(x, y) for function in pairs), ())
    p, q = x[2:5], x[2:5][::-1]
    second = [jax.jvp(jax.grad(both(function), argnums=(0, 1)), (p, q), (q, p))[1][0] for function in pairs]
    return (*first, jax.grad(lambda x: jnp.sum(special.entr(x)))(x), *second, jax.jvp(special.entr, (p,), (q,))[1])


PAIRS = ("xlogy", "xlog1py", "rel_entr")
SLOPES = f"""fn main(x: f64[121@X], y: f64[121@X]) {{
  let (p, q) = (x[2:5], flip(x[2:5]));
  {" ".join(f"let ({f}_x, {f}_y) = slopes({f}, x, y);" for f in PAIRS)}
  ({", ".join(f"{f}_x, {f}_y" for f in PAIRS)}, grad(|a| sum(entr(a)))(x), {", ".join(f"curved({f}, p, q)" for f in PAIRS)}, jvp(entr, (p,), (q,)).1)
}}
fn slopes(f, x, y) {{ grad(|a, b| sum(f(a, b)), argnums=(0, 1))(x, y) }}
fn curved(f, p, q) {{ jvp(grad(|a, b| sum(f(a, b)), argnums=(0, 1)), (p, q), (q, p)).1.0 }}"""


def clamped(x, low, high, i):
    def total(low, x, high):
        return jnp.sum(lax.clamp(low, x, high))

    return (lax.clamp(low, x, high), lax.clamp(np.float32(-1), x, np.float32(0.5)), lax.clamp(np.int32(2), i, np.int32(7)), *jax.grad(total, argnums=(0, 1, 2))(low, x, high))


def chosen(b, i, x, y):
    return (lax.select_n(b, x, y), lax.select_n(i, x, y, x * y), lax.select_n(b[0], x, y), jax.grad(lambda x: jnp.sum(lax.select_n(i, x * x, y, x)))(x),
            jnp.allclose(x, x + 1e-7), jnp.allclose(x, y), jnp.allclose(x, x.at[0].add(1)), jnp.allclose(x / 0, x / 0), jnp.allclose(y * NAN, y * NAN, equal_nan=True))


def members(x, i, t, u):
    return (jnp.isin(x, t), jnp.isin(x, t, invert=True), jnp.isin(i, u), jnp.isin(i, u, invert=True), jnp.isin(i, i[:3]), jnp.isin(x[0, 0], t),
            jnp.isin(i, jnp.array([2.0, 3.5])), jnp.isin(i, u[:0]))


def diagonals(x, y):
    return (jnp.diagonal(x), jnp.diagonal(x, 1), jnp.diagonal(x, -2, 1, 2), jnp.diagonal(x, 0, axis1=-1, axis2=0), jnp.diagonal(y, 9), jnp.diagonal(y, -1),
            jax.grad(lambda a: jnp.sum(jnp.diagonal(a, 1, 2, 0) ** 2))(x))


def spreads(x, y, c, f, a):
    return (jnp.cov(x), jnp.cov(x[0]), jnp.cov(x, y), jnp.cov(x.T, rowvar=False), jnp.cov(x, bias=True), jnp.cov(x, ddof=3), jnp.cov(x, fweights=f), jnp.cov(x, aweights=a),
            jnp.cov(x, fweights=f, aweights=a), jnp.cov(x, y, fweights=f, aweights=a, ddof=0), jnp.cov(c), jnp.cov(f), jnp.corrcoef(x), jnp.corrcoef(x, y),
            jnp.corrcoef(x[0]), jnp.corrcoef(x, rowvar=False), jnp.corrcoef(c), jnp.cov(x, dtype=np.float64), jax.grad(lambda x: jnp.sum(jnp.sin(jnp.cov(x))))(x),
            jax.grad(lambda x: jnp.sum(jnp.corrcoef(x)[0]))(x))


def medians(x, i):
    return (jnp.nanmedian(x), jnp.nanmedian(x, axis=0), jnp.nanmedian(x, axis=1), jnp.nanmedian(x, axis=(0, 1), keepdims=True), jnp.nanmedian(x, axis=-1, keepdims=True),
            jnp.nanmedian(i), jnp.nanmedian(x.astype(np.float16), axis=1), jax.grad(lambda x: jnp.nansum(jnp.nanmedian(x, axis=1)))(x))


def integrals(y, x, w, i):
    f = jnp.trapezoid
    return f(y), f(y, axis=0), f(y, x), f(y, w, axis=0), f(y, dx=0.5), f(i), f(y, x, axis=1), jax.grad(lambda y, x: jnp.sum(f(y, x) ** 2), argnums=1)(y, x)


def angles(p, i):
    f = jnp.unwrap
    return (f(p), f(p, axis=0), f(p, discont=4.0), f(p, period=2.0), f(i, period=8), f(i, period=5), f(i, discont=6, period=8), f(p[:, :1]), f(p[0, 0][None]),
            jax.grad(lambda p: jnp.sum(f(p) ** 2))(p))


def products(a, v, c, i):
    f = jnp.correlate
    return tuple(f(*pair, mode=mode) for mode in ("valid", "same", "full") for pair in ((a, v), (v, a), (a, a), (a, c), (c, a), (a[:6], v[:4]), (v[:4], a[:6]))) + (f(i, i), f(a, i))


CORRELATED = ", ".join(f'correlate({a}, {b}, mode="{mode}")' for mode in ("valid", "same", "full") for a, b in
                       (("a", "v"), ("v", "a"), ("a", "a"), ("a", "c"), ("c", "a"), ("a[:6]", "v[:4]"), ("v[:4]", "a[:6]")))


def transforms(z, x, w):
    f = jnp.fft
    return (f.fftn(z), f.fftn(x), f.fftn(z, axes=(0, 2), norm="ortho"), f.fftn(z, s=(4, 7)), f.fftn(z, s=(3, 8), axes=(2, 0), norm="forward"), f.ifftn(z), f.ifftn(x, axes=(1,)),
            f.ifftn(z, s=(2, 5, 6), axes=(0, 1, 2), norm="ortho"), f.rfft2(x), f.rfft2(x, s=(4, 5), axes=(0, 1)), f.rfftn(x), f.rfftn(x, axes=(2, 0), norm="ortho"), f.rfftn(x, s=(6, 3)),
            f.irfft2(z), f.irfft2(z, s=(3, 5)), f.irfftn(z), f.irfftn(z, s=(3, 4, 7), axes=(1, 2, 0), norm="forward"), f.irfftn(f.rfftn(x), s=x.shape), f.fftn(w), f.irfftn(w, axes=(0,)),
            jax.grad(lambda x: jnp.sum(jnp.abs(f.rfftn(x)) ** 2 * jnp.arange(4.0)))(x))


TRANSFORMS = """fn main(z: c64[4@X, 5, 6@Y], x: f32[4, 5@Y, 6@X], w: c128[4, 4@X, 3, 3]) {
  (fftn(z), fftn(x), fftn(z, axes=(0, 2), norm="ortho"), fftn(z, s=(4, 7)), fftn(z, s=(3, 8), axes=(2, 0), norm="forward"), ifftn(z), ifftn(x, axes=(1,)),
   ifftn(z, s=(2, 5, 6), axes=(0, 1, 2), norm="ortho"), rfft2(x), rfft2(x, s=(4, 5), axes=(0, 1)), rfftn(x), rfftn(x, axes=(2, 0), norm="ortho"), rfftn(x, s=(6, 3)),
   irfft2(z), irfft2(z, s=(3, 5)), irfftn(z), irfftn(z, s=(3, 4, 7), axes=(1, 2, 0), norm="forward"), irfftn(rfftn(x), s=x.shape), fftn(w), irfftn(w, axes=(0,)),
   grad(|x| sum(square(abs(rfftn(x))) * arange(4)))(x))
}"""


def programs():
    x, y = np.repeat(EDGES, len(EDGES)), np.tile(EDGES, len(EDGES))
    yield ("entropies", "elementwise", "fn main(x: f64[121@X], y: f64[121]) { (xlogy(x, y), xlog1py(x, y), rel_entr(x, y), kl_div(x, y), entr(x), "
           "xlogy(f32(x), 2), xlogy(3, y)) }", [x, y], entropies)
    yield ("entropy_slopes", "elementwise", SLOPES, [x, y], slopes)
    x = np.array([-INF, -2, -1, -0.5, 0, 0.5, 1, 2, INF, NAN], np.float32)
    low, high = np.array([-1, -2, -1, -1, 0, 1, 1, 5, 0, 0], np.float32), np.array([1, 3, 2, -0.5, 0, 1, 4, 3, 1, 1], np.float32)
    yield ("clamped", "exact", "fn main(x: f32[10@X], low: f32[10], high: f32[10@Y], i: i32[10@Y]) { let g = grad(|a, b, c| sum(clamp(a, b, c)), argnums=(0, 1, 2))(low, x, high); "
           "(clamp(low, x, high), clamp(-1, x, 0.5), clamp(2, i, 7), g.0, g.1, g.2) }", [x, low, high, np.arange(10, dtype=np.int32)], clamped)
    i = rng.integers(0, 3, 9).astype(np.int32)
    yield ("chosen_by_number", "exact", "fn main(b: bool[9], i: i32[9@X], x: f32[9@X], y: f32[9@Y]) { (select_n(b, x, y), select_n(i, x, y, x * y), select_n(b[0], x, y), "
           "grad(|x| sum(select_n(i, x * x, y, x)))(x), allclose(x, x + 1e-7), allclose(x, y), allclose(x, x + one_hot(0, 9)), allclose(x / 0, x / 0), "
           "allclose(y * (0.0 / 0.0), y * (0.0 / 0.0), equal_nan=true)) }", [i == 1, i, f32(9), f32(9)], chosen)
    x = rng.integers(-9, 9, (5, 4)).astype(np.float32)
    x[0, 0], x[1, 1] = NAN, -0.0
    yield ("members", "exact", "fn main(x: f32[5@X, 4], i: i32[7@Y], t: f32[30], u: i32[40@X]) { (isin(x, t), isin(x, t, invert=true), isin(i, u), isin(i, u, invert=true), isin(i, i[:3]), "
           "isin(x[0, 0], t), isin(i, [2.0, 3.5]), isin(i, u[:0])) }",
           [x, np.arange(-3, 4, dtype=np.int32), np.append(rng.integers(-9, 9, 29) / 2, NAN).astype(np.float32), (rng.integers(-40, 40, 40)).astype(np.int32)], members)
    yield ("diagonals_of_arrays", "exact", "fn main(x: f32[5@X, 4, 6@Y], y: i32[4@Y, 5]) { (diagonal(x), diagonal(x, 1), diagonal(x, -2, 1, 2), diagonal(x, 0, axis1=-1, axis2=0), diagonal(y, 9), "
           "diagonal(y, -1), grad(|a| sum(diagonal(a, 1, 2, 0) ** 2))(x)) }", [f32(5, 4, 6), rng.integers(-9, 9, (4, 5)).astype(np.int32)], diagonals)
    c = (f32(3, 7) + 1j * f32(3, 7)).astype(np.complex64)
    yield ("covariances", "reduction", "fn main(x: f32[4@X, 7], y: f32[2, 7@Y], c: c64[3, 7@X], f: i32[7], a: f32[7]) { (cov(x), cov(x[0]), cov(x, y), cov(x.T, rowvar=false), cov(x, bias=true), "
           "cov(x, ddof=3), cov(x, fweights=f), cov(x, aweights=a), cov(x, fweights=f, aweights=a), cov(x, y, fweights=f, aweights=a, ddof=0), cov(c), cov(f), corrcoef(x), corrcoef(x, y), "
           "corrcoef(x[0]), corrcoef(x, rowvar=false), corrcoef(c), cov(x, dtype=f64), grad(|x| sum(sin(cov(x))))(x), grad(|x| sum(corrcoef(x)[0]))(x)) }",
           [f32(4, 7), f32(2, 7), c, np.array([1, 2, 1, 0, 3, 1, 1], np.int32), np.abs(f32(7))], spreads)
    x = f32(5, 6)
    x[rng.random(x.shape) < 0.4] = NAN
    x[2] = NAN
    yield ("medians_without_nan", "elementwise", "fn main(x: f32[5@X, 6@Y], i: i32[8]) { (nanmedian(x), nanmedian(x, axis=0), nanmedian(x, axis=1), nanmedian(x, axis=(0, 1), keepdims=true), "
           "nanmedian(x, axis=-1, keepdims=true), nanmedian(i), nanmedian(f16(x), axis=1), grad(|x| nansum(nanmedian(x, axis=1)))(x)) }", [x, rng.integers(-9, 9, 8).astype(np.int32)], medians)
    yield ("integrals", "reduction", "fn main(y: f64[5@X, 6@Y], x: f64[6], w: f64[5, 6@X], i: i32[4]) { (trapezoid(y), trapezoid(y, axis=0), trapezoid(y, x), trapezoid(y, w, axis=0), trapezoid(y, dx=0.5), "
           "trapezoid(i), trapezoid(y, x, axis=1), grad(|y, x| sum(trapezoid(y, x) ** 2), argnums=1)(y, x)) }",
           [f64(5, 6), np.sort(f64(6)), np.sort(f64(5, 6), axis=0), np.arange(4, dtype=np.int32) ** 2], integrals)
    yield ("unwrapped", "reduction", "fn main(p: f32[3@X, 9@Y], i: i32[9]) { (unwrap(p), unwrap(p, axis=0), unwrap(p, discont=4.0), unwrap(p, period=2), unwrap(i, period=8), unwrap(i, period=5), "
           "unwrap(i, discont=6, period=8), unwrap(p[:, :1]), unwrap(p[0, 0][None]), grad(|p| sum(unwrap(p) ** 2))(p)) }",
           [5 * f32(3, 9), rng.integers(-20, 20, 9).astype(np.int32)], angles)
    c = (f32(5) + 1j * f32(5)).astype(np.complex64)
    yield ("correlated_vectors", "reduction", f"fn main(a: f32[8@X], v: f32[5], c: c64[5], i: i32[4]) {{ ({CORRELATED}, correlate(i, i), correlate(a, i)) }}",
           [f32(8), f32(5), c, rng.integers(-5, 5, 4).astype(np.int32)], products)
    yield ("transforms_of_arrays", "reduction", TRANSFORMS, [(f32(4, 5, 6) + 1j * f32(4, 5, 6)).astype(np.complex64), f32(4, 5, 6), f64(4, 4, 3, 3) + 1j * f64(4, 4, 3, 3)], transforms)


if __name__ == "__main__":
    written = 0
    for name, tolerance, text, inputs, function in programs():
        write(name, tolerance, text, inputs, jax.jit(function)(*inputs))
        written += 1
    print(f"{written} programs")
