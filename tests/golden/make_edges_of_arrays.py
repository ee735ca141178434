"""Makes the golden arrays of derivatives of functions of lines and matrices at the edges of what they are defined for, by JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_edges_of_arrays.py

Each function of four numbers is differentiated once and twice at zeros, ties, infinities, NaN, the largest and the smallest numbers: the
gradient of a sum with different weights, and the Hessian times a vector. Equal largest elements share, of which JAX's pools and norms take one or a part: these are
written as JAX's `max`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp

from store import write

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
nn = jax.nn
INF, NAN = np.inf, np.nan
TWO = "(reshape(a, (2, 2)) + 4 * eye(2))"


# Zeros, ties, and numbers that are far apart, for all functions.
FINITE = [[1, 2, 4, 3], [-2, 0.5, -0.25, 1], [0, 0, 0, 0], [0, 1, 2, 0], [3, 0, -1, 2], [0.0, -0.0, 1, -0.0], [1, 1, 2, 1], [2, 2, 2, 2], [-1, 3, 3, 0], [2, 2, -3, -3], [1e-30, 1, 1e3, -1]]


def special(dtype):
    """Infinities, NaN, the largest and the smallest numbers, where JAX's answer is the derivative for most functions."""
    info = np.finfo(dtype)
    big, small = info.max, 8 * info.tiny
    return [[INF, 1, 2, 3], [1, -INF, 2, 0], [INF, INF, 1, 2], [INF, -INF, 0, 1], [-INF] * 4, [NAN, 1, 2, 3], [1, NAN, INF, 0], [big, 1, 2, 0.5], [big, big, 1, -2], [small, 2 * small, 4 * small, small],
            [small, 1, 2, -small]]


def square(f):
    """A function of a matrix that is far from singular at most points."""
    return lambda a: f(a.reshape(2, 2) + 4 * jnp.eye(2, dtype=a.dtype))


def positive(m):
    """A positive definite matrix where m is finite."""
    return m @ m.T + jnp.eye(2, dtype=m.dtype)


def attended(a):
    """The softmax of JAX's attention is one of f32."""
    return nn.softmax(a[:, None] * a[None, :], axis=-1) @ a


def layer_norm(a):
    mean = jnp.mean(a)
    deviation = a - mean
    return deviation * lax.rsqrt(jnp.mean(jnp.square(deviation)) + 1e-5)


FUNCTIONS = [
    ("sum(a)", jnp.sum), ("prod(a)", jnp.prod), ("max(a)", jnp.max), ("min(a)", jnp.min), ("mean(a)", jnp.mean), ("var(a)", jnp.var), ("var(a, ddof=1)", lambda a: jnp.var(a, ddof=1)), ("std(a)", jnp.std),
    ("norm(a)", jnp.linalg.norm), ("norm(a, 1)", lambda a: jnp.linalg.norm(a, 1)), ("norm(a, 3)", lambda a: jnp.linalg.norm(a, 3)), ("norm(a, 1.0 / 0.0)", lambda a: jnp.max(jnp.abs(a))), ("norm(a, -1.0 / 0.0)", lambda a: jnp.min(jnp.abs(a))),
    ("norm(a, 0)", lambda a: jnp.linalg.norm(a, 0)), ("logsumexp(a)", logsumexp), ("median(a)", jnp.median), ("quantile(a, 0.3)", lambda a: jnp.quantile(a, 0.3)), ("ptp(a)", jnp.ptp),
    ("nansum(a)", jnp.nansum), ("nanmean(a)", jnp.nanmean), ("nanmax(a)", jnp.nanmax), ("nanmin(a)", jnp.nanmin), ("nanvar(a)", jnp.nanvar), ("nanstd(a)", jnp.nanstd), ("nanmedian(a)", jnp.nanmedian),
    ("average(a, weights=[1, 2, 3, 4])", lambda a: jnp.average(a, weights=jnp.arange(1, 5))), ("trapezoid(a)", jnp.trapezoid), ("diff(a)", jnp.diff),
    ("cumsum(a)", jnp.cumsum), ("cumprod(a)", jnp.cumprod), ("cummax(a)", lax.cummax), ("cummin(a)", lax.cummin), ("logcumsumexp(a)", lambda a: lax.cumlogsumexp(a)),
    ("softmax(a)", nn.softmax), ("log_softmax(a)", nn.log_softmax), ("layer_norm(a)", layer_norm), ("rms_norm(a)", lambda a: a * lax.rsqrt(jnp.mean(a * a) + 1e-6)),
    ("ravel(max_pool(reshape(a, (1, 4, 1)), (2,), (1,)))", lambda a: jnp.maximum(a[:-1], a[1:])), ("ravel(avg_pool(reshape(a, (1, 4, 1)), (2,), (1,)))", lambda a: (a[:-1] + a[1:]) / 2), ("sort(a)", jnp.sort), ("top_k(a, 2).0", lambda a: lax.top_k(a, 2)[0]),
    (f"det({TWO})", square(jnp.linalg.det)), (f"inv({TWO})", square(jnp.linalg.inv)), (f"solve({TWO}, a[:2])", lambda a: square(lambda m: jnp.linalg.solve(m, a[:2]))(a)),
    (f"slogdet({TWO}).1", square(lambda m: jnp.linalg.slogdet(m)[1])), (f"norm({TWO})", square(jnp.linalg.norm)), (f"cholesky({TWO} @ {TWO}.T + eye(2))", square(lambda m: jnp.linalg.cholesky(positive(m)))),
    (f"qr({TWO}).1", square(lambda m: jnp.linalg.qr(m)[1])), (f"{TWO} @ {TWO}", square(lambda m: m @ m)), ("ravel(attention(reshape(a, (1, 4, 1, 1)), reshape(a, (1, 4, 1, 1)), reshape(a, (1, 4, 1, 1))))", attended),
]
# Functions of which infinities and the like are left out: JAX has NaN beside infinities of products, `exp(x)` for the share of x in an infinite
# sum, halves of zero in `norm` of order 0, and other finite numbers where a factorization overflows; `median` of NaN is the NaN that it finds.
FINITE_ONLY = ["prod", "cumprod", "logcumsumexp", "median", "quantile", "inv", "solve", "slogdet", "det", "cholesky", "qr", "ravel(attention", f"{TWO} @"]


def is_finite_only(text):
    return any(text.startswith(name) and text[len(name):len(name) + 1] in ("(", "", " ") for name in FINITE_ONLY)


def weighted(size):
    return np.arange(size) * 7 % 5 + 1.0


def derivatives(dtype, orders, chosen):
    """The statements for these functions, and what JAX says of them."""
    direction = np.array([1, -2, 3, 0.5], dtype)
    lines, functions = [], []
    for text, function, points in chosen:
        shape = jax.eval_shape(function, jax.ShapeDtypeStruct((4,), dtype)).shape
        weights = weighted(int(np.prod(shape))).reshape(shape)
        total = lambda a, f=function, w=weights: jnp.sum(f(a) * w.astype(dtype)) if w.ndim else f(a)
        own = f"sum(({text}) * {weights.tolist()})" if shape else text
        first = jax.grad(total)
        lines.append(f"    vmap(grad(|a| {own}))({points})")
        functions.append((jax.vmap(first), points))
        if orders == 2:
            lines.append(f"    vmap(grad(|b| sum(grad(|a| {own})(b) * [1.0, -2, 3, 0.5])))({points})")
            functions.append((jax.vmap(jax.grad(lambda b, first=first: jnp.sum(first(b) * direction))), points))
    return lines, functions


def stored(dtype, name, orders):
    points = {"x": np.array(FINITE, dtype), "s": np.array(special(dtype), dtype)}
    chosen = [(text, function, at) for text, function in FUNCTIONS for at in "xs" if at == "x" or not is_finite_only(text)]
    lines, functions = derivatives(dtype, orders, chosen)
    found = jax.jit(lambda x, s: [function({"x": x, "s": s}[at]) for function, at in functions])(points["x"], points["s"])
    text = f"fn main(x: {name}[{len(points['x'])}, 4], s: {name}[{len(points['s'])}@Y, 4]) {{\n  (\n" + ",\n".join(lines) + "\n  )\n}"
    write(f"edges_of_arrays_{name}", "reduction", text, list(points.values()), tuple(found), save=np.savez_compressed, meshes="2x4")


def medians(dtype, name):
    """Of those at infinities and NaN the first derivatives: the NaN that is the result has 1, where JAX has 0."""
    points = np.array(special(dtype), dtype)
    chosen = [(text, function, "s") for text, function in FUNCTIONS if text.startswith(("median", "quantile"))]
    lines, functions = derivatives(dtype, 1, chosen)
    found = [np.where(np.isnan(points).any(1, keepdims=True), np.isnan(points), function(points)).astype(dtype) for function, _ in functions]
    text = f"fn main(s: {name}[{len(points)}@Y, 4]) {{\n  (\n" + ",\n".join(lines) + "\n  )\n}"
    write(f"edges_of_medians_{name}", "reduction", text, [points], tuple(found), save=np.savez_compressed, meshes="2x4")


if __name__ == "__main__":
    for dtype, name, orders in [(np.float64, "f64", 2), (np.float32, "f32", 1)]:
        stored(dtype, name, orders)
        medians(dtype, name)
