"""Makes the golden arrays of first and second derivatives at zero, at ties and far from zero, where formulas have branches, by JAX.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_points.py
"""

import jax
import jax.numpy as jnp
import numpy as np

from store import write

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

nn = jax.nn
POINTS = np.array([-800.0, -6.0, -1.0, -0.0, 0.0, 1.0, 6.0, 800.0])
# Name in the language, function of JAX.
SMOOTH = [
    ("sigmoid(a)", nn.sigmoid), ("silu(a)", nn.silu), ("softplus(a)", nn.softplus), ("gelu(a)", nn.gelu),
    ("gelu(a, approximate=false)", lambda a: nn.gelu(a, approximate=False)), ("tanh(a)", jnp.tanh), ("log1p(exp(-a * a))", lambda a: jnp.log1p(jnp.exp(-a * a))),
    ("a ** 2", lambda a: a**2), ("a ** 3", lambda a: a**3), ("square(a)", jnp.square), ("atan(a)", jnp.arctan), ("asinh(a)", jnp.arcsinh),
    ("logaddexp(a, 2 * a)", lambda a: jnp.logaddexp(a, 2 * a)), ("erf(a)", jax.scipy.special.erf), ("cos(a)", jnp.cos),
    ("softmax(a)", nn.softmax), ("log_softmax(a / 100)", lambda a: nn.log_softmax(a / 100)), ("a * a * logsumexp(stack([a, a]), axis=0)",
     lambda a: a * a * jax.scipy.special.logsumexp(jnp.stack([a, a]), axis=0)),
]
# With a bend, where the derivative is a convention: second derivatives are not compared.
BENT = [
    ("relu(a)", nn.relu), ("abs(a)", jnp.abs), ("elu(a)", nn.elu), ("elu(a, alpha=2)", lambda a: nn.elu(a, 2.0)), ("leaky_relu(a)", nn.leaky_relu),
    ("maximum(a, 0)", lambda a: jnp.maximum(a, 0)), ("minimum(a, 1)", lambda a: jnp.minimum(a, 1)), ("clip(a, -1, 1)", lambda a: jnp.clip(a, -1, 1)),
    ("max(stack([a, a, a - 1]), axis=0)", lambda a: jnp.max(jnp.stack([a, a, a - 1]), axis=0)), ("sinc(a / 7)", lambda a: jnp.sinc(a / 7)),
    ("where(a > 0, a, 3 * a)", lambda a: jnp.where(a > 0, a, 3 * a)), ("sqrt(a * a + 1)", lambda a: jnp.sqrt(a * a + 1)),
]
WEIGHTS = np.linspace(0.5, 2.5, len(POINTS))


def first(function):
    return jax.grad(lambda a: jnp.sum(WEIGHTS * function(a)))


def second(function):
    return jax.grad(lambda a: jnp.sum(WEIGHTS * first(function)(a)))


def text_of(expression):
    return f"grad(|a| sum(w * ({expression})))"


def program():
    lines = [f"    {text_of(text)}(x)" for text, _ in SMOOTH + BENT]
    lines += [f"    grad(|a| sum(w * {text_of(text)}(a)))(x)" for text, _ in SMOOTH]
    return "fn main(x: f64[8@Y], w: f64[8@Y]) {\n  (\n" + ",\n".join(lines) + "\n  )\n}"


if __name__ == "__main__":
    results = [first(function)(POINTS) for _, function in SMOOTH + BENT] + [second(function)(POINTS) for _, function in SMOOTH]
    write("derivatives_points", "reduction", program(), [POINTS, WEIGHTS], tuple(results))
