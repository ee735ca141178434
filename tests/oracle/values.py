"""Element types of the language as NumPy has them, and arrays with a bound of their error.

A value is exact, or carries a bound for each element: sums may be taken in another order, and functions such as `sin` are right within
an ULP. Exact values are compared bit for bit.
"""

import ml_dtypes
import numpy as np

TYPES = {
    "bool": np.dtype(bool), "i8": np.dtype("i1"), "i16": np.dtype("i2"), "i32": np.dtype("i4"), "i64": np.dtype("i8"),
    "u8": np.dtype("u1"), "u16": np.dtype("u2"), "u32": np.dtype("u4"), "u64": np.dtype("u8"),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f16": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype("f4"), "f64": np.dtype("f8"),
}
NAMES = {dtype: name for name, dtype in TYPES.items()}
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"]
# Computed in f32.
NARROW = ["f8e4m3", "f8e5m2", "f16", "bf16"]
# The distance from 1 to the next number, and the smallest number.
EPS = {"f8e4m3": 2.0**-3, "f8e5m2": 2.0**-2, "f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
TINY = {"f8e4m3": 2.0**-9, "f8e5m2": 2.0**-16, "f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}
MOST = {"f8e4m3": 200.0, "f8e5m2": 2e4, "f16": 3e4, "bf16": 1e30, "f32": 1e30, "f64": 1e200}
F64 = np.float64


class Refused(Exception):
    """The statement makes no sense for these operands."""


def need(condition):
    if not condition:
        raise Refused


# ------------------------------------------------------------------------------------------- element types and errors


def is_float(name):
    return name in EPS


def is_int(name):
    return name[0] in "iu"


def wide(a):
    """Narrow floats are computed in f32."""
    return a.astype(np.float32) if NAMES[a.dtype] in NARROW else a


def ulp(a):
    name = NAMES[a.dtype]
    return EPS[name] * np.abs(a.astype(F64)) + TINY[name]


def promoted(x, y):
    """The type in which two operands meet, as JAX has it."""
    if x == y:
        return x
    if x == "bool" or y == "bool":
        return y if x == "bool" else x
    if is_float(x) or is_float(y):
        if is_float(x) and is_float(y):
            need(x[:2] != "f8" and y[:2] != "f8")
            bits = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
            return "f32" if {x, y} == {"f16", "bf16"} else max(x, y, key=bits.get)
        return x if is_float(x) else y
    if x[0] == y[0]:
        return max(x, y, key=lambda name: int(name[1:]))
    signed, unsigned = (x, y) if x[0] == "i" else (y, x)
    if unsigned == "u64":
        return "f32"
    return f"i{max(int(signed[1:]), 2 * int(unsigned[1:]))}"


def cast(a, name):
    source, to = NAMES[a.dtype], TYPES[name]
    if source == name:
        return a
    if name == "bool":
        return wide(a) != 0
    if is_float(source) and is_int(name):
        limits, x = np.iinfo(to), np.trunc(np.nan_to_num(a.astype(F64), posinf=np.inf, neginf=-np.inf))
        high, low = x >= float(limits.max), x <= float(limits.min)
        out = np.where(high | low, 0, x).astype(to)
        return np.where(high, to.type(limits.max), np.where(low, to.type(limits.min), out))
    if name in NARROW:
        return a.astype(np.float32).astype(to)
    return a.astype(to)


class V:
    """An array, and a bound of the error of each element: None if it is exact."""

    __slots__ = ("a", "e", "name")

    def __init__(self, a, e=None, name=""):
        self.a, self.e, self.name = np.asarray(a), e, name

    dt = property(lambda self: NAMES[self.a.dtype])
    shape = property(lambda self: self.a.shape)
    exact = property(lambda self: self.e is None)

    def err(self):
        return np.zeros(self.a.shape) if self.e is None else self.e


def moved(x, f):
    """Elements at other places; errors go with them."""
    return V(f(x.a), None if x.exact else f(x.e))


def as_type(x, name):
    if x.exact:
        return V(cast(x.a, name))
    need(is_float(name))
    a = cast(x.a, name)
    return V(a, x.e + (ulp(a) if EPS[name] > EPS[x.dt] else 0))


def grained(*values):
    """Whether sums of products of these numbers are exact in f32, as long as they stay below 2^16."""
    return all(v.exact and bool(np.all(np.abs(v.a) <= 64) and np.all(wide(v.a) * 4 == np.round(wide(v.a) * 4))) for v in values)


def summed(total, size, e, name, terms, *values, in_order=False):
    """A sum in f64, of terms whose magnitudes come to `size`, as the type has it. Terms that are added one after the other, as those of
    running totals, may all be rounded the same way."""
    acc = "f64" if name == "f64" else "f32"
    factor = 2 if values and grained(*values) and acc == "f32" and np.all(size < 2**16) else 4 + (terms / 2 if in_order else 2 * terms**0.5)
    a = cast(total, name)
    return V(a, e + factor * EPS[acc] * size + (ulp(a) if name in NARROW else 0) + TINY[name] * 4)
