"""Compares `spmdc.jit` with `jax.jit`: `python3 python/test_spmdc.py`, with the command `spmdc` on the path. Only for development."""

import os
import subprocess
import tempfile
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import spmdc

# No code is kept: no folder can be made here.
os.environ["XDG_CACHE_HOME"] = os.devnull


class State(NamedTuple):
    step: jax.Array
    params: dict
    unused: jax.Array


def update(state, batch, *more, rate=0.1):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((batch["x"] @ p["w"] + p["b"] - more[0]) ** 2))(state.params)
    params = jax.tree.map(lambda p, g: p - rate * g, state.params, grads)
    return State(state.step + 1, params, jnp.bfloat16(loss)), [loss, (loss > 1,)]


def draw(key, n=None):
    return jax.random.split(key)[0], jax.random.normal(key, (5,)), jnp.zeros((0, 3))


def equal(function, *args, **kwargs):
    wanted, found = jax.jit(function)(*args, **kwargs), spmdc.jit(function)(*args, **kwargs)
    assert jax.tree.structure(wanted) == jax.tree.structure(found)
    for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(found)):
        assert a.dtype == b.dtype and a.shape == b.shape, (a, b)
        a, b = (jax.random.key_data(x) if spmdc.is_key(x) else x for x in (a, b))
        np.testing.assert_allclose(np.float64(a), np.float64(b), rtol=1e-5, atol=1e-6)


rng = np.random.default_rng(0)
x, y, w = (rng.standard_normal(shape).astype(np.float32) for shape in [(8, 3), (8, 2), (3, 2)])
state = State(jnp.int32(3), {"w": w, "b": np.zeros(2, np.float32)}, jnp.float32(7))
equal(update, state, {"x": x, "y": y}, y)
equal(update, state, {"x": x, "y": y}, y, rate=jnp.float32(0.2))
equal(draw, jax.random.key(3))
with tempfile.TemporaryDirectory() as folder:
    spmdc.jit(update).build(f"{folder}/update", state, {"x": x}, y)
    command = [f"{folder}/update", "--args", f"{folder}/update.npz", "--out", f"{folder}/out.npz"]
    subprocess.run(command, check=True)
    assert np.load(f"{folder}/out.npz")["0"] == 4
try:
    spmdc.jit(lambda x: jnp.linalg.eig(x), options=["--mesh", "0"])(w @ w.T)
except RuntimeError as error:
    assert "E0" in str(error)
else:
    raise AssertionError("an error of the command is an exception")
print("ok")
