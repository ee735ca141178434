"""Times JAX programs in XLA and in spmdc, in turns, and prints how many times as long XLA takes.

    cargo build --release --workspace
    python3 tests/benches/jax_programs.py [NAME ..]

Needs jax and numpy. Both sides run the same StableHLO text on one device with all cores, and compile before the clock starts. The sizes are such
that arithmetic counts. The least of several times is compared.
"""

import math
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import command

ROUNDS = 5
PROGRAMS = {}


def program(*shapes):
    """Registers a function of arrays with elements from a normal distribution, or of given arrays."""

    def register(function):
        rng = np.random.default_rng(len(PROGRAMS))
        args = [rng.standard_normal(s).astype(np.float32) if isinstance(s, tuple) else s for s in shapes]
        PROGRAMS[function.__name__] = (function, args)
        return function

    return register


@program((512, 784), (784, 1024), (1024,), (1024, 10), (512, 10))
def perceptron_step(x, w, b, v, t):
    def loss(w, b, v):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(jax.nn.gelu(x @ w + b) @ v) * t, axis=1))

    value, grads = jax.value_and_grad(loss, argnums=(0, 1, 2))(w, b, v)
    return (value, *(p - 0.1 * g for p, g in zip((w, b, v), grads)))


@program((4, 8, 512, 64), (4, 8, 512, 64), (4, 8, 512, 64))
def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


@program((16, 32, 32, 32), (3, 3, 32, 64), (3, 3, 64, 64))
def convolutions(x, w, v):
    dims = ("NHWC", "HWIO", "NHWC")
    h = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims))
    y = lax.conv_general_dilated(h, v, (1, 1), "SAME", dimension_numbers=dims)
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@program((50000, 16), (32, 16))
def kmeans(x, c):
    def step(c, _):
        near = jnp.argmin(jnp.sum(x * x, 1)[:, None] - 2 * x @ c.T + jnp.sum(c * c, 1), axis=1)
        hot = jax.nn.one_hot(near, 32)
        return hot.T @ x / jnp.maximum(hot.sum(0), 1)[:, None], None

    return lax.scan(step, c, None, length=10)[0]


@program((1024, 1024))
def heat(u):
    def step(_, u):
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.1 * inner)

    return lax.fori_loop(0, 50, step, u)


@program((1500, 3))
def bodies(p):
    d = p[:, None] - p[None]
    return jnp.sum(d / (jnp.sum(d * d, -1, keepdims=True) + 0.01) ** 1.5, axis=1)


@program(np.array([1, 2], np.uint32))
def draws(k):
    a, b = jax.random.split(jax.random.wrap_key_data(k))
    return jnp.mean(jax.random.uniform(a, (4_000_000,))), jnp.mean(jax.random.normal(b, (2_000_000,)) ** 2)


@program((1000, 1000))
def order(x):
    return jnp.sort(x, axis=1), lax.top_k(x, 10), jnp.cumsum(x, axis=1)


@program((2048, 1024), (1024,), (1024,))
def layer_norms(x, g, b):
    def norm(x):
        c = x - jnp.mean(x, axis=1, keepdims=True)
        return c * lax.rsqrt(jnp.mean(c * c, axis=1, keepdims=True) + 1e-5) * g + b

    return jax.grad(lambda x: jnp.sum(norm(jnp.tanh(norm(x)))))(x)


@program((32, 64, 128), (128, 384), (128, 384))
def recurrent(x, w, u):
    def step(h, x):
        r, z, n = jnp.split(x @ w, 3, axis=1)
        a, b, c = jnp.split(h @ u, 3, axis=1)
        z = jax.nn.sigmoid(z + b)
        h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + a) * c) + z * h
        return h, h

    return lax.scan(step, jnp.zeros((64, 128)), x)[1]


def least(run):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    only, ratios = set(sys.argv[1:]), []
    for name, (function, args) in PROGRAMS.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            lowered = jax.jit(function).lower(*args)
            text, archive = pathlib.Path(folder, "f.mlir"), pathlib.Path(folder, "args.npz")
            text.write_text(lowered.as_text())
            np.savez(archive, **{f"arg{at}": arg for at, arg in enumerate(args)})
            compiled, device_args = lowered.compile(), [jnp.asarray(arg) for arg in args]
            jax.block_until_ready(compiled(*device_args))
            xla = own = math.inf
            for _ in range(3):
                xla = min(xla, least(lambda: jax.block_until_ready(compiled(*device_args))))
                stats = command.bench(text, [], ROUNDS, ["--args", str(archive)])
                own = min(own, min(stats["run_ms"]) / 1e3)
        ratios.append(xla / own)
        print(f"{name:16s} XLA {xla * 1e3:9.2f} ms   spmdc {own * 1e3:9.2f} ms   {xla / own:6.2f}", flush=True)
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


main()
