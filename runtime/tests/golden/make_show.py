"""Writes show.txt: arrays as bytes, and what NumPy prints for them. Run with numpy 2.4 and ml_dtypes 0.6 installed."""

import pathlib
import numpy as np
import ml_dtypes

NAMES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}
rng = np.random.default_rng(7)
cases = []


def add(name, array):
    cases.append((name, np.asarray(array, dtype=NAMES[name])))


def shapes():
    return [(), (1,), (5,), (40,), (3, 4), (2, 3, 2), (1, 30), (2, 2, 2, 2), (7, 1)]


for name, dtype in NAMES.items():
    info = None if name == "bool" or name.startswith(("f", "b")) else np.iinfo(dtype)
    for shape in shapes():
        if name == "bool":
            add(name, rng.integers(0, 2, shape).astype(bool))
        elif info is not None:
            add(name, rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))
            add(name, rng.integers(0, 100, shape).astype(dtype))
        else:
            add(name, rng.normal(size=shape))
            add(name, np.round(rng.normal(size=shape) * 4) / 4)
            with np.errstate(over="ignore"):
                add(name, (rng.normal(size=shape) * 10.0 ** rng.integers(-12, 13, shape)).astype(dtype))
                add(name, (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 9)).astype(dtype))
            special = rng.normal(size=shape) * 3
            holes = rng.integers(0, 6, shape)
            special = np.where(holes == 0, np.nan, np.where(holes == 1, -np.inf, np.where(holes == 2, np.inf, special)))
            add(name, special)
            add(name, np.where(holes == 0, np.nan, np.round(special)))
    add(name, np.zeros((0,)))
    add(name, np.zeros((3, 0, 2)))
    add(name, np.arange(1001) % 120)
    if name in ("i8", "f16"):
        add(name, np.arange(1000) % 120)
        add(name, np.arange(1200).reshape(30, 40) % 100)
        add(name, np.arange(3 * 2 * 200).reshape(3, 2, 200) % 90)
        add(name, np.arange(2000).reshape(10, 10, 20) % 77)

for name in ("f16", "f32", "f64"):
    for x in (0.0, -0.0, 1.0, 1e16, 1e-4, 9.999e-5, 123456.789, 65504, 0.1, 1 / 3, 1e15, 999999, 1e6, 999.5, 99999999, 1e-7, 3.5, 2.5e-8,
              np.inf, -np.inf, np.nan, np.finfo(NAMES[name]).max, np.finfo(NAMES[name]).tiny):
        with np.errstate(over="ignore"):
            add(name, NAMES[name](x))
            add(name, [NAMES[name](x)])
            add(name, [NAMES[name](x), NAMES[name](1.5)])
    add(name, [np.nan, np.nan])
    add(name, [np.inf, -np.inf])
    add(name, [-0.0, 0.0])
    add(name, [999.9999, 1000])
    add(name, [99999999.0, 1] if name == "f64" else [9999.0, 1])
    add(name, [1e-100, 1e100, 1] if name == "f64" else [1e-5, 1e5])
    add(name, rng.normal(size=(7, 150)))

add("bf16", [1e-30, 3e38, 1e5, 999999, 1000000, 0.0001, 0.00009, np.nan, np.inf, -np.inf, -0.0])

# Last, and not among the names: what was drawn before stays as it is.
EIGHT_BITS = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
NAMES |= EIGHT_BITS
for name, dtype in EIGHT_BITS.items():
    codes = np.arange(256, dtype=np.uint8).view(dtype)
    for code in codes:
        add(name, code)
    add(name, codes)
    add(name, codes.reshape(8, 2, 16))
    add(name, np.zeros((0,)))
    add(name, np.tile(codes, 5))

with open(pathlib.Path(__file__).parent / "show.txt", "w") as out:
    for name, array in cases:
        text = str(array)
        out.write(f"{name} {','.join(map(str, array.shape))} {array.tobytes().hex()}\n")
        out.write("".join(f"|{line}\n" for line in text.split("\n")))
