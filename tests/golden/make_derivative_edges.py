"""Makes the golden arrays of derivatives at the edges of what functions are defined for, by JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_derivative_edges.py

Each function is differentiated once and twice, element by element, at zeros, ones, ties, infinities, NaN, the largest and the smallest
numbers, and numbers whose squares over- or underflow. Where JAX's answer is not the derivative, `UNLIKE_JAX` says what is, and why.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from store import write

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
nn = jax.nn
INF = np.inf


def edges(dtype):
    """The points; XLA replaces subnormal numbers by zero, which is seen in f32 alone, where f64 has what is right."""
    info = np.finfo(dtype)
    largest = [5e-39, info.max] if dtype == np.float32 else [info.max / 16]
    positive = [0.0, 0.25, 1, 2, 8 * info.tiny, np.sqrt(info.tiny), np.sqrt(info.max) / 4, *largest, INF]
    return np.array([*positive, *[-v for v in positive], np.nan], dtype)


def small(x):
    return (x != 0) & (np.abs(x) < 1e-15)


def beyond(x):
    """Infinities, and the largest number of f32: the square is infinite."""
    return np.isinf(x) | (np.abs(x) == np.finfo(np.float32).max)


def large(x):
    return np.abs(x) > 1e15


UNARY = [
    ("-a", lambda a: -a), ("abs(a)", jnp.abs), ("sign(a)", jnp.sign), ("square(a)", jnp.square), ("relu(a)", nn.relu),
    ("reciprocal(a)", jnp.reciprocal), ("1 / a", lambda a: 1 / a), ("sqrt(a)", jnp.sqrt), ("rsqrt(a)", lax.rsqrt), ("cbrt(a)", jnp.cbrt), ("exp(a)", jnp.exp), ("exp2(a)", jnp.exp2),
    ("expm1(a)", jnp.expm1), ("log(a)", jnp.log), ("log2(a)", jnp.log2), ("log10(a)", jnp.log10), ("log1p(a)", jnp.log1p), ("sin(a)", jnp.sin),
    ("cos(a)", jnp.cos), ("tan(a)", jnp.tan), ("asin(a)", jnp.arcsin), ("acos(a)", jnp.arccos), ("atan(a)", jnp.arctan), ("sinh(a)", jnp.sinh),
    ("cosh(a)", jnp.cosh), ("tanh(a)", jnp.tanh), ("asinh(a)", jnp.arcsinh), ("acosh(a)", jnp.arccosh), ("atanh(a)", jnp.arctanh),
    ("erf(a)", special.erf), ("erfc(a)", special.erfc), ("erf_inv(a)", lax.erf_inv), ("lgamma(a)", lax.lgamma), ("digamma(a)", lax.digamma),
    ("deg2rad(a)", jnp.deg2rad), ("rad2deg(a)", jnp.rad2deg), ("floor(a)", jnp.floor), ("ceil(a)", jnp.ceil), ("round(a)", jnp.round), ("trunc(a)", jnp.trunc),
    ("sigmoid(a)", nn.sigmoid), ("gelu(a)", nn.gelu), ("gelu(a, approximate=false)", lambda a: nn.gelu(a, approximate=False)), ("silu(a)", nn.silu),
    ("softplus(a)", nn.softplus), ("elu(a)", nn.elu), ("elu(a, alpha=2)", lambda a: nn.elu(a, 2.0)), ("leaky_relu(a)", nn.leaky_relu),
    ("sinc(a)", jnp.sinc), ("logit(a)", special.logit), ("heaviside(a, 0.5)", lambda a: jnp.heaviside(a, 0.5)), ("nan_to_num(a)", jnp.nan_to_num),
    ("a ** 0", lambda a: a**0), ("a ** 1", lambda a: a**1), ("a ** 2", lambda a: a**2), ("a ** 3", lambda a: a**3), ("a ** 4", lambda a: a**4), ("a ** -1", lambda a: a**-1),
    ("a ** -2", lambda a: a**-2), ("a ** -3", lambda a: a**-3), ("a ** 0.5", lambda a: a**0.5), ("a ** 1.5", lambda a: a**1.5), ("a ** 2.0", lambda a: a**2.0), ("a ** 2.5", lambda a: a**2.5),
    ("a ** -0.5", lambda a: a**-0.5), ("a ** 0.0", lambda a: a**0.0), ("a ** 1.0", lambda a: a**1.0), ("a ** -2.0", lambda a: a**-2.0), ("2 ** a", lambda a: 2**a), ("2.0 ** a", lambda a: 2.0**a),
    ("0.0 ** a", lambda a: 0.0**a), ("1.0 ** a", lambda a: 1.0**a), ("0.5 ** a", lambda a: 0.5**a), ("(-2.0) ** a", lambda a: (-2.0)**a), 
    ("a * a", lambda a: a * a), ("a - a", lambda a: a - a), ("a % 2", lambda a: a % 2), ("a % -2", lambda a: a % -2), ("a // 2", lambda a: a // 2),
    ("2.5 % a", lambda a: 2.5 % a), ("maximum(a, 0)", lambda a: jnp.maximum(a, 0)), ("minimum(a, 0)", lambda a: jnp.minimum(a, 0)), ("maximum(a, a)", lambda a: jnp.maximum(a, a)),
    ("clip(a, -1, 1)", lambda a: jnp.clip(a, -1, 1)), ("clip(a, 0)", lambda a: jnp.clip(a, 0)), ("where(a > 0, a, 3 * a)", lambda a: jnp.where(a > 0, a, 3 * a)),
    ("copysign(a, 1)", lambda a: jnp.copysign(a, 1)), ("copysign(a, -1)", lambda a: jnp.copysign(a, -1)), ("copysign(1, a)", lambda a: jnp.copysign(1.0, a)),
    ("hypot(a, 1)", lambda a: jnp.hypot(a, 1)), ("hypot(a, 0)", lambda a: jnp.hypot(a, 0)),
    ("atan2(a, a)", lambda a: jnp.arctan2(a, a)), ("atan2(a, 1)", lambda a: jnp.arctan2(a, 1)), ("atan2(1, a)", lambda a: jnp.arctan2(1, a)), ("logaddexp(a, a)", lambda a: jnp.logaddexp(a, a)),
    ("logaddexp(a, 0)", lambda a: jnp.logaddexp(a, 0)), ("logaddexp(2 * a, a)", lambda a: jnp.logaddexp(2 * a, a)), ("log1p(exp(a))", lambda a: jnp.log1p(jnp.exp(a))), ("exp(-a * a)", lambda a: jnp.exp(-a * a)),
]
BINARY = [
    ("a + b", lambda a, b: a + b), ("a - b", lambda a, b: a - b), ("a * b", lambda a, b: a * b), ("a / b", lambda a, b: a / b), ("a % b", lambda a, b: a % b), ("a // b", lambda a, b: a // b),
    ("a ** b", lambda a, b: a**b), ("minimum(a, b)", jnp.minimum), ("maximum(a, b)", jnp.maximum), ("atan2(a, b)", jnp.arctan2), ("hypot(a, b)", jnp.hypot),
    ("logaddexp(a, b)", jnp.logaddexp), ("copysign(a, b)", jnp.copysign), ("where(a > b, a, b)", lambda a, b: jnp.where(a > b, a, b)), ("clip(a, b, 2)", lambda a, b: jnp.clip(a, b, 2)),
    ("clip(1.5, a, b)", lambda a, b: jnp.clip(1.5, a, b)), ("elu(a, b)", nn.elu), ("leaky_relu(a, b)", nn.leaky_relu), ("heaviside(a, b)", jnp.heaviside),
    ("divmod(a, b).1", lambda a, b: jnp.divmod(a, b)[1]),
]
COMPLEX = [
    ("exp(z)", jnp.exp), ("exp2(z)", jnp.exp2), ("expm1(z)", jnp.expm1), ("log(z)", jnp.log), ("log1p(z)", jnp.log1p), ("log2(z)", jnp.log2), ("log10(z)", jnp.log10), ("sqrt(z)", jnp.sqrt),
    ("rsqrt(z)", lax.rsqrt), ("reciprocal(z)", jnp.reciprocal), ("square(z)", jnp.square), ("sin(z)", jnp.sin), ("cos(z)", jnp.cos), ("tan(z)", jnp.tan), ("sinh(z)", jnp.sinh), ("cosh(z)", jnp.cosh),
    ("tanh(z)", jnp.tanh), ("asin(z)", jnp.arcsin), ("acos(z)", jnp.arccos), ("atan(z)", jnp.arctan), ("asinh(z)", jnp.arcsinh), ("atanh(z)", jnp.arctanh), ("z * z", lambda z: z * z), ("z ** 3", lambda z: z**3),
    # JAX's own has the derivative of another branch on half of the plane.
    ("acosh(z)", lambda z: jnp.log(z + jnp.sqrt(z - 1) * jnp.sqrt(z + 1))),
    ("z ** -1", lambda z: z**-1), ("z ** 0.5", lambda z: z**0.5), ("z ** z", lambda z: z**z), ("2 ** z", lambda z: 2.0**z), ("z / (z + 1)", lambda z: z / (z + 1)), ("z * conj(z)", lambda z: z * jnp.conj(z)),
    ("complex(abs(z), angle(z))", lambda z: lax.complex(jnp.abs(z), jnp.angle(z))),
]

SQUARED = "JAX has (1 + y) (1 - y), or factors like these, whose derivative is a difference that is rounded to zero"
OUTSIDE = "the function itself is NaN there, as the point is outside of its domain"
PRODUCT = "JAX multiplies zero by infinity"
SERIES = "JAX has the series of `polygamma`, which loses these"
VANISHES = "the squares vanish in JAX, zero divided by zero"
OVERFLOWS = "twice the number is infinite in JAX, times zero"
TIES = "JAX takes the larger and the smaller operand, where equal ones have half each"
INFINITE = "JAX has `exp(x)` for the share of x in an infinite result, or NaN; the infinite operand has all, and two have half each"
# A function, its order, where it differs from JAX, what its derivative is there, and why JAX has another one.
UNLIKE_JAX = [
    ("tanh(a)", 2, small, lambda x: -2 * x, SQUARED), ("atanh(a)", 2, small, lambda x: 2 * x, SQUARED),
    ("atanh(a)", 2, lambda x: np.abs(x) == 1, lambda x: INF * x, PRODUCT), ("atanh(a)", 2, beyond, lambda x: np.nan * x, OUTSIDE),
    ("acosh(a)", 1, large, lambda x: 1 / np.abs(x), "JAX's (x - 1) (x + 1) overflows"), ("acosh(a)", 2, large, lambda x: -1 / x / np.abs(x), PRODUCT),
    ("lgamma(a)", 2, lambda x: x > 1e15, lambda x: 1 / x, SERIES), ("digamma(a)", 1, lambda x: x > 1e15, lambda x: 1 / x, SERIES), ("digamma(a)", 2, lambda x: x > 1e15, lambda x: -1 / x / x, SERIES),
    ("lgamma(a)", 2, lambda x: x == -INF, lambda x: np.nan * x, OUTSIDE), ("digamma(a)", 1, lambda x: x == -INF, lambda x: np.nan * x, OUTSIDE),
    ("digamma(a)", 2, lambda x: (x <= 0) & (x == np.floor(x)) & (x > -INF), lambda x: -INF * (x == x), "from the right; JAX has NaN"),
    ("asinh(a)", 1, beyond, lambda x: 0 * (x == x), "the square overflows, in JAX, too"),
    ("atan2(a, a)", 1, lambda x: (x != 0) & (np.abs(x) < 1e-36), lambda x: 0 * x, VANISHES), ("atan2(a, a)", 2, lambda x: (x != 0) & (np.abs(x) < 1e-36), lambda x: np.nan * x, "the square of its inverse overflows"),
    ("atan2(a, a)", 2, lambda x: (np.abs(x) > 1e-20) & (np.abs(x) < 1e-15) | (np.abs(x) > 1e-160) & (np.abs(x) < 1e-100), lambda x: 0 * x, VANISHES),
    *[(text, 2, lambda x: np.abs(x) == np.finfo(np.float32).max, lambda x: 0 * x, OVERFLOWS) for text in ["atan(a)", "asinh(a)", "atanh(a)", "erf(a)", "erfc(a)", "gelu(a, approximate=false)", "atan2(a, a)", "atan2(a, 1)", "atan2(1, a)"]],
    ("sinc(a)", 1, lambda x: np.isfinite(x) & (np.abs(x) > 1e300), lambda x: np.cos(np.pi * x) / x, "JAX divides by a square that overflows"),
    ("sinc(a)", 2, lambda x: np.isfinite(x) & (np.abs(x) > 1e300), lambda x: -np.pi * np.sin(np.pi * x) / x, "JAX divides by a square that overflows"),
    ("sinc(a)", 1, small, lambda x: -np.pi**2 / 3 * x, "JAX's quotient loses all digits"), ("sinc(a)", 2, small, lambda x: -np.pi**2 / 3 + 0 * x, "JAX's quotient loses all digits"),
    ("logit(a)", 2, lambda x: x == 0, lambda x: -INF * (x == x), PRODUCT), ("logit(a)", 2, lambda x: x == 1, lambda x: INF * x, PRODUCT), ("logit(a)", 2, small, lambda x: -1 / x / x, PRODUCT),
    ("logit(a)", 2, np.isinf, lambda x: 0 * (x < 0), OUTSIDE),
    ("logit(a)", 1, lambda x: large(x) & np.isfinite(x), lambda x: 0 * x, OUTSIDE),
    ("a ** 0.0", 1, lambda x: (x == 0) | np.isnan(x) | small(x), lambda x: 0 * (x == x), PRODUCT), ("a ** 0.0", 2, lambda x: (x == 0) | np.isnan(x) | small(x), lambda x: 0 * (x == x), PRODUCT),
    ("a ** 1.0", 2, lambda x: x == 0, lambda x: 0 * x, PRODUCT), ("a ** 1.0", 2, small, lambda x: 0 * x, PRODUCT),
    ("hypot(a, 1)", 2, lambda x: np.abs(x) == 1, lambda x: 8.0**-0.5 + 0 * x, TIES),
    ("hypot(a, 0)", 1, lambda x: x == 0, lambda x: 0 * x, TIES), ("hypot(a, 0)", 1, small, np.sign, PRODUCT), ("hypot(a, 0)", 2, small, lambda x: 0 * x, PRODUCT),
    ("logaddexp(a, a)", 1, np.isinf, lambda x: 1 + 0 * (x == x), INFINITE), ("logaddexp(a, a)", 2, np.isinf, lambda x: 0 * (x == x), INFINITE),
    ("logaddexp(2 * a, a)", 1, np.isinf, lambda x: 1.5 * (x == x), INFINITE), ("logaddexp(2 * a, a)", 1, lambda x: x == np.finfo(np.float32).max, lambda x: 2.0 * (x == x), INFINITE), ("logaddexp(2 * a, a)", 2, lambda x: np.isinf(2 * x) | np.isinf(np.float32(2 * x)), lambda x: 0 * (x == x), INFINITE),
]


def finite(h):
    return (h > 0) & np.isfinite(h)


# The same for two operands: the derivatives by these.
UNLIKE_JAX_OF_TWO = [
    ("a % b", "b", lambda x, y: np.isinf(x) & np.isfinite(1 / y), lambda x, y: np.nan * x, OUTSIDE), ("divmod(a, b).1", "b", lambda x, y: np.isinf(x) & np.isfinite(1 / y), lambda x, y: np.nan * x, OUTSIDE),
    *[("a ** b", by, lambda x, y: (x == 0) & (y == 0), lambda x, y: 0 * x, PRODUCT) for by in ["a", "aa"]], ("a ** b", "aa", lambda x, y: (x == 0) & (y == 1), lambda x, y: 0 * x, PRODUCT),
    *[("a ** b", by, lambda x, y: (x == 0) & (y == 0), lambda x, y: 0 * x + 1, PRODUCT) for by in ["ab"]], *[("a ** b", by, lambda x, y: (x == 0) & (y == 0), lambda x, y: 0 * x, PRODUCT) for by in ["ba"]],
    ("hypot(a, b)", "a", lambda x, y: finite(np.hypot(x, y)), lambda x, y: x / np.hypot(x, y), TIES), ("hypot(a, b)", "b", lambda x, y: finite(np.hypot(x, y)), lambda x, y: y / np.hypot(x, y), TIES),
    ("hypot(a, b)", "aa", lambda x, y: finite(np.hypot(x, y)), lambda x, y: y**2 / np.hypot(x, y) ** 3, TIES), ("hypot(a, b)", "bb", lambda x, y: finite(np.hypot(x, y)), lambda x, y: x**2 / np.hypot(x, y) ** 3, TIES),
    *[("hypot(a, b)", by, lambda x, y: finite(np.hypot(x, y)), lambda x, y: -x * y / np.hypot(x, y) ** 3, TIES) for by in ["ab", "ba"]],
    *[("hypot(a, b)", by, lambda x, y: (x == 0) & (y == 0), lambda x, y: 0 * x, TIES) for by in ["a", "b", "aa", "ab", "ba", "bb"]],
    *[("hypot(a, b)", by, lambda x, y: np.isfinite(x) & np.isinf(y), lambda x, y: 0 * x, "JAX has NaN, as an infinite operand is the larger one") for by in ["a", "aa"]],
    *[("hypot(a, b)", by, lambda x, y: np.isfinite(y) & np.isinf(x), lambda x, y: 0 * y, "JAX has NaN, as an infinite operand is the larger one") for by in ["b", "bb"]],
    ("logaddexp(a, b)", "a", lambda x, y: np.isinf(np.logaddexp(x, y)), lambda x, y: np.where(x == y, 0.5, x > y), INFINITE), ("logaddexp(a, b)", "b", lambda x, y: np.isinf(np.logaddexp(x, y)), lambda x, y: np.where(x == y, 0.5, y > x), INFINITE),
    *[("logaddexp(a, b)", by, lambda x, y: np.isinf(np.logaddexp(x, y)), lambda x, y: 0 * (x == x), INFINITE) for by in ["aa", "ab", "ba", "bb"]],
]


def first(function, argnums=0):
    return jax.grad(lambda *a: jnp.sum(function(*a)), argnums)


def compiled(functions):
    return jax.jit(lambda *a: [function(*a) for function in functions])


def unary(dtype, name):
    x = edges(dtype)
    orders = compiled([order for _, function in UNARY for order in (first(function), first(first(function)))])
    found = [np.array(a) for a in orders(x)]
    if dtype == np.float32:
        with np.errstate(all="ignore"):
            exact = [np.array(a).astype(dtype) for a in orders(x.astype(np.float64))]
            tiny = lambda a: (a != 0) & (np.abs(a) < np.finfo(dtype).tiny)
            found = [np.where(tiny(x) | tiny(b) & (a == 0), b, a) for a, b in zip(found, exact)]
    for text, order, where, value, _ in UNLIKE_JAX:
        at = 2 * [t for t, _ in UNARY].index(text) + order - 1
        with np.errstate(all="ignore"):
            found[at] = np.where(where(x), value(x.astype(np.float64)), found[at]).astype(dtype)
    lines = [line for text, _ in UNARY for line in (f"    grad(|a| sum({text}))(x)", f"    grad(|b| sum(grad(|a| sum({text}))(b)))(x)")]
    stored(f"edges_unary_{name}", "elementwise", f"x: {name}[{len(x)}@Y]", lines, [x], found)


def stored(name, tolerance, params, lines, inputs, found):
    write(name, tolerance, f"fn main({params}) {{\n  (\n" + ",\n".join(lines) + "\n  )\n}", inputs, tuple(found), meshes="2x4")


def planes(functions):
    """Both first derivatives of each function, and then those of each of these."""
    both = [first(function, (0, 1)) for function in functions]
    part = lambda derivatives, at: first(lambda *a: derivatives(*a)[at], (0, 1))
    return compiled([order for derivatives in both for order in (derivatives, part(derivatives, 0), part(derivatives, 1))])


def lines_of(text):
    function = f"|a, b| sum({text})"
    part = lambda at: f"    grad(|c, d| sum(grad({function}, argnums={at})(c, d)), argnums=(0, 1))(x, y)"
    return [f"    grad({function}, argnums=(0, 1))(x, y)", part(0), part(1)]


def grid(values, dtype):
    return [np.array(a, dtype).ravel() for a in np.meshgrid(values, values, indexing="ij")]


def binary(dtype, name):
    x, y = grid([0.0, 0.5, 1, 2, 3, INF, -0.0, -0.5, -1, -2, -3, -INF, np.nan], dtype)
    found = [np.array(a) for pair in planes([function for _, function in BINARY])(x, y) for a in pair]
    for text, by, where, value, _ in UNLIKE_JAX_OF_TWO:
        at = 6 * [t for t, _ in BINARY].index(text) + ["a", "b", "aa", "ab", "ba", "bb"].index(by)
        with np.errstate(all="ignore"):
            found[at] = np.where(where(x, y), value(x, y), found[at]).astype(dtype)
    lines = [line for text, _ in BINARY for line in lines_of(text)]
    # Differences of quotients cancel in f32.
    stored(f"edges_binary_{name}", "elementwise" if dtype == np.float64 else "reduction", f"x: {name}[{len(x)}@Y], y: {name}[{len(x)}]", lines, [x, y], found)


def complex_planes(dtype, name):
    x, y = (a[1:] for a in grid([0.0, 0.25, 0.75, -0.25, -0.75], dtype))
    parts = [(part, text, function) for text, function in COMPLEX for part in ("real", "imag")]
    take = {"real": jnp.real, "imag": jnp.imag}
    functions = [lambda a, b, part=part, function=function: take[part](function(lax.complex(a, b))) for part, _, function in parts]
    found = [np.array(a) for pair in planes(functions)(x, y) for a in pair]
    lines = [line for part, text, _ in parts for line in lines_of(f"{part}({text.replace('z', 'complex(a, b)')})")]
    stored(f"edges_complex_{name}", "reduction", f"x: {name}[{len(x)}@Y], y: {name}[{len(x)}]", lines, [x, y], found)


if __name__ == "__main__":
    for dtype, name in [(np.float64, "f64"), (np.float32, "f32")]:
        unary(dtype, name)
        complex_planes(dtype, name)
        binary(dtype, name)
