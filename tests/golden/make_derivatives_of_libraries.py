"""Makes the golden arrays of derivatives of sorts, scans, factorizations and transforms: each expression below by JAX, in both modes.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_derivatives_of_libraries.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import expm

from store import store

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(20261126)


def noise(*shape):
    return rng.standard_normal(shape)


# Functions of a matrix without special form.
ORDERS = [
    ("sort(a, axis=1)", lambda a: jnp.sort(a, 1)), ("sort(a, axis=0, descending=true) * a", lambda a: jnp.sort(a, 0, descending=True) * a),
    ("sort(a, axis=None)", lambda a: jnp.sort(a, None)), ("top_k(a, 3).0", lambda a: lax.top_k(a, 3)[0]), ("median(a, axis=1)", lambda a: jnp.median(a, 1)),
    ("quantile(a, 0.3, axis=0)", lambda a: jnp.quantile(a, 0.3, axis=0)), ("percentile(a, 80.0)", lambda a: jnp.percentile(a, 80.0)),
    ("cumprod(a, axis=1)", lambda a: jnp.cumprod(a, 1)), ("cumprod(round(a), axis=0)", lambda a: jnp.cumprod(jnp.round(a), 0)),
    ("cumprod(a * f64(a > 0), axis=1)", lambda a: jnp.cumprod(a * (a > 0), 1)), ("flip(cumprod(flip(a, axis=1), axis=1), axis=1)", lambda a: lax.cumprod(a, 1, reverse=True)),
    ("cummax(a, axis=1)", lambda a: lax.cummax(a, 1)), ("cummin(a, axis=0)", lambda a: lax.cummin(a, 0)), ("logcumsumexp(a, axis=1)", lambda a: lax.cumlogsumexp(a, 1)),
    ("associative_scan(|p, q| p + q + p * q, a, axis=1)", lambda a: lax.associative_scan(lambda p, q: p + q + p * q, a, axis=1)),
    ("trace(a @ a) * a", lambda a: jnp.trace(a @ a) * a), ("diag(a)", jnp.diag), ("einsum(\"ii->i\", a)", lambda a: jnp.diag(a)), ("diag(a[0])", lambda a: jnp.diag(a[0])),
    ("{ let mut u = a; u[i] = sin(a[:3]); u * a }", lambda a: a.at[jnp.array([4, 0, 2])].set(jnp.sin(a[:3])) * a),
    ("dynamic_update_slice(a, sin(a[:2, :3]), (1, 2))", lambda a: lax.dynamic_update_slice(a, jnp.sin(a[:2, :3]), (1, 2))),
    ("reduce_window(a, 0.0, \"max\", (2, 3), (2, 1), \"VALID\")", lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (2, 3), (2, 1), "VALID")),
]


def positive(a):
    return a @ a.T + 6 * jnp.eye(6)


def symmetric(a):
    return a + a.T + jnp.diag(jnp.arange(6) * 3.0)


POSITIVE, SYMMETRIC = "(a @ a.T + 6 * eye(6, dtype=a.dtype))", "(a + a.T + diag(3.0 * f64(arange(6))))"
MATRICES = [
    (f"cholesky({POSITIVE})", lambda a: jnp.linalg.cholesky(positive(a))), (f"cholesky({POSITIVE}, upper=true)", lambda a: jnp.linalg.cholesky(positive(a), upper=True)),
    ("triangular_solve(a + 4 * eye(6, dtype=a.dtype), a[:, :2], left_side=true, lower=true)", lambda a: lax.linalg.triangular_solve(a + 4 * jnp.eye(6), a[:, :2], left_side=True, lower=True)),
    ("triangular_solve(a + 4 * eye(6, dtype=a.dtype), a[:2], transpose_a=true)", lambda a: lax.linalg.triangular_solve(a + 4 * jnp.eye(6), a[:2], transpose_a=True)),
    ("triangular_solve(a, a, left_side=true, unit_diagonal=true)", lambda a: lax.linalg.triangular_solve(a, a, left_side=True, unit_diagonal=True)),
    (f"solve({POSITIVE}, a[:, :2])", lambda a: jnp.linalg.solve(positive(a), a[:, :2])), ("solve(a, a[0])", lambda a: jnp.linalg.solve(a, a[0])), ("inv(a)", jnp.linalg.inv), ("det(a)", jnp.linalg.det),
    ("slogdet(a).1", lambda a: jnp.linalg.slogdet(a)[1]), ("lu(a).0", lambda a: lax.linalg.lu(a)[0]),
    ("abs(qr(a[:, :4]).1)", lambda a: abs(jnp.linalg.qr(a[:, :4])[1])), ("abs(qr(a).0)", lambda a: abs(jnp.linalg.qr(a)[0])),
    (f"eigh({SYMMETRIC}).0", lambda a: jnp.linalg.eigh(symmetric(a))[0]), (f"abs(eigh({SYMMETRIC}).1)", lambda a: abs(jnp.linalg.eigh(symmetric(a))[1])),
    ("svd(a[:, :4], compute_uv=false)", lambda a: jnp.linalg.svd(a[:, :4], compute_uv=False)),
    ("abs(svd(a[:, :4], full_matrices=false).0)", lambda a: abs(jnp.linalg.svd(a[:, :4], full_matrices=False)[0])),
    ("abs(svd(a[:4], full_matrices=false).2)", lambda a: abs(jnp.linalg.svd(a[:4], full_matrices=False)[2])),
    ("pinv(a[:, :4])", lambda a: jnp.linalg.pinv(a[:, :4])), ("expm(a / 4)", lambda a: expm(a / 4)), ("lstsq(a[:, :3], a[:, 4]).0", lambda a: jnp.linalg.lstsq(a[:, :3], a[:, 4])[0]),
    ("matrix_power(a, 3)", lambda a: jnp.linalg.matrix_power(a, 3)),
]
SPECTRA = [
    ("{ let z = fft(a, axis=1); real(z) * imag(z) }", lambda a: jnp.fft.fft(a, axis=1).real * jnp.fft.fft(a, axis=1).imag),
    ("{ let z = rfft(a, axis=0); square(real(z)) + imag(z) }", lambda a: jnp.fft.rfft(a, axis=0).real ** 2 + jnp.fft.rfft(a, axis=0).imag),
    ("irfft(rfft(a[:, :5], axis=1) * 2.0, n=5, axis=1)", lambda a: jnp.fft.irfft(jnp.fft.rfft(a[:, :5], axis=1) * 2.0, n=5, axis=1)),
    ("{ let z = ifft2(fft2(a) * complex(a, sin(a))); real(z) + 2 * imag(z) }", lambda a: (lambda z: z.real + 2 * z.imag)(jnp.fft.ifft2(jnp.fft.fft2(a) * (a + 1j * jnp.sin(a))))),
    ("abs(fftshift(fft(a)))", lambda a: abs(jnp.fft.fftshift(jnp.fft.fft(a)))),
]


def both(text):
    return f"    jvp(|a| {text}, (a,), (t,)).1,\n    grad(|a| sum(sin(1 + {text})))(a)"


def check(functions):
    def found(a, t, *_):
        return tuple(array for _, f in functions for array in (jax.jvp(f, (a,), (t,))[1], jax.grad(lambda a: jnp.sin(1 + f(a)).sum())(a)))
    return found


def second(functions):
    def found(a, t, *_):
        return tuple(jax.jvp(jax.grad(lambda a: jnp.sin(1 + f(a)).sum()), (a,), (t,))[1] for _, f in functions)
    return found


def program(expressions, more=""):
    return f"fn main(a: f64[6@X, 6@Y], t: f64[6@X, 6@Y]{more}) {{\n  (\n" + ",\n".join(expressions) + "\n  )\n}"


def twice(text):
    return f"    jvp(grad(|a| sum(sin(1 + {text}))), (a,), (t,)).1"


# Functions of complex numbers.
COMPLEX = [
    ("z * z * conj(z)", lambda z: z * z * jnp.conj(z)), ("exp(z) / z", lambda z: jnp.exp(z) / z), ("fft(z, axis=1) * z", lambda z: jnp.fft.fft(z, axis=1) * z),
    ("sin(z) + real(z) * imag(z)", lambda z: jnp.sin(z) + z.real * z.imag), ("abs(z) * z", lambda z: abs(z) * z), ("z @ z", lambda z: z @ z),
    ("{ let mut u = z; for i in 0..3 { u = u * z + conj(u); } u }", lambda z: (lambda f: f(f(f(z))))(lambda u: u * z + jnp.conj(u))),
]


def complex_program(functions):
    lines = [f"    jvp(|z| {text}, (z,), (c,)).1,\n    (vjp(|z| {text}, z).1)(c).0,\n    grad(|z| sum(sin(abs({text}))))(z)" for text, _ in functions]
    return "fn main(z: c128[4@X, 4@Y], c: c128[4@X, 4@Y]) {\n  (\n" + ",\n".join(lines) + "\n  )\n}"


def complex_check(z, c):
    return tuple(array for _, f in COMPLEX for array in (jax.jvp(f, (z,), (c,))[1], jax.vjp(f, z)[1](c)[0], jax.grad(lambda z: jnp.sin(abs(f(z))).sum())(z)))


INPUTS = (noise(6, 6), noise(6, 6))
INDICES = np.int32([4, 0, 2])
PROGRAMS = [
    ("derivatives_complex", "reduction", complex_program(COMPLEX), (noise(4, 4) + 1j * noise(4, 4), noise(4, 4) + 1j * noise(4, 4)), complex_check),
    ("derivatives_orders", "reduction", program([both(text) for text, _ in ORDERS], ", i: i32[3]"), (*INPUTS, INDICES), check(ORDERS)),
    ("derivatives_matrices", "reduction", program([both(text) for text, _ in MATRICES]), INPUTS, check(MATRICES)),
    ("derivatives_spectra", "reduction", program([both(text) for text, _ in SPECTRA]), INPUTS, check(SPECTRA)),
    ("derivatives_twice", "reduction", program([twice(text) for text, _ in (*ORDERS[:2], ORDERS[7], *MATRICES[:1], *MATRICES[5:8], MATRICES[13], SPECTRA[0])]), INPUTS,
     second([*ORDERS[:2], ORDERS[7], *MATRICES[:1], *MATRICES[5:8], MATRICES[13], SPECTRA[0]])),
]


if __name__ == "__main__":
    store(PROGRAMS)
