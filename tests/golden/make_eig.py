"""Makes the golden arrays of eigenvalues and eigenvectors of general matrices, and of their derivatives, by JAX. The order of eigenvalues and
the signs of vectors are free, so that ordered numbers and magnitudes are compared, and functions that do not depend on them.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_eig.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261126)
KINDS = {"f32": np.float32, "f64": np.float64}


def noise(dtype, *shape):
    return rng.standard_normal(shape).astype(KINDS[dtype])


def eig(x):
    w, v = lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return w, v


def ordered(x):
    w, v = jnp.linalg.eig(x)
    order = jnp.argsort(jnp.real(w) + jnp.imag(w) / 8)
    values = jnp.linalg.eigvals(x)
    own = jnp.argsort(jnp.real(values) + jnp.imag(values) / 8)
    return (jnp.take_along_axis(w, order, -1), jnp.take_along_axis(jnp.abs(v), order[..., None, :], -1), jnp.take_along_axis(values, own, -1),
            1 + jnp.abs(x @ v - v * w[..., None, :]))


ORDERED = """  let (w, v) = eig(m);
  let order = argsort(real(w) + imag(w) / 8, axis=-1);
  let values = eigvals(m);
  let own = argsort(real(values) + imag(values) / 8, axis=-1);
  (take_along_axis(w, order, axis=-1), take_along_axis(abs(v), broadcast_to(order[..., None, :], v.shape), axis=-1), take_along_axis(values, own, axis=-1),
    1 + abs(m @ v - v * w[..., None, :]))
}"""


def of_real(name, tolerance, dtype, *shape):
    text = f"fn main(m: {dtype}[{', '.join(map(str, shape))}]) {{\n" + ORDERED
    return name, tolerance, text, [noise(dtype, *shape)], ordered


def of_complex(name, tolerance, dtype, *shape):
    whole = f"{dtype}[{', '.join(map(str, shape))}]"
    text = f"fn main(x: {whole}, y: {whole}) {{\n  let m = complex(x, y);\n" + ORDERED
    return name, tolerance, text, [noise(dtype, *shape), noise(dtype, *shape)], lambda x, y: ordered(lax.complex(x, y))


def of_values(a):
    w = eig(a)[0]
    return jnp.sum(jnp.sin(jnp.real(w)) * jnp.cosh(jnp.imag(w)) + jnp.abs(w) ** 3)


def of_vectors(a):
    """A function that depends on the phase, but not on the order and the signs."""
    w, v = eig(a)
    rows = 1 + jnp.arange(a.shape[-1])[:, None]
    return jnp.sum(rows * jnp.abs(v) ** 3) + jnp.sum(rows * jnp.real(v * v) * jnp.real(w)) + jnp.sum(rows * jnp.imag(v * v) * jnp.imag(w))


FUNCTIONS = """fn of_values(a) {
  let w = eigvals(a);
  sum(sin(real(w)) * cosh(imag(w)) + abs(w) ** 3)
}

fn of_vectors(a) {
  let (w, v) = eig(a);
  let rows = 1 + arange(a.shape[-1])[:, None];
  sum(rows * abs(v) ** 3) + sum(rows * real(v * v) * real(w)) + sum(rows * imag(v * v) * imag(w))
}
"""


def derivatives(a, t):
    twice = lambda f: jax.jvp(jax.grad(f), (a,), (t,))[1]
    return jax.grad(of_values)(a), jax.grad(of_vectors)(a), twice(of_values), twice(of_vectors)


def of_planes(x, y, t, u):
    made = lambda f: jax.grad(lambda a, b: f(lax.complex(a, b)), argnums=(0, 1))
    gradients = made(of_values)(x, y) + made(of_vectors)(x, y)
    return gradients + jax.jvp(made(of_values), (x, y), (t, u))[1] + jax.jvp(made(of_vectors), (x, y), (t, u))[1]


DERIVATIVES = "fn main(a: f64[4, 4], t: f64[4, 4]) {\n  (grad(of_values)(a), grad(of_vectors)(a), jvp(grad(of_values), (a,), (t,)).1, jvp(grad(of_vectors), (a,), (t,)).1)\n}\n\n" + FUNCTIONS
PLANES = """fn main(x: f64[3, 3], y: f64[3, 3], t: f64[3, 3], u: f64[3, 3]) {
  let values = grad(|a, b| of_values(complex(a, b)), argnums=(0, 1));
  let vectors = grad(|a, b| of_vectors(complex(a, b)), argnums=(0, 1));
  let (first, second) = (values(x, y), vectors(x, y));
  let (third, fourth) = (jvp(values, (x, y), (t, u)).1, jvp(vectors, (x, y), (t, u)).1);
  (first.0, first.1, second.0, second.1, third.0, third.1, fourth.0, fourth.1)
}

""" + FUNCTIONS

store([
    of_real("eig_f32", "reduction", "f32", 6, 6),
    of_real("eig_f64", "double", "f64", 3, 5, 5),
    of_complex("eig_c64", "reduction", "f32", 5, 5),
    of_complex("eig_c128", "double", "f64", 2, 4, 4),
    ("eig_derivatives", "double", DERIVATIVES, [noise("f64", 4, 4), noise("f64", 4, 4)], derivatives),
    ("eig_derivatives_complex", "double", PLANES, [noise("f64", 3, 3) for _ in range(4)], of_planes),
])
