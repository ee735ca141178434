"""Makes the golden arrays of `vmap`, `jacobian` and `hessian`.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_batching.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

from make_derivatives import REDUCTIONS, SHAPES, program  # noqa: E402
from store import store  # noqa: E402

rng = np.random.default_rng(20261125)


def noise(*shape):
    return rng.standard_normal(shape)


def each(functions):
    return lambda x, *_: tuple(jax.vmap(function)(x) for _, function in functions)


# Functions of a matrix `a` that sort, transform or factorize.
LINES = [
    ("sort(a, axis=0)", lambda a: jnp.sort(a, 0)), ("argsort(a)", lambda a: jnp.argsort(a).astype(np.int32)), ("argmax(a)", lambda a: jnp.argmax(a).astype(np.int32)),
    ("argmin(a, axis=1)", lambda a: jnp.argmin(a, 1).astype(np.int32)), ("argmax(a, keepdims=true)", lambda a: jnp.argmax(a, keepdims=True).astype(np.int32)),
    ("cumprod(a, axis=0)", lambda a: jnp.cumprod(a, 0)), ("cummax(a, axis=1)", lambda a: lax.cummax(a, 1)), ("all(a > -9)", lambda a: jnp.all(a > -9)),
    ("cholesky(a @ a.T + 6 * eye(6, dtype=f64))", lambda a: jnp.linalg.cholesky(a @ a.T + 6 * jnp.eye(6))), ("inv(a)", jnp.linalg.inv),
    ("solve(a, a[0])", lambda a: jnp.linalg.solve(a, a[0])), ("det(a)", jnp.linalg.det), ("trace(a)", jnp.trace), ("diag(a)", jnp.diag),
    ("softmax(a, axis=1)", lambda a: jax.nn.softmax(a, 1)), ("real(fft(a, axis=0))", lambda a: jnp.fft.fft(a, axis=0).real),
    ("irfft(rfft(a), n=6)", lambda a: jnp.fft.irfft(jnp.fft.rfft(a), n=6)), ("median(a)", jnp.median), ("top_k(a, 2).0", lambda a: lax.top_k(a, 2)[0]),
    ("where(a > 0, a, 0.0 * a[0])", lambda a: jnp.where(a > 0, a, 0.0)), ("matrix_power(a, 3)", lambda a: jnp.linalg.matrix_power(a, 3)),
    ("einsum(\"ii->i\", a)", lambda a: jnp.einsum("ii->i", a)), ("meshgrid(a[0], a[1]).0", lambda a: jnp.meshgrid(a[0], a[1])[0]),
    ("moveaxis(stack([a, a]), 0, -1)", lambda a: jnp.moveaxis(jnp.stack([a, a]), 0, -1)), ("norm(a, axis=1)", lambda a: jnp.linalg.norm(a, axis=1)),
]

# Functions of a vector `v` of 7, an index `k`, and indices `i` of 3, each for each element of a batch of 5.
INDICES = [
    ("v[k]", lambda v, k, i: v[k]), ("w[k]", lambda v, k, i: W[k]), ("v[i]", lambda v, k, i: v[i]), ("w[i]", lambda v, k, i: W[i]),
    ("v[k:k + 3]", lambda v, k, i: lax.dynamic_slice(v, (k,), (3,))), ("w[k:k + 3, 1:3]", lambda v, k, i: lax.dynamic_slice(W, (k, np.int32(1)), (3, 2))),
    ("dynamic_slice(w, (1, k), (2, 2))", lambda v, k, i: lax.dynamic_slice(W, (np.int32(1), k), (2, 2))),
    ("set(v, k)", lambda v, k, i: v.at[k].set(9.0)), ("set_range(v, k)", lambda v, k, i: lax.dynamic_update_slice(v, v[:2] * 2, (k,))),
    ("set_rows(w, v, k)", lambda v, k, i: W.at[k, 1:3].set(v[:2])), ("add_at(v, i)", lambda v, k, i: v.at[i].add(1.0)),
    ("add_rows(w, v, i)", lambda v, k, i: W.at[i].add(v[:4])), ("take_along_axis(v, i, axis=0)", lambda v, k, i: jnp.take_along_axis(v, i, 0)),
    ("take(w, i, axis=1, mode=\"clip\")", lambda v, k, i: jnp.take(W, i, axis=1, mode="clip")),
    ("searchsorted(sort(v), v * 0.9)", lambda v, k, i: jnp.searchsorted(jnp.sort(v), v * 0.9)),
    ("searchsorted(sort(v), w, side=\"right\")", lambda v, k, i: jnp.searchsorted(jnp.sort(v), W, side="right")),
    ("searchsorted(sort(w[0]), v)", lambda v, k, i: jnp.searchsorted(jnp.sort(W[0]), v)), ("one_hot(i, 7)", lambda v, k, i: jax.nn.one_hot(i, 7, dtype=np.float32)),
    ("segment_sum(v[:3], i, num_segments=7)", lambda v, k, i: jax.ops.segment_sum(v[:3], i, 7)), ("bincount(i, length=7)", lambda v, k, i: jnp.bincount(i, length=7).astype(np.int32)),
    ("segment_max(w[:3, 0], i, num_segments=7)", lambda v, k, i: jax.ops.segment_max(W[:3, 0], i, 7)), ("roll(v, 2)", lambda v, k, i: jnp.roll(v, 2)),
    ("v[7 // (k + 1) - 1]", lambda v, k, i: v[7 // (k + 1) - 1]), ("interp(v * 0.1, w[:, 0], w[:, 1])", lambda v, k, i: jnp.interp(v * 0.1, W[:, 0], W[:, 1])),
]
W = jnp.asarray(np.sort(noise(7, 4), 0))
INDEX_HELPERS = """
fn set(v, k) { let mut u = v; u[k] = 9.0; u }
fn set_range(v, k) { let mut u = v; u[k : k + 2] = v[:2] * 2; u }
fn set_rows(w, v, k) { let mut u = w; u[k, 1:3] = v[:2]; u }
fn add_at(v, i) { let mut u = v; u[i] += 1.0; u }
fn add_rows(w, v, i) { let mut u = w; u[i] += v[:4]; u }"""
K, I = np.int32([0, 3, 2, 1, 2]), np.int32([[0, 2, 2], [5, 1, 0], [3, 3, 3], [6, 5, 4], [1, 0, 2]])


def indices(v, w, k, i):
    return tuple(jax.vmap(function)(v, k, i) for _, function in INDICES)


def axes(x, y, w):
    f = lambda a, b: a * 2 + b
    tree = lambda p, b: (p[0] @ b, p[1] * b.sum())
    return (jax.vmap(f)(x, x), jax.vmap(f, in_axes=(0, None))(x, y[:, 0]), jax.vmap(f, in_axes=(None, 0))(y[:, 0], x), jax.vmap(f, in_axes=1, out_axes=1)(x, x),
            jax.vmap(f, in_axes=(-1, 0), out_axes=-1)(x, y), jax.vmap(lambda a: (a.sum(), a), out_axes=(0, 1))(x)[1], jax.vmap(lambda a: a @ w)(x),
            jax.vmap(lambda a, b: a @ b, in_axes=(None, 1))(x, w), *jax.vmap(tree, in_axes=((0, None), 1))((x, w), y), jax.vmap(lambda a: 3.0 * w)(x),
            jax.vmap(jax.vmap(lambda a, b: a * b, in_axes=(0, None)), in_axes=(None, 0))(x[0], y[:, 0]), jax.vmap(jax.vmap(jnp.outer))(x[None], x[None]),
            jax.vmap(lambda a: a, in_axes=1, out_axes=0)(w), jax.vmap(lambda a: jax.vmap(lambda b: a @ b)(x))(x), jax.vmap(lambda a, s: a + s)(x, s=x),
            jax.vmap(jnp.dot)(x, x), jax.vmap(lambda a: jnp.float32(1.5))(x), jax.vmap(lambda a: a[:, None] - a)(x).sum(1))


AXES_TEXT = """fn main(x: f64[5@X, 6@Y], y: f64[6, 5@Y], w: f64[6, 4]) {
  let f = |a, b| a * 2 + b;
  let tree = |p, b| (p.0 @ b, p.1 * sum(b));
  let (t0, t1) = vmap(tree, in_axes=((0, _), 1))((x, w), y);
  (vmap(f)(x, x), vmap(f, in_axes=(0, _))(x, y[:, 0]), vmap(f, in_axes=(_, 0))(y[:, 0], x), vmap(f, in_axes=1, out_axes=1)(x, x),
   vmap(f, in_axes=(-1, 0), out_axes=-1)(x, y), vmap(|a| (sum(a), a), out_axes=(0, 1))(x).1, vmap(|a| a @ w)(x),
   vmap(|a, b| a @ b, in_axes=(_, 1))(x, w), t0, t1, vmap(|a| 3.0 * w)(x),
   vmap(vmap(|a, b| a * b, in_axes=(0, _)), in_axes=(_, 0))(x[0], y[:, 0]), vmap(vmap(outer))(x[None], x[None]),
   vmap(|a| a, in_axes=1, out_axes=0)(w), vmap(|a| vmap(|b| a @ b)(x))(x), vmap(scaled)(x, s=x),
   vmap(dot)(x, x), vmap(|a| 1.5)(x), sum(vmap(|a| a[:, None] - a)(x), axis=1))
}
fn scaled(a, s) { a + s }"""


def gradients(x, t, w, b):
    loss = lambda w, b, x, t: ((jnp.tanh(x @ w + b) - t) ** 2).sum()
    whole = lambda w, b: jax.vmap(loss, in_axes=(None, None, 0, 0))(w, b, x, t).mean()
    f = lambda a: jnp.tanh(a @ w) * a.sum()
    return (*jax.vmap(jax.grad(loss, (0, 1)), in_axes=(None, None, 0, 0))(w, b, x, t), *jax.grad(whole, (0, 1))(w, b),
            jax.grad(lambda x: jax.vmap(lambda a: (lax.stop_gradient(a) * a).sum())(x).sum())(x), jax.vmap(lambda a: jax.jvp(jnp.sin, (a,), (a,))[1])(x),
            jax.vmap(jax.vjp(jnp.tanh, x[0])[1])(x)[0], jax.jacobian(f)(x[0]), jax.vmap(jax.jacobian(f))(x), jax.jacobian(lambda a: a @ w.T)(x[:, :4]),
            jax.hessian(lambda a: (jnp.tanh(a @ w) ** 2).sum())(x[0]), jax.vmap(jax.hessian(lambda a: (a**3).sum()))(x),
            *jax.jacobian(lambda a, c: a * c.sum(), (0, 1))(x[0], b), jax.jacobian(lambda p: (p["u"] * 2, p["u"][0] * p["v"]))({"u": b, "v": w})[1]["v"],
            jax.jacobian(lambda a: a.sum())(x), jax.jvp(jax.vmap(lambda a: a @ w), (x,), (x,))[1])


GRADIENTS_TEXT = """fn main(x: f64[7@X, 5], t: f64[7@X, 4], w: f64[5, 4@Y], b: f64[4@Y]) {
  let (gw, gb) = vmap(grad(loss, argnums=(0, 1)), in_axes=(_, _, 0, 0))(w, b, x, t);
  let (hw, hb) = grad(|w, b| mean(vmap(loss, in_axes=(_, _, 0, 0))(w, b, x, t)), argnums=(0, 1))(w, b);
  let (y, back) = vjp(|a| tanh(a), x[0]);
  let f = |a| tanh(a @ w) * sum(a);
  let (ja, jc) = jacobian(|a, c| a * sum(c), argnums=(0, 1))(x[0], b);
  let j = jacobian(both)({ u: b, v: w });
  (gw, gb, hw, hb, grad(|x| sum(vmap(|a| sum(stop_gradient(a) * a))(x)))(x), vmap(|a| jvp(|b| sin(b), (a,), (a,)).1)(x),
   vmap(|c| back(c).0)(x), jacobian(f)(x[0]), vmap(jacobian(f))(x), jacobian(|a| a @ w.T)(x[:, :4]),
   hessian(|a| sum(tanh(a @ w) ** 2))(x[0]), vmap(hessian(|a| sum(a ** 3)))(x),
   ja, jc, j.1.v, jacobian(|a| sum(a))(x), jvp(vmap(|a| a @ w), (x,), (x,)).1)
}
fn loss(w, b, x, t) { sum((tanh(x @ w + b) - t) ** 2) }
fn both(p) { (p.u * 2, p.u[0] * p.v) }"""


def control(x, n, y):
    def collatz(n):
        return lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, jnp.int32(0)))[1]

    def newton(a):
        return lax.while_loop(lambda z: jnp.abs(z * z - a) > 1e-9, lambda z: 0.5 * (z + a / z), jnp.maximum(a, 1.0))

    def powers(a, k):
        return lax.fori_loop(0, k, lambda i, s: s * a + i, jnp.ones_like(a))

    def history(a):
        return lax.scan(lambda h, i: (jnp.tanh(h @ y + i), h.sum()), a, jnp.arange(4.0))

    def bent(a):
        return lax.cond(a.sum() > 0, lambda: jnp.sqrt(a.sum()) * a, lambda: -a)

    p = jnp.abs(x[:, 0]) + 0.5
    return (jax.vmap(collatz)(n), jax.vmap(newton)(p), jax.vmap(powers)(p, n), *jax.vmap(history)(x), jax.vmap(bent)(x),
            jax.vmap(lambda m: jnp.where(m == 6, 0, 100 // jnp.where(m == 6, 1, m - 6)))(n), jax.vmap(lambda a: lax.fori_loop(0, 3, lambda i, s: s + a[i], 0.0))(x),
            jax.vmap(lambda a: jax.vmap(newton)(jnp.abs(a) + 0.5))(x), jax.vmap(lambda m: jnp.where(m < 5, y[jnp.minimum(m, 4), 0], -1.0))(n))


CONTROL_TEXT = """fn main(x: f64[6@X, 5], n: i32[6@X], y: f64[5, 5@Y]) {
  let p = abs(x[:, 0]) + 0.5;
  let (h, sums) = vmap(history, in_axes=(0, _))(x, y);
  (vmap(collatz)(n), vmap(newton)(p), vmap(powers)(p, n), h, sums, vmap(bent)(x), vmap(divided)(n), vmap(row_sum)(x),
   vmap(|a| vmap(newton)(abs(a) + 0.5))(x), vmap(looked_up, in_axes=(0, _))(n, y))
}
fn collatz(n) {
  let mut m = n;
  let mut steps = 0;
  while m != 1 { m = if m % 2 == 0 { m // 2 } else { 3 * m + 1 }; steps = steps + 1; }
  steps
}
fn newton(a) { let mut z = maximum(a, 1.0); while abs(z * z - a) > 1e-9 { z = 0.5 * (z + a / z); } z }
fn powers(a, k) { let mut s = ones_like(a); for i in 0..k { s = s * a + i; } s }
fn history(a, y) { let mut h = a; let sums = for i in 0..4 collect { let s = sum(h); h = tanh(h @ y + i); s }; (h, sums) }
fn bent(a) { if sum(a) > 0 { sqrt(sum(a)) * a } else { -a } }
fn divided(m) { if m == 6 { 0 } else { 100 // (m - 6) } }
fn row_sum(a) { let mut s = 0.0 * a[0]; for i in 0..3 { s = s + a[i]; } s }
fn looked_up(m, y) { if m < 5 { y[m, 0] } else { -1.0 + 0.0 * y[0, 0] } }"""


def random_draws(seed):
    keys = jax.random.split(jax.random.key(seed), 6)
    one = keys[0]
    return (jax.vmap(lambda k: jax.random.uniform(k, (5,), np.float32))(keys), jax.vmap(lambda k: jax.random.bits(k, (3, 2), np.uint32))(keys),
            jax.vmap(lambda k: jax.random.randint(k, (4,), 0, 100, np.int32))(keys), jax.vmap(lambda k: jax.random.bernoulli(k, np.float32(0.3), (8,)))(keys),
            jax.vmap(lambda k: jax.random.permutation(k, jnp.arange(7, dtype=np.int32)))(keys), jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(one, i), (3,), np.float32))(jnp.arange(6, dtype=np.uint32)),
            jax.vmap(lambda k: jax.random.uniform(jax.random.split(k)[1], (), np.float32))(keys), jax.vmap(lambda x: x + jax.random.uniform(one, (3,), np.float32))(jnp.ones((4, 3), np.float32)),
            jax.vmap(jax.vmap(lambda k: jax.random.uniform(k, (2,), np.float32)))(jax.vmap(lambda k: jax.random.split(k, 3))(keys)))


RANDOM_TEXT = """fn main(seed: i32) {
  let keys = split(key(seed), 6);
  let one = keys[0];
  (vmap(|k| uniform(k, f32[5]))(keys), vmap(|k| bits(k, u32[3, 2]))(keys), vmap(|k| randint(k, i32[4], 0, 100))(keys), vmap(|k| bernoulli(k, 0.3, [8]))(keys),
   vmap(|k| permutation(k, 7))(keys), vmap(|i| uniform(fold_in(one, i), f32[3]))(arange(6, dtype=u32)), vmap(|k| uniform(split(k)[1], f32))(keys),
   vmap(|x| x + uniform(one, f32[3]))(ones(f32[4, 3])), vmap(vmap(|k| uniform(k, f32[2])))(vmap(|k| split(k, 3))(keys)))
}"""


def conv(x, w, **options):
    return lax.conv_general_dilated(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), padding="SAME", **options)


def windows(x, w):
    return (jax.vmap(lambda a: conv(a, w[0], window_strides=(1, 1)))(x), jax.vmap(lambda a, k: conv(a, k, window_strides=(2, 1)))(x, w),
            jax.vmap(lambda k: conv(x[0], k, window_strides=(1, 1)))(w), jax.vmap(lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"))(x),
            jax.vmap(lambda a: jnp.convolve(a, a[:3]))(x[:, 0, :, 0, 0]))


WINDOWS_TEXT = """fn main(x: f64[3@X, 2, 6@Y, 5, 2], w: f64[3@X, 3, 2, 2, 4]) {
  (vmap(|a| conv(a, w[0]))(x), vmap(|a, k| conv(a, k, stride=(2, 1)))(x, w), vmap(|k| conv(x[0], k))(w), vmap(|a| max_pool(a, (2, 2), strides=(2, 2)))(x),
   vmap(|a| convolve(a, a[:3]))(x[:, 0, :, 0, 0]))
}"""

@jax.custom_vjp
def clipped(a, b):
    return jnp.sin(a) * b


clipped.defvjp(lambda a, b: (jnp.sin(a) * b, (jnp.cos(a), b)), lambda r, g: (jnp.clip(g * r[0] * r[1], -0.5, 0.5), g * 3))


def units(x, w):
    rows = lambda x, b: (jax.vmap(clipped, in_axes=(0, None))(x, b) ** 2).sum()
    pairs = lambda x, w: (jax.vmap(jax.vmap(clipped, in_axes=(None, 0)), in_axes=(0, None))(x, w) ** 2).sum()
    repeated = lambda a, w: lax.fori_loop(0, 3, lambda i, h: clipped(h, w[i]), a)
    bent = lambda a, b: lax.cond(a.sum() > 0, lambda: clipped(a, b), lambda: a * b)
    layer = lambda a, w: jnp.tanh(a @ w) * a
    twice = lambda a, w: jax.checkpoint(layer)(jax.checkpoint(layer)(a, w), w)
    total = lambda f: lambda x, w: (jax.vmap(f, in_axes=(0, None))(x, w) ** 2).sum()
    return (jax.vmap(clipped, in_axes=(0, None))(x, w[0]), *jax.grad(rows, (0, 1))(x, w[0]), *jax.vmap(jax.grad(lambda a, b: clipped(a, b).sum(), (0, 1)), in_axes=(0, None))(x, w[0]),
            *jax.grad(pairs, (0, 1))(x, w), *jax.grad(total(repeated), (0, 1))(x, w), *jax.grad(total(bent), (0, 1))(x, w[1]),
            *jax.grad(total(twice), (0, 1))(x, w), *jax.grad(lambda x, w: jax.checkpoint(total(repeated))(x, w), (0, 1))(x, w))


UNITS_TEXT = """fn main(x: f64[7@X, 5], w: f64[5, 5@Y]) {
  let f = custom_vjp(|a, b| sin(a) * b, |a, b| (sin(a) * b, (cos(a), b)), |r, g| (clip(g * r.0 * r.1, -0.5, 0.5), g * 3));
  let rows = |x, b| sum(vmap(f, in_axes=(0, _))(x, b) ** 2);
  let pairs = |x, w| sum(vmap(vmap(f, in_axes=(_, 0)), in_axes=(0, _))(x, w) ** 2);
  let repeated = |a, w| { let mut h = a; for i in 0..3 { h = f(h, w[i]); } h };
  let bent = |a, b| if sum(a) > 0 { f(a, b) } else { a * b };
  let layer = |a, w| tanh(a @ w) * a;
  let twice = |a, w| checkpoint(layer)(checkpoint(layer)(a, w), w);
  let total = |f, x, w| sum(vmap(f, in_axes=(0, _))(x, w) ** 2);
  (vmap(f, in_axes=(0, _))(x, w[0]), grad(rows, argnums=(0, 1))(x, w[0]), vmap(grad(|a, b| sum(f(a, b)), argnums=(0, 1)), in_axes=(0, _))(x, w[0]),
   grad(pairs, argnums=(0, 1))(x, w), grad(|x, w| total(repeated, x, w), argnums=(0, 1))(x, w), grad(|x, b| total(bent, x, b), argnums=(0, 1))(x, w[1]),
   grad(|x, w| total(twice, x, w), argnums=(0, 1))(x, w), grad(checkpoint(|x, w| total(repeated, x, w)), argnums=(0, 1))(x, w))
}"""

ARRAYS = (noise(5, 6, 6), np.int32([0, 2, 2, 5]), np.int32([0, 2, 2, 1, 0, 0]), np.int32(3))
PROGRAMS = [
    ("batching_shapes", "reduction", program("x: f64[5@X, 6, 6@Y], i: i32[4], i6: i32[6], j: i32", [f"vmap(|a| {text})(x)" for text, _ in SHAPES + REDUCTIONS]), ARRAYS, each(SHAPES + REDUCTIONS)),
    ("batching_lines", "reduction", program("x: f64[5@X, 6, 6@Y]", [f"vmap(|a| {text})(x)" for text, _ in LINES]), ARRAYS[:1], each(LINES)),
    ("batching_indices", "reduction", program("v: f64[5@X, 7], w: f64[7@Y, 4], k: i32[5@X], i: i32[5@X, 3]", [f"vmap(|v, k, i| {text})(v, k, i)" for text, _ in INDICES]) + INDEX_HELPERS,
     (noise(5, 7), W, K, I), indices),
    ("batching_axes", "reduction", AXES_TEXT, (noise(5, 6), noise(6, 5), noise(6, 4)), axes),
    ("batching_gradients", "reduction", GRADIENTS_TEXT, (noise(7, 5), noise(7, 4), noise(5, 4), noise(4)), gradients),
    ("batching_control", "reduction", CONTROL_TEXT, (noise(6, 5), np.int32([7, 1, 6, 3, 9, 2]), noise(5, 5)), control),
    ("batching_random", "exact", RANDOM_TEXT, (np.int32(42),), random_draws),
    ("batching_windows", "reduction", WINDOWS_TEXT, (noise(3, 2, 6, 5, 2), noise(3, 3, 2, 2, 4)), windows),
    ("batching_units", "reduction", UNITS_TEXT, (noise(7, 5), noise(5, 5)), units),
]


if __name__ == "__main__":
    store(PROGRAMS)
