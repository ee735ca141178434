"""Makes the golden arrays that show the element types of results, as `make.py` does: narrow integers that widen or do not, ranges of narrow floats
that are rounded once, and functions of f64 that are nowhere computed in f32.

    pip install "jax==0.10.2" numpy scipy optax==0.2.8
    python3 tests/golden/make_types.py [NAME..]
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats
from jax import lax
from jax.scipy import special
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2

from store import write

jax.config.update("jax_platforms", "cpu")

INTEGERS = {"i8": np.int8, "i16": np.int16, "u8": np.uint8, "u16": np.uint16, "bool": np.bool_}
NARROW = {"bf16": bfloat16, "f16": np.float16, "f8e4m3": float8_e4m3fn, "f8e5m2": float8_e5m2}
MESHES = "1x1 3x2"
SEGMENTS = [0, 0, 1, 1, 1, 2, 0, 3, 3, 2, 1, 0]


def numpy_of(name):
    return lambda x, y, m, s: getattr(jnp, name)(x)


# (a call on lines x and y of 12 numbers, m of 3x4 and s of 4x4; the same in JAX). Results of these are integers, or floats of any type.
COUNTED = [(f"{name}(x)", numpy_of(name)) for name in "sum prod cumsum cumprod max min argmax any count_nonzero nansum nanmax".split()]
COUNTED += [
    ("sum(m, axis=1)", lambda x, y, m, s: jnp.sum(m, 1)), ("prod(m, axis=0)", lambda x, y, m, s: jnp.prod(m, 0)),
    ("cumsum(m, axis=1)", lambda x, y, m, s: jnp.cumsum(m, 1)), ("cumprod(m, axis=0)", lambda x, y, m, s: jnp.cumprod(m, 0)),
    ("cumsum(x, dtype=i32)", lambda x, y, m, s: jnp.cumsum(x, dtype=np.int32)),
    ("cumprod(x, dtype=u8)", lambda x, y, m, s: jnp.cumprod(x, dtype=np.uint8)),
    ("sum(x, dtype=i8)", lambda x, y, m, s: jnp.sum(x, dtype=np.int8)), ("prod(x, dtype=u16)", lambda x, y, m, s: jnp.prod(x, dtype=np.uint16)),
    ("diff(x)", lambda x, y, m, s: jnp.diff(x)), ("diff(m, n=2)", lambda x, y, m, s: jnp.diff(m, n=2)),
    ("trace(m)", lambda x, y, m, s: jnp.trace(m)), ("diag(m)", lambda x, y, m, s: jnp.diag(m)),
    ("convolve(x, y)", lambda x, y, m, s: jnp.convolve(x, y)), ("dot(x, y)", lambda x, y, m, s: jnp.dot(x, y)),
    ("vdot(x, y)", lambda x, y, m, s: jnp.vdot(x, y)), ("m @ s", lambda x, y, m, s: m @ s), ("outer(x, y)", lambda x, y, m, s: jnp.outer(x, y)),
    ('einsum("ij,jk->i", m, s)', lambda x, y, m, s: jnp.einsum("ij,jk->i", m, s)), ('einsum("ij->i", m)', lambda x, y, m, s: jnp.einsum("ij->i", m)),
    ("tensordot(m, s, 1)", lambda x, y, m, s: jnp.tensordot(m, s, 1)), ("matrix_power(s, 3)", lambda x, y, m, s: jnp.linalg.matrix_power(s, 3)),
    ("sort(x)", lambda x, y, m, s: jnp.sort(x)), ("unique(x, size=5)", lambda x, y, m, s: jnp.unique(x, size=5)),
    ("top_k(x, 3).0", lambda x, y, m, s: lax.top_k(x, 3)[0]), ("x + y", lambda x, y, m, s: x + y), ("x * y", lambda x, y, m, s: x * y),
    ("x ** 3", lambda x, y, m, s: x**3), ("square(x)", lambda x, y, m, s: jnp.square(x)),
    ("where(x > y, x, 0)", lambda x, y, m, s: jnp.where(x > y, x, 0)), ("stack([x, y])", lambda x, y, m, s: jnp.stack([x, y])),
]
# Not for bools, which JAX refuses.
ADDED = [
    ("cummax(x)", lambda x, y, m, s: lax.cummax(x)), ("ptp(x)", lambda x, y, m, s: jnp.ptp(x)), ("cross(x[:3], y[:3])", lambda x, y, m, s: jnp.cross(x[:3], y[:3])),
    ("kron(m, s)", lambda x, y, m, s: jnp.kron(m, s)),
    (f"segment_sum(x, {SEGMENTS}, 4)", lambda x, y, m, s: jax.ops.segment_sum(x, jnp.array(SEGMENTS), 4)),
    (f"segment_max(x, {SEGMENTS}, 5)", lambda x, y, m, s: jax.ops.segment_max(x, jnp.array(SEGMENTS), 5)),
    (f"bincount({SEGMENTS}, weights=x, length=4)", lambda x, y, m, s: jnp.bincount(jnp.array(SEGMENTS), weights=x, length=4)),
    ('reduce_window(x, 0, "add", (3,))', lambda x, y, m, s: lax.reduce_window(x, np.array(0, x.dtype), lax.add, (3,), (1,), "VALID")),
    ('reduce_window(x, 1, "mul", (3,))', lambda x, y, m, s: lax.reduce_window(x, np.array(1, x.dtype), lax.mul, (3,), (1,), "VALID")),
    ("x // y", lambda x, y, m, s: x // y), ("x % y", lambda x, y, m, s: x % y), ("clip(x, 1, 5)", lambda x, y, m, s: jnp.clip(x, 1, 5)),
]
# Of narrow integers these are f32, which is compared as such.
MEANS = [(f"{name}(x)", numpy_of(name)) for name in "mean var std median nanmean nanvar nanstd sqrt cbrt deg2rad".split()]
MEANS += [
    ("average(x, weights=y)", lambda x, y, m, s: jnp.average(x, weights=y)), ("x / y", lambda x, y, m, s: x / y),
    ("quantile(x, 0.3)", lambda x, y, m, s: jnp.quantile(x, 0.3)), ("percentile(x, [10, 90])", lambda x, y, m, s: jnp.percentile(x, jnp.array([10, 90]))),
    ("norm(m)", lambda x, y, m, s: jnp.linalg.norm(m)), ("norm(x, ord=3)", lambda x, y, m, s: jnp.linalg.norm(x, ord=3)),
    ("histogram(x, bins=4).1", lambda x, y, m, s: jnp.histogram(x, bins=4)[1]), ("hypot(x, y)", lambda x, y, m, s: jnp.hypot(x, y)),
    ("logsumexp(m, axis=1)", lambda x, y, m, s: special.logsumexp(m, axis=1)),
]


def unary(name, function, of="x"):
    return f"{name}({of})", lambda x, y, m, s: function({"x": x, "abs(x)": abs(x), "x / 20": x / 20, "abs(x) + 1": abs(x) + 1, "abs(x) / 20": abs(x) / 20}[of])


# Functions of f64 alone.
FLOATS = [unary(name, getattr(jnp, name)) for name in
          "abs sign reciprocal rad2deg exp exp2 expm1 sin cos tan sinh cosh tanh sinc angle ceil round".split()]
FLOATS += [unary(name, getattr(jnp, name), "abs(x)") for name in "sqrt log log2 log10 log1p".split()]
FLOATS += [unary(name, getattr(jnp, other), "x / 20") for name, other in [("asin", "arcsin"), ("acos", "arccos"), ("atanh", "arctanh")]]
FLOATS += [unary(name, function) for name, function in [
    ("erf", special.erf), ("erfc", special.erfc), ("lgamma", special.gammaln), ("digamma", special.digamma), ("sigmoid", jax.nn.sigmoid),
    ("gelu", jax.nn.gelu), ("silu", jax.nn.silu), ("softplus", jax.nn.softplus), ("elu", jax.nn.elu), ("leaky_relu", jax.nn.leaky_relu),
    ("softmax", jax.nn.softmax), ("log_softmax", jax.nn.log_softmax), ("logcumsumexp", lax.cumlogsumexp), ("atan", jnp.arctan), ("asinh", jnp.arcsinh)]]
FLOATS += [
    unary("erf_inv", special.erfinv, "x / 20"), unary("logit", special.logit, "abs(x) / 20"), unary("rsqrt", lax.rsqrt, "abs(x) + 1"),
    unary("acosh", jnp.arccosh, "abs(x) + 1"),
    ("gelu(x, approximate=false)", lambda x, y, m, s: jax.nn.gelu(x, approximate=False)), ("atan2(x, y)", lambda x, y, m, s: jnp.arctan2(x, y)),
    ("logaddexp(x, y)", lambda x, y, m, s: jnp.logaddexp(x, y)), ("abs(x) ** 0.3", lambda x, y, m, s: abs(x) ** 0.3), ("x * 0.1", lambda x, y, m, s: x * 0.1),
    ("x % 0.3", lambda x, y, m, s: x % 0.3), ("interp(x, sort(y), y)", lambda x, y, m, s: jnp.interp(x, jnp.sort(y), y)),
    ("interp(x, sort(y), y, period=0.7)", lambda x, y, m, s: jnp.interp(x, jnp.sort(y), y, period=0.7)),
    ("histogram(x, bins=4, weights=y, density=true).0", lambda x, y, m, s: jnp.histogram(x, bins=4, weights=y, density=True)[0]),
    ("abs(fft(x))", lambda x, y, m, s: abs(jnp.fft.fft(x))), ("irfft(rfft(x) * 0.1)", lambda x, y, m, s: jnp.fft.irfft(jnp.fft.rfft(x) * 0.1)),
    ("det(s)", lambda x, y, m, s: jnp.linalg.det(s)), ("inv(s)", lambda x, y, m, s: jnp.linalg.inv(s)), ("slogdet(s).1", lambda x, y, m, s: jnp.linalg.slogdet(s)[1]),
    ("solve(s, m.T)", lambda x, y, m, s: jnp.linalg.solve(s, m.T)), ("pinv(m)", lambda x, y, m, s: jnp.linalg.pinv(m)),
    ("cholesky(m @ m.T)", lambda x, y, m, s: jnp.linalg.cholesky(m @ m.T)), ("eigh(s @ s.T).0", lambda x, y, m, s: jnp.linalg.eigh(s @ s.T)[0]),
    ("svd(m).1", lambda x, y, m, s: jnp.linalg.svd(m)[1]), ("abs(qr(m).1)", lambda x, y, m, s: abs(jnp.linalg.qr(m)[1])),
    ("expm(s / 7)", lambda x, y, m, s: jax.scipy.linalg.expm(s / 7)), ("lstsq(m.T, s).0", lambda x, y, m, s: jnp.linalg.lstsq(m.T, s)[0]),
    ("layer_norm(m)", lambda x, y, m, s: (m - m.mean(1, keepdims=True)) / jnp.sqrt(m.var(1, keepdims=True) + 1e-5)),
    ("rms_norm(m)", lambda x, y, m, s: m / jnp.sqrt((m * m).mean(1, keepdims=True) + 1e-6)),
    ("attention(m[None, :, None], s[None, :, None], s[None, :, None])", lambda x, y, m, s: (jax.nn.softmax(m @ s.T / 2) @ s)[None, :, None]),
    ("avg_pool(m[None, :, :, None], (2, 2))", lambda x, y, m, s: sum(m[i : 2 + i, j : 3 + j] for i in (0, 1) for j in (0, 1))[None, :, :, None] / 4),
    ("linspace(0.1, 0.7, 9, dtype=f64)", lambda x, y, m, s: jnp.linspace(0.1, 0.7, 9)), ("logspace(0.1, 0.7, 9, dtype=f64)", lambda x, y, m, s: jnp.logspace(0.1, 0.7, 9)),
    ("arange(0.1, 2, 0.3, dtype=f64)", lambda x, y, m, s: jnp.arange(0.1, 2, 0.3)), ("fftfreq(7, d=0.3, dtype=f64)", lambda x, y, m, s: jnp.fft.fftfreq(7, 0.3)),
]

STATISTICS = ["zscore(m)", "cov(m)", "corrcoef(m.T)", "skewness(m.T)", "kurtosis(m.T)", "linear_regression(x, y).slope", "linear_regression(x, y).correlation",
              "normal_pdf(x, 0.3, 0.7)", "normal_cdf(x, 0.3, 0.7)", "entropy(softmax(m))", "kl_divergence(softmax(x), softmax(y))", "pearson(x, y)", "ranks(x)",
              "spearman(x, y)", "sem(m)", "sem(x)", "geometric_mean(abs(x))", "harmonic_mean(abs(x))", "median_deviation(x)", "iqr(x)",
              "histogram_entropy(x, bins=4)", "t_test(x, y).t", "t_test(x, y).freedom"]


def statistics(x, y, m, s):
    stats = scipy.stats
    softmax = lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)
    line, test = stats.linregress(x, y), stats.ttest_ind(x, y, equal_var=False)
    return (stats.zscore(m), np.cov(m, rowvar=False), np.corrcoef(m), stats.skew(m, axis=1), stats.kurtosis(m, axis=1), line.slope, line.rvalue,
            stats.norm.pdf(x, 0.3, 0.7), stats.norm.cdf(x, 0.3, 0.7), stats.entropy(softmax(m), axis=1), stats.entropy(softmax(x), softmax(y)),
            stats.pearsonr(x, y)[0], stats.rankdata(x), stats.spearmanr(x, y)[0], stats.sem(m), stats.sem(x), stats.gmean(abs(x)), stats.hmean(abs(x)),
            stats.median_abs_deviation(x), stats.iqr(x), stats.entropy(np.histogram(x, 4)[0]), test.statistic, test.df)


OPTIMIZERS = [
    ("momentum(p, g, s, 0.1)", optax.sgd(0.1, momentum=0.9)), ("adam(p, g, s, rate=0.02)", optax.adam(0.02)),
    ("adamw(p, g, s, rate=0.01, weight_decay=0.05)", optax.adamw(0.01, weight_decay=0.05)),
    ("lion(p, g, s, rate=0.003, weight_decay=0.1)", optax.lion(0.003, weight_decay=0.1)),
]
RATES = [("linear_rate(t, 0.5, 0.1, 7)", optax.linear_schedule(0.5, 0.1, 7)), ("polynomial_rate(t, 0.5, 0.1, 7, power=3)", optax.polynomial_schedule(0.5, 0.1, 3, 7)),
         ("exponential_rate(t, 0.5, 0.7, 7)", optax.exponential_decay(0.5, 7, 0.7)), ("cosine_rate(t, 0.5, 7, least=0.2)", optax.cosine_decay_schedule(0.5, 7, 0.2)),
         ("warmup_cosine_rate(t, 0.5, 3, 12, start=0.05, end=0.02)", optax.warmup_cosine_decay_schedule(0.05, 0.5, 3, 12, 0.02))]


def adafactor(x):
    """Four steps by the equations of Optax, which takes the power of the step in f32."""
    p, square = x, np.zeros_like(x)
    rms = lambda a: np.sqrt(np.mean(a * a))
    for step in range(1, 5):
        g = np.sin(p)
        square = (1 - step**-0.8) * square + step**-0.8 * (g * g + 1e-30)
        d = g / np.sqrt(square)
        p = p - 0.05 * max(rms(p), 0.001) * d / max(rms(d), 1.0)
    return p


def trained(x):
    results = []
    for _, optimizer in OPTIMIZERS:
        p, state = x, optimizer.init(x)
        for _ in range(4):
            updates, state = optimizer.update(jnp.sin(p), state, p)
            p = optax.apply_updates(p, updates)
        results.append(p)
    results.append(adafactor(x))
    return (*results, *(np.array([schedule(step) for step in range(12)]) for _, schedule in RATES))


def training():
    text = 'import "std/optim.spmd" as optim;\nfn main(x: f64[12], t: f64[12]) {\n'
    calls = [call for call, _ in OPTIMIZERS] + ["adafactor(p, g, s, rate=0.05)"]
    for number, call in enumerate(calls):
        name = call.split("(")[0]
        text += (f"  let mut p{number} = x;\n  let mut s{number} = optim.{name}_state(x);\n  for i in 0..4 {{\n"
                 f"    let (next, state) = optim.{call.replace('p, g, s', f'p{number}, sin(p{number}), s{number}')};\n"
                 f"    p{number} = next;\n    s{number} = state;\n  }}\n")
    rates = ["optim." + call for call, _ in RATES]
    return text + f"  ({', '.join([f'p{number}' for number in range(len(calls))] + rates)})\n}}"


def layers(x, t):
    half = np.arange(4) / 4
    angle = np.arange(5)[:, None] * 10000.0**-half
    first, second = x[..., :4], x[..., 4:]
    sines, cosines = np.sin(angle)[:, None], np.cos(angle)[:, None]
    logits = x[0, :, 0]
    return (np.concatenate([np.sin(angle), np.cos(angle)], 1), np.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1),
            np.mean(np.log(np.exp(logits).sum(-1)) - logits[np.arange(5), t]), np.mean((x - 0.1) ** 2),
            np.mean(np.log1p(np.exp(x)) - 0.3 * x))


LAYERS = ('import "std/nn.spmd" as nn;\nfn main(x: f64[1, 5, 2, 8], t: i32[5]) {\n'
          "  (nn.positions(5, 8, base=f64(10000.0)), nn.rotary(x), nn.cross_entropy(x[0, :, 0], t), nn.mse(x, 0.1), nn.binary_cross_entropy(x, 0.3))\n}")

# Ranges whose numbers are far apart in narrow floats.
RANGES = ["1, 300, 3", "1, 300", "3, 5000, 7", "-900, 900, 5", "0.3, 40, 0.1", "2049, 2090", "300", "0, -600, -7"]


def ranges(dtype):
    results = []
    for text in RANGES:
        numbers = [float(number) for number in text.split(", ")]
        start, stop, step = {1: [0, *numbers, 1], 2: [*numbers, 1], 3: numbers}[len(numbers)]
        # With a step JAX rounds once; without one it rounds the index, too.
        results.append(jnp.arange(start, stop, step, dtype=dtype))
    wide = jnp.fft.fftfreq(700, 0.3, dtype=np.float32)
    return (*results, np.asarray(wide).astype(dtype), np.asarray(jnp.fft.rfftfreq(701, 0.3, dtype=np.float32)).astype(dtype))


def program(calls, dtype):
    body = ",\n  ".join(calls)
    return f"fn main(x: {dtype}[12@X], y: {dtype}[12], m: {dtype}[3, 4@Y], s: {dtype}[4, 4]) {{ (\n  {body},\n) }}"


def each(table, *arrays):
    arrays = [jnp.asarray(array) for array in arrays]
    return tuple(function(*arrays) for _, function in table)


def numbers(dtype):
    rng = np.random.default_rng(20261126)
    if dtype == np.bool_:
        return [rng.random(shape) < 0.6 for shape in [12, 12, (3, 4), (4, 4)]]
    if np.issubdtype(dtype, np.floating):
        return [(3 * rng.standard_normal(shape)).astype(dtype) for shape in [12, 12, (3, 4), (4, 4)]]
    ends = np.iinfo(dtype)
    return [np.where(drawn == 0, 1, drawn).astype(dtype) for drawn in (rng.integers(max(ends.min, -120), 121, shape) for shape in [12, 12, (3, 4), (4, 4)])]


def programs():
    for name, dtype in INTEGERS.items():
        table = COUNTED + (ADDED if name != "bool" else [])
        yield f"narrow_{name}", "exact", program([call for call, _ in table], name), numbers(dtype), partial(each, table)
        if name != "bool":
            table = [(call, function) for call, function in MEANS if "sqrt" not in call or name[0] == "u"]
            yield f"narrow_means_{name}", "reduction", program([call for call, _ in table], name), numbers(dtype), partial(each, table)
    for name, dtype in NARROW.items():
        calls = [f"arange({text}, dtype={name})" for text in RANGES] + [f"fftfreq(700, d=0.3, dtype={name})", f"rfftfreq(701, d=0.3, dtype={name})"]
        text = f"fn main(x: {name}[1]) {{ (\n  " + ",\n  ".join(calls) + ",\n) }"
        yield f"narrow_ranges_{name}", "exact", text, [np.zeros(1, dtype)], lambda x, dtype=dtype: ranges(dtype)

    table = COUNTED + ADDED + MEANS + FLOATS
    table = [(call, function) for call, function in table if "sqrt(x)" not in call and "dtype=" not in call or "dtype=f64" in call]
    yield "f64_functions", "double", program([call for call, _ in table], "f64"), numbers(np.float64), partial(each, table)
    text = program([f"stats.{call}" for call in STATISTICS], "f64")
    yield "f64_statistics", "double", 'import "std/stats.spmd" as stats;\n' + text, numbers(np.float64), statistics
    x, _, m, s = numbers(np.float64)
    yield "f64_training", "double", training(), [x, np.arange(12.0)], lambda x, t: trained(x)
    x = np.random.default_rng(7).standard_normal((1, 5, 2, 8))
    yield "f64_layers", "double", LAYERS, [x, np.array([0, 3, 7, 7, 2], np.int32)], layers


if __name__ == "__main__":
    for name, tolerance, text, arrays, function in programs():
        if not sys.argv[1:] or name in sys.argv[1:]:
            jax.config.update("jax_enable_x64", name.startswith("f64"))
            # Places are i32, as everywhere.
            narrowed = lambda a: a.astype(np.int32) if a.dtype == np.int64 else a
            answers = tuple(narrowed(np.asarray(a)) for a in function(*arrays))
            write(name, tolerance, text, arrays, answers, meshes=MESHES)
