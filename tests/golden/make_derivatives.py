"""Makes the golden arrays of derivatives: each expression below is differentiated by JAX in both modes.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_derivatives.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf, erfc, gammaln, logsumexp

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261124)


def noise(*shape):
    return rng.standard_normal(shape)


# Name in the language, domain, function of JAX.
UNARY = [
    ("-", "x", lambda a: -a), ("abs", "x", jnp.abs), ("sign", "x", jnp.sign), ("square", "x", jnp.square),
    ("reciprocal", "x", jnp.reciprocal), ("sqrt", "p", jnp.sqrt), ("rsqrt", "p", lax.rsqrt), ("cbrt", "p", jnp.cbrt),
    ("exp", "x", jnp.exp), ("exp2", "x", jnp.exp2), ("expm1", "x", jnp.expm1), ("log", "p", jnp.log), ("log2", "p", jnp.log2),
    ("log10", "p", jnp.log10), ("log1p", "p", jnp.log1p), ("sin", "x", jnp.sin), ("cos", "x", jnp.cos), ("tan", "x", jnp.tan),
    ("asin", "u", jnp.arcsin), ("acos", "u", jnp.arccos), ("atan", "x", jnp.arctan), ("deg2rad", "x", jnp.deg2rad),
    ("rad2deg", "x", jnp.rad2deg), ("sinh", "x", jnp.sinh), ("cosh", "x", jnp.cosh), ("tanh", "x", jnp.tanh),
    ("asinh", "x", jnp.arcsinh), ("acosh", "1 + p", lambda a: jnp.arccosh(a)), ("atanh", "u", jnp.arctanh), ("erf", "x", erf),
    ("erfc", "x", erfc), ("erf_inv", "u", lax.erf_inv), ("lgamma", "p", gammaln), ("floor", "x", jnp.floor), ("round", "x", jnp.round),
    ("relu", "x", jax.nn.relu), ("sigmoid", "x", jax.nn.sigmoid), ("gelu", "x", jax.nn.gelu), ("silu", "x", jax.nn.silu),
    ("softplus", "x", jax.nn.softplus), ("elu", "x", jax.nn.elu), ("softmax", "x", jax.nn.softmax),
    ("log_softmax", "x", jax.nn.log_softmax), ("sinc", "x", jnp.sinc), ("logit", "u / 2 + 0.5", jax.scipy.special.logit),
]
BINARY = [
    ("a + b", lambda a, b: a + b), ("a - b", lambda a, b: a - b), ("a * b", lambda a, b: a * b), ("a / b", lambda a, b: a / b),
    ("a % b", lambda a, b: a % b), ("(a * a) ** b", lambda a, b: (a * a) ** b), ("a ** 3", lambda a, b: a**3),
    ("minimum(a, b)", jnp.minimum), ("maximum(a, b)", jnp.maximum), ("atan2(a, b)", jnp.arctan2), ("hypot(a, b)", jnp.hypot),
    ("logaddexp(a, b)", jnp.logaddexp), ("copysign(a, b)", jnp.copysign), ("where(a > b, a, b * 2)", lambda a, b: jnp.where(a > b, a, b * 2)),
    ("clip(a, -0.5, 0.5) * b", lambda a, b: jnp.clip(a, -0.5, 0.5) * b), ("a // b", lambda a, b: a // b),
]
# Functions of a matrix.
SHAPES = [
    ("a.T", lambda a: a.T), ("a[1:4, ::-2]", lambda a: a[1:4, ::-2]), ("a[::3]", lambda a: a[::3]), ("a[2]", lambda a: a[2]),
    ("flip(a, axis=1)", lambda a: jnp.flip(a, 1)), ("roll(a, 2, axis=0)", lambda a: jnp.roll(a, 2, 0)),
    ("reshape(a, (4, 9))", lambda a: a.reshape(4, 9)), ("broadcast_to(a[:, None], (6, 3, 6))", lambda a: jnp.broadcast_to(a[:, None], (6, 3, 6))),
    ("concatenate([a, 2 * a[:2]])", lambda a: jnp.concatenate([a, 2 * a[:2]])), ("pad(a, ((1, 0), (2, 1)), constant_values=3.0)", lambda a: jnp.pad(a, ((1, 0), (2, 1)), constant_values=3.0)),
    ("a[i]", lambda a: a[jnp.array([0, 2, 2, 5])]), ("a[:, i]", lambda a: a[:, jnp.array([0, 2, 2, 5])]),
    ("take_along_axis(a, argsort(a, axis=1), axis=1)", lambda a: jnp.take_along_axis(a, jnp.argsort(a, 1), 1)),
    ("segment_sum(a, i6, num_segments=3)", lambda a: jax.ops.segment_sum(a, jnp.array([0, 2, 2, 1, 0, 0]), 3)),
    ("a @ a", lambda a: a @ a), ("einsum(\"ij,kj->ik\", a, a)", lambda a: jnp.einsum("ij,kj->ik", a, a)), ("outer(a[0], a[1])", lambda a: jnp.outer(a[0], a[1])),
    ("cumsum(a, axis=1)", lambda a: jnp.cumsum(a, 1)), ("tril(a)", jnp.tril), ("stack([a, a * a])", lambda a: jnp.stack([a, a * a])),
    ("a[j]", lambda a: a[3]), ("a[j:j + 2]", lambda a: a[3:5]), ("tile(a, (2, 1))", lambda a: jnp.tile(a, (2, 1))),
    ("diff(a, axis=0)", lambda a: jnp.diff(a, axis=0)), ("kron(a[:2, :2], a[:3, :3])", lambda a: jnp.kron(a[:2, :2], a[:3, :3])),
]
REDUCTIONS = [
    ("sum(a, axis=0)", lambda a: a.sum(0)), ("mean(a, axis=1)", lambda a: a.mean(1)), ("max(a, axis=1)", lambda a: a.max(1)),
    ("min(a, axis=0, keepdims=true)", lambda a: a.min(0, keepdims=True)), ("prod(a, axis=1)", lambda a: a.prod(1)),
    ("prod(a * f64(a > 0.5), axis=1)", lambda a: (a * (a > 0.5)).prod(1)), ("prod(where(a < max(a[0]), a, 0), axis=1)", lambda a: jnp.where(a < a[0].max(), a, 0).prod(1)),
    ("var(a, axis=1)", lambda a: a.var(1)), ("std(a)", lambda a: a.std()), ("logsumexp(a, axis=0)", lambda a: logsumexp(a, 0)),
    ("norm(a)", lambda a: jnp.linalg.norm(a)), ("max(round(a), axis=1)", lambda a: jnp.round(a).max(1)), ("max(a * 0, axis=1)", lambda a: (a * 0).max(1)),
    ("average(a, axis=0)", lambda a: jnp.average(a, 0)), ("ptp(a, axis=1)", lambda a: jnp.ptp(a, 1)),
]


def both(text, arg):
    """Forward and reverse mode of an expression of `a`."""
    return f"    jvp(|a| {text}, ({arg},), (t,)).1,\n    grad(|a| sum(sin(1 + {text})))({arg})"


def check(function, arg, t):
    return [jax.jvp(function, (arg,), (t,))[1], jax.grad(lambda a: jnp.sin(1 + function(a)).sum())(arg)]


def apply(name):
    return "-a" if name == "-" else f"{name}(a)"


def unary(x, p, u, t):
    domains = {"x": x, "p": p, "u": u, "1 + p": 1 + p, "u / 2 + 0.5": u / 2 + 0.5}
    return tuple(found for _, domain, function in UNARY for found in check(function, domains[domain], t))


def binary(x, y, s, t):
    found = []
    for _, function in BINARY:
        found.append(jax.jvp(function, (x, y), (t, s))[1])
        found += jax.grad(lambda a, b: jnp.sin(1 + function(a, b)).sum(), (0, 1))(x, y)
    return tuple(found)


def matrices(functions):
    return lambda a, t, *_: tuple(found for _, function in functions for found in check(function, a, t))


def second(x, w):
    f = lambda a: (jnp.tanh(a @ w) ** 2).sum()
    cube = lambda a: (a**3).sum()
    return (jax.grad(lambda a: (jax.grad(f)(a) ** 2).sum())(x), jax.jvp(jax.grad(f), (x,), (x,))[1],
            jax.grad(lambda a: jax.grad(cube)(a).sum())(x), jax.grad(lambda a: jax.jvp(jnp.sin, (a,), (a,))[1].sum())(x),
            jax.grad(lambda a: (lax.stop_gradient(a) * a).sum())(x), jax.vjp(lambda a, b: a @ b, x, w)[1](x @ w)[1])


def network(x, t, w, b, v):
    def loss(w, b, v):
        h = jax.nn.relu(x @ w + b)
        y = h @ v
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(y) * t, 1)), y.max()

    (value, aux), found = jax.value_and_grad(loss, (0, 1, 2), has_aux=True)(w, b, v)
    return (value, aux, *found)


def conv(x, w, **options):
    return lax.conv_general_dilated(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


def pool(x, init, function):
    return lax.reduce_window(x, init, function, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")


# Functions of images and kernels.
WINDOWS = [
    ("conv(x, w)", lambda x, w: conv(x, w, window_strides=(1, 1), padding="SAME")),
    ("conv(x, w, stride=2, padding=\"VALID\")", lambda x, w: conv(x, w, window_strides=(2, 2), padding="VALID")),
    ("conv(x, w, stride=(2, 1), dilation=(1, 2))", lambda x, w: conv(x, w, window_strides=(2, 1), padding="SAME", rhs_dilation=(1, 2))),
    ("conv(x, w[:, :, :2], groups=2)", lambda x, w: conv(x, w[:, :, :2], window_strides=(1, 1), padding="SAME", feature_group_count=2)),
    ("max_pool(x, (3, 2), strides=(2, 2), padding=\"SAME\") * sum(w)", lambda x, w: pool(x, -jnp.inf, lax.max) * w.sum()),
    ("reduce_window(x, 0, \"add\", (1, 3, 2, 1), (1, 2, 2, 1), \"SAME\") * sum(w)", lambda x, w: pool(x, 0.0, lax.add) * w.sum()),
]


def windows(x, w, t, s):
    found = []
    for _, function in WINDOWS:
        found.append(jax.jvp(function, (x, w), (t, s))[1])
        found += jax.grad(lambda x, w: jnp.sin(function(x, w)).sum(), (0, 1))(x, w)
    return tuple(found)


def at_points(x):
    """First and second derivatives, and of `sinc` the second one at zero, too. There the third one of JAX is not that of the function."""
    first = lambda f: jax.vmap(jax.grad(f))
    gamma = jax.scipy.special.digamma
    return (first(gamma)(x), first(jax.grad(gamma))(x), first(jnp.sinc)(x[4:]), first(jax.grad(jnp.sinc))(x[4:]),
            first(jax.grad(jnp.sinc))(jnp.zeros(1)), jax.grad(lambda a: jnp.sin(gamma(a)).sum())(x))


def multiplied(x, v, i):
    """The rows of x, multiplied by the rows of v at these indices: JAX has no derivative of its own for equal indices."""
    is_own = i[:, None] == jnp.arange(x.shape[0])
    return x * jnp.where(is_own[:, :, None], jnp.broadcast_to(v, (len(i), x.shape[1]))[:, None], 1).prod(0)


# Updates of rows in the language and in JAX: of some rows, of more rows than there are, by one row, and by the inverse.
PRODUCTS = [
    ("u[i] *= b", lambda x, v, i, j: multiplied(x, v, i)), ("u[j] *= concatenate([b, b])", lambda x, v, i, j: multiplied(x, jnp.concatenate([v, v]), j)),
    ("u[i] *= b[3]", lambda x, v, i, j: multiplied(x, v[3], i)), ("u[j] /= concatenate([b, b]) ** 2 + 1", lambda x, v, i, j: multiplied(x, 1 / (jnp.concatenate([v, v]) ** 2 + 1), j)),
]


def products(x, v, i, j, t, s):
    found = []
    for _, function in PRODUCTS:
        of = lambda a, b: function(a, b, i, j)
        found.append(jax.jvp(of, (x, v), (t, s))[1])
        found += jax.grad(lambda a, b: jnp.sin(1 + of(a, b)).sum(), (0, 1))(x, v)
    return tuple(found)


def factors(rng):
    """Places with zeros: one of the old elements, one of several updates, two of these, and both."""
    x, v = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    x[[0, 2, 3], [0, 1, 0]] = 0
    v[[1, 1, 2, 4, 0], [0, 2, 2, 1, 1]] = 0
    return x, v, np.int32([0, 2, 2, 5, 2]), np.int32([0, 2, 2, 5, 2, 1, 1, 3, 3, 3]), rng.standard_normal((6, 3)), rng.standard_normal((5, 3))


def program(params, expressions):
    return f"fn main({params}) {{\n  (\n" + ",\n".join(expressions) + "\n  )\n}"


UNARY_TEXT = program("x: f64[5@X, 8@Y], p: f64[5@X, 8@Y], u: f64[5@X, 8@Y], t: f64[5@X, 8@Y]", [both(apply(name), domain) for name, domain, _ in UNARY])
BINARY_TEXT = program("x: f64[5@X, 8@Y], y: f64[8@Y], s: f64[8@Y], t: f64[5@X, 8@Y]",
    [f"    jvp(|a, b| {text}, (x, y), (t, s)).1,\n    grad(|a, b| sum(sin(1 + {text})), argnums=(0, 1))(x, y)" for text, _ in BINARY])
WINDOWS_TEXT = program("x: f64[2@X, 7@Y, 6, 4], w: f64[3, 2, 4, 6], t: f64[2@X, 7@Y, 6, 4], s: f64[3, 2, 4, 6]",
    [f"    jvp(|x, w| {text}, (x, w), (t, s)).1,\n    grad(|x, w| sum(sin({text})), argnums=(0, 1))(x, w)" for text, _ in WINDOWS])
POINTS_TEXT = """fn main(x: f64[10@X]) {
  let first = |f, a| grad(|a| sum(f(a)))(a);
  let second = |f, a| grad(|a| sum(grad(|a| sum(f(a)))(a)))(a);
  (first(digamma, x), second(digamma, x), first(sinc, x[4:]), second(sinc, x[4:]), second(sinc, zeros(f64[1])), grad(|a| sum(sin(digamma(a))))(x))
}"""
PRODUCTS_TEXT = program("x: f64[6@X, 3], v: f64[5@Y, 3], i: i32[5], j: i32[10], t: f64[6@X, 3], s: f64[5@Y, 3]",
    [f"    jvp(|a, b| {{ let mut u = a; {text}; u }}, (x, v), (t, s)).1,\n"
     f"    grad(|a, b| {{ let mut u = a; {text}; sum(sin(1 + u)) }}, argnums=(0, 1))(x, v)" for text, _ in PRODUCTS])
PROGRAMS = [
    ("derivatives_windows", "reduction", WINDOWS_TEXT, (noise(2, 7, 6, 4), noise(3, 2, 4, 6), noise(2, 7, 6, 4), noise(3, 2, 4, 6)), windows),
    ("derivatives_unary", "reduction", UNARY_TEXT, (noise(5, 8), rng.uniform(0.3, 3, (5, 8)), rng.uniform(-0.9, 0.9, (5, 8)), noise(5, 8)), unary),
    ("derivatives_binary", "reduction", BINARY_TEXT, (noise(5, 8), noise(8), noise(8), noise(5, 8)), binary),
    ("derivatives_shapes", "reduction", program("a: f64[6@X, 6@Y], t: f64[6@X, 6@Y], i: i32[4], i6: i32[6], j: i32", [both(text, "a") for text, _ in SHAPES]),
     (noise(6, 6), noise(6, 6), np.int32([0, 2, 2, 5]), np.int32([0, 2, 2, 1, 0, 0]), np.int32(3)), matrices(SHAPES)),
    ("derivatives_reductions", "reduction", program("a: f64[6@X, 6@Y], t: f64[6@X, 6@Y]", [both(text, "a") for text, _ in REDUCTIONS]),
     (noise(6, 6), noise(6, 6)), matrices(REDUCTIONS)),
    ("derivatives_second", "reduction", "fn main(x: f64[6@X, 5], w: f64[5, 7@Y]) {\n  let f = |a| sum(tanh(a @ w) ** 2);\n  let cube = |a| sum(a ** 3);\n"
     "  let (y, back) = vjp(|a, b| a @ b, x, w);\n"
     "  (grad(|a| sum(grad(f)(a) ** 2))(x), jvp(grad(f), (x,), (x,)).1, grad(|a| sum(grad(cube)(a)))(x),\n"
     "   grad(|a| sum(jvp(|b| sin(b), (a,), (a,)).1))(x), grad(|a| sum(stop_gradient(a) * a))(x), back(y).1)\n}", (noise(6, 5), noise(5, 7)), second),
    ("derivatives_network", "reduction", "fn main(x: f32[10@X, 9], t: f32[10@X, 4], w: f32[9, 12@Y], b: f32[12@Y], v: f32[12@Y, 4]) {\n"
     "  let ((l, m), g) = value_and_grad(loss, has_aux=true)({ w: w, b: b, v: v }, x, t);\n  (l, m, g.w, g.b, g.v)\n}\n"
     "type Net = { w: f32[9, 12@Y], b: f32[12@Y], v: f32[12@Y, 4] };\n"
     "fn loss(p: Net, x: f32[10@X, 9], t: f32[10@X, 4]) {\n  let y = relu(x @ p.w + p.b) @ p.v;\n  (-mean(sum(log_softmax(y) * t, axis=1)), max(y))\n}",
     tuple(a.astype(np.float32) for a in (noise(10, 9), rng.uniform(0, 1, (10, 4)), noise(9, 12), noise(12), noise(12, 4))), network),
    ("derivatives_digamma", "elementwise", POINTS_TEXT, (np.array([-7.25, -3.3, -0.5, -1e-3, 1e-3, 0.7, 1.4616, 2.0, 9.5, 50.0]),), at_points),
    ("derivatives_products", "reduction", PRODUCTS_TEXT, factors(np.random.default_rng(20261125)), products),
]


if __name__ == "__main__":
    store(PROGRAMS)
