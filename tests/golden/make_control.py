"""Makes the golden arrays of derivatives of control flow: each function below is differentiated by JAX in both modes, and twice.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_control.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261125)


def repeat(body, steps, init):
    """A loop that is written out."""
    for i in steps:
        init = body(i, init)
    return init



def nested(x, w):
    h, total = x, 0.0
    for i in range(3):
        for j in range(2):
            h = jnp.sin(h @ w + j)
        total = total + h.sum() * i
    return h * total


def collected(x, w):
    rows = []
    c = x[0]
    for i in range(6):
        c = jnp.tanh(c * w[i % 5]) + x[i]
        rows.append(c * c)
    return jnp.stack(rows) * c


def branches(x, w):
    h = x
    for i in range(4):
        h = jnp.cos(h * w[i]) if i % 2 == 0 else h @ w + x
    return h


def loop_in_branch(x, w):
    return repeat(lambda i, h: jnp.tanh(h @ w), range(3), x) * 2


def other_branch(x, w):
    return jnp.exp(-x * x) @ w


def updates(x, w):
    u = x
    for i in range(5):
        u = u.at[i + 1].set(jnp.sin(u[i] @ w))
    return u


def swapped(x, w):
    a, b = x, x * 2
    for _ in range(5):
        a, b = b, jnp.sin(a) * w[1]
    return a + 3 * b


# Name, text of a function of x and w, and the same for JAX, where trips are written out, and of branches only that which is taken.
FUNCTIONS = [
    ("control_loop", "{ let mut h = x; for i in 0..4 { h = tanh(h @ w); } h }", lambda x, w: repeat(lambda i, h: jnp.tanh(h @ w), range(4), x)),
    ("control_steps", "{ let mut h = x; for i in 7..-1 step -3 { h = h * sin(w[0] * f64(i)) + x; } h }",
     lambda x, w: repeat(lambda i, h: h * jnp.sin(w[0] * i) + x, range(7, -1, -3), x)),
    ("control_nested", "{ let mut h = x; let mut total = 0.0; for i in 0..3 { for j in 0..2 { h = sin(h @ w + f64(j)); } total += sum(h) * f64(i); } h * total }", nested),
    ("control_collected", "{ let mut c = x[0]; let rows = for i in 0..6 collect { c = tanh(c * w[i % 5]) + x[i]; c * c }; rows * c }", collected),
    ("control_branches", "{ let mut h = x; for i in 0..4 { if i % 2 == 0 { h = cos(h * w[i]); } else { h = h @ w + x; } } h }", branches),
    ("control_loop_in_branch", "if x[0, 0] > -100.0 { let mut h = x; for i in 0..3 { h = tanh(h @ w); } 2 * h } else { x }", loop_in_branch),
    ("control_other_branch", "if x[0, 0] > 100.0 { x * w[0] } else { exp(-x * x) @ w }", other_branch),
    ("control_updates", "{ let mut u = x; for i in 0..5 { u[i + 1, :] = sin(u[i] @ w); } u }", updates),
    ("control_swapped", "{ let mut a = x; let mut b = x * 2; for i in 0..5 { let c = sin(a) * w[1]; a = b; b = c; } a + 3 * b }", swapped),
    ("control_invariants", "{ let v = exp(w); let mut h = x; for i in 0..3 { let m = v @ v / 10; h = sin(h @ m) + x; } h }",
     lambda x, w: repeat(lambda i, h: jnp.sin(h @ (jnp.exp(w) @ jnp.exp(w) / 10)) + x, range(3), x)),
    ("control_short_loops", "{ let mut h = x; for i in 0..0 { h = h @ w; } for i in 2..3 { h = h * h * f64(i); } h }", lambda x, w: 2 * x * x + 0 * w[0, 0]),
    ("control_checkpoints", "checkpoint(|a, b| { let mut h = a; for i in 0..3 { h = checkpoint(|c| tanh(c @ b))(h); } h * a })(x, w)",
     lambda x, w: repeat(lambda i, h: jnp.tanh(h @ w), range(3), x) * x),
]
def both(text):
    f = f"|x, w| {text}"
    square = f"|x, w| sum(sin(1 + {text}))"
    return (f"    jvp({f}, (x, w), (t, s)).1,\n    grad({square}, argnums=(0, 1))(x, w),\n"
            f"    jvp(grad({square}), (x, w), (t, s)).1,\n    grad(|x, w| sum(grad({square})(x, w) ** 2), argnums=(0, 1))(x, w)")


def check(function, x, w, t, s):
    square = lambda x, w: jnp.sin(1 + function(x, w)).sum()
    return [
        jax.jvp(function, (x, w), (t, s))[1], *jax.grad(square, (0, 1))(x, w), jax.jvp(jax.grad(square), (x, w), (t, s))[1],
        *jax.grad(lambda x, w: (jax.grad(square)(x, w) ** 2).sum(), (0, 1))(x, w),
    ]


def check_all(function):
    return lambda x, w, t, s: tuple(check(function, x, w, t, s))


def program(params, expressions):
    return f"fn main({params}) {{\n  (\n" + ",\n".join(expressions) + "\n  )\n}"


def noise(*shape):
    return rng.standard_normal(shape)


def dynamic(x, w, t, s, n, e):
    def while_(x, w):
        return lax.while_loop(lambda h: h.sum() < e, lambda h: h * 1.5 + x * w[0] * w[0], x * x)

    square = lambda x, w: jnp.sin(repeat(lambda i, h: 2 * h + x * i * w[0], range(3), x)).sum()
    return (*jax.grad(square, (0, 1))(x, w), jax.jvp(lambda x, w: repeat(lambda i, h: 2 * h + x * i * w[0], range(3), x), (x, w), (t, s))[1],
            jax.jvp(while_, (x, w), (t, s))[1])


@jax.custom_vjp
def clipped(x, w):
    return jnp.sin(x) * w


clipped.defvjp(lambda x, w: (jnp.sin(x) * w, (jnp.cos(x), w)), lambda r, g: (jnp.clip(g * r[0] * r[1], -0.5, 0.5), (g * 3).sum(0)))


def custom(x, w):
    square = lambda x, w: (clipped(x * 2, w[0]) ** 2).sum()
    looped = lambda x, w: repeat(lambda i, h: clipped(h, w[i]), range(3), x).sum()
    return (clipped(x, w[0]), *jax.grad(square, (0, 1))(x, w), *jax.grad(looped, (0, 1))(x, w),
            jax.grad(lambda x: (jax.grad(square)(x, w) ** 2).sum())(x), *jax.grad(jax.checkpoint(looped), (0, 1))(x, w))


PARAMS = "x: f64[6@X, 5@Y], w: f64[5, 5], t: f64[6@X, 5@Y], s: f64[5, 5]"
INPUTS = (noise(6, 5), noise(5, 5), noise(6, 5), noise(5, 5))
PROGRAMS = [
    *((name, "reduction", program(PARAMS, [both(text)]), INPUTS, check_all(function)) for name, text, function in FUNCTIONS),
    ("control_dynamic", "reduction", "fn main(" + PARAMS + ", n: i32, e: f64) {\n"
     "  let f = |x, w| { let mut h = x; for i in 0..n { h = 2 * h + x * f64(i) * w[0]; } h };\n"
     "  let g = |x, w| { let mut h = x * x; while sum(h) < e { h = h * 1.5 + x * w[0] * w[0]; } h };\n"
     "  (grad(|x, w| sum(sin(f(x, w))), argnums=(0, 1))(x, w), jvp(f, (x, w), (t, s)).1, jvp(g, (x, w), (t, s)).1)\n}",
     (*INPUTS, np.int32(3), np.float64(500)), dynamic),
    ("control_custom", "reduction", "fn main(x: f64[6@X, 5@Y], w: f64[5, 5]) {\n"
     "  let f = custom_vjp(|a, b| sin(a) * b, |a, b| (sin(a) * b, (cos(a), b)), |r, g| (clip(g * r.0 * r.1, -0.5, 0.5), sum(g * 3, axis=0)));\n"
     "  let square = |x, w| sum(f(x * 2, w[0]) ** 2);\n"
     "  let looped = |x, w| { let mut h = x; for i in 0..3 { h = f(h, w[i]); } sum(h) };\n"
     "  (f(x, w[0]), grad(square, argnums=(0, 1))(x, w), grad(looped, argnums=(0, 1))(x, w), grad(|a| sum(grad(square)(a, w) ** 2))(x),\n"
     "   grad(checkpoint(looped), argnums=(0, 1))(x, w))\n}", INPUTS[:2], custom),
]


if __name__ == "__main__":
    store(PROGRAMS)
