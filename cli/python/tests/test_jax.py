"""Functions of JAX: the same results as `jax.jit`. Skipped without JAX."""

import functools

import numpy as np
import pytest

import spmdc

jax = pytest.importorskip("jax")
import jax.numpy as jnp


def compare(function, *args, **kwargs):
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    expected, found = jitted(*args, **kwargs), spmdc.jit(function)(*args, **kwargs)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        data = jax.random.key_data if jnp.issubdtype(theirs.dtype, jax.dtypes.prng_key) else lambda x: x
        np.testing.assert_allclose(np.asarray(data(ours), np.float64), np.asarray(data(theirs), np.float64), rtol=1e-5, atol=1e-6)


def test_trees():
    def step(params, batch, rate=0.1, *, scale):
        def loss(params):
            return jnp.mean((jnp.tanh(batch["x"] @ params["w"] + params["b"]) - batch["y"]) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - rate * scale * g, params, grads), {"loss": value}

    random = np.random.default_rng(0)
    params = {"w": jnp.asarray(random.normal(size=(4, 3)), jnp.float32), "b": np.zeros(3, np.float32)}
    batch = {"x": random.normal(size=(8, 4)), "y": np.ones((8, 3), np.float32), "unused": np.zeros(2)}
    compare(step, params, batch, scale=2.0)
    compare(step, params, batch, 0.5, scale=np.float32(2.0))
    compare(jax.jit(step), params, batch, 0.5, scale=2)


def test_each_combination_of_shapes_is_compiled_once():
    traced = []

    @spmdc.jit
    def f(x, y):
        traced.append(x.shape)
        return x * y

    for size in (3, 4, 3):
        np.testing.assert_array_equal(f(np.ones(size, np.float32), 2), np.full(size, 2))
    f(np.ones(3, np.int32), 3)
    assert traced == [(3,), (4,), (3,)]
    assert f.lower(np.ones(3, np.float32), 2).source.count("module @") == 1


def test_static_arguments():
    f = functools.partial(jax.jit, static_argnames=["n"])(lambda x, n: x**n)
    ours = spmdc.jit(f)
    x = np.arange(3, dtype=np.float32)
    for n in (2, 3, 2):
        np.testing.assert_array_equal(ours(x, n=n), x**n)


def test_narrow_floats_and_keys():
    compare(lambda x: (x * 2, x.astype(jnp.float32)), jnp.ones(3, jnp.bfloat16))
    compare(lambda key: (jax.random.uniform(key, (3,)), jax.random.split(key, 2)), jax.random.key(7))


def test_a_mesh_for_a_function_without_one():
    f = spmdc.jit(lambda x: x @ x.T, mesh={"X": 4})
    x = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    np.testing.assert_allclose(f(x), x @ x.T, rtol=1e-5)
    assert f.lower(x).devices == 4


def test_errors_name_the_line_of_python():
    def f(x):
        return jax.pure_callback(np.linalg.inv, jax.ShapeDtypeStruct((3, 3), np.float32), x)

    with pytest.raises(spmdc.CompileError) as caught:
        spmdc.jit(f)(np.eye(3, dtype=np.float32))
    assert "test_jax.py" in str(caught.value)
