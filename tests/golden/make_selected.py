"""Makes the golden arrays of assignments by masks, quantiles at computed fractions, histograms with edges, periodic interpolation and
window reductions by functions, as `make.py` does, by NumPy and JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_selected.py [NAME..]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from store import store

jax.config.update("jax_platforms", "cpu")


def rng(name):
    """Numbers that depend on the name alone, so that programs can be added anywhere."""
    return np.random.default_rng([ord(char) for char in name])


def ints(name, *shape, low=-50, high=50, dtype=np.int32):
    return rng(name + str(shape)).integers(low, high, shape).astype(dtype)


def floats(name, *shape):
    return rng(name + str(shape)).standard_normal(shape).astype(np.float32)


def bools(name, *shape):
    return rng(name + str(shape)).random(shape) < 0.5


SPECIAL = np.array([0.0, -0.0, 1, np.inf, -np.inf, np.nan, 3], np.float32)


def masked(x, index, change):
    """NumPy's answer: the elements at `index` of a copy become `change` of them, or are it."""
    x = x.copy()
    x[index] = change(x[index]) if callable(change) else change
    return x


def masks(x, m, r, c, v, n, i, d, b, k):
    """By NumPy, for arrays that are known beforehand, as `jax.jit` cannot trace it."""
    rows = m[:, 0]
    return (masked(x, m, 0), masked(x, m, lambda old: old + 5), masked(x, r, -1), masked(x, r, v), masked(x, r, lambda old: old * v),
            masked(x, np.s_[:, c], 7), masked(x, np.s_[:, c], v[:5, None]), masked(x, np.s_[..., c], lambda old: old - 3),
            masked(x, np.s_[1:, c], 9), masked(x, np.s_[::-2, c], lambda old: -old), masked(x, np.s_[r, 2], 4),
            masked(x, np.s_[2, c], lambda old: old | 1), masked(x, np.s_[r, 1:3], v[None, :2]), masked(n, np.isnan(n), 0),
            masked(n, n > 0, np.float32(0.5)), masked(x, r, lambda old: old // 7), masked(x, m, d), masked(b, b, False),
            masked(x, rows, lambda old: old % 3), masked(k, np.s_[:, m], v[:2, None]), masked(k, np.s_[0, :, c], 1),
            masked(k, np.s_[:, r, 1:], v[:5]), masked(x, m & ~m, lambda old: old // 1), masked(x, np.s_[i, c], 8), masked(x, np.s_[r, i], 6),
            masked(x, np.array([True, False, False, True, True]), 2))


MASKS = ("fn main(x: i32[5@X, 6@Y], m: bool[5, 6@X], r: bool[5@Y], c: bool[6], v: i32[6@Y], n: f32[7@X], i: i32, d: i32, b: bool[9@Y],\n"
         "        k: i32[2@X, 5, 6@Y]) {\n"
         "  let mut a = x; a[m] = 0;\n  let mut e = x; e[m] += 5;\n  let mut f = x; f[r] = -1;\n  let mut g = x; g[r] = v;\n"
         "  let mut h = x; h[r] *= v;\n  let mut j = x; j[:, c] = 7;\n  let mut l = x; l[:, c] = v[:5, None];\n"
         "  let mut o = x; o[..., c] -= 3;\n  let mut p = x; p[1:, c] = 9;\n  let mut q = x; q[::-2, c] *= -1;\n"
         "  let mut s = x; s[r, 2] = 4;\n  let mut t = x; t[2, c] |= 1;\n  let mut u = x; u[r, 1:3] = v[None, :2];\n"
         "  let mut w = n; w[isnan(n)] = 0;\n  let mut y = n; y[n > 0] = 0.5;\n  let mut z = x; z[r] //= 7;\n"
         "  let mut aa = x; aa[m] = d;\n  let mut ab = b; ab[b] = false;\n  let mut ac = x; ac[m[:, 0]] %= 3;\n"
         "  let mut ad = k; ad[:, m] = v[:2, None];\n  let mut ae = k; ae[0, :, c] = 1;\n  let mut af = k; af[:, r, 1:] = v[:5];\n"
         "  let mut ag = x; ag[m & !m] //= d - d;\n  let mut ah = x; ah[i, c] = 8;\n  let mut ai = x; ai[r, i] = 6;\n"
         "  let mut aj = x; aj[[true, false, false, true, true]] = 2;\n"
         "  (a, e, f, g, h, j, l, o, p, q, s, t, u, w, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj)\n}")
MASK_INPUTS = [ints("x", 5, 6), bools("m", 5, 6), bools("r", 5), bools("c", 6), ints("v", 6), SPECIAL, np.int32(-3), np.int32(11), bools("b", 9),
               ints("k", 2, 5, 6)]

METHODS = ["linear", "lower", "higher", "nearest", "midpoint"]


def quantiles_at_run_time(x, q, p, h, n, i):
    each = [jnp.quantile(x, q, axis=1, method=method) for method in METHODS]
    return (jnp.stack(each), jnp.stack([jnp.quantile(x, q[3], axis=0, method=method) for method in METHODS]),
            jnp.quantile(x, q, axis=(0, 1), keepdims=True), jnp.percentile(x, p, axis=0, keepdims=True), jnp.quantile(h, q), jnp.quantile(n, q),
            jnp.quantile(i, q[:3], axis=-1), jnp.percentile(x[0], p[1], method="nearest"), jnp.quantile(x[:, :1], q, axis=1),
            jnp.stack([jnp.quantile(jnp.arange(4.0), 0.5, method=method) for method in METHODS]))


QUANTILES = ("fn main(x: f32[6@X, 9@Y], q: f32[7], p: i32[3@Y], h: f16[40@X], n: f32[7], i: i32[3, 5@X]) {\n"
             "  (stack([" + ", ".join(f'quantile(x, q, axis=1, method="{method}")' for method in METHODS) + "]),\n"
             "   stack([" + ", ".join(f'quantile(x, q[3], axis=0, method="{method}")' for method in METHODS) + "]),\n"
             "   quantile(x, q, axis=(0, 1), keepdims=true), percentile(x, p, axis=0, keepdims=true), quantile(h, q), quantile(n, q),\n"
             "   quantile(i, q[:3], axis=-1), percentile(x[0], p[1], method=\"nearest\"), quantile(x[:, :1], q, axis=1),\n"
             "   stack([" + ", ".join(f'quantile(arange(4.0), 0.5, method="{method}")' for method in METHODS) + "]))\n}")


def histograms(a, i, e, w, u):
    results = [jnp.histogram(a, e), jnp.histogram(a, e, weights=w), jnp.histogram(a, e, density=True), jnp.histogram(a, bins=4, weights=w),
               jnp.histogram(a, bins=4, range=(-1, 0.5), weights=w, density=True), jnp.histogram(i, bins=jnp.array([-20, 0, 5, 30])),
               jnp.histogram(i, bins=3, weights=u), jnp.histogram(a, bins=jnp.array([0.0, 0.0, 1.0])), jnp.histogram(a, bins=jnp.array([1.0]))]
    return tuple(array for pair in results for array in pair)


HISTOGRAMS = ("fn main(a: f32[5@X, 10@Y], i: i32[4, 6@Y], e: f32[6@X], w: f32[5@X, 10], u: i32[4, 6]) {\n"
              "  let (a0, a1) = histogram(a, e);\n  let (b0, b1) = histogram(a, e, weights=w);\n  let (c0, c1) = histogram(a, e, density=true);\n"
              "  let (d0, d1) = histogram(a, bins=4, weights=w);\n  let (e0, e1) = histogram(a, bins=4, range=(-1, 0.5), weights=w, density=true);\n"
              "  let (f0, f1) = histogram(i, bins=[-20, 0, 5, 30]);\n  let (g0, g1) = histogram(i, bins=3, weights=u);\n"
              "  let (h0, h1) = histogram(a, bins=[0.0, 0.0, 1.0]);\n  let (i0, i1) = histogram(a, bins=[1.0]);\n"
              "  (a0, a1, b0, b1, c0, c1, d0, d1, e0, e1, f0, f1, g0, g1, h0, h1, i0, i1)\n}")


def periodic(x, xp, fp, p, i):
    return (jnp.interp(x, xp, fp, period=360), jnp.interp(x, xp, fp, period=-360), jnp.interp(x, xp, fp, period=p),
            jnp.interp(i, xp, fp, left=0, right=1, period=10), jnp.interp(x, xp[:1], fp[:1], period=360))


def by_functions(x, y, n):
    reduce = lax.reduce_window
    return (reduce(x, 0.0, lambda a, b: a + b, (2, 3), (1, 1), "VALID"), reduce(x, 10.0, lambda a, b: a + b, (3, 3), (1, 2), "SAME"),
            reduce(x, 1.0, lambda a, b: a * b, (1, 3), (1, 1), "SAME"), reduce(y, 0, lambda a, b: a | b, (3,), (2,), "SAME"),
            reduce(y, 7, lambda a, b: a ^ b, (5,), (1,), "VALID"),
            reduce(y, -100, lambda a, b: jnp.maximum(a, b), (4,), (1,), ((3, 0),), (1,), (2,)),
            reduce(y, 0, lambda a, b: a + b, (3,), (1,), "SAME", (2,)),
            reduce(n, 0.0, lambda a, b: jnp.where(jnp.abs(a) > jnp.abs(b), a, b), (2,), (1,), "SAME"),
            reduce(x, 0.0, lambda a, b: jnp.hypot(a, b), (1, 1), (2, 2), "VALID"), reduce(x, 0.0, lambda a, b: jnp.hypot(a, b), (6, 7), (1, 1), "VALID"))


BY_FUNCTIONS = ("fn main(x: f32[6@X, 7@Y], y: i32[11@Y], n: f32[7@X]) {\n"
                "  (reduce_window(x, 0.0, |a, b| a + b, (2, 3)), reduce_window(x, 10.0, |a, b| a + b, (3, 3), (1, 2), \"SAME\"),\n"
                "   reduce_window(x, 1, |a, b| a * b, (1, 3), padding=\"SAME\"), reduce_window(y, 0, |a, b| a | b, (3,), (2,), \"SAME\"),\n"
                "   reduce_window(y, 7, |a, b| a ^ b, 5), reduce_window(y, -100, |a, b| maximum(a, b), (4,), padding=((3, 0),), window_dilation=2),\n"
                "   reduce_window(y, None, computation=|a, b| a + b, window_dimensions=(3,), padding=\"SAME\", base_dilation=2),\n"
                "   reduce_window(n, 0, |a, b| where(abs(a) > abs(b), a, b), (2,), padding=\"SAME\"),\n"
                "   reduce_window(x, 0, |a, b| hypot(a, b), (1, 1), (2, 2)), reduce_window(x, 0, hypot, (6, 7)))\n}")

POINTS = np.array([350.0, 10, 200, 90], np.float32)
Q = np.array([0.0, 0.25, 0.99, 0.3, 1.0, 0.5, np.nan], np.float32)

# (name, tolerance, spmd text, inputs, function of JAX)
PROGRAMS = [
    ("masked_assignments", "exact", MASKS, MASK_INPUTS, lambda *inputs: masks_made()),
    ("quantiles_at_run_time", "elementwise", QUANTILES,
     [floats("x", 6, 9), Q, np.array([0, 50, 100], np.int32), floats("h", 40).astype(np.float16), np.where(np.isnan(SPECIAL), 2, SPECIAL),
      ints("i", 3, 5)], quantiles_at_run_time),
    ("histograms", "reduction", HISTOGRAMS,
     [floats("a", 5, 10), ints("i", 4, 6), np.array([-2, -1, -0.5, 0.5, 1, 2.5], np.float32), np.abs(floats("w", 5, 10)), ints("u", 4, 6)],
     histograms),
    ("periodic_interpolations", "reduction",
     "fn main(x: f32[2@X, 9@Y], xp: f32[4@X], fp: f32[4], p: f32, i: i32[6]) {\n"
     "  (interp(x, xp, fp, period=360), interp(x, xp, fp, period=-360), interp(x, xp, fp, period=p),\n"
     "   interp(i, xp, fp, left=0, right=1, period=10), interp(x, xp[:1], fp[:1], period=360))\n}",
     [np.concatenate([floats("x", 9) * 400, [0, 360, -10, 350, 10, 200, 720, 90, 5]]).astype(np.float32).reshape(2, 9), POINTS, floats("fp", 4),
      np.float32(100), ints("i", 6)], periodic),
    ("windows_by_functions", "reduction", BY_FUNCTIONS, [floats("x", 6, 7), ints("y", 11), np.where(np.isnan(SPECIAL), 2, SPECIAL)], by_functions),
]


def masks_made():
    return masks(*MASK_INPUTS)


if __name__ == "__main__":
    store([program for program in PROGRAMS if not sys.argv[1:] or program[0] in sys.argv[1:]])
