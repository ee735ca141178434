#!/usr/bin/env python3
"""Makes the programs of this folder: what JAX prints for functions, with arguments and answers in `.npz` files beside them.

    pip install "jax==0.10.2" ml_dtypes
    python3 tests/stablehlo/make.py [NAME..]

Only for development: the tests read the files. Eight devices on one processor stand for the meshes.
"""

import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

HERE = pathlib.Path(__file__).resolve().parent
MESH = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
PROGRAMS = {}


def program(*shapes, tolerance="reduction", meshes="2x4 1x1 3x2", specs=None, debug_info=False, generic=False):
    """Registers a function of arrays: floats from a normal distribution, or arrays that are given."""

    def register(function):
        rng = np.random.default_rng(len(PROGRAMS))
        args = [rng.standard_normal(s).astype(np.float32) if isinstance(s, tuple) else np.asarray(s) for s in shapes]
        PROGRAMS[function.__name__] = (function, args, tolerance, meshes, specs, debug_info, generic)
        return function

    return register


def split(x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


@program((16, 12), (12, 20), (20,), (20, 6), (16, 6), specs=[("X",), (None, "Y"), ("Y",), ("Y",), ("X",)])
def training_step(x, w, b, v, t):
    def loss(w, b, v):
        h = jax.nn.gelu(split(x @ w + b, "X", "Y"))
        y = jax.nn.log_softmax(h @ v)
        return -jnp.mean(jnp.sum(y * jax.nn.softmax(t), axis=1))

    value, grads = jax.value_and_grad(loss, argnums=(0, 1, 2))(w, b, v)
    return (value, *(p - 0.1 * g for p, g in zip((w, b, v), grads)))


@program((2, 12, 8), (2, 12, 8), (2, 12, 8), specs=[("X",), ("X",), ("X",)])
def attention(q, k, v):
    s = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(8.0)
    s = jnp.where(jnp.tril(jnp.ones((12, 12), bool)), s, -jnp.inf)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(s), v)


@program((10, 6), np.array([3, -1, 12, 0, 3], np.int32), (5, 6), meshes="1 2 3")
def indexing(x, i, v):
    two = x[i[:4], jnp.array([0, 5, 2, 2])]
    rows = x.at[i].add(v).at[i, 2].set(7.0)
    best = x.at[i].max(v, mode="drop")
    windows = jax.vmap(lambda k: lax.dynamic_slice(x, (k, k), (4, 3)))(i)
    put = lax.dynamic_update_slice(x, v[:2, :3], (i[0], i[1]))
    filled = x.at[i].get(mode="fill", fill_value=-1.0)
    one = x.at[4].multiply(2.0).at[-2, 1].set(0.5)
    along = jnp.take_along_axis(x, jnp.argsort(x, axis=1)[:, :3], axis=1)
    return x[i], two, rows, best, windows, put, filled, one, along, x[2:9:3, ::-1]


@program((7, 5), np.float32(0.3), np.int32(2), meshes="1 2")
def loops(x, s, n):
    carry, ys = lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), jnp.zeros(5), x)
    steps, root = lax.while_loop(lambda c: jnp.abs(c[1] * c[1] - 2.0) > 1e-6, lambda c: (c[0] + 1, (c[1] + 2.0 / c[1]) / 2), (0, 1.0 + s))
    low = lax.fori_loop(0, n, lambda k, c: c * 2 + k, s)
    either = lax.cond(s > 0, lambda a: a * 2, lambda a: a - 1, x)
    chosen = lax.switch(n, [lambda a: a, jnp.sin, lambda a: a + 1.0], x)
    swapped = lax.fori_loop(0, 3, lambda _, c: (c[1], c[0] + 1), (x, -x))
    return carry, ys, steps, root, low, either, chosen, *swapped


@program((6, 9), np.array([[3, 1, 2, 1], [0, 5, -2, 7]], np.int32), meshes="1 2")
def orders(x, k):
    keys = lax.sort((k, x[:2, :4]), num_keys=2)
    top = lax.top_k(x, 3)
    arg = jnp.argmax(x, axis=1), jnp.argmin(x, axis=0)
    sums = jnp.cumsum(x, axis=1), lax.cummax(x, axis=0, reverse=True), jnp.cumprod(x, axis=1)
    logs = lax.cumlogsumexp(x, axis=1)
    windows = lax.reduce_window(x, 0.0, lax.add, (2, 3), (2, 1), ((1, 0), (1, 1)))
    lse = lax.reduce(x, -jnp.inf, jnp.logaddexp, (1,))
    return *keys, *top, *arg, *sums, logs, windows, lse, jnp.sort(x, axis=0, descending=True), jnp.any(x > 2, axis=1), jnp.median(x, axis=1)


@program((4, 9, 10, 6), (3, 3, 2, 6), (3, 3, 6, 4), meshes="1 2")
def convolutions(x, g, w):
    dims = ("NHWC", "HWIO", "NHWC")
    grouped = lax.conv_general_dilated(x, g, (2, 1), "SAME", dimension_numbers=dims, feature_group_count=3)
    dilated = lax.conv_general_dilated(x, w, (1, 1), ((2, 1), (0, 3)), lhs_dilation=(2, 1), rhs_dilation=(1, 2), dimension_numbers=dims)
    pooled, pull = jax.vjp(lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), x)
    grads = jax.grad(lambda w: jnp.sum(jnp.sin(lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=dims))))(w)
    return grouped, dilated, pooled, pull(jnp.ones_like(pooled))[0], grads


@program((6, 6), (6, 2), (7, 4), meshes="1 2")
def factorizations(x, b, y):
    a = x @ x.T + 6 * jnp.eye(6)
    q, r = jnp.linalg.qr(y)
    full, _ = jnp.linalg.qr(y, mode="complete")
    w, v = jnp.linalg.eigh(a)
    s = jnp.linalg.svd(y, compute_uv=False)
    u, _, vt = jnp.linalg.svd(y, full_matrices=False)
    return (jnp.linalg.cholesky(a), jnp.linalg.solve(x, b), jnp.linalg.inv(a), jnp.linalg.det(x), q @ r, jnp.abs(full.T @ full), w,
            (v * w) @ v.T, s, (u * s) @ vt, jnp.linalg.cholesky(-a))


@program((8, 12), (8, 8), meshes="2x4", specs=[("X", "Y"), ("X", "Y")])
def per_device(x, y):
    def body(x, y):
        total = lax.psum(x, "X")
        most = lax.pmax(jnp.max(y), ("X", "Y"))
        moved = lax.ppermute(x, "Y", [(0, 1), (1, 2), (2, 3), (3, 0)]) if x.shape[1] == 3 else x
        gathered = lax.all_gather(y, "X", axis=0, tiled=True)
        part = lax.psum_scatter(gathered, "X", scatter_dimension=0, tiled=True)
        place = lax.axis_index("X") * 10 + lax.axis_index("Y")
        return total, most, moved, part, x + place

    outs = (P(None, "Y"), P(), P("X", "Y"), P("X", "Y"), P("X", "Y"))
    return jax.shard_map(body, mesh=MESH, in_specs=(P("X", "Y"), P("X", "Y")), out_specs=outs)(x, y)


@program((5, 8), (8, 8), (8,), meshes="1 2 3")
def scans(x, w, h):
    def cell(h, row):
        new = jnp.tanh(h @ w + row)
        return new, (h, new, jnp.sum(row))

    last, (before, after, sums) = lax.scan(cell, h, x)
    power = lax.scan(lambda h, _: (w @ h / jnp.linalg.norm(h), h), h, None, length=3)[0]
    backwards = lax.scan(lambda c, row: (c + row, c * row), h, x, reverse=True)[1]

    def rows(c, row):
        own = lax.scan(lambda s, number: (s + number, s), jnp.float32(0), row)
        return c + own[0], own[1]

    nested = lax.scan(rows, jnp.float32(1), x)
    both = lax.cond(jnp.sum(h) > 0, lambda h: h * 2, lambda h: h - 1, h)
    return last, before, after, sums, power, backwards, *nested, both, lax.scan(lambda c, row: (c * 0.5 + row, c), h, x)[1]


@program((8, 16), meshes="2x4", specs=[("X", "Y")])
def parts_of_the_mesh(x):
    def rows(x):
        helper = jax.jit(lambda x: jax.shard_map(lambda c: c * 2 + lax.pmax(c, "Y"), in_specs=P(None, "Y"), out_specs=P(None, "Y"), axis_names={"Y"})(x))
        ring = lax.ppermute(helper(x), "X", [(0, 1), (1, 0)])
        return ring + lax.axis_index("X"), lax.psum(x, "X")

    both = jax.shard_map(rows, mesh=MESH, in_specs=P("X"), out_specs=(P("X"), P()), axis_names={"X"})(x)
    columns = jax.shard_map(lambda x: x * lax.axis_index("Y"), mesh=MESH, in_specs=P(None, "Y"), out_specs=P(None, "Y"), axis_names={"Y"})(x)
    around = jax.shard_map(lambda x: lax.ppermute(x, ("X", "Y"), [(i, (i + 3) % 8) for i in range(8)]), mesh=MESH, in_specs=P("X", "Y"), out_specs=P("X", "Y"))(x)
    return *both, columns, around


@program(np.array([7, -7, 7, -7, 0, 2**31 - 1], np.int32), np.array([3, 3, -3, -3, 5, -1], np.int32), np.array([1, 250, 77], np.uint8), (6,), meshes="1 2")
def integers(a, b, u, x):
    shifts = lax.shift_right_logical(a, jnp.int32(3)), lax.shift_right_arithmetic(a, jnp.int32(1)), a << 2
    parts = lax.div(a, b), lax.rem(a, b), a // b, a % b, u // 7, lax.population_count(u), lax.clz(a)
    floats = lax.rem(x, jnp.float32(0.3)), lax.round(x * 2.5), jnp.round(x * 2.5), jnp.float32(a), jnp.int32(x * 3), lax.nextafter(x, 2 * x)
    return *shifts, *parts, *floats, a ^ b, ~u, a & b, a | b, lax.reduce_precision(x, 5, 10), lax.pad(x, 9.0, ((1, -1, 2),))


@program((4, 16), meshes="1 2")
def transforms(x):
    z = jnp.fft.fft(x)
    return z, jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.real(jnp.fft.ifft2(z * 1j)), jnp.conj(z), jnp.abs(z), z / (1 + z), jnp.exp(z / 10)


@program(np.array([1, 2], np.uint32), meshes="1 2")
def draws(k):
    k = jax.random.wrap_key_data(k)
    a, b = jax.random.split(k)
    return jax.random.uniform(a, (5, 3)), jax.random.normal(b, (7,)), jax.random.randint(k, (6,), 0, 100), jax.random.key_data(a)


@program(np.array([1, 0, 2**32 - 2, 2**32 - 1], np.uint32), meshes="1 2 3")
def philox(k):
    a, b = jax.random.split(jax.random.wrap_key_data(k, impl="unsafe_rbg"))
    raw = lax.rng_bit_generator(k, (3, 5), jnp.uint32)
    return *raw, lax.rng_bit_generator(k, (7,), jnp.uint8)[1], jax.random.uniform(a, (5,)), jax.random.key_data(b)


@program((3, 8), (8, 5), meshes="1 2")
def narrow(x, w):
    h = x.astype(jnp.bfloat16)
    q = jnp.dot(x.astype(jnp.float8_e4m3fn), w.astype(jnp.float8_e4m3fn), preferred_element_type=jnp.float32)
    i = jnp.dot((x * 20).astype(jnp.int8), (w * 20).astype(jnp.int8), preferred_element_type=jnp.int32)
    return jnp.float32(h), q, i, jnp.float32(w.astype(jnp.float8_e5m2)), jnp.float32(jnp.float16(w) + 1)


@program((8, 6), np.array([3, 99, 3, 0], np.int32), (4, 6), (8,), np.array([1, 9, 0, 2, 5, 5, -7, 3], np.int32), meshes="1 2 3")
def scatters(x, i, v, u, k):
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    window = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    starts = jnp.array([[1, 2], [6, 4], [0, 1], [7, 0]])
    row = jnp.array([[0], [3], [1], [0]])
    applied = x.at[i].apply(jnp.sin)
    powers = lax.scatter_min(x, starts, v[:, :4].reshape(4, 2, 2), window)
    outside = jax.vmap(lambda r, at, value: r.at[at].add(value))(x, k, u)
    whole = jax.vmap(lambda r, at, value: lax.dynamic_update_slice(r, value, (at,)))(x[:4], i, v)
    masks = jnp.zeros(5, bool).at[i].set(True).at[jnp.array([0, 0, 3])].min(jnp.array([True, False, True]))
    return applied, powers, outside, whole, masks, lax.scatter_max(x, row, v, rows)


@program((4, 6, 5), np.float32(0.25), np.array([7, 12, 250, 3], np.uint8), (4, 4), meshes="1 2 3")
def windows(x, s, u, y):
    pair = lax.reduce_window((x, 2 * x), (0.0, -jnp.inf), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1, 2, 3), (1, 2, 1), "SAME")
    places = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    first = lax.reduce_window((x, places), (-jnp.inf, -1), lambda a, b: (jnp.where(b[0] > a[0], b[0], a[0]), jnp.where(b[0] > a[0], b[1], a[1])), (1, 3, 1), (1, 2, 1), "VALID")
    begun = lax.reduce_window(x, s, lax.add, (1, 2, 2), (1, 1, 2), "VALID")
    grown = lax.reduce_window(x, 0.0, lambda a, b: a + b * (1 + a * 0), (1, 2, 2), (1, 1, 1), ((0, 0), (1, 0), (0, 2)), base_dilation=(1, 2, 1), window_dilation=(1, 1, 2))
    bends = jax.hessian(lambda v: jnp.sum(lax.reduce_window(v, -jnp.inf, lax.max, (2,), (1,), "VALID") ** 2))(x[0, 0])
    bits = lax.reduce_and(u, (0,)), lax.reduce_or(u, (0,)), lax.reduce_xor(u, (0,))
    last = lax.reduce((y, lax.broadcasted_iota(jnp.int32, (4, 4), 0)), (-jnp.inf, 0), lambda a, b: (jnp.where(a[0] > b[0], a[0], b[0]), jnp.where(a[0] > b[0], a[1], b[1])), (0,))
    z = lax.complex(jnp.round(y), y.T)
    return *pair, *first, begun, grown, bends, *bits, *last, jnp.sort(z, axis=1), jnp.prod(z, axis=(0, 1)), lax.reduce(z, jnp.complex64(1j), lax.add, (0,))


@program(np.array([1e-6, 6.0e-5, 6.2e-5, 65519, 65520, -1e-9, np.nan, -np.inf, 1.0, 0.1], np.float32), np.arange(24, dtype=np.uint32).reshape(3, 4, 2) * 77777777, meshes="1 2")
def bits(x, u):
    formats = [lax.reduce_precision(x, *format) for format in ((5, 10), (5, 2), (4, 3), (8, 7), (8, 3), (2, 23))]
    bytes_ = lax.bitcast_convert_type(x, jnp.uint8)
    return *formats, bytes_, lax.bitcast_convert_type(bytes_, jnp.int32), lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.float16), jnp.uint16), lax.reduce_precision(x.astype(jnp.bfloat16), 5, 3).astype(jnp.float32)


@program((6, 2), (2,), (10, 6), debug_info=True, meshes="1 2")
def named(w, b, x):
    return {"prediction": x @ w + b, "sizes": (jnp.sum(w * w), jnp.sum(b * b))}


@program((4, 50), meshes="1 2")
def nearest(x):
    return *lax.approx_max_k(x, 3), *lax.approx_min_k(x, 2, reduction_dimension=0)


@program((8, 12), (12, 6), specs=[("X", "Y"), ("Y",)], meshes="2x4", generic=True)
def generic_form(x, w):
    y = split(x @ w, "X", None)
    rows = jax.shard_map(lambda a: lax.psum(a, "Y") + lax.axis_index("X"), mesh=MESH, in_specs=P("X", "Y"), out_specs=P("X"))(x)
    total = lax.fori_loop(0, 3, lambda i, c: jnp.where(y > 0, c * 2, c + i), y)
    return jnp.sort(y, axis=1), jnp.argmax(y, axis=0), rows, total, jnp.fft.rfft(y).real, y[::2, 1:4], lax.reduce_window(y, 0.0, lax.add, (2, 2), (2, 2), "VALID")


# Texts that are written by hand, with functions of NumPy that compute their answers.
WRITTEN = {}


def written(*shapes):
    def register(function):
        rng = np.random.default_rng(len(WRITTEN))
        WRITTEN[function.__name__] = (function, [rng.standard_normal(s).astype(np.float32) for s in shapes])
        return function

    return register


@written((8, 16), (8, 16))
def several_meshes(x, y):
    z = x + y
    halves = z[:, :8] + z[:, 8:]
    return z, z.sum(), np.concatenate([halves, halves], axis=1)


@written((4, 6), (3,))
def rare_forms(x, v):
    grown = np.tanh(v) + np.tanh(v)
    padded = np.full((8, 17), 1.5, np.float32)
    padded[:4, 1:12:2] = x
    constant = np.array([1, 2, 3], np.float32)
    windows = x.reshape(2, 2, 3, 2)
    largest = (windows == windows.max(axis=(1, 3), keepdims=True)).astype(np.float32).reshape(4, 6)
    return grown, v * constant, x.reshape(6, 4), x[0:4:2, 1:5:2], np.broadcast_to(v, (5, 3)), padded, np.float32(6), x[[3, 0]], np.sort(x, axis=1)[:, :-3:-1], np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 1], bool), largest


def save(name, args, answers):
    arrays = {f"in.arg{at}": arg for at, arg in enumerate(args)}
    for at, answer in enumerate(answers):
        answer = np.asarray(answer)
        # Complex numbers are pairs of floats.
        arrays[f"out.{at}"] = np.stack([answer.real, answer.imag], axis=-1) if np.iscomplexobj(answer) else answer
    np.savez(HERE / f"{name}.npz", **arrays)


def main():
    only = set(sys.argv[1:])
    for name, (function, args, tolerance, meshes, specs, debug_info, generic) in PROGRAMS.items():
        if only and name not in only:
            continue
        options = {}
        if specs is not None:
            options["in_shardings"] = tuple(NamedSharding(MESH, P(*spec)) for spec in specs)
        lowered = jax.jit(function, **options).lower(*args)
        text = lowered.as_text(debug_info=debug_info)
        if generic:
            text = lowered.compiler_ir().operation.get_asm(print_generic_op_form=True)
        answers = jax.tree.leaves(lowered.compile()(*args))
        save(name, args, answers)
        (HERE / f"{name}.mlir").write_text(f"//! tolerance: {tolerance}\n//! meshes: {meshes}\n{text}")
        print(name, len(text.splitlines()), "lines")
    for name, (function, args) in WRITTEN.items():
        if not only or name in only:
            save(name, args, function(*args))


main()
