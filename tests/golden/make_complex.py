"""Makes the golden arrays of complex numbers and Fourier transforms, beside the spmd text of each program: what NumPy makes of them in complex128,
rounded to the type of the program; what JAX makes of special values and mixed types.

    pip install "jax==0.10.2" "numpy==2.4.6"
    python3 tests/golden/make_complex.py
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(20261123)
np.seterr(all="ignore")

FLOATS = {"c64": ("f32", np.float32, np.complex64), "c128": ("f64", np.float64, np.complex128)}


def normal(dtype, *shape):
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def wide(*arrays):
    """The arrays in double precision."""
    return [a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for a in arrays]


def rounded(value, real, complex_):
    value = np.asarray(value)
    if value.dtype.kind == "c":
        return value.astype(complex_)
    return value.astype(real) if value.dtype.kind == "f" else value


UNARY = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "expm1", "log1p",
         "log2", "log10", "exp2", "square", "reciprocal", "abs", "angle", "conj", "real", "imag"]
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}


def programs():
    for c, (f, real, complex_) in FLOATS.items():
        x, y, r = normal(complex_, 7, 5), normal(complex_, 7, 1), normal(real, 5)
        n = rng.integers(-3, 4, 5).astype(np.int32)
        a, b, s = wide(x, y, r)
        out = [a + b, a - b, a * b, a / b, a * s, s * a, a / s, s / a, a + n, n - a, 2 * a, a * 2.5, 1 / a, -a, a ** 2, a ** -3, a ** b, a ** 0.5,
               a == a, a != b, a / abs(a), (a + b).conj(), np.where(s > 0, a, b), np.where(s > 0, a, s)]
        yield (f"complex_arithmetic_{c}", "reduction",
               f"fn main(x: {c}[7@X, 5@Y], y: {c}[7@X, 1], r: {f}[5@Y], n: i32[5@Y]) {{\n"
               "  (x + y, x - y, x * y, x / y, x * r, r * x, x / r, r / x, x + n, n - x, 2 * x, x * 2.5, 1 / x, -x, x ** 2, x ** -3, x ** y,\n"
               "    x ** 0.5, x == x, x != y, sign(x), conj(x + y), where(r > 0, x, y), where(r > 0, x, r))\n}",
               {"x": x, "y": y, "r": r, "n": n}, [rounded(o, real, complex_) for o in out])

        x = np.concatenate([normal(complex_, 30), normal(complex_, 5) * complex_(1e-3), normal(complex_, 5) * complex_(5)]).reshape(8, 5)
        a, = wide(x)
        out = [getattr(np, NUMPY.get(name, name))(a) for name in UNARY]
        yield (f"complex_functions_{c}", "reduction",
               f"fn main(x: {c}[8@X, 5@Y]) {{\n  (" + ", ".join(f"{name}(x)" for name in UNARY) + ", isnan(x), isinf(x), isfinite(x))\n}",
               {"x": x}, [rounded(o, real, complex_) for o in out] + [np.isnan(a), np.isinf(a), np.isfinite(a)])

        inf, nan, big, tiny = np.inf, np.nan, float(np.finfo(real).max) * 0.9, float(np.finfo(real).tiny)
        parts = [0.0, 1.0, -2.0, inf, -inf, nan, big, tiny]
        z = np.array([complex(p, q) for p in parts for q in parts], complex_)
        finite = np.array([complex(p, q) for p in (0.0, 1.5, -2.0, big, tiny) for q in (0.0, -1.0, 2.0, big)], complex_)
        yield (f"complex_special_{c}", "reduction",
               f"fn main(z: {c}[64@X], w: {c}[20@Y]) {{ (abs(z), isnan(z), isinf(z), sqrt(z), abs(w), sqrt(w), w / w[3], w[1] / (w + 1), 1 / w[1:]) }}",
               {"z": z, "w": finite},
               [np.abs(z), np.isnan(z), np.isinf(z), np.sqrt(z), np.abs(finite), np.sqrt(finite), finite / finite[3],
                finite[1] / (finite + 1), 1 / finite[1:]])

        x, m, k = normal(complex_, 6, 8), normal(complex_, 8, 5), normal(real, 8, 3)
        v, w = normal(complex_, 8) + complex_(1), normal(complex_, 8) + complex_(1)
        a, b, d, p, q = wide(x, m, k, v, w)
        mask = rng.random((6, 8)) < 0.5
        out = [a.sum(), a.sum(0), a.sum(1, keepdims=True), a.mean(1), a.prod(1), a[:, :3].prod(), a.cumsum(0), a.cumprod(1), a.var(1), a.std(),
               np.linalg.norm(a), np.linalg.norm(a, 1, axis=1), a @ b, a @ d, d.T @ b, np.einsum("ij,jk->ik", a, b), np.einsum("ij->j", a),
               np.einsum("ij,j,jk->ik", a, p, d), p @ q, np.vdot(p, q), np.outer(p, q), np.kron(p, d[:, 0]), np.convolve(p, q), np.trace(a @ b[:, :5]),
               np.diff(a, axis=1), np.average(a, axis=0), np.any(a != 0, 1), np.all(a, 0), np.count_nonzero(a), a.sum(1, where=mask)]
        yield (f"complex_sums_{c}", "reduction",
               f"fn main(x: {c}[6@X, 8@Y], m: {c}[8@Y, 5], k: {f}[8, 3@X], v: {c}[8@Y], w: {c}[8@X], mask: bool[6, 8]) {{\n"
               "  (sum(x), sum(x, axis=0), sum(x, axis=1, keepdims=true), mean(x, axis=1), prod(x, axis=1), prod(x[:, :3]), cumsum(x, axis=0),\n"
               "    cumprod(x, axis=1), var(x, axis=1), std(x), norm(x), norm(x, 1, axis=1), x @ m, x @ k, k.T @ m, einsum(\"ij,jk->ik\", x, m),\n"
               "    einsum(\"ij->j\", x), einsum(\"ij,j,jk->ik\", x, v, k), dot(v, w), vdot(v, w), outer(v, w), kron(v, k[:, 0]), convolve(v, w),\n"
               "    trace(x @ m), diff(x), average(x, axis=0), any(x, axis=1), all(x, axis=0), count_nonzero(x), sum(x, axis=1, where=mask))\n}",
               {"x": x, "m": m, "k": k, "v": v, "w": w, "mask": mask}, [rounded(o, real, complex_) if np.asarray(o).dtype.kind != "i" else
                                                                       np.asarray(o, np.int32) for o in out])

        x, y, r = normal(complex_, 4, 6), normal(complex_, 2, 6), normal(real, 3, 6)
        i = np.array([3, 0, -2, 1], np.int32)
        put = x.copy()
        put[1] = y[0]
        put[0, 2:4] = r[0, :2]
        put[2, 1] = 5
        put[3] += y[1]
        put[:2] *= y
        put[2] -= r[1]
        put[i[:2], 4] += y[:, 0]
        masked = x.copy()
        masked[x.real > 0] = 1
        masked[x.imag > 0] *= complex_(2)
        masked[x.imag < 0] += y[0, 0]
        out = [x.T, x.reshape(3, 8), np.concatenate([x, y, r]), np.stack([x, x.conj()], 1), x[::-1], np.roll(x, 2, 1), np.pad(x, ((1, 0), (0, 2))),
               x[1:3, ::2], x[i], x[:, 1], x[2, -1], put, masked, np.tile(x, (1, 2)), np.repeat(y, 2, 0), np.tril(x), np.take_along_axis(x, np.argsort(x.real), 1),
               np.zeros_like(x), np.ones_like(y), np.full((2, 3), 1 - 2j, complex_), np.eye(3, dtype=complex_), np.broadcast_to(y[0], (3, 6)),
               np.swapaxes(x, 0, 1), x[None].squeeze(), np.where(x.real > 0, x, 0), *np.split(x, 2)]
        yield (f"complex_shapes_{c}", "elementwise",
               f"fn main(x: {c}[4@X, 6@Y], y: {c}[2, 6@Y], r: {f}[3, 6], i: i32[4]) {{\n"
               "  let mut put = x;\n  put[1] = y[0];\n  put[0, 2:4] = r[0, :2];\n  put[2, 1] = 5;\n  put[3] += y[1];\n  put[:2] *= y;\n  put[2] -= r[1];\n"
               "  put[i[:2], 4] += y[:, 0];\n"
               f"  let mut masked = x;\n  masked[real(x) > 0] = 1;\n  masked[imag(x) > 0] *= {c}(2);\n  masked[imag(x) < 0] += y[0, 0];\n"
               "  let (first, second) = split(x, 2);\n"
               "  (x.T, reshape(x, (3, 8)), concatenate([x, y, r]), stack([x, conj(x)], axis=1), flip(x, 0), roll(x, 2, axis=1), pad(x, ((1, 0), (0, 2))),\n"
               "    x[1:3, ::2], x[i], x[:, 1], x[2, -1], put, masked, tile(x, (1, 2)), repeat(y, 2, axis=0), tril(x),\n"
               f"    take_along_axis(x, argsort(x.real), axis=1), zeros_like(x), ones_like(y), full({c}[2, 3], complex(1, -2)), eye(3, dtype={c}),\n"
               "    broadcast_to(y[0], (3, 6)), swapaxes(x, 0, 1), squeeze(x[None]), where(real(x) > 0, x, 0), first, second)\n}",
               {"x": x, "y": y, "r": r, "i": i}, out)

        x, y, z, p, one = normal(complex_, 6, 10), normal(complex_, 16), normal(complex_, 3, 4, 5), normal(complex_, 7, 13), normal(complex_, 1)
        fft = np.fft
        a, b, d, q, o = wide(x, y, z, p, one)
        out = [fft.fft(a), fft.fft(a, axis=0), fft.ifft(a, axis=0), fft.fft(b), fft.ifft(b), fft.fft(b, n=10), fft.fft(b, n=20), fft.ifft(a, n=8, axis=0),
               fft.fft(b, norm="ortho"), fft.ifft(b, norm="forward"), fft.fft(a, norm="forward"), fft.fft(d, axis=1), fft.fft(d, axis=-3),
               fft.fft2(a), fft.ifft2(a), fft.fft2(d), fft.fft2(d, axes=(0, 1), norm="ortho"), fft.fft2(a, s=(4, 12)), fft.fft(q), fft.fft(q, axis=0),
               fft.fft(o), fft.ifft(fft.fft(q)), fft.fftshift(a), fft.ifftshift(q), fft.fftshift(d, axes=1), fft.irfft(a), fft.irfft(b, n=15),
               fft.irfft(a, axis=0), fft.irfft(q, n=9, axis=0, norm="ortho")]
        yield (f"fft_{c}", "reduction",
               f"fn main(x: {c}[6@X, 10@Y], y: {c}[16@Y], z: {c}[3, 4@X, 5@Y], p: {c}[7@X, 13], one: {c}[1]) {{\n"
               "  (fft(x), fft(x, axis=0), ifft(x, axis=0), fft(y), ifft(y), fft(y, n=10), fft(y, n=20), ifft(x, n=8, axis=0),\n"
               "    fft(y, norm=\"ortho\"), ifft(y, norm=\"forward\"), fft(x, norm=\"forward\"), fft(z, axis=1), fft(z, axis=-3),\n"
               "    fft2(x), ifft2(x), fft2(z), fft2(z, axes=(0, 1), norm=\"ortho\"), fft2(x, s=(4, 12)), fft(p), fft(p, axis=0),\n"
               "    fft(one), ifft(fft(p)), fftshift(x), ifftshift(p), fftshift(z, axes=1), irfft(x), irfft(y, n=15),\n"
               "    irfft(x, axis=0), irfft(p, n=9, axis=0, norm=\"ortho\"))\n}",
               {"x": x, "y": y, "z": z, "p": p, "one": one}, [rounded(v, real, complex_) for v in out])

        x, y, z, one, two = normal(real, 6, 10), normal(real, 17), normal(real, 3, 4, 5), normal(real, 1), normal(real, 2)
        a, b, d, o, t = wide(x, y, z, one, two)
        out = [fft.rfft(a), fft.rfft(a, axis=0), fft.rfft(b), fft.rfft(b, n=12), fft.rfft(b, n=20, norm="ortho"), fft.rfft(d, axis=1), fft.rfft(o),
               fft.rfft(t), fft.irfft(fft.rfft(a)), fft.irfft(fft.rfft(b), n=17), fft.fft(a), fft.ifft(b), fft.fft2(a), fft.irfft(a, n=1), fft.irfft(a, n=2),
               fft.fftfreq(7, 0.5), fft.rfftfreq(8), fft.fftfreq(6)]
        yield (f"rfft_{f}", "reduction",
               f"fn main(x: {f}[6@X, 10@Y], y: {f}[17@Y], z: {f}[3, 4@X, 5@Y], one: {f}[1], two: {f}[2]) {{\n"
               "  (rfft(x), rfft(x, axis=0), rfft(y), rfft(y, n=12), rfft(y, n=20, norm=\"ortho\"), rfft(z, axis=1), rfft(one), rfft(two),\n"
               "    irfft(rfft(x)), irfft(rfft(y), n=17), fft(x), ifft(y), fft2(x), irfft(x, n=1), irfft(x, n=2),\n"
               f"    fftfreq(7, 0.5, dtype={f}), rfftfreq(8, dtype={f}), fftfreq(6, dtype={f}))\n}}",
               {"x": x, "y": y, "z": z, "one": one, "two": two}, [rounded(v, real, complex_) for v in out])

    z, w = normal(np.complex64, 6), normal(np.complex128, 6)
    f, d, h = normal(np.float32, 6), normal(np.float64, 6), normal(np.float16, 6)
    i, u, t = np.arange(6, dtype=np.int32) - 2, np.arange(6, dtype=np.uint8), np.arange(6) % 2 == 0
    jz, jw, jf, jd, jh, ji, ju, jt = map(jnp.asarray, (z, w, f, d, h, i, u, t))
    out = [ji * jz, jd + jz, jz * 2, jz * 2.5, jh * jz, ju + jz, jt * jz, jz + jw, jz - jd, jw * jf, jnp.where(jt, jz, jd), jnp.where(jt, jz, ji),
           jnp.concatenate([jz, jd]), jnp.concatenate([ji, jz]), jz @ jd, ji @ jz, jz == ji, jd.astype(jnp.complex64), jz.astype(jnp.complex128),
           ji.astype(jnp.complex64), jax.lax.complex(jf, -jf)]
    yield ("complex_types", "reduction",
           "fn main(z: c64[6@X], w: c128[6@X], f: f32[6@X], d: f64[6@X], h: f16[6@X], i: i32[6@X], u: u8[6@X], t: bool[6@X]) {\n"
           "  (i * z, d + z, z * 2, z * 2.5, h * z, u + z, t * z, z + w, z - d, w * f, where(t, z, d), where(t, z, i), concatenate([z, d]),\n"
           "    concatenate([i, z]), z @ d, i @ z, z == i, c64(d), c128(z), cast(i, c64), complex(f, -f))\n}",
           {"z": z, "w": w, "f": f, "d": d, "h": h, "i": i, "u": u, "t": t}, [np.asarray(o) for o in out])

    e, s = np.zeros((0, 3), np.complex64), np.complex64(1.5 - 2j)
    yield ("complex_empty", "reduction",
           "fn main(e: c64[0, 3@X], s: c64) {\n"
           "  (e * 2, sum(e), sum(e, axis=0), prod(e, axis=0), exp(e), fft(e), e @ zeros(c64[3, 2]), s * s, abs(s), sqrt(s), reshape(s, (1,)), s + [1, 2])\n}",
           {"e": e, "s": np.asarray(s)},
           [e * 2, e.sum(), e.sum(0), e.prod(0), np.exp(e), e, e @ np.zeros((3, 2), np.complex64), s * s, np.abs(s), np.sqrt(s), np.reshape(s, (1,)),
            (s + np.array([1, 2])).astype(np.complex64)])


def main():
    for name, tolerance, text, inputs, outputs in programs():
        arrays = {f"in.{param}": value for param, value in inputs.items()}
        arrays |= {f"out.{i}": np.asarray(value) for i, value in enumerate(outputs)}
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
        (HERE / f"{name}.spmd").write_text(f"//! tolerance: {tolerance}\nmesh (X = 2, Y = 4);\n{text}\n")


if __name__ == "__main__":
    main()
