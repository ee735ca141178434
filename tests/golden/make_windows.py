"""Makes the golden arrays of window reductions and convolutions: each program is computed by JAX, like those of `make.py`.

    pip install "jax==0.10.2" "numpy==2.4.6"
    python3 tests/golden/make_windows.py

The pools are those of `flax.linen`, written with jax.lax. Floats are small whole numbers where a result is compared bit by bit, so
that their sums are exact in any order.
"""

import jax
import jax.numpy as jnp
import numpy as np

from store import write

jax.config.update("jax_platforms", "cpu")
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


NUMBERS = {3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC")}


def conv(x, w, stride=None, padding="SAME", dilation=None, groups=1, base=None):
    one = (1,) * (x.ndim - 2)
    return lax.conv_general_dilated(x, w, stride or one, padding, base, dilation, NUMBERS[x.ndim], groups,
                                    precision=lax.Precision.HIGHEST)


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
    ("convolutions", "exact",
     "fn main(x: f32[2, 9@X, 7@Y, 3], w: f32[3, 2, 3, 4], s: f32[3@X, 11@Y, 2], u: f32[4, 2, 5], v: f32[1, 5@Y, 4, 3, 2], k: f32[2, 2, 3, 2, 3]) {\n"
     "  (conv(x, w), conv(x, w, padding=\"valid\"), conv(x, w, stride=2), conv(x, w, stride=(2, 3), padding=((2, 0), (1, 4))),\n"
     "    conv(x, w, dilation=(2, 3)), conv(x, w, padding=1, input_dilation=(2, 1)), conv(s, u), conv(s, u, stride=3, dilation=2),\n"
     "    conv(v, k), conv(v, k, stride=(1, 2, 1), padding=((-1, 2), 0, (0, 1))))\n}",
     [whole(2, 9, 7, 3), whole(3, 2, 3, 4), whole(3, 11, 2), whole(4, 2, 5), whole(1, 5, 4, 3, 2), whole(2, 2, 3, 2, 3)],
     lambda x, w, s, u, v, k: (conv(x, w), conv(x, w, padding="VALID"), conv(x, w, (2, 2)), conv(x, w, (2, 3), ((2, 0), (1, 4))),
                               conv(x, w, dilation=(2, 3)), conv(x, w, padding=((1, 1), (1, 1)), base=(2, 1)), conv(s, u),
                               conv(s, u, (3,), dilation=(2,)), conv(v, k),
                               conv(v, k, (1, 2, 1), ((-1, 2), (0, 0), (0, 1))))),
    ("grouped_convolutions", "exact",
     "fn main(x: f32[2, 6, 5@Y, 4@X], d: f32[3, 3, 1, 4], e: f32[2, 2, 1, 8], g: f32[3, 1, 2, 6], o: f32[1, 1, 4, 3], i: i32[1, 8@Y, 2], j: i32[3, 2, 2]) {\n"
     "  (conv(x, d, groups=4), conv(x, e, groups=4, stride=2), conv(x, g, groups=2, padding=\"VALID\"), conv(x, o), conv(x, o, stride=2),\n"
     "    conv(i, j), conv(x, d[:1, :1], groups=4))\n}",
     [whole(2, 6, 5, 4), whole(3, 3, 1, 4), whole(2, 2, 1, 8), whole(3, 1, 2, 6), whole(1, 1, 4, 3), whole(1, 8, 2, dtype=np.int32),
      whole(3, 2, 2, dtype=np.int32)],
     lambda x, d, e, g, o, i, j: (conv(x, d, groups=4), conv(x, e, (2, 2), groups=4), conv(x, g, padding="VALID", groups=2), conv(x, o),
                                  conv(x, o, (2, 2)), conv(i, j), conv(x, d[:1, :1], groups=4))),
    ("transposed_convolutions", "exact",
     "fn main(x: f32[2, 5@X, 4@Y, 3], w: f32[3, 2, 3, 4], t: f32[3, 2, 4, 3], s: f32[2, 6@Y, 2], u: f32[4, 2, 3]) {\n"
     "  (conv_transpose(x, w, stride=2), conv_transpose(x, w, stride=(1, 3), padding=\"VALID\"), conv_transpose(x, w, stride=(2, 2), padding=((1, 2), (0, 1))),\n"
     "    conv_transpose(x, t, stride=2, transpose_kernel=true), conv_transpose(x, w, stride=(2, 1), dilation=(2, 3)), conv_transpose(s, u, stride=5),\n"
     "    conv_transpose(s, u))\n}",
     [whole(2, 5, 4, 3), whole(3, 2, 3, 4), whole(3, 2, 4, 3), whole(2, 6, 2), whole(4, 2, 3)],
     lambda x, w, t, s, u: (lax.conv_transpose(x, w, (2, 2), "SAME"), lax.conv_transpose(x, w, (1, 3), "VALID"),
                            lax.conv_transpose(x, w, (2, 2), ((1, 2), (0, 1))),
                            lax.conv_transpose(x, t, (2, 2), "SAME", transpose_kernel=True),
                            lax.conv_transpose(x, w, (2, 1), "SAME", rhs_dilation=(2, 3)), lax.conv_transpose(s, u, (5,), "SAME"),
                            lax.conv_transpose(s, u, (1,), "SAME"))),
    ("convolved_vectors", "exact",
     "fn main(a: f32[11@Y], v: f32[4], i: i32[3@X], b: bool[5]) {\n"
     "  (convolve(a, v), convolve(v, a, mode=\"same\"), convolve(a, v, mode=\"valid\"), convolve(a, i, \"same\"), convolve(i, i), convolve(b, b), convolve(a, v[:1]))\n}",
     [whole(11), whole(4), whole(3, dtype=np.int32), rng.random(5) < 0.5],
     lambda a, v, i, b: (jnp.convolve(a, v), jnp.convolve(v, a, "same"), jnp.convolve(a, v, "valid"), jnp.convolve(a, i, "same"),
                         jnp.convolve(i, i), jnp.convolve(b, b), jnp.convolve(a, v[:1]))),
]


def main():
    for name, tolerance, text, inputs, function in PROGRAMS:
        jax.config.update("jax_enable_x64", any(value.dtype == np.float64 for value in inputs))
        outputs = function(*(jnp.asarray(value) for value in inputs))
        write(name, tolerance, text, inputs, outputs, save=np.savez_compressed)


if __name__ == "__main__":
    main()
