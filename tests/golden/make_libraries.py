"""Makes the golden arrays of the libraries `std/linalg.spmd`, `std/nn.spmd` and `std/stats.spmd`, as `make.py` does, by NumPy, SciPy and JAX.

    pip install "jax==0.10.2" numpy scipy
    python3 tests/golden/make_libraries.py [NAME..]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax import lax

from store import write

jax.config.update("jax_platforms", "cpu")


def rng(name):
    """Numbers that depend on the name alone, so that programs can be added anywhere."""
    return np.random.default_rng([ord(char) for char in name])


def floats(name, *shape, dtype=np.float32):
    return rng(name + str(shape)).standard_normal(shape).astype(dtype)


def ints(name, *shape, low=0, high=50):
    return rng(name + str(shape)).integers(low, high, shape).astype(np.int32)


def solved(a, b, d, e, h, x):
    wide = a.astype(np.float64) + 6 * np.eye(23)
    symmetric = (h + h.T) / 2
    values, vectors = np.linalg.eigh(symmetric)
    top = vectors[:, ::-1][:, :3]
    # Eigenvectors have no sign, so the projection on them is compared.
    return (np.linalg.solve(wide, b).astype(np.float32), np.linalg.solve(wide, b).astype(np.float32), np.linalg.solve(d + 8 * np.eye(9), e),
            values[::-1][:3], top @ (top.T @ x), np.zeros(5, np.float32))


SOLVED = ("import \"std/linalg.spmd\" as la;\n"
          "fn main(a: f32[23@Y, 23@X], b: f32[23@Y], d: f64[9@X, 9], e: f64[9@X], h: f64[23@X, 23], x: f64[23@X, 3]) {\n"
          "  let matrix = a + 6 * eye(23);\n  let symmetric = (h + h.T) / 2;\n"
          "  let short = la.gmres(|v| matrix @ v, b, tol=1e-6, restart=6);\n  let long = la.gmres(|v| matrix @ v, b, tol=1e-6, restart=30);\n"
          "  let wide = la.gmres(|v| (d + 8 * eye(9, dtype=f64)) @ v, e, tol=1e-13, restart=9);\n"
          "  let top = la.lobpcg(|v| symmetric @ v, x, tol=1e-9);\n"
          "  (short.x, long.x, wide.x, top.values, top.vectors @ (top.vectors.T @ x), la.gmres(|v| v, zeros(f32[5])).x)\n}")


def dense(x, w, b):
    return x @ w + b


def layer_norm(x, gain, offset):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gain + offset


def rotary(x):
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[-3])[:, None, None] * 10000.0 ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)], -1)


def attended(x, y, q, k, v, o, mask=None, causal=False, rotate=lambda heads: heads):
    heads = [jnp.einsum("btd,dnh->btnh", a, b) for a, b in [(x, q), (y, k), (y, v)]]
    answer = jax.nn.dot_product_attention(rotate(heads[0]), rotate(heads[1]), heads[2], mask=mask, is_causal=causal)
    return jnp.einsum("btnh,nhd->btd", answer, o)


def networks(t, table, q, k, v, o, w1, b1, w2, b2, g, c, m, image, kernel, bias, labels, z):
    x = table[t]
    where = np.arange(5)[:, None] * 10000.0 ** (-np.arange(4) / 4)
    x = x + np.concatenate([np.sin(where), np.cos(where)], 1).astype(np.float32)
    mask = m[None, None]
    self = attended(x, x, q, k, v, o, mask=mask)
    normed = layer_norm(x, g, c)
    block = x + attended(normed, normed, q, k, v, o, causal=True, rotate=rotary)
    block = block + dense(jax.nn.gelu(dense(layer_norm(block, c, g), w1, b1)), w2, b2)
    y = jax.nn.relu(lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias)
    pooled = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    logits = dense(x[:, 0], w1, b1)
    cross = jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], 1)[:, 0])
    binary = jnp.mean(jnp.logaddexp(z, 0) - (labels > 3) * z)
    return (x, self, attended(x, x[:, :3], q, k, v, o), block, dense(jax.nn.relu(dense(x, w1, b1)), w2, b2), y, pooled, rotary(x[:, :, None]),
            cross, jnp.mean(jnp.argmax(logits, -1) == labels), jnp.mean((x - 1) ** 2), binary)


NETWORKS = ("import \"std/nn.spmd\" as nn;\n"
            "fn main(t: i32[4@X, 5], table: f32[11, 8@Y], q: f32[8, 2@Y, 4], k: f32[8, 2@Y, 4], v: f32[8, 2@Y, 4], o: f32[2@Y, 4, 8],\n"
            "        w1: f32[8, 12@Y], b1: f32[12@Y], w2: f32[12@Y, 8], b2: f32[8], g: f32[8], c: f32[8], m: bool[5, 5], image: f32[2@X, 6@Y, 6, 3],\n"
            "        kernel: f32[3, 3, 3, 4], bias: f32[4], labels: i32[4@X], z: f32[4@X]) {\n"
            "  let x = nn.embedding(t, table) + nn.positions(5, 8);\n"
            "  let heads: nn.Attention<8, 2, 4> = { q: q, k: k, v: v, o: o };\n  let up = { w: w1, b: b1 };\n  let both = { up: up, down: { w: w2, b: b2 } };\n"
            "  let block = { first: { gain: g, offset: c }, attend: heads, second: { gain: c, offset: g }, mlp: both };\n"
            "  let logits = nn.dense(x[:, 0], up);\n"
            "  (x, nn.self_attention(x, heads, mask=m), nn.cross_attention(x, x[:, :3], heads),\n"
            "   nn.transformer_block(x, block, causal=true, rotate=nn.rotary), nn.mlp(x, both), nn.conv_block(image, { w: kernel, b: bias }),\n"
            "   nn.conv_block(image, { w: kernel, b: bias }, pool=2), nn.rotary(x[:, :, None]), nn.cross_entropy(logits, labels),\n"
            "   nn.accuracy(logits, labels), nn.mse(x, 1), nn.binary_cross_entropy(z, f32(labels > 3)))\n}")


def statistics(x, y, p, i):
    stats = scipy.stats
    x, y, p = (array.astype(np.float64) for array in (x, y, p))
    counts, _ = np.histogram(x, 7, (-2, 2))
    test = stats.ttest_ind(y, x[:, 0] + 1, equal_var=False)
    design = np.concatenate([x, np.ones((37, 1))], 1)
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    line = stats.linregress(x[:, 0], y)
    results = (stats.zscore(x), stats.zscore(x, axis=1, ddof=1), np.cov(x, rowvar=False), np.corrcoef(x, rowvar=False),
               np.cov(x[:, :2], x[:, 2:], rowvar=False)[:2, 2:], stats.pearsonr(x[:, 0], y)[0], stats.rankdata(i), stats.spearmanr(i, y)[0],
               stats.sem(x), stats.gmean(p), stats.hmean(p, axis=1), stats.median_abs_deviation(x), stats.iqr(x, axis=0), stats.entropy(counts),
               test.statistic, test.df, solution[:-1], solution[-1], stats.skew(x), stats.kurtosis(x), line.slope, line.intercept, line.rvalue,
               stats.norm.pdf(y), stats.norm.cdf(y, scale=2), stats.entropy(p, axis=1), stats.zscore(x))
    return tuple(np.float32(array) for array in results)


STATISTICS = ("import \"std/stats.spmd\" as stats;\n"
              "fn main(x: f32[37@(X, Y), 4], y: f32[37@X], p: f32[5@X, 7@Y], i: i32[37@Y]) {\n"
              "  let test = stats.t_test(y, x[:, 0] + 1);\n  let plane = stats.least_squares(x, y);\n  let line = stats.linear_regression(x[:, 0], y);\n"
              "  (stats.zscore(x), stats.zscore(x, axis=1, ddof=1), stats.cov(x), stats.corrcoef(x), stats.cross_cov(x[:, :2], x[:, 2:]),\n"
              "   stats.pearson(x[:, 0], y), stats.ranks(i), stats.spearman(i, y), stats.sem(x), stats.geometric_mean(p),\n"
              "   stats.harmonic_mean(p, axis=1), stats.median_deviation(x), stats.iqr(x), stats.histogram_entropy(x, bins=7, range=(-2, 2)),\n"
              "   test.t, test.freedom, plane.w, plane.b, stats.skewness(x), stats.kurtosis(x), line.slope, line.intercept, line.correlation,\n"
              "   stats.normal_pdf(y), stats.normal_cdf(y, deviation=2.0), stats.entropy(p), stats.standardize(x))\n}")

POSITIVE = np.abs(floats("p", 5, 7)) + 0.1

# (name, tolerance, spmd text, inputs, function of NumPy or JAX)
PROGRAMS = [
    ("library_linalg", "reduction", SOLVED,
     [floats("a", 23, 23), floats("b", 23), floats("d", 9, 9, dtype=np.float64), floats("e", 9, dtype=np.float64),
      floats("h", 23, 23, dtype=np.float64), floats("x", 23, 3, dtype=np.float64)], solved),
    ("library_nn", "reduction", NETWORKS,
     [ints("t", 4, 5, high=11), floats("table", 11, 8), floats("q", 8, 2, 4), floats("k", 8, 2, 4), floats("v", 8, 2, 4), floats("o", 2, 4, 8),
      floats("w1", 8, 12), floats("b1", 12), floats("w2", 12, 8), floats("b2", 8), floats("g", 8), floats("c", 8),
      np.tril(np.ones((5, 5), bool)) | (rng("m").random((5, 5)) < 0.3), floats("image", 2, 6, 6, 3), floats("kernel", 3, 3, 3, 4), floats("bias", 4),
      ints("labels", 4, high=12), floats("z", 4) * 30], networks),
    ("library_stats", "reduction", STATISTICS,
     [floats("x", 37, 4), floats("y", 37), POSITIVE / POSITIVE.sum(1, keepdims=True), ints("i", 37, high=12)], statistics),
]

if __name__ == "__main__":
    for name, tolerance, text, inputs, function in PROGRAMS:
        if not sys.argv[1:] or name in sys.argv[1:]:
            write(name, tolerance, text, inputs, function(*inputs))
