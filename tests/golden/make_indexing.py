"""Makes the golden arrays of functions that take or set elements at indices from arrays, as `make.py` does, by NumPy and JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_indexing.py [NAME..]
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")
HERE = pathlib.Path(__file__).parent


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


FUNCTIONS = {"index_arrays": index_arrays}


def main():
    wanted = sys.argv[1:]
    for name, tolerance, text, inputs, function in PROGRAMS:
        if wanted and name not in wanted:
            continue
        outputs = (function or FUNCTIONS[name])(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        types = [f"{NAMES[str(value.dtype)]}{list(value.shape) or ''}" for value in map(np.asarray, outputs)]
        text = text.replace("RESULTS", f"({', '.join(types)})" if len(types) > 1 else types[0])
        signature = text[text.index("(") + 1 : text.index(") ->")]
        params = [part.split(":")[0].strip() for part in split_params(signature)]
        arrays = {f"in.{param}": value for param, value in zip(params, inputs, strict=True)}
        arrays |= {f"out.{i}": np.asarray(value) for i, value in enumerate(outputs)}
        np.savez(HERE / f"{name}.npz", **arrays)
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
