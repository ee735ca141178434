"""Makes the golden arrays of orders with zeros and NaN, of indices beyond the ends, and of arrays without elements, as `make.py` does.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_edges.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from ml_dtypes import bfloat16

from store import write

jax.config.update("jax_platforms", "cpu")

NAN, INF = np.nan, np.inf
ORDERS = [
    *((f"top_k(x, {k})", lambda x, y, k=k: lax.top_k(x, k)) for k in (1, 3, 6, 11)),
    ("top_k(reshape(x[:10], (2, 5)), 3)", lambda x, y: lax.top_k(x[:10].reshape(2, 5), 3)), ("top_k(-x, 4)", lambda x, y: lax.top_k(jnp.where(jnp.isnan(x), x, -x), 4)),
    ("argsort(x)", lambda x, y: jnp.argsort(x)), ("argsort(x, descending=true)", lambda x, y: jnp.argsort(x, descending=True)),
    ("lexsort((x, y[:11]))", lambda x, y: jnp.lexsort((x, y[:11]))), ("searchsorted(sort(x), y)", lambda x, y: jnp.searchsorted(jnp.sort(x), y)),
    ('searchsorted(sort(x), y, side="right")', lambda x, y: jnp.searchsorted(jnp.sort(x), y, side="right")),
    ("digitize(y, sort(x)[:9])", lambda x, y: jnp.digitize(y, jnp.sort(x)[:9])), ("argmax(x[1:3])", lambda x, y: jnp.argmax(x[1:3])),
    ("argmin(x[1:3])", lambda x, y: jnp.argmin(x[1:3])), ("argmax(x)", lambda x, y: jnp.argmax(x)), ("argmin(x)", lambda x, y: jnp.argmin(x)),
    ("nonzero(x, size=11).0", lambda x, y: jnp.nonzero(x, size=11)[0]), ("unique(x, size=9)", lambda x, y: jnp.unique(x, size=9)),
    ("unique(x, size=9, fill_value=7)", lambda x, y: jnp.unique(x, size=9, fill_value=7)),
]
INDICES = [
    *((f'take({x}, {of}, mode="{mode}")', lambda x, m, i, k, f=f, mode=mode: f(x, m, i, mode)) for mode in ("clip", "wrap", "fill") for x, of, f in [
        ("x", "i", lambda x, m, i, mode: jnp.take(x, i, mode=mode)), ("m", "i, axis=0", lambda x, m, i, mode: jnp.take(m, i, axis=0, mode=mode)),
        ("x", "[-1, -6, 4, 9]", lambda x, m, i, mode: jnp.take(x, jnp.array([-1, -6, 4, 9]), mode=mode)), ("x", "-2", lambda x, m, i, mode: jnp.take(x, -2, mode=mode)),
        ("x", "u8(i)", lambda x, m, i, mode: jnp.take(x, i.astype(jnp.uint8), mode=mode))]),
    *((f'take_along_axis(x, i, axis=0, mode="{mode}")', lambda x, m, i, k, mode=mode: jnp.take_along_axis(x, i, axis=0, mode=mode)) for mode in ("clip", "fill")),
    *((f'take_along_axis(m, k, axis=1, mode="{mode}")', lambda x, m, i, k, mode=mode: jnp.take_along_axis(m, k, axis=1, mode=mode)) for mode in ("clip", "fill")),
    ("one_hot(i, 5)", lambda x, m, i, k: jax.nn.one_hot(i, 5)), ("bincount(i, length=5)", lambda x, m, i, k: jnp.bincount(i, length=5)),
    ("segment_sum(f32(i), i, 5)", lambda x, m, i, k: jax.ops.segment_sum(i.astype(jnp.float32), i, 5)),
    ("dynamic_slice(x, (i[0],), (2,))", lambda x, m, i, k: lax.dynamic_slice(x, (i[0],), (2,))), ("dynamic_slice(x, (i[9],), (2,))", lambda x, m, i, k: lax.dynamic_slice(x, (i[9],), (2,))),
]
EMPTY = [
    ("unique(e, size=3, fill_value=7)", lambda e, j, m, a: jnp.unique(e, size=3, fill_value=7)), ("unique(m, size=2, fill_value=7)", lambda e, j, m, a: jnp.unique(m, size=2, fill_value=7)),
    ("unique(j, size=0)", lambda e, j, m, a: jnp.unique(j, size=0)), ("unique(a, size=0)", lambda e, j, m, a: jnp.unique(a, size=0)),
    ("unique(a[:1], size=2, fill_value=9)", lambda e, j, m, a: jnp.unique(a[:1], size=2, fill_value=9)), ("nonzero(e, size=3).0", lambda e, j, m, a: jnp.nonzero(e, size=3)[0]),
    ("nonzero(a, size=0).0", lambda e, j, m, a: jnp.nonzero(a, size=0)[0]), ("nonzero(m, size=0).1", lambda e, j, m, a: jnp.nonzero(m, size=0)[1]),
    ("digitize(a, e)", lambda e, j, m, a: jnp.digitize(a, e)), ("digitize(e, a)", lambda e, j, m, a: jnp.digitize(e, a)), ("searchsorted(e, a)", lambda e, j, m, a: jnp.searchsorted(e, a)),
    ("searchsorted(a, e)", lambda e, j, m, a: jnp.searchsorted(a, e)), ("sort(m, axis=0)", lambda e, j, m, a: jnp.sort(m, axis=0)), ("argsort(e)", lambda e, j, m, a: jnp.argsort(e)),
    ("lexsort((e, j))", lambda e, j, m, a: jnp.lexsort((e, j))), ("top_k(e, 0)", lambda e, j, m, a: lax.top_k(e, 0)), ("top_k(a, 0)", lambda e, j, m, a: lax.top_k(a, 0)),
    ("top_k(m, 2)", lambda e, j, m, a: lax.top_k(m, 2)), ("histogram(e, bins=3, range=(0, 1)).0", lambda e, j, m, a: jnp.histogram(e, bins=3, range=(0, 1))[0]),
    ("bincount(j, length=3)", lambda e, j, m, a: jnp.bincount(j, length=3)), ("bincount(j, weights=e, length=3)", lambda e, j, m, a: jnp.bincount(j, weights=e, length=3)),
    ("segment_sum(e, j, 3)", lambda e, j, m, a: jax.ops.segment_sum(e, j, 3)), ("segment_max(e, j, 3)", lambda e, j, m, a: jax.ops.segment_max(e, j, 3)),
    ("segment_sum(m, j, 2)", lambda e, j, m, a: jax.ops.segment_sum(m, j, 2)), ("take(a, j)", lambda e, j, m, a: jnp.take(a, j)), ("take(e, j)", lambda e, j, m, a: jnp.take(e, j)),
    ("take_along_axis(a, j, axis=0)", lambda e, j, m, a: jnp.take_along_axis(a, j, axis=0)), ("interp(e, a, a)", lambda e, j, m, a: jnp.interp(e, a, a)),
    ("interp(a, a[:1], a[:1])", lambda e, j, m, a: jnp.interp(a, a[:1], a[:1])), ("median(m, axis=1)", lambda e, j, m, a: jnp.median(m, axis=1)),
]


def program(parameters, table):
    calls = ",\n  ".join(call for call, _ in table)
    return f"fn main({parameters}) {{ (\n  {calls},\n) }}"


def answers(table, *arrays):
    results = jax.tree.leaves(tuple(function(*map(jnp.asarray, arrays)) for _, function in table))
    return tuple(a.astype(np.int32) if a.dtype == np.int64 else a for a in map(np.asarray, results))


if __name__ == "__main__":
    for name, dtype in [("f32", np.float32), ("f16", np.float16), ("bf16", bfloat16), ("f64", np.float64)]:
        jax.config.update("jax_enable_x64", name == "f64")
        # NaN without a sign: JAX takes others for the smallest numbers in `top_k`.
        x = np.array([1, -0.0, 0, NAN, -1, 0, -0.0, INF, -INF, 0, NAN]).astype(dtype)
        y = np.array([0, -0.0, NAN, 1, -0.0, 0, -1, INF, 2, 0, 0, -INF]).astype(dtype)
        write(f"edge_orders_{name}", "exact", program(f"x: {name}[11@Y], y: {name}[12@X]", ORDERS), [x, y], answers(ORDERS, x, y))
    jax.config.update("jax_enable_x64", False)
    arrays = [np.arange(10, 60, 10, dtype=np.float32), np.arange(15, dtype=np.float32).reshape(5, 3),
              np.array([-1, -5, -6, -7, 0, 4, 5, 7, -100, 100], np.int32), np.array([[-1, 5], [0, -3], [2, 3], [-4, -9], [7, 1]], np.int32)]
    write("edge_indices", "exact", program("x: f32[5@X], m: f32[5@Y, 3], i: i32[10@Y], k: i32[5@X, 2]", INDICES), arrays, answers(INDICES, *arrays))
    arrays = [np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros((0, 3), np.float32), np.array([1, 2, 3], np.float32)]
    write("edge_empty", "exact", program("e: f32[0], j: i32[0], m: f32[0, 3@X], a: f32[3@Y]", EMPTY), arrays, answers(EMPTY, *arrays))
