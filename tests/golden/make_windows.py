"""Makes the golden arrays of window reductions: each program is computed by JAX, like those of `make.py`.

    pip install "jax==0.10.2" "numpy==2.4.6"
    python3 tests/golden/make_windows.py

The pools are those of `flax.linen`, written with jax.lax. Floats are small whole numbers where a result is compared bit by bit, so
that their sums are exact in any order.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")
HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(20261124)
lax = jax.lax
INF = np.inf


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def whole(*shape, dtype=np.float32, low=-8, high=9):
    return rng.integers(low, high, shape).astype(dtype)


def special(*shape):
    """Numbers with repeated ones, infinities, NaN and both zeros among them."""
    x = whole(*shape)
    flat = x.reshape(-1)
    places = rng.permutation(flat.size)[:10]
    flat[places] = [np.nan, INF, -INF, -0.0, 0.0, np.nan, 7.0, 7.0, -INF, INF]
    return x


def window(x, init, op, sizes, strides=None, padding="VALID", base=None, dilation=None):
    rank = x.ndim
    return lax.reduce_window(x, np.asarray(init, x.dtype), op, sizes, strides or (1,) * rank, padding, base, dilation)


def pool(x, init, op, sizes, strides, padding):
    batch = x.ndim - len(sizes) - 1
    if not isinstance(padding, str):
        padding = ((0, 0),) * batch + padding + ((0, 0),)
    return window(x, init, op, (1,) * batch + sizes + (1,), (1,) * batch + strides + (1,), padding)


def max_pool(x, sizes, strides, padding="VALID"):
    return pool(x, -INF, lax.max, sizes, strides, padding)


def avg_pool(x, sizes, strides, padding="VALID", count_include_pad=True):
    total = pool(x, 0, lax.add, sizes, strides, padding)
    if count_include_pad:
        return total / np.prod(sizes).astype(x.dtype)
    return total / pool(jnp.ones(x.shape[:-1] + (1,), x.dtype), 0, lax.add, sizes, strides, padding)


PROGRAMS = [
    ("window_sums", "exact",
     "fn main(x: f32[13@Y], y: i32[7@X, 9@Y]) {\n"
     "  (reduce_window(x, 0, \"add\", 3), reduce_window(x, 0, \"add\", 4, padding=\"SAME\"),\n"
     "    reduce_window(x, 0, \"add\", (2,), window_strides=(3,), padding=((2, 5),), window_dilation=(2,)),\n"
     "    reduce_window(x, 0, \"add\", (3,), base_dilation=(2,), padding=((-1, 3),)), reduce_window(x, 3, \"add\", (2,), padding=1),\n"
     "    reduce_window(y, 0, \"add\", (3, 2), padding=\"SAME_LOWER\"), reduce_window(y, 1, \"mul\", (2, 2), (2, 3)),\n"
     "    reduce_window(y, 0, \"add\", (1, 1), window_strides=(2, 4)), reduce_window(y, 0, \"add\", (8, 1)))\n}",
     [whole(13), whole(7, 9, dtype=np.int32)],
     lambda x, y: (window(x, 0, lax.add, (3,)), window(x, 0, lax.add, (4,), padding="SAME"),
                   window(x, 0, lax.add, (2,), (3,), ((2, 5),), dilation=(2,)),
                   window(x, 0, lax.add, (3,), padding=((-1, 3),), base=(2,)), window(x, 3, lax.add, (2,), padding=((1, 1),)),
                   window(y, 0, lax.add, (3, 2), padding="SAME_LOWER"), window(y, 1, lax.mul, (2, 2), (2, 3)),
                   window(y, 0, lax.add, (1, 1), (2, 4)), window(y, 0, lax.add, (8, 1)))),
    ("window_extremes", "exact",
     "fn main(x: f32[9@X, 11@Y], y: i8[10@Y], b: bool[12@X]) {\n"
     "  (reduce_window(x, None, \"max\", (3, 3), padding=\"SAME\"), reduce_window(x, None, \"min\", (2, 3), (2, 2)),\n"
     "    reduce_window(x, 1, \"max\", (2, 2), padding=((0, 2), (1, 0))), reduce_window(y, None, \"max\", 4, padding=((3, 3),)),\n"
     "    reduce_window(y, None, \"min\", 3, window_dilation=2), reduce_window(b, true, \"and\", 3), reduce_window(b, false, \"or\", 3, 2, \"same\"))\n}",
     [special(9, 11), whole(10, dtype=np.int8, low=-128, high=128), rng.random(12) < 0.5],
     lambda x, y, b: (window(x, -INF, lax.max, (3, 3), padding="SAME"), window(x, INF, lax.min, (2, 3), (2, 2)),
                      window(x, 1, lax.max, (2, 2), padding=((0, 2), (1, 0))), window(y, -128, lax.max, (4,), padding=((3, 3),)),
                      window(y, 127, lax.min, (3,), dilation=(2,)), window(b, True, lax.bitwise_and, (3,)),
                      window(b, False, lax.bitwise_or, (3,), (2,), "SAME"))),
    ("window_edges", "exact",
     "fn main(x: f32[1@X, 1@Y], y: f32[5@Y, 0], z: i16[6@Y]) {\n"
     "  (reduce_window(x, 0, \"add\", (3, 3), padding=\"SAME\"), reduce_window(x, None, \"max\", (2, 1)),\n"
     "    reduce_window(y, 0, \"add\", (2, 2)), reduce_window(y, 5, \"add\", (2, 2), padding=1), reduce_window(z, 0, \"add\", 2, padding=\"SAME\"),\n"
     "    reduce_window(z, 0, \"add\", 6), reduce_window(z, 0, \"add\", 7), reduce_window(z, 0, \"add\", 1, padding=((-4, 9),)))\n}",
     [whole(1, 1), whole(5, 0), whole(6, dtype=np.int16, low=-30000, high=30000)],
     lambda x, y, z: (window(x, 0, lax.add, (3, 3), padding="SAME"), window(x, -INF, lax.max, (2, 1)), window(y, 0, lax.add, (2, 2)),
                      window(y, 5, lax.add, (2, 2), padding=((1, 1), (1, 1))), window(z, 0, lax.add, (2,), padding="SAME"),
                      window(z, 0, lax.add, (6,)), window(z, 0, lax.add, (7,)), window(z, 0, lax.add, (1,), padding=((-4, 9),)))),
    ("pools", "reduction",
     "fn main(x: f32[2@X, 9@Y, 7, 3], y: f64[1, 6, 5@Y, 4, 2], z: f32[11@Y, 2]) {\n"
     "  (max_pool(x, (2, 2), strides=(2, 2)), max_pool(x, (3, 3), padding=\"SAME\"), avg_pool(x, (2, 3), strides=(2, 1)),\n"
     "    avg_pool(x, (3, 2), (2, 2), \"SAME\"), avg_pool(x, (3, 2), (2, 2), \"SAME\", count_include_pad=false),\n"
     "    avg_pool(x, (3, 3), padding=((1, 0), (0, 2)), count_include_pad=false), max_pool(x, (2, 2), padding=((1, 1), (0, 3))),\n"
     "    avg_pool(y, (2, 3, 2), (1, 2, 2), \"SAME\", count_include_pad=false), max_pool(z, (4,), strides=(3,)))\n}",
     [f32(2, 9, 7, 3), rng.standard_normal((1, 6, 5, 4, 2)), f32(11, 2)],
     lambda x, y, z: (max_pool(x, (2, 2), (2, 2)), max_pool(x, (3, 3), (1, 1), "SAME"), avg_pool(x, (2, 3), (2, 1)),
                      avg_pool(x, (3, 2), (2, 2), "SAME"), avg_pool(x, (3, 2), (2, 2), "SAME", False),
                      avg_pool(x, (3, 3), (1, 1), ((1, 0), (0, 2)), False), max_pool(x, (2, 2), (1, 1), ((1, 1), (0, 3))),
                      avg_pool(y, (2, 3, 2), (1, 2, 2), "SAME", False), max_pool(z, (4,), (3,)))),
]


def main():
    for name, tolerance, text, inputs, function in PROGRAMS:
        jax.config.update("jax_enable_x64", any(value.dtype == np.float64 for value in inputs))
        outputs = function(*(jnp.asarray(value) for value in inputs))
        params = [part.split(":")[0].strip() for part in split_params(text[text.index("(") + 1 : text.index(") {")])]
        arrays = {f"in.{param}": value for param, value in zip(params, inputs, strict=True)}
        arrays |= {f"out.{i}": np.asarray(value) for i, value in enumerate(outputs)}
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
        (HERE / f"{name}.spmd").write_text(f"//! tolerance: {tolerance}\nmesh (X = 2, Y = 4);\n{text}\n")


def split_params(signature):
    parts, depth = [""], 0
    for char in signature:
        depth += (char in "[(") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


if __name__ == "__main__":
    main()
