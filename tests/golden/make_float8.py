"""Makes the golden arrays of the 8-bit floats: what `ml_dtypes` makes of them, beside the spmd text of each program.

    pip install "ml_dtypes==0.6.0" "numpy==2.4.6"
    python3 tests/golden/make_float8.py

Every code is widened, and floats around every boundary are rounded: each number of a type, the middle between each two, what is out of
range, and what is next to those in f32. Arithmetic is that of f32, rounded after each operation. The reciprocals tell zeros apart.
"""

import pathlib

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(20261123)
np.seterr(all="ignore")

TYPES = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
OTHERS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "bool": np.bool_, "i8": np.int8,
          "u8": np.uint8, "i32": np.int32, "i64": np.int64}


def codes(ty):
    return np.arange(256, dtype=np.uint8).view(ty)


def boundaries(ty):
    """In f64: the finite numbers of a type, the middles, and what lies beyond, of either sign."""
    numbers = np.unique(codes(ty).astype(np.float64))
    numbers = numbers[np.isfinite(numbers) & (numbers >= 0)]
    last = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    special = [last, 2 * numbers[-1], 1e6, 3e38, np.inf, np.nan, numbers[1] / 4, 1e-20, 1e-40]
    values = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, special])
    return np.concatenate([values, -values])


def around(ty, of):
    """The boundaries in another float type, each with its neighbours there."""
    x = boundaries(ty).astype(of)
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    # The neighbours of zero and infinity are of the other sign and NaN, which does no harm.
    return np.concatenate([x, (x.view(bits) + bits(1)).view(of), (x.view(bits) - bits(1)).view(of)])


def whole(dtype):
    """Integers around every boundary, and the ends of their type."""
    ends = np.iinfo(dtype)
    values = np.concatenate([boundaries(ty) for ty in TYPES.values()])
    values = np.unique(values[np.isfinite(values)].astype(np.int64))
    values = np.unique(np.concatenate([values, values + 1, values - 1, [ends.min, ends.max]]))
    return values[(values >= ends.min) & (values <= ends.max)].astype(dtype)


def operands(ty):
    """Pairs of any codes, and of ordinary numbers."""
    x, y = (rng.integers(0, 256, 200, dtype=np.uint8).view(ty) for _ in range(2))
    a, b = ((rng.standard_normal(200) * 4).astype(ty) for _ in range(2))
    return np.concatenate([x, a]), np.concatenate([y, b])


def converted(value, name):
    """As JAX converts, which saturates where C leaves it open."""
    dtype = np.dtype({**TYPES, **OTHERS}[name])
    if dtype.kind in "iu" and value.dtype.kind not in "iub":
        ends = np.iinfo(dtype)
        wide = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=1e30, neginf=-1e30)
        return np.array([min(max(int(x), ends.min), ends.max) for x in wide], dtype)
    return value.astype(dtype)


def reciprocal(value):
    return np.float32(1) / value.astype(np.float32)


def programs():
    for name, ty in TYPES.items():
        names = [other for other in {**TYPES, **OTHERS} if other != name]
        results = ", ".join(f"{other}(x)" for other in names)
        yield (f"{name}_widens", f"fn main(x: {name}[256@X]) {{ ({results}, 1 / f32(x)) }}", {"x": codes(ty)},
               [converted(codes(ty), other) for other in names] + [reciprocal(codes(ty))])

        inputs = {other: around(ty, OTHERS[other]) for other in ("f16", "bf16", "f32", "f64")}
        inputs |= {other: whole(OTHERS[other]) for other in ("i8", "u8", "i32", "i64")}
        rest = 40 - len(inputs["f32"]) % 40
        inputs["f32"] = np.concatenate([inputs["f32"], rng.integers(0, 2**32, 2000 + rest, dtype=np.uint32).view(np.float32)])
        params = ", ".join(f"{other}_: {other}[{len(value)}]" for other, value in inputs.items())
        results = ", ".join(f"{name}({other}_)" for other in inputs)
        rounded = [converted(value, name) for value in inputs.values()]
        yield (f"{name}_rounds", f"fn main({params}) {{ ({results}, 1 / f32({name}(f32_))) }}",
               {f"{other}_": value for other, value in inputs.items()}, rounded + [reciprocal(inputs["f32"].astype(ty))])

        x, y = operands(ty)
        f = [value.astype(np.float32) for value in (x, y)]
        tests = [f[0] + f[1], f[0] - f[1], f[0] * f[1], f[0] / f[1], np.maximum(*f), np.minimum(*f), np.sqrt(f[0]), np.abs(f[0]),
                 np.where(f[0] > f[1], f[0], f[1]), np.float32(2.5) * f[0]]
        yield (f"{name}_arithmetic",
               f"fn main(x: {name}[400@X], y: {name}[400@Y]) {{\n"
               "  (x + y, x - y, x * y, x / y, maximum(x, y), minimum(x, y), sqrt(x), abs(x), where(x > y, x, y), 2.5 * x,\n"
               "    x == y, x < y, isnan(x), isinf(x), 1 / f32(-x))\n}", {"x": x, "y": y},
               [test.astype(ty) for test in tests] + [x == y, x < y, np.isnan(x), np.isinf(f[0]), reciprocal(-x)])

        # Small whole numbers: their sums are exact in f32 in any order, and rounded once.
        a, b = rng.integers(-4, 5, (9, 40)).astype(ty), rng.integers(-4, 5, (40, 6)).astype(ty)
        wide = a.astype(np.float32)
        results = [np.sum(wide), np.sum(wide, 0), np.sum(wide, 1), wide @ b.astype(np.float32), np.cumsum(wide, 1), np.max(wide, 0),
                   np.min(wide), np.mean(wide, 1)]
        yield (f"{name}_sums",
               f"fn main(a: {name}[9@X, 40@Y], b: {name}[40@Y, 6]) {{\n"
               "  (sum(a), sum(a, axis=0), sum(a, axis=1), a @ b, cumsum(a, axis=1), max(a, axis=0), min(a), mean(a, axis=1),\n"
               "    argmax(a, axis=1), argmin(a, axis=0))\n}", {"a": a, "b": b},
               [result.astype(ty) for result in results] + [np.argmax(wide, 1).astype(np.int32), np.argmin(wide, 0).astype(np.int32)])


def main():
    for name, text, inputs, outputs in programs():
        arrays = {f"in.{param}": value for param, value in inputs.items()}
        arrays |= {f"out.{i}": np.asarray(value) for i, value in enumerate(outputs)}
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
        (HERE / f"{name}.spmd").write_text(f"//! tolerance: exact\nmesh (X = 2, Y = 4);\n{text}\n")


if __name__ == "__main__":
    main()
