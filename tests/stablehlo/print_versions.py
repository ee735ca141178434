#!/usr/bin/env python3
"""Prints thirteen programs with the installed version of JAX, each with arguments and answers in a `.npz` file beside it.

    pip install "jax==0.6.2"
    python3 tests/stablehlo/print_versions.py FOLDER [--shardy | --gspmd] [NAME..]

Only for development: `versions` has some of the programs, printed by several versions. `--gspmd` prints shardings as before Shardy, as strings.
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
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"))
CUBE = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("A", "B", "C"))
ROW = Mesh(np.array(jax.devices()).reshape(1, 8, 1), ("data", "model", "pipe"))
ONE = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
PROGRAMS = {}


def program(*shapes, specs=None, meshes="2x4 1x1"):
    """Registers a function of arrays: floats from a normal distribution, or arrays that are given."""

    def register(function):
        rng = np.random.default_rng(len(PROGRAMS))
        args = [rng.standard_normal(s).astype(np.float32) if isinstance(s, tuple) else np.asarray(s) for s in shapes]
        PROGRAMS[function.__name__] = (function, args, specs, meshes)
        return function

    return register


def split(x, *spec):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def per_device(function, in_specs, out_specs, mesh=MESH, axes=None):
    axes = set(mesh.axis_names) if axes is None else axes
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=axes)
    from jax.experimental.shard_map import shard_map

    others = frozenset(mesh.axis_names) - axes
    return shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, auto=others, check_rep=not others)


@program((16, 12), (12, 20), (20, 6), (16, 6), specs=[("X",), (None, "Y"), ("Y",), (("X", "Y"),)])
def step(x, w, v, t):
    def loss(w, v):
        h = split(jnp.tanh(x @ w), "X", "Y")
        return jnp.mean((h @ v - t) ** 2)

    value, (dw, dv) = jax.value_and_grad(loss, argnums=(0, 1))(w, v)
    return value, w - 0.1 * dw, v - 0.1 * dv


@program((8, 16), (16, 4), meshes="2x4", specs=[("X", "Y"), ("Y", None)])
def devices(x, w):
    def body(x, w):
        product = lax.psum(x @ w, "Y")
        ring = lax.ppermute(x, "Y", [(0, 1), (1, 2), (2, 3), (3, 0)]) * (1 + lax.axis_index("X"))
        rows = lax.all_gather(x, "X", axis=0, tiled=True)
        return product, ring, lax.psum_scatter(rows, "X", scatter_dimension=0, tiled=True)

    return per_device(body, (P("X", "Y"), P("Y", None)), (P("X", None), P("X", "Y"), P("X", "Y")))(x, w)


@program((5, 8), (8, 8), meshes="1 2")
def recurrence(xs, w):
    carry, ys = lax.scan(lambda c, x: (jnp.tanh(c @ w + x), c.sum()), jnp.zeros(8), xs)
    root = lax.while_loop(lambda s: jnp.abs(s * s - 2) > 1e-5, lambda s: (s + 2 / s) / 2, 1.0 + jnp.abs(xs[0, 0]))
    chosen = lax.cond(xs[0, 0] > 0, jnp.sin, jnp.cos, xs)
    return carry, ys, root, chosen, lax.switch(jnp.int32(2), [lambda a: a, jnp.exp, lambda a: a - 1], xs)


@program((10, 6), np.array([3, -1, 12, 0], np.int32), (4, 6), meshes="1 2")
def places(x, i, v):
    return x[i], x.at[i].add(v), x.at[i, 2].set(7.0), lax.dynamic_slice(x, (i[0], i[1]), (3, 2)), jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)


@program((6, 9), meshes="1 2")
def orders(x):
    return jnp.sort(x, axis=0), jnp.argmax(x, axis=1), *lax.top_k(x, 3), jnp.cumsum(x, axis=1), lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (2, 3), "SAME"), jnp.median(x)


@program((2, 8, 8, 4), (3, 3, 4, 6), meshes="1 2")
def images(x, w):
    def loss(w):
        y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.sum(lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)

    return jax.value_and_grad(loss)(w)


@program((6, 6), (6, 2), meshes="1 2")
def matrices(x, b):
    a = x @ x.T + 6 * jnp.eye(6)
    return jnp.linalg.cholesky(a), jnp.linalg.solve(x, b), jnp.linalg.eigvalsh(a), jnp.abs(jnp.linalg.qr(x)[1]), jnp.linalg.svd(x, compute_uv=False), jnp.linalg.det(x)


@program(np.array([1, 2], np.uint32), meshes="1 2")
def draws(k):
    a, b = jax.random.split(k)
    return jax.random.uniform(a, (5, 3)), jax.random.normal(b, (7,)), jax.random.randint(a, (4,), 0, 9), jax.random.permutation(b, 6)


@program((4, 16), (5,), meshes="1 2")
def functions(x, y):
    z = jnp.fft.fft(x)
    special = jax.scipy.special
    return jnp.abs(z), jnp.fft.irfft(jnp.fft.rfft(x)), jax.nn.gelu(x), jax.nn.logsumexp(x), special.erf(y), special.gammaln(jnp.abs(y)), special.digamma(jnp.abs(y) + 1), jnp.float32(x.astype(jnp.bfloat16)), jnp.arcsinh(y), jnp.round(y, 1)


@program((2, 8, 8), (2, 8, 8), (2, 8, 8), specs=[("X",), ("X",), ("X",)])
def attention(q, k, v):
    s = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(8.0)
    s = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), s, -jnp.inf)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(split(s, "X", None, "Y")), v)


@program((8, 8), meshes="2x2x2")
def some_axes(x):
    y = per_device(lambda x: lax.psum(x, "A") * 2, P("A"), P(), CUBE, {"A"})(x)

    def trip(sums, row):
        return sums + per_device(lambda part: lax.psum(part, ("A", "C")) * part, P(("C", "A")), P(("C", "A")), CUBE)(row), 0

    sums = lax.scan(trip, jnp.zeros(8), x)[0]
    z = lax.with_sharding_constraint(y, NamedSharding(CUBE, P(("C", "A"), P.UNCONSTRAINED)))
    return y, sums, jnp.sort(z, axis=1)


def along_axes_of_one_device(x, mesh):
    def body(x):
        total = lax.psum(x, ("data", "model"))
        most = lax.pmax(lax.psum(x * 2, "model"), "data")
        gathered = lax.all_gather(lax.psum_scatter(x, "data", tiled=True), "data", tiled=True)
        moved = lax.ppermute(lax.all_to_all(x, "data", 0, 1, tiled=True), "data", [(0, 0)])
        return total, most, lax.psum(x, "data"), gathered, moved, x + lax.axis_index("data") * 10 + lax.axis_index("model")

    whole, split = P("data", "model"), P(None, "model")
    return per_device(body, whole, (P(), P(), split, whole, whole, whole), mesh)(x)


@program((6, 8), meshes="1x8x1")
def axes_of_one_device(x):
    return along_axes_of_one_device(x, ROW)


@program((6, 8), meshes="1")
def one_device(x):
    return along_axes_of_one_device(x, ONE)


def main():
    folder, *options = sys.argv[1:]
    only = {option for option in options if not option.startswith("--")}
    if "--shardy" in options or "--gspmd" in options:
        jax.config.update("jax_use_shardy_partitioner", "--shardy" in options)
    version = "_".join(jax.__version__.split(".")[:2]) + ("_gspmd" if "--gspmd" in options else "")
    for name, (function, args, specs, meshes) in PROGRAMS.items():
        if only and name not in only:
            continue
        given = {} if specs is None else {"in_shardings": tuple(NamedSharding(MESH, P(*spec)) for spec in specs)}
        lowered = jax.jit(function, **given).lower(*args)
        answers = jax.tree.leaves(lowered.compile()(*args))
        arrays = {f"in.arg{at}": arg for at, arg in enumerate(args)}
        arrays |= {f"out.{at}": np.asarray(answer) for at, answer in enumerate(answers)}
        path = pathlib.Path(folder) / f"jax_{version}_{name}"
        np.savez(path.with_suffix(".npz"), **arrays)
        path.with_suffix(".mlir").write_text(f"//! tolerance: reduction\n//! meshes: {meshes}\n{lowered.as_text()}")
        print(path.name, len(lowered.as_text().splitlines()), "lines")


main()
