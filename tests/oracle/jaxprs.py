"""Runs what JAX traces (a jaxpr) with NumPy, operation by operation.

JAX compiles each operation for each shape, which takes tens of milliseconds; random programs have ever new ones. The rules of derivatives,
which are the matter of the comparison, are JAX's in the jaxpr already. Operations that are not in the table below run in JAX.
"""

import collections
import string

import jax
import numpy as np
from jax.extend import core
from scipy import special

# Names of operations that ran in JAX, and how many times.
IN_JAX = collections.Counter()


def whole_power(x, y):
    """By squares, as XLA does, so that zeros and infinities have its signs."""
    n, result = abs(y), None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if n:
            x = x * x
    result = np.ones_like(x) if result is None else result
    return 1 / result if y < 0 else result


def select_n(which, *cases):
    which = np.asarray(which)
    if which.dtype == bool:
        return np.where(which, cases[1], cases[0])
    return np.choose(which, cases)


def dot_general(x, y, dimension_numbers, preferred_element_type=None, **_):
    (xc, yc), (xb, yb) = dimension_numbers
    letters = iter(string.ascii_letters)
    left = [next(letters) for _ in range(np.ndim(x))]
    right = [None] * np.ndim(y)
    for a, b in [*zip(xc, yc), *zip(xb, yb)]:
        right[b] = left[a]
    right = [letter or next(letters) for letter in right]
    batch = [left[a] for a in xb]
    out = batch + [l for a, l in enumerate(left) if a not in (*xc, *xb)] + [l for b, l in enumerate(right) if b not in (*yc, *yb)]
    result = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)
    return result if preferred_element_type is None else result.astype(preferred_element_type)


def broadcast_in_dim(x, shape, broadcast_dimensions, **_):
    ones = [1] * len(shape)
    for size, at in zip(np.shape(x), broadcast_dimensions):
        ones[at] = size
    return np.broadcast_to(np.reshape(x, ones), shape)


def pad(x, value, padding_config):
    x = np.asarray(x)
    for axis, (low, high, interior) in enumerate(padding_config):
        n = x.shape[axis]
        size = n + max(n - 1, 0) * interior
        wide = np.full([size if a == axis else s for a, s in enumerate(x.shape)], value, x.dtype)
        wide[(slice(None),) * axis + (slice(None, None, interior + 1),)] = x
        wide = wide[(slice(None),) * axis + (slice(max(-low, 0), size - max(-high, 0)),)]
        x = np.pad(wide, [(max(low, 0), max(high, 0)) if a == axis else (0, 0) for a in range(x.ndim)], constant_values=value)
    return x


def sort(*operands, dimension, num_keys, **_):
    order = np.arange(operands[0].shape[dimension]).reshape([-1 if a == dimension else 1 for a in range(operands[0].ndim)])
    order = np.broadcast_to(order, operands[0].shape)
    for key in reversed(operands[:num_keys]):
        by = np.argsort(np.take_along_axis(key, order, dimension), axis=dimension, kind="stable")
        order = np.take_along_axis(order, by, dimension)
    return [np.take_along_axis(np.asarray(x), order, dimension) for x in operands]


def scanned(function):
    def run(x, axis, reverse):
        x = np.flip(x, axis) if reverse else x
        x = function.accumulate(x, axis=axis)
        return np.flip(x, axis) if reverse else x
    return run


def complex_of(x, y):
    result = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), np.complex128)
    result.real, result.imag = x, y
    return result


def fft(x, fft_type, fft_lengths):
    axes = tuple(range(np.ndim(x) - len(fft_lengths), np.ndim(x)))
    function = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[getattr(fft_type, "name", fft_type)]
    return function(x, s=fft_lengths, axes=axes)


def starts(x, sizes, at):
    return tuple(slice(s, s + n) for s, n in zip([min(max(int(i), 0), n - m) for i, n, m in zip(at, np.shape(x), sizes)], sizes))


def update_slice(x, update, *at):
    x = np.array(x)
    x[starts(x, np.shape(update), at)] = update
    return x


def divided(x, y):
    if np.issubdtype(np.result_type(x), np.integer):
        return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(np.result_type(x))
    return np.divide(x, y)


def real_only(function):
    """Complex functions have conventions on their axes, so JAX computes them itself."""
    function.is_real_only = True
    return function


def real(function):
    return real_only(lambda x: function(x))


def reduced(function):
    return lambda x, axes, **_: function(x, axis=tuple(axes))


def cut(x, start_indices, limit_indices, strides):
    return x[tuple(slice(a, b, c) for a, b, c in zip(start_indices, limit_indices, strides or [1] * len(start_indices)))]


def converted(x, new_dtype, **_):
    x = np.asarray(x)
    return (x.real if np.iscomplexobj(x) and not np.issubdtype(new_dtype, np.complexfloating) else x).astype(new_dtype)


def rounded(x, rounding_method):
    assert rounding_method == jax.lax.RoundingMethod.TO_NEAREST_EVEN, rounding_method
    return np.round(x)


def places(shape, indices, dimension_numbers, sizes, result_shape, spread, kept_out):
    """For each element of a gather's result, or of a scatter's update, its place in the array of this shape, and whether it is inside.

    `spread` are the dimensions of the result that run through a window, `kept_out` those of the array that have none there.
    """
    d, rank = dimension_numbers, len(result_shape)
    batch = [a for a in range(rank) if a not in spread]
    along = lambda values, axes: np.asarray(values).reshape([result_shape[a] if a in axes else 1 for a in range(rank)])
    at, inside, windows = [], np.bool_(True), iter(spread)
    indices_batch = d[1]
    for axis, size in enumerate(shape):
        place = np.int64(0)
        if axis in d[2]:
            start = indices[..., d[2].index(axis)].astype(np.int64)
            start = along(start, batch)
            inside = inside & (start >= 0) & (start <= size - sizes[axis])
            place = np.clip(start, 0, size - sizes[axis])
        if axis in d[0]:
            which = batch[indices_batch[d[0].index(axis)]]
            place = along(np.arange(result_shape[which]), [which])
        elif axis not in kept_out:
            window = next(windows)
            place = place + along(np.arange(sizes[axis]), [window])
        at.append(np.broadcast_to(place, result_shape))
    return tuple(at), np.broadcast_to(inside, result_shape)


def drops(mode):
    return jax.lax.GatherScatterMode.from_any(mode) == jax.lax.GatherScatterMode.FILL_OR_DROP


def gather(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    d = dimension_numbers
    out = list(np.shape(indices)[:-1])
    for a, n in zip(d.offset_dims, [n for a, n in enumerate(slice_sizes) if a not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]):
        out.insert(a, n)
    at, inside = places(np.shape(x), indices, (d.operand_batching_dims, d.start_indices_batching_dims, d.start_index_map), slice_sizes, out, d.offset_dims,
                        d.collapsed_slice_dims)
    result = np.asarray(x)[at]
    if drops(mode):
        missing = np.nan if fill_value is None and np.issubdtype(result.dtype, np.inexact) else fill_value
        assert missing is not None or np.all(inside)
        result = result if np.all(inside) else np.where(inside, result, missing)
    return result


def scattered(how):
    def scatter(x, indices, updates, *, dimension_numbers, mode, **_):
        d, x = dimension_numbers, np.array(x)
        sizes, windows = [], iter(d.update_window_dims)
        for a in range(x.ndim):
            sizes.append(1 if a in (*d.inserted_window_dims, *d.operand_batching_dims) else updates.shape[next(windows)])
        at, inside = places(x.shape, indices, (d.operand_batching_dims, d.scatter_indices_batching_dims, d.scatter_dims_to_operand_dims), sizes, updates.shape,
                            d.update_window_dims, d.inserted_window_dims)
        if drops(mode):
            at, updates = tuple(a[inside] for a in at), np.asarray(updates)[inside]
        how(x, at, updates)
        return x
    return scatter


def put(x, at, updates):
    x[at] = updates


TABLE = {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "div": divided, "rem": np.fmod, "neg": np.negative, "max": np.maximum, "min": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "round": rounded, "is_finite": np.isfinite, "nextafter": np.nextafter,
    "sign": lambda x: np.where(x == 0, x, np.sign(x)), "square": lambda x: x * x, "integer_pow": lambda x, y: whole_power(x, y), "pow": real_only(lambda x, y: np.power(x, y)),
    "sin": real(np.sin), "cos": real(np.cos), "tan": real(np.tan), "exp": real(np.exp), "exp2": real(np.exp2), "log": real(np.log), "log1p": real(np.log1p),
    "expm1": real(np.expm1), "tanh": real(np.tanh), "sinh": real(np.sinh), "cosh": real(np.cosh), "asin": real(np.arcsin), "acos": real(np.arccos),
    "atan": real(np.arctan), "asinh": real(np.arcsinh), "acosh": real(np.arccosh), "atanh": real(np.arctanh), "sqrt": real(np.sqrt), "cbrt": real(np.cbrt),
    "rsqrt": real(lambda x: 1 / np.sqrt(x)), "logistic": real(lambda x: 1 / (1 + np.exp(-x))), "atan2": np.arctan2, "erf": special.erf, "erfc": special.erfc,
    "erf_inv": special.erfinv, "digamma": special.digamma, "polygamma": special.polygamma,
    "lgamma": special.gammaln, "select_n": select_n, "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high), "dot_general": dot_general,
    "broadcast_in_dim": broadcast_in_dim, "reshape": lambda x, new_sizes, **_: np.reshape(x, new_sizes), "transpose": lambda x, permutation: np.transpose(x, permutation),
    "squeeze": lambda x, dimensions: np.squeeze(x, tuple(dimensions)), "rev": lambda x, dimensions: np.flip(x, tuple(dimensions)), "slice": cut, "pad": pad,
    "concatenate": lambda *xs, dimension: np.concatenate(xs, dimension), "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    "iota": lambda *, dtype, shape, dimension, **_: np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape([-1 if a == dimension else 1 for a in range(len(shape))]), shape),
    "convert_element_type": converted, "bitcast_convert_type": lambda x, new_dtype: np.asarray(x).view(new_dtype),
    "stop_gradient": lambda x: x, "copy": lambda x: x, "copy_p": lambda x: x, "reduce_sum": reduced(np.sum), "reduce_max": reduced(np.max), "reduce_min": reduced(np.min),
    "reduce_prod": reduced(np.prod), "reduce_or": reduced(np.any), "reduce_and": reduced(np.all), "cumsum": scanned(np.add), "cumprod": scanned(np.multiply),
    "cummax": scanned(np.maximum), "cummin": scanned(np.minimum), "cumlogsumexp": scanned(np.logaddexp), "complex": complex_of, "real": np.real, "imag": np.imag,
    "conj": lambda x, **_: np.conj(x), "fft": fft, "sort": sort, "dynamic_slice": lambda x, *at, slice_sizes: x[starts(x, slice_sizes, at)], "dynamic_update_slice": update_slice,
    "shift_right_arithmetic": np.right_shift, "gather": gather, "scatter": scattered(put), "scatter-add": scattered(np.add.at), "scatter-mul": scattered(np.multiply.at),
    "scatter-max": scattered(np.maximum.at), "scatter-min": scattered(np.minimum.at),
}
# Operations whose results are rounded.
ROUNDED = {"add", "add_any", "sub", "mul", "div", "pow", "integer_pow", "square", "sin", "cos", "tan", "exp", "exp2", "log", "log1p", "expm1", "tanh", "sinh", "cosh", "asin",
           "acos", "atan", "asinh", "acosh", "atanh", "sqrt", "cbrt", "rsqrt", "logistic", "atan2", "erf", "erfc", "erf_inv", "digamma", "lgamma", "polygamma", "dot_general",
           "reduce_sum", "reduce_prod", "cumsum", "cumprod", "cumlogsumexp"}
# Parameters that say how JAX computes, not what.
HINTS = {"accuracy", "sharding", "out_sharding", "is_stable", "index_dtype", "algorithm", "fastmath", "input_dtype", "out_dtype"}


def inner(eqn):
    """The jaxpr that an operation only calls."""
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if name in eqn.params:
            return eqn.params[name]
    return None


def operation(eqn, values, is_nudged):
    name = eqn.primitive.name
    if name in ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2"):
        called = inner(eqn)
        return run(called.jaxpr, called.consts, values, is_nudged) if hasattr(called, "consts") else run(called, [], values, is_nudged)
    if name == "cond":
        branches = eqn.params["branches"]
        chosen = branches[min(max(int(values[0]), 0), len(branches) - 1)]
        return run(chosen.jaxpr, chosen.consts, values[1:], is_nudged)
    if name.startswith("empty"):
        return [np.zeros(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
    function = TABLE.get(name)
    if function is None or getattr(function, "is_real_only", False) and np.iscomplexobj(values[0]):
        IN_JAX[name] += 1
        result = eqn.primitive.bind(*[jax.numpy.asarray(v) for v in values], **eqn.params)
        return [np.asarray(r) for r in result] if eqn.primitive.multiple_results else np.asarray(result)
    params = {k: v for k, v in eqn.params.items() if k not in HINTS}
    return function(*values, **params)


def nudged(x):
    """The numbers with their last digits changed, equal ones alike: another order of operations may have rounded them so."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float64:
        return x
    mixed = np.ascontiguousarray(x).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(48)
    return x * (1 + 4e-16 * (mixed.reshape(x.shape) / 32768.0 - 1))


def run(jaxpr, constants, arguments, is_nudged=False):
    """The results of a jaxpr for these arguments, as NumPy's arrays; with the results of operations that round a little changed if asked for."""
    values = dict(zip(jaxpr.constvars, map(np.asarray, constants)))
    values.update(zip(jaxpr.invars, arguments))
    read = lambda v: v.val if isinstance(v, core.Literal) else values[v]
    for eqn in jaxpr.eqns:
        results = operation(eqn, [read(v) for v in eqn.invars], is_nudged)
        results = results if isinstance(results, list) else [results]
        values.update(zip(eqn.outvars, map(nudged, results) if is_nudged and eqn.primitive.name in ROUNDED else results))
    return [np.asarray(read(v)) for v in jaxpr.outvars]
