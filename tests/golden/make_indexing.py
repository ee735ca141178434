"""Makes the golden arrays of functions that take or set elements at indices from arrays, as `make.py` does, by NumPy and JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_indexing.py [NAME..]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from store import write

jax.config.update("jax_platforms", "cpu")


def rng(name):
    """Numbers that depend on the name alone, so that programs can be added anywhere."""
    return np.random.default_rng([ord(char) for char in name])


def ints(name, *shape, low=-50, high=50, dtype=np.int32):
    return rng(name + str(shape)).integers(low, high, shape).astype(dtype)


def floats(name, *shape):
    return rng(name + str(shape)).standard_normal(shape).astype(np.float32)


NAMES = {"bool": "bool", "float16": "f16", "float32": "f32", "float64": "f64"}
NAMES |= {f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ["int", "uint"] for bits in [8, 16, 32, 64]}
SPECIAL = np.array([0.0, -0.0, 1, np.inf, -np.inf, np.nan, 3], np.float32)

# (name, tolerance, spmd text, inputs, function of NumPy)
PROGRAMS = [
    ("index_arrays", "exact",
     "fn main(x: i32[5@X, 6@Y, 4], i: i32[3@Y], j: i64[2, 1], k: u8[2, 3@X]) -> RESULTS {\n"
     "  (x[i], x[:, j], x[..., k], x[i, j], x[i, :, j], x[i, :, 2], x[-1, :, i], x[1:, ::2, i, None], x[:, i, 1:3],\n"
     "   x[k, 0, i][1], x[:, 2, k], x[k, 1:5, i, None], x[i, ..., 0], x[i, 0, ..., j], x[None, i, j],\n"
     "   x[:, i, ..., j])\n}",
     [ints("x", 5, 6, 4), np.array([-4, 3, 0], np.int32), np.array([[2], [-4]], np.int64), np.array([[0, 3, 1], [2, 2, 0]], np.uint8)],
     None),
    ("takes", "exact",
     "fn main(x: f32[7@X, 3], i: i32[2, 4@Y], r: i32[7@X, 5], c: i64[1, 3]) -> RESULTS {\n"
     "  (take(x, i, axis=0), take(x, i, axis=1, mode=\"wrap\"), take(x, i * 4), take(x, i + 4, axis=0, mode=\"clip\"),\n"
     "   take_along_axis(x, r, axis=1), take_along_axis(x, r[:, 0:1]), take_along_axis(x, c, axis=0), take(x, 6, axis=0))\n}",
     [np.concatenate([SPECIAL[:, None], floats("x", 7, 2)], 1), np.array([[0, 4, -1, 2], [-5, 3, 3, 1]], np.int32),
      ints("r", 7, 5, low=-3, high=3), np.array([[6, -7, 0]], np.int64)],
     lambda x, i, r, c: (np.take(x, i, 0), np.take(x, i, 1, mode="wrap"), np.take(x, i * 4), np.take(x, i + 4, 0, mode="clip"),
                         np.take_along_axis(x, r, 1), np.take_along_axis(x, r[:, 0:1], -1), np.take_along_axis(x, c.repeat(3, 0)[:1], 0),
                         np.take(x, 6, 0))),
    ("takes_with_fill", "exact",
     "fn main(x: f32[4@X, 3], n: i8[5@Y], u: u16[5], b: bool[5], i: i32[6]) -> RESULTS {\n"
     "  (take(x, i, axis=0, mode=\"fill\"), take(x, i, axis=1, mode=\"fill\", fill_value=-1), take(n, i, mode=\"fill\"),\n"
     "   take(u, i, mode=\"fill\"), take(b, i, mode=\"fill\"), take_along_axis(x, stack([i, i, i], axis=1), axis=0, mode=\"fill\"))\n}",
     [floats("x", 4, 3), ints("n", 5, dtype=np.int8), ints("u", 5, low=0, dtype=np.uint16), np.array([True, False, False, True, False]),
      np.array([0, 3, 4, -4, -5, 9], np.int32)],
     lambda x, n, u, b, i: (jnp.take(x, i, 0, mode="fill"), jnp.take(x, i, 1, mode="fill", fill_value=-1), jnp.take(n, i, mode="fill"),
                            jnp.take(u, i, mode="fill"), jnp.take(b, i, mode="fill"),
                            jnp.take_along_axis(x, jnp.stack([i, i, i], 1), 0, mode="fill"))),
    ("index_assignments", "exact",
     "fn main(x: i32[5@X, 6@Y], i: i32[4@Y], j: i32[2, 1], v: i32[4, 6], s: i32[2, 4@X], b: bool[9@Y], m: bool[4]) -> RESULTS {\n"
     "  let mut a = x; a[i] = v;\n  let mut c = x; c[i] += v;\n  let mut d = x; d[j, i] -= s;\n  let mut e = x; e[:, i] *= 3;\n"
     "  let mut f = x; f[1:, i] = s[:, :1].T[0, 0];\n  let mut g = x; g[::-2, [1, -1, 1]] += s[:1, :3];\n  let mut h = x; h[2, i] = s[1];\n"
     "  let mut k = x; k[i, 1:4] += v[:, 2:5];\n  let mut l = b; l[i] = m;\n  let mut n = x; n[j, None, i] = s[..., None];\n"
     "  let mut o = x; o[i] |= v;\n  (a, c, d, e, f, g, h, k, l, n, o)\n}",
     [ints("x", 5, 6), np.array([3, 0, -2, 3], np.int32), np.array([[1], [-1]], np.int32), ints("v", 4, 6), ints("s", 2, 4),
      rng("b").random(9) < 0.5, np.array([True, False, True, False])], None),
    ("float_updates", "reduction",
     "fn main(x: f32[5@X, 3], t: f32[200@X, 16@Y], i: i32[64@Y], v: f32[64@Y, 3], w: f32[64, 16@Y], k: i32[64], n: f32[7], p: i32[7]) -> RESULTS {\n"
     "  let mut a = x; a[i % 5] += v;\n  let mut b = x; b[i % 5] -= v;\n  let mut c = x; c[i % 5] *= v * 0.1 + 1;\n"
     "  let mut d = x; d[i % 5] /= v * 0.1 + 1;\n  let mut e = t; e[k] += w;\n  let mut f = t; f[:, k[:8]] *= 2;\n"
     "  let mut g = n; g[p] += n;\n  let mut h = n; h[p] = -n;\n  let mut z = zeros(f32[4]); z[p[:1]] += 1;\n  (a, b, c, d, e, f, g, h, z)\n}",
     [floats("x", 5, 3), floats("t", 200, 16), ints("i", 64, low=0, high=900), floats("v", 64, 3), floats("w", 64, 16),
      ints("k", 64, low=-16, high=16), SPECIAL, np.array([0, 1, 3, 3, 2, 5, 5], np.int32)], None),
    ("segments", "reduction",
     "fn main(x: f32[40@Y, 3], i: i32[40], n: f32[7@X], p: i64[7], q: u8[40@X], b: bool[7], h: i16[40]) -> RESULTS {\n"
     "  (segment_sum(x, i, num_segments=6), segment_max(x, i, 6), segment_min(x[:, 0], i, num_segments=6), segment_sum(n, p, num_segments=3),\n"
     "   segment_max(n, p, num_segments=3), segment_min(n, p, num_segments=9), bincount(q, length=5), bincount(i, x[:, 1], length=5),\n"
     "   segment_max(b, p, num_segments=3), segment_sum(h, i, num_segments=6), bincount(i, length=4), segment_sum(x[:0], i[:0], num_segments=2))\n}",
     [floats("x", 40, 3), ints("i", 40, low=-2, high=8), SPECIAL, np.array([0, 1, 2, 0, 0, 2, 2], np.int64),
      ints("q", 40, low=0, high=9, dtype=np.uint8), np.array([True, False, False, True, False, False, False]),
      ints("h", 40, low=-30000, high=30000, dtype=np.int16)], None),
    ("sorted_lookups", "exact",
     "fn main(a: f32[13@Y], v: f32[2, 9@X], i: i32[11@X], u: i32[6@Y], e: f32[5], one: f32[1], z: f32[0]) -> RESULTS {\n"
     "  (searchsorted(a, v), searchsorted(a, v, side=\"right\"), searchsorted(i, u), searchsorted(i, u, side=\"right\"), searchsorted(a, 1.5),\n"
     "   digitize(v, e), digitize(v, e, right=true), digitize(v, flip(e, axis=0)), digitize(v, flip(e, axis=0), right=true),\n"
     "   searchsorted(one, v), searchsorted(z, e), searchsorted(a, i), select([v > 1, v > 0], [v, -v], 5), select([i > 3], [i]))\n}",
     [np.array([-np.inf, -2, -1, -0.0, 0, 0, 1, 1.5, 1.5, 3, np.inf, np.nan, np.nan], np.float32),
      np.array([[-np.inf, -3, -2, -0.0, 0, 1.25, 1.5, np.inf, np.nan], [9, 8, 7, 1, 2, 3, 4, 5, 6]], np.float32),
      np.sort(ints("i", 11, low=0, high=9)), ints("u", 6, low=-2, high=11), np.array([-1, 0, 1, 1.5, 4], np.float32),
      np.ones(1, np.float32), np.zeros(0, np.float32)], None),
    ("interpolations", "reduction",
     "fn main(x: f32[3, 8@Y], xp: f32[7@X], fp: f32[7], a: f32[50@Y], i: i32[9], k: i32, m: i32[5@X, 4@Y]) -> RESULTS {\n"
     "  let (h, g) = histogram(a);\n  let (c, d) = histogram(a, bins=3, range=(-1, 0.5));\n  let (r, s) = histogram(i, bins=4);\n"
     "  (interp(x, xp, fp), interp(x, xp, fp, left=-7, right=0.5), interp(i, xp, i[:7]), h, g, c, d, r, s, histogram(a * 0, bins=2)[1],\n"
     "   roll(i, k), roll(m, k, axis=1), roll(m, (k, -1), axis=(0, 1)), roll(m, k * 7))\n}",
     [floats("x", 3, 8) * 3, np.sort(floats("xp", 7)), floats("fp", 7), floats("a", 50), ints("i", 9), np.int32(-3), ints("m", 5, 4)], None),
    ("takes_of_nothing", "exact",
     "fn main(x: f32[4@X, 3], e: i32[0], z: f32[0, 3], one: i32[1]) -> RESULTS {\n"
     "  (x[e], take(x, e, axis=1, mode=\"clip\"), z[e, e], x[one], x[one, one[None]])\n}",
     [floats("x", 4, 3), np.zeros(0, np.int32), np.zeros((0, 3), np.float32), np.array([-1], np.int32)],
     lambda x, e, z, one: (x[e], np.take(x, e, 1, mode="clip"), z[e, e], x[one], x[one, one[None]])),
]


def index_arrays(x, i, j, k):
    return (x[i], x[:, j], x[..., k], x[i, j], x[i, :, j], x[i, :, 2], x[-1, :, i], x[1:, ::2, i, None], x[:, i, 1:3],
            x[k, 0, i][1], x[:, 2, k], x[k, 1:5, i, None], x[i, ..., 0], x[i, 0, ..., j], x[None, i, j],
            x[:, i, ..., j])


def updated(x, *steps):
    """The array after updates by functions such as `np.add.at`; None sets, as the last one does."""
    x = x.copy()
    for function, index, value in steps:
        if function is None:
            x[index] = value
        else:
            function.at(x, index, value)
    return x


def index_assignments(x, i, j, v, s, b, m):
    return (updated(x, (None, i, v)), updated(x, (np.add, i, v)), updated(x, (np.subtract, (j, i), s)),
            updated(x, (np.multiply, np.s_[:, i], 3)), updated(x, (None, np.s_[1:, i], s[:, :1].T[0, 0])),
            updated(x, (np.add, np.s_[::-2, [1, -1, 1]], s[:1, :3])), updated(x, (None, np.s_[2, i], s[1])),
            updated(x, (np.add, np.s_[i, 1:4], v[:, 2:5])), updated(b, (None, i, m)), updated(x, (None, np.s_[j, None, i], s[..., None])),
            updated(x, (None, i, x[i] | v)))


def float_updates(x, t, i, v, w, k, n, p):
    return (updated(x, (np.add, i % 5, v)), updated(x, (np.subtract, i % 5, v)), updated(x, (np.multiply, i % 5, v * np.float32(0.1) + 1)),
            updated(x, (np.divide, i % 5, v * np.float32(0.1) + 1)), updated(t, (np.add, k, w)), updated(t, (np.multiply, np.s_[:, k[:8]], 2)),
            updated(n, (np.add, p, n)), updated(n, (None, p, -n)), updated(np.zeros(4, np.float32), (np.add, p[:1], 1)))


def segments(x, i, n, p, q, b, h):
    of = jax.ops
    return (of.segment_sum(x, i, 6), of.segment_max(x, i, 6), of.segment_min(x[:, 0], i, 6), of.segment_sum(n, p, 3), of.segment_max(n, p, 3),
            of.segment_min(n, p, 9), jnp.bincount(q, length=5), jnp.bincount(i, x[:, 1], length=5), of.segment_max(b, p, 3),
            of.segment_sum(h, i, 6), jnp.bincount(i, length=4), of.segment_sum(x[:0], i[:0], 2))


def sorted_lookups(a, v, i, u, e, one, z):
    find = jnp.searchsorted
    return (find(a, v), find(a, v, side="right"), find(i, u), find(i, u, side="right"), find(a, 1.5), jnp.digitize(v, e), jnp.digitize(v, e, True),
            jnp.digitize(v, e[::-1]), jnp.digitize(v, e[::-1], True), find(one, v), find(z, e), find(a, i),
            jnp.select([v > 1, v > 0], [v, -v], 5), jnp.select([i > 3], [i]))


def interpolations(x, xp, fp, a, i, k, m):
    return (jnp.interp(x, xp, fp), jnp.interp(x, xp, fp, -7, 0.5), jnp.interp(i, xp, i[:7]), *jnp.histogram(a), *jnp.histogram(a, 3, (-1, 0.5)),
            *jnp.histogram(i, 4), jnp.histogram(a * 0, 2)[1], np.roll(i, k), np.roll(m, k, 1), np.roll(m, (k, -1), (0, 1)), np.roll(m, k * 7))


FUNCTIONS = {"segments": segments, "sorted_lookups": sorted_lookups, "interpolations": interpolations, "index_arrays": index_arrays,
             "index_assignments": index_assignments, "float_updates": float_updates}


def main():
    wanted = sys.argv[1:]
    for name, tolerance, text, inputs, function in PROGRAMS:
        if wanted and name not in wanted:
            continue
        outputs = (function or FUNCTIONS[name])(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        types = [f"{NAMES[str(value.dtype)]}{list(value.shape) or ''}" for value in map(np.asarray, outputs)]
        text = text.replace("RESULTS", f"({', '.join(types)})" if len(types) > 1 else types[0])
        write(name, tolerance, text, inputs, outputs)


if __name__ == "__main__":
    main()
