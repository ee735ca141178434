"""Makes the golden arrays of sorts and selections by JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_sort.py
"""

import jax
import jax.numpy as jnp
import numpy as np

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261124)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def few(*shape, of=np.int32):
    """Many equal elements."""
    return rng.integers(-3, 4, shape).astype(of)


def special(*shape):
    """NaNs of either sign, infinities, zeros of either sign, and few other numbers."""
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 1e-30, -1e-30], np.float32)
    return values[rng.integers(0, len(values), shape)]


def sorts(x):
    return jnp.sort(x), jnp.sort(x, axis=0), jnp.sort(x, axis=None, descending=True), jnp.argsort(x).astype(np.int32), \
        jnp.argsort(x, axis=0, descending=True).astype(np.int32)


def sort_program(name, dtype, values):
    rows, columns = values.shape
    text = (f"fn main(x: {dtype}[{rows}@X, {columns}@Y]) -> ({dtype}[{rows}, {columns}], {dtype}[{rows}, {columns}], "
            f"{dtype}[{rows * columns}], i32[{rows}, {columns}], i32[{rows}, {columns}]) {{\n"
            "  (sort(x), sort(x, axis=0), sort(x, axis=None, descending=true), argsort(x), argsort(x, axis=0, descending=true))\n}")
    return name, "exact", text, [values], sorts


QUANTILES = ["linear", "lower", "higher", "nearest", "midpoint"]


def quantiles(x):
    each = [jnp.quantile(x, q, axis=1, method=method) for method in QUANTILES for q in (0.0, 0.3, 1.0)]
    return jnp.stack(each), jnp.percentile(x, jnp.array([25.0, 75.0]), axis=0), jnp.quantile(x, 0.3), jnp.median(x), \
        jnp.median(x, axis=(0, 1), keepdims=True)


QUANTILE_TEXT = "[" + ", ".join(f"quantile(x, {q}, axis=1, method=\"{method}\")" for method in QUANTILES for q in (0.0, 0.3, 1.0)) + "]"


def quantile_program(name, values):
    rows, columns = values.shape
    text = (f"fn main(x: f32[{rows}@X, {columns}@Y]) -> (f32[15, {rows}], f32[2, {columns}], f32, f32, f32[1, 1]) {{\n"
            f"  (stack({QUANTILE_TEXT}), percentile(x, [25, 75], axis=0), quantile(x, 0.3), median(x), median(x, axis=(0, 1), keepdims=true))\n}}")
    return name, "elementwise", text, [values], quantiles


def top_program(name, dtype, values, k):
    rows, columns = values.shape
    text = (f"fn main(x: {dtype}[{rows}@X, {columns}@Y]) -> ({dtype}[{rows}, {k}], i32[{rows}, {k}]) {{ top_k(x, {k}) }}")
    return name, "exact", text, [values], lambda x: tuple(jax.lax.top_k(x, k))


def chosen(x):
    flat = jnp.nonzero(x, size=9, fill_value=-1)
    few = jnp.nonzero(x > 1, size=4)
    return *(index.astype(np.int32) for index in (*flat, *few)), jnp.unique(x, size=5), jnp.unique(x, size=9, fill_value=100)


with_nan = f32(6, 9)
with_nan[2, 3] = np.nan
PROGRAMS = [
    sort_program("sort_floats", "f32", f32(5, 13)),
    sort_program("sort_equal", "i32", few(7, 9)),
    sort_program("sort_special", "f32", special(6, 37)),
    sort_program("sort_bytes", "u8", rng.integers(0, 256, (4, 70)).astype(np.uint8)),
    sort_program("sort_small_integers", "i16", few(3, 50, of=np.int16)),
    sort_program("sort_wide", "f64", rng.standard_normal((3, 40))),
    sort_program("sort_wide_integers", "i64", rng.integers(-2**62, 2**62, (3, 40))),
    sort_program("sort_half", "f16", special(4, 41).astype(np.float16)),
    sort_program("sort_bools", "bool", rng.random((4, 45)) < 0.5),
    sort_program("sort_one_column", "f32", f32(5, 1)),
    ("sort_by_several_keys", "exact", "fn main(a: i32[40@Y], b: f32[40@Y], c: u8[40]) -> (i32[40], i32[40]) { (lexsort((c, b, a)), lexsort((a, c))) }",
     [few(40), few(40, of=np.float32), few(40).astype(np.uint8) % 3],
     lambda a, b, c: (jnp.lexsort((c, b, a)).astype(np.int32), jnp.lexsort((a, c)).astype(np.int32))),
    top_program("top_floats", "f32", f32(6, 21), 4),
    top_program("top_equal", "i32", few(3, 30), 7),
    top_program("top_all", "f32", f32(2, 5), 5),
    quantile_program("quantiles", f32(6, 9)),
    quantile_program("quantiles_of_one", f32(1, 1)),
    quantile_program("quantiles_with_nan", with_nan),
    ("chosen", "exact", "fn main(x: i32[6@X, 5@Y]) -> (i32[9], i32[9], i32[4], i32[4], i32[5], i32[9]) {\n"
     "  let (a, b) = nonzero(x, size=9, fill_value=-1);\n  let (c, d) = nonzero(x > 1, size=4);\n"
     "  (a, b, c, d, unique(x, size=5), unique(x, size=9, fill_value=100))\n}", [few(6, 5)], chosen),
    ("chosen_few", "exact", "fn main(x: f32[3@X, 2@Y]) -> (i32[9], i32[9], f32[4]) {\n"
     "  let (a, b) = nonzero(x, size=9);\n  (a, b, unique(x, size=4))\n}", [np.array([[0, 2], [np.nan, np.nan], [0, -1]], np.float32)],
     lambda x: (*(index.astype(np.int32) for index in jnp.nonzero(x, size=9)), jnp.unique(x, size=4))),
]

if __name__ == "__main__":
    store(PROGRAMS)
