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


# Arguments of Bessel functions, and of the incomplete gamma and beta functions: on both sides of where a formula replaces another.
BESSEL = np.array([0.0, -0.0, 1e-9, 0.3, -1.0, 2.5, 7.99, 8.01, -8.5, 30.0, -200.0, 700.0, NAN])
GAMMAS = [(1e-3, 0.5), (0.5, 0.25), (0.5, 2.0), (1.0, 0.0), (1.0, 1.0), (2.0, INF), (3.0, 2.9), (3.0, 30.0), (9.0, 12.0), (40.0, 30.0), (150.0, 151.5), (150.0, 90.0), (201.0, 190.0), (300.0, 301.0),
          (1000.0, 1000.0), (5000.0, 5200.0), (0.0, 1.0), (0.0, 0.0), (-1.0, 1.0), (2.0, -1.0), (NAN, 1.0)]
BETAS = [(1.0, 1.0, 0.3), (0.5, 0.5, 0.1), (2.0, 3.0, 0.0), (2.0, 3.0, 0.25), (2.0, 3.0, 0.9), (2.0, 3.0, 1.0), (30.0, 2.0, 0.95), (0.1, 40.0, 0.01), (200.0, 150.0, 0.55), (900.0, 1000.0, 0.45), (0.0, 2.0, 0.5),
         (2.0, 0.0, 0.5), (INF, 2.0, 0.5), (2.0, INF, 0.5), (0.0, 0.0, 0.5), (2.0, 2.0, -0.5), (2.0, 2.0, 1.5), (2.0, NAN, 0.5)]
ZETAS = [(2.0, 1.0), (3.0, 1.0), (1.5, 0.3), (2.5, 7.0), (12.0, 40.0), (30.0, 0.5), (1.001, 2.0), (1.0, 2.0), (0.5, 1.0), (2.0, 0.0), (2.0, -3.0), (3.0, -0.5), (2.0, -2.5), (2.5, -0.5), (NAN, 1.0)]


def bessel(x):
    functions = (special.i0, special.i0e, special.i1, special.i1e, special.erfcx)
    return sum(((f(x), jax.grad(lambda x: jnp.sum(f(x)))(x[:-1])) for f in functions), ()) + tuple(f(x.astype(np.float32)) for f in functions)


BESSEL_TEXT = "fn main(x: f64[13@X]) { (" + ", ".join(f"{f}(x), grad(|a| sum({f}(a)))(x[:-1])" for f in ("i0", "i0e", "i1", "i1e", "erfcx")) + ", " + ", ".join(
    f"{f}(f32(x))" for f in ("i0", "i0e", "i1", "i1e", "erfcx")) + ") }"


def incomplete(a, x, c, d, z):
    p, q = special.gammainc, special.gammaincc
    some = jnp.array([1, 2, 4, 6, 7, 8])

    def total(f):
        return lambda *args: jnp.sum(f(*args))

    return (p(a, x), q(a, x), special.betainc(c, d, z), p(a, x).astype(np.float32), jax.grad(total(p), argnums=(0, 1))(a[some], x[some])[0],
            jax.grad(total(p), argnums=1)(a[4:-5], x[4:-5]), jax.grad(total(q), argnums=1)(a[some], x[some]), jax.grad(total(special.betainc), argnums=2)(c[:10], d[:10], z[:10]))


INCOMPLETE = """fn main(a: f64[21@X], x: f64[21], c: f64[18], d: f64[18@Y], z: f64[18]) {
  let some = [1, 2, 4, 6, 7, 8];
  (gammainc(a, x), gammaincc(a, x), betainc(c, d, z), gammainc(f32(a), f32(x)), grad(|a, x| sum(gammainc(a, x)))(a[some], x[some]),
   grad(|a, x| sum(gammainc(a, x)), argnums=1)(a[4:-5], x[4:-5]), grad(|a, x| sum(gammaincc(a, x)), argnums=1)(a[some], x[some]),
   grad(|c, d, z| sum(betainc(c, d, z)), argnums=2)(c[:10], d[:10], z[:10]))
}"""


def zetas(s, q, n, x):
    return (special.zeta(s, q), special.polygamma(n, x), jax.grad(lambda q: jnp.sum(special.zeta(s[:7], q)))(q[:7]), jax.grad(lambda x: jnp.sum(special.polygamma(n, x)))(x),
            special.polygamma(2, x.astype(np.float32)))


def spectra(x, y, s):
    f = jnp.linalg.norm
    return (f(x, 2), f(x, -2), f(x, "nuc"), f(y, 2, axis=(0, 2)), f(y, "nuc", axis=(2, 1), keepdims=True), f(y, -2, axis=(-1, 0)), jnp.linalg.eigvalsh(s), jnp.linalg.eigvalsh(s, UPLO="U"),
            jax.grad(lambda x: f(x, 2))(x), jax.grad(lambda x: f(x, "nuc"))(x), jax.grad(lambda s: jnp.sum(jnp.sin(jnp.linalg.eigvalsh(s))))(s))


def three_diagonals(dl, d, du, b, e):
    f = lax.linalg.tridiagonal_solve
    return (f(dl, d, du, b), f(dl[:, 1:2], d[:, 1:2], du[:, 1:2], b[:, :1]), f(dl[0], e, du[0], b[0]), jax.grad(lambda d: jnp.sum(f(dl, d, du, b) ** 2))(d),
            jax.grad(lambda b: jnp.sum(jnp.sin(f(dl, d, du, b))))(b))


def mapped(x, i, u, v, w, c):
    f = jax.scipy.ndimage.map_coordinates
    modes = ("constant", "nearest", "wrap", "mirror", "reflect")
    return (*(f(x, [u, v], order, mode) for mode in modes for order in (0, 1)), f(x, [u, v], 1, cval=7.0), f(i, [u, v], 1, "nearest"), f(w, [c], 1, "reflect"), f(x, jnp.stack([u, v]), 1, "wrap"),
            jax.grad(lambda x, u: jnp.sum(f(x, [u, v], 1, "nearest") ** 2), argnums=(0, 1))(x, u)[0], jax.grad(lambda u: jnp.sum(f(x, [u, v], 1, "mirror") ** 2))(u))


MAPPED = "fn main(x: f32[4@X, 5@Y], i: i32[4, 5@X], u: f32[12@Y], v: f32[12], w: f32[6@X], c: f32[9]) { (" + ", ".join(
    f'map_coordinates(x, [u, v], {order}, "{mode}")' for mode in ("constant", "nearest", "wrap", "mirror", "reflect") for order in (0, 1)) + """,
  map_coordinates(x, [u, v], 1, cval=7), map_coordinates(i, [u, v], 1, "nearest"), map_coordinates(w, [c], 1, "reflect"), map_coordinates(x, stack([u, v]), 1, "wrap"),
  grad(|x| sum(map_coordinates(x, [u, v], 1, "nearest") ** 2))(x), grad(|u| sum(map_coordinates(x, [u, v], 1, "mirror") ** 2))(u)) }"""


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
    yield ("bessel_functions", "elementwise", BESSEL_TEXT, [BESSEL], bessel)
    yield ("incomplete_functions", "elementwise", INCOMPLETE, [*map(np.array, zip(*GAMMAS)), *map(np.array, zip(*BETAS))], incomplete)
    yield ("zeta_functions", "elementwise", "fn main(s: f64[15@X], q: f64[15], n: i32[6@Y], x: f64[6]) { (zeta(s, q), polygamma(n, x), grad(|q| sum(zeta(s[:7], q)))(q[:7]), "
           "grad(|x| sum(polygamma(n, x)))(x), polygamma(2, f32(x))) }",
           [*map(np.array, zip(*ZETAS)), np.array([0, 1, 2, 3, 1, 4], np.int32), np.array([0.5, 0.5, 1.5, 2.0, 9.0, 30.0])], zetas)
    s = f64(4, 4)
    yield ("norms_by_singular_values", "reduction", 'fn main(x: f64[4@X, 3], y: f64[3, 2, 4@Y], s: f64[4, 4@X]) { (norm(x, 2), norm(x, -2), norm(x, "nuc"), norm(y, 2, axis=(0, 2)), '
           'norm(y, "nuc", axis=(2, 1), keepdims=true), norm(y, -2, axis=(-1, 0)), eigvalsh(s), eigvalsh(s, UPLO="U"), grad(|x| norm(x, 2))(x), grad(|x| norm(x, "nuc"))(x), '
           "grad(|s| sum(sin(eigvalsh(s))))(s)) }", [f64(4, 3), f64(3, 2, 4), s + s.T], spectra)
    d, e = f64(2, 6), f64(6)
    # Needs exchanges of rows.
    d[0, 0], e[2] = 0.0, 0.0
    yield ("three_diagonals", "reduction", "fn main(dl: f64[2, 6@X], d: f64[2@Y, 6], du: f64[2, 6], b: f64[2, 6@Y, 3], e: f64[6@X]) { (tridiagonal_solve(dl, d, du, b), "
           "tridiagonal_solve(dl[:, 1:2], d[:, 1:2], du[:, 1:2], b[:, :1]), tridiagonal_solve(dl[0], e, du[0], b[0]), grad(|d| sum(tridiagonal_solve(dl, d, du, b) ** 2))(d), "
           "grad(|b| sum(sin(tridiagonal_solve(dl, d, du, b))))(b)) }", [f64(2, 6), d + 0.0, f64(2, 6), f64(2, 6, 3), e], three_diagonals)
    yield ("mapped_coordinates", "elementwise", MAPPED, [f32(4, 5), rng.integers(-9, 9, (4, 5)).astype(np.int32), (2.5 * f32(12) + 1.5).astype(np.float32), (3 * f32(12) + 2).astype(np.float32), f32(6),
                                                         np.array([-2.5, -1, -0.5, 0, 0.25, 2.5, 5, 6.5, 9], np.float32)], mapped)


if __name__ == "__main__":
    written = 0
    for name, tolerance, text, inputs, function in programs():
        write(name, tolerance, text, inputs, jax.jit(function)(*inputs))
        written += 1
    print(f"{written} programs")
