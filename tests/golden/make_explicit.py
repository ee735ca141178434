"""Makes the golden gradients of programs on explicit axes, as `make.py` does, by JAX in explicit mode with the same layouts and states.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_explicit.py [NAME..]
"""

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax import P, reshard, shard_map
from jax.sharding import AxisType

from store import write

jax.config.update("jax_platforms", "cpu")

BOTH = "X: explicit = 2, Y: explicit = 4"
WHOLE = P()


def data_parallel(w, v, x, t):
    """A replicated network, of which each device has a part of the batch."""

    def loss(w, v, x, t):
        return jnp.mean((jnp.tanh(x @ w) @ v - t) ** 2)

    w, v = reshard(w, P(reduced={"X"})), reshard(v, P(reduced={"X"}))
    return tuple(reshard(g, WHOLE) for g in jax.grad(loss, (0, 1))(w, v, reshard(x, P("X")), reshard(t, P("X"))))


def sharded_parameters(w, v, x):
    """Weights that lie in blocks, and are gathered before their use."""

    def loss(w, v, x):
        h = jnp.tanh(x @ reshard(w, P(reduced={"X"})))
        return jnp.sum((h @ reshard(v, P(reduced={"X"}))) ** 2)

    return jax.grad(loss, (0, 1))(reshard(w, P("X")), reshard(v, P("X")), reshard(x, P("X")))


def tensor_parallel(w, v, x):
    """Two layers, of which the hidden dimension is split."""

    def loss(w, v, x):
        h = jax.nn.gelu(x @ w)
        o = reshard(jnp.einsum("bh,ho->bo", h, v, out_sharding=P(unreduced={"Y"})), WHOLE)
        return jnp.sum(jnp.sin(o))

    return jax.grad(loss, (0, 1, 2))(reshard(w, P(None, "Y")), reshard(v, P("Y")), x)


def both_parallel(w, v, x):
    """The batch over X, the hidden dimension over Y."""

    def loss(w, v, x):
        h = jnp.tanh(x @ w)
        o = jnp.einsum("bh,ho->bo", h, v, out_sharding=P("X", unreduced={"Y"}))
        return jnp.sum(reshard(o, P("X")) ** 2)

    w, v = reshard(w, P(None, "Y", reduced={"X"})), reshard(v, P("Y", None, reduced={"X"}))
    dw, dv = jax.grad(loss, (0, 1))(w, v, reshard(x, P("X")))
    return reshard(dw, P(None, "Y")), reshard(dv, P("Y"))


def microbatches(w, x):
    """Gradients that a loop adds up as partial sums."""

    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    w, x = reshard(w, P(reduced={"X"})), reshard(x, P(None, "X"))
    start = reshard(jnp.zeros(w.shape), P(unreduced={"X"}))
    total, _ = jax.lax.scan(lambda g, x: (g + jax.grad(loss)(w, x), None), start, x)
    return reshard(total, WHOLE)


def layers_in_a_loop(w, x):
    """Layers in a loop, in microbatches in a loop."""

    def loss(w, x):
        h, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)
        return jnp.sum(h**2)

    w, x = reshard(w, P(reduced={"X"})), reshard(x, P(None, "X"))
    start = reshard(jnp.zeros(w.shape), P(unreduced={"X"}))
    total, _ = jax.lax.scan(lambda g, x: (g + jax.grad(loss)(w, x), None), start, x)
    return reshard(total, WHOLE)


def low_rank(w, a, b, x):
    """A product and its low-rank update, summed once."""

    def loss(a, b):
        low = jnp.einsum("nk,kr->nr", x1, a, out_sharding=P(unreduced={"X"}))
        h = jnp.einsum("nk,km->nm", x1, w1, out_sharding=P(unreduced={"X"}))
        return jnp.sum(jnp.tanh(reshard(h, WHOLE) + reshard(low, WHOLE) @ b))

    x1, w1 = reshard(x, P(None, "X")), reshard(w, P("X"))
    return jax.grad(loss, (0, 1))(reshard(a, P("X")), b)


def embedding(e, w, t):
    """A table that all devices have, of which each looks up its own tokens."""

    def loss(e, w, t):
        return jnp.sum(jnp.tanh(e.at[t].get(out_sharding=P("X", None)) @ w) ** 2)

    e, w = reshard(e, P(reduced={"X"})), reshard(w, P(reduced={"X"}))
    return tuple(reshard(g, WHOLE) for g in jax.grad(loss, (0, 1))(e, w, reshard(t, P("X"))))


def experts(w, g, x):
    """A mixture of experts: each device has two, and tokens move to those that are chosen for them."""

    def layer(w, x):
        there = jax.lax.all_to_all(x, "Y", split_axis=0, concat_axis=1, tiled=True)
        done = jnp.tanh(jnp.einsum("end,edf->enf", there, w))
        return jax.lax.all_to_all(done, "Y", split_axis=1, concat_axis=0, tiled=True)

    def loss(w, g, x):
        gate = jax.nn.softmax(g, axis=0)
        moved = shard_map(layer, in_specs=(P("Y"), P(None, "Y")), out_specs=P(None, "Y"), axis_names={"Y"})(w, x)
        return jnp.sum(moved * gate[:, None, None]) + jnp.sum(moved**2)

    return jax.grad(loss, (0, 1))(reshard(w, P("Y")), g, reshard(x, P(None, "Y")))


def manual_sums(w, x):
    """A manual function whose weights are reduced: their gradient leaves it as partial sums."""

    def inside(w, x):
        return jax.lax.psum(jnp.sum(jnp.tanh(x @ w) ** 2), ("X", "Y"))

    def loss(w, x):
        return shard_map(inside, in_specs=(P(reduced={"X", "Y"}), P(("X", "Y"))), out_specs=P())(w, x)

    return reshard(jax.grad(loss)(reshard(w, P(reduced={"X", "Y"})), reshard(x, P(("X", "Y")))), WHOLE)


PROGRAMS = {
    data_parallel: ([(6, 5), (5, 4), (8, 6), (8, 4)], """
fn loss(w: f32[6, 5]{R:X}, v: f32[5, 4]{R:X}, x: f32[8@X, 6], t: f32[8@X, 4]) -> f32 { mean((tanh(x @ w) @ v - t) ** 2) }
fn main(w: f32[6, 5], v: f32[5, 4], x: f32[8@X, 6], t: f32[8@X, 4]) -> (f32[6, 5], f32[5, 4]) {
  let (dw, dv) = grad(loss, argnums=(0, 1))(reshard(w, P(reduced=X)), reshard(v, P(reduced=X)), x, t);
  (reshard(dw, P()), reshard(dv, P()))
}"""),
    sharded_parameters: ([(8, 6), (6, 4), (4, 8)], """
fn loss(w: f32[8@X, 6], v: f32[6@X, 4], x: f32[4@X, 8]) -> f32 {
  let h = tanh(x @ reshard(w, P(reduced=X)));
  sum((h @ reshard(v, P(reduced=X))) ** 2)
}
fn main(w: f32[8@X, 6], v: f32[6@X, 4], x: f32[4@X, 8]) -> (f32[8@X, 6], f32[6@X, 4]) { grad(loss, argnums=(0, 1))(w, v, x) }"""),
    tensor_parallel: ([(6, 8), (8, 4), (5, 6)], """
fn loss(w: f32[6, 8@Y], v: f32[8@Y, 4], x: f32[5, 6]) -> f32 {
  let h = gelu(x @ w);
  sum(sin(reshard(matmul(h, v, out=P(unreduced=Y)), P())))
}
fn main(w: f32[6, 8@Y], v: f32[8@Y, 4], x: f32[5, 6]) { grad(loss, argnums=(0, 1, 2))(w, v, x) }"""),
    both_parallel: ([(6, 8), (8, 4), (4, 6)], """
fn loss(w: f32[6, 8@Y]{R:X}, v: f32[8@Y, 4]{R:X}, x: f32[4@X, 6]) -> f32 {
  let o = matmul(tanh(x @ w), v, out=P(X, unreduced=Y));
  sum(reshard(o, P(X)) ** 2)
}
fn main(w: f32[6, 8@Y], v: f32[8@Y, 4], x: f32[4@X, 6]) -> (f32[6, 8@Y], f32[8@Y, 4]) {
  let (dw, dv) = grad(loss, argnums=(0, 1))(reshard(w, P(_, Y, reduced=X)), reshard(v, P(Y, reduced=X)), x);
  (reshard(dw, P(_, Y)), reshard(dv, P(Y)))
}"""),
    microbatches: ([(6, 5), (4, 8, 6)], """
fn loss(w: f32[6, 5]{R:X}, x: f32[8@X, 6]) -> f32 { sum(tanh(x @ w) ** 2) }
fn main(w: f32[6, 5], x: f32[4, 8@X, 6]) -> f32[6, 5] {
  let w = reshard(w, P(reduced=X));
  let mut g = zeros(f32[6, 5], out=P(unreduced=X));
  for i in 0..4 { g += grad(loss)(w, x[i]); }
  reshard(g, P())
}"""),
    layers_in_a_loop: ([(3, 6, 6), (4, 8, 6)], """
fn loss(w: f32[3, 6, 6]{R:X}, x: f32[8@X, 6]) -> f32 {
  let mut h = x;
  for l in 0..3 { h = tanh(h @ w[l]); }
  sum(h ** 2)
}
fn main(w: f32[3, 6, 6], x: f32[4, 8@X, 6]) -> f32[3, 6, 6] {
  let w = reshard(w, P(reduced=X));
  let mut g = zeros(f32[3, 6, 6], out=P(unreduced=X));
  for i in 0..4 { g += grad(loss)(w, x[i]); }
  reshard(g, P())
}"""),
    low_rank: ([(8, 6), (8, 2), (2, 6), (4, 8)], """
fn loss(w: f32[8@X, 6], a: f32[8@X, 2], b: f32[2, 6], x: f32[4, 8@X]) -> f32 {
  let low = matmul(x, a, out=P(unreduced=X)) @ reshard(b, P(reduced=X));
  sum(tanh(reshard(matmul(x, w, out=P(unreduced=X)) + low, P())))
}
fn main(w: f32[8@X, 6], a: f32[8@X, 2], b: f32[2, 6], x: f32[4, 8@X]) { grad(loss, argnums=(1, 2))(w, a, b, x) }"""),
    embedding: ([(10, 6), (6, 4), 8], """
fn loss(e: f32[10, 6]{R:X}, w: f32[6, 4]{R:X}, t: i32[8@X]) -> f32 { sum(tanh(take(e, t, axis=0, out=P(X)) @ w) ** 2) }
fn main(e: f32[10, 6], w: f32[6, 4], t: i32[8@X]) -> (f32[10, 6], f32[6, 4]) {
  let (de, dw) = grad(loss, argnums=(0, 1))(reshard(e, P(reduced=X)), reshard(w, P(reduced=X)), t);
  (reshard(de, P()), reshard(dw, P()))
}"""),
    experts: ([(8, 3, 5), (8,), (8, 4, 3)], """
fn main(w: f32[8@Y, 3, 5], g: f32[8], x: f32[8, 4@Y, 3]) -> (f32[8@Y, 3, 5], f32[8]) { grad(loss, argnums=(0, 1))(w, g, x) }
manual(Y) fn layer(w: f32[8@Y, 3, 5], x: f32[8, 4@Y, 3]) -> f32[8, 4@Y, 5] {
  let there = all_to_all(x, Y, split=0, concat=1);
  let done = tanh(einsum("end,edf->enf", there, w));
  all_to_all(done, Y, split=1, concat=0)
}
fn loss(w: f32[8@Y, 3, 5], g: f32[8], x: f32[8, 4@Y, 3]) -> f32 {
  let moved = layer(w, x);
  sum(moved * softmax(g, axis=0)[:, None, None]) + sum(moved ** 2)
}"""),
    manual_sums: ([(6, 5), (8, 6)], """
fn main(w: f32[6, 5], x: f32[8@(X, Y), 6]) -> f32[6, 5] { reshard(grad(inside)(reshard(w, P(reduced=(X, Y))), x), P()) }
manual fn inside(w: f32[6, 5]{R:(X, Y)}, x: f32[8@(X, Y), 6]) -> f32 { psum(sum(tanh(x @ w) ** 2), (X, Y)) }"""),
}


def main(names):
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Explicit,) * 2)
    for number, (function, (shapes, text)) in enumerate(PROGRAMS.items()):
        name = f"explicit_{function.__name__}"
        if names and name not in names:
            continue
        draw = np.random.default_rng(number)
        arrays = [draw.integers(0, 10, shape).astype(np.int32) if isinstance(shape, int) else draw.normal(size=shape).astype(np.float32) for shape in shapes]
        with jax.set_mesh(mesh):
            outputs = jax.jit(function)(*[jax.device_put(array, P()) for array in arrays])
        meshes = "2x4 1x1 1x2 2x1 2x2" if function in (experts, manual_sums) else None
        write(name, "reduction", text.strip(), arrays, outputs, meshes=meshes, mesh=BOTH)
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
