"""Makes the golden arrays of derivatives of products and determinants where factors are zero, very large or very small, and matrices singular.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_products.py
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261127)


def updated(u, v, i):
    """The elements of u, multiplied by those of v at these indices: JAX has no derivative of its own for equal indices."""
    return u * jnp.where(i[:, None] == jnp.arange(u.shape[0]), v[:, None], 1).prod(0)


def windows(a, m, n):
    """The product of each window of m rows and n columns: JAX has no reverse of its own for it."""
    rows, columns = a.shape[0] - m + 1, a.shape[1] - n + 1
    return jnp.stack([a[i : i + rows, j : j + columns] for i in range(m) for j in range(n)]).prod(0)


# Functions of a: f64[5, 6], with indices i.
PRODUCTS = [
    ("prod(a)", lambda a, i: jnp.prod(a)), ("prod(a, axis=0)", lambda a, i: jnp.prod(a, 0)), ("prod(a, axis=1, keepdims=true) * a", lambda a, i: jnp.prod(a, 1, keepdims=True) * a),
    ("prod(reshape(a, (5, 2, 3)), axis=(0, 2))", lambda a, i: jnp.prod(a.reshape(5, 2, 3), (0, 2))), ("prod(a, axis=1, where=a > -2)", lambda a, i: jnp.prod(a, 1, where=a > -2)),
    ("reduce_window(a, 1.0, \"mul\", (2, 3), padding=\"SAME\")", lambda a, i: windows(jnp.pad(a, ((0, 1), (1, 1)), constant_values=1), 2, 3)),
    ("reduce_window(a, 1.0, |p, q| p * q, (3, 2))", lambda a, i: windows(a, 3, 2)),
    ("cumprod(a, axis=1)", lambda a, i: jnp.cumprod(a, 1)), ("cumprod(a, axis=0, reverse=true)", lambda a, i: lax.cumprod(a, 0, reverse=True)),
    ("associative_scan(|p, q| p * q, a, axis=1)", lambda a, i: jnp.cumprod(a, 1)),
    ("{ let mut u = a[0]; u[i] *= a[1]; u[i] *= a[2, ::-1]; u }", lambda a, i: updated(updated(a[0], a[1], i), a[2, ::-1], i)),
    ("{ let mut u = a; u[i, i % 2] *= a[4]; u }", lambda a, i: updated(a.reshape(-1), a[4], i * 6 + i % 2)),
]


def orders(text):
    f = f"|a| sum(sin(1 + {text}))"
    return f"    grad({f})(a),\n    jvp(grad({f}), (a,), (t,)).1,\n    grad(|a| sum(t * grad({f})(a)))(a),\n    jvp(|a| jvp({f}, (a,), (t,)).1, (a,), (a,)).1"


def check(functions):
    def found(a, t, i):
        results = []
        for _, function in functions:
            f = lambda a: jnp.sin(1 + function(a, i)).sum()
            results += [jax.grad(f)(a), jax.jvp(jax.grad(f), (a,), (t,))[1], jax.grad(lambda a: (t * jax.grad(f)(a)).sum())(a),
                        jax.jvp(lambda a: jax.jvp(f, (a,), (t,))[1], (a,), (a,))[1]]
        return tuple(results)
    return found


def program(functions):
    return "fn main(a: f64[5@X, 6@Y], t: f64[5@X, 6@Y], i: i32[6]) {\n  (\n" + ",\n".join(orders(text) for text, _ in functions) + "\n  )\n}"


# One, two and three zeros in rows, columns and windows, and ties.
FACTORS = rng.choice([0.0, 0.0, 1.0, 1.0, -1.0, 2.0, 3.0, -2.5], (5, 6))
FACTORS[3] = [2, 1, -1, 1, 1, 3]
INPUTS = (FACTORS, rng.standard_normal((5, 6)), np.int32([0, 2, 0, 4, 2, 0]))

EXTREMES = """fn main(x: f32[N, 3@X], i: i32[3]) {
  let updated = |a| { let mut u: f32[2] = [1.0, 1.0]; u[i] *= a; u[0] };
  (
    vmap(grad(|a| prod(a)))(x),
    vmap(grad(|a| reduce_window(a, 1.0, "mul", (3,))[0]))(x),
    vmap(grad(updated))(x)
  )
}"""


def extremes(x, i):
    of_all = jax.vmap(jax.grad(jnp.prod))(x)
    return of_all, of_all, of_all


VALUES = np.float32([0, 1, 1e-30, 1e30, 3e38, -2e-38, np.inf])
TRIPLES = np.float32(list(itertools.product(VALUES, repeat=3)))


def leibniz(a):
    """The determinant as a sum over all permutations, which has the derivatives of a polynomial."""
    n = a.shape[-1]
    orders = np.array(list(itertools.permutations(range(n))))
    signs = np.array([(-1.0) ** sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n)) for order in orders])
    return (jnp.prod(a[..., np.arange(n), orders], -1) * signs.astype(a.dtype)).sum(-1)


DETERMINANTS = """fn main(a: f64[3@X, 3@Y], b: f64[N@X, 4, 4], t: f64[N@X, 4, 4], c: f64[5@Y, 5], s: f64[5@Y, 5], d: f32[4, 4@Y]) {
  let each = vmap(|b, t| jvp(grad(det), (b,), (t,)).1);
  (
    grad(det)(a), hessian(det)(a), grad(|b| sum(det(b)))(b), vmap(grad(det))(b), each(b, t), jvp(grad(|b| sum(det(b))), (b,), (t,)).1,
    grad(|b| sum(t * grad(|b| sum(det(b) ** 2 + det(b)))(b)))(b),
    grad(det)(c), jvp(grad(det), (c,), (s,)).1, jvp(|c| jvp(det, (c,), (s,)).1, (c,), (c,)).1, hessian(det)(c)[2], grad(|d| det(d @ d.T) + det(d))(d)
  )
}"""


def determinants(a, b, t, c, s, d):
    grad, summed = jax.grad(leibniz), lambda b: leibniz(b).sum()
    return (grad(a), jax.hessian(leibniz)(a), jax.grad(summed)(b), jax.grad(summed)(b), jax.jvp(jax.grad(summed), (b,), (t,))[1],
            jax.jvp(jax.grad(summed), (b,), (t,))[1], jax.grad(lambda b: (t * jax.grad(lambda b: (leibniz(b) ** 2 + leibniz(b)).sum())(b)).sum())(b),
            grad(c), jax.jvp(grad, (c,), (s,))[1], jax.jvp(lambda c: jax.jvp(leibniz, (c,), (s,))[1], (c,), (c,))[1], jax.hessian(leibniz)(c)[2],
            jax.grad(lambda d: leibniz(d @ d.T) + leibniz(d))(d))


def of_rank(n, rank):
    """An integer matrix of at most this rank."""
    return (rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, n))).astype(float)


# The second column is as the first one: elimination with row exchanges alone meets a pivot of zero, and later others.
EARLY = np.float64([[1, 1, 2, 0], [1, 1, 3, 0], [1, 1, 5, 0], [0, 0, 0, 1]])
QUADS = np.stack([EARLY, *(of_rank(4, rank) for rank in (0, 1, 2, 3, 3, 4)), np.eye(4)])
SINGULAR = (np.float64([[1, 2, 3], [2, 4, 6], [1, 1, 1]]), QUADS, rng.standard_normal(QUADS.shape), of_rank(5, 4), rng.standard_normal((5, 5)),
            of_rank(4, 3).astype(np.float32))

PROGRAMS = [
    ("products_with_zeros", "reduction", program(PRODUCTS[:6]), INPUTS, check(PRODUCTS[:6])),
    ("products_of_running_zeros", "reduction", program(PRODUCTS[6:]), INPUTS, check(PRODUCTS[6:])),
    ("products_of_extremes", "elementwise", EXTREMES.replace("N", str(len(TRIPLES))), (TRIPLES, np.int32([0, 0, 0])), extremes),
    ("determinants_of_singular_matrices", "reduction", DETERMINANTS.replace("N", str(len(QUADS))), SINGULAR, determinants),
]


if __name__ == "__main__":
    store(PROGRAMS)
