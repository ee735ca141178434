"""Ring attention by `shard_map`: the sequence is split over eight devices, and the blocks of keys and values travel once around the ring.

    python3 examples/jax/ring_attention.py
    spmdc run examples/jax/ring_attention.mlir --args examples/jax/ring_attention.npz

No device ever holds the whole sequence: each adds the block that it has to a running softmax, and passes the block to its neighbour.
"""

from export import export

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

DEVICES, LENGTH, HEADS, WIDTH = 8, 128, 4, 16
mesh = jax.make_mesh((DEVICES,), ("ring",))


@jax.shard_map(mesh=mesh, in_specs=P("ring"), out_specs=P("ring"))
def ring_attention(q, k, v):
    """Causal attention: `q`, `k`, `v` and the result are f32[128, 4, 16], split along the first dimension."""
    me, size = lax.axis_index("ring"), len(q)
    places = jnp.arange(size)

    def visit(turn, carry):
        total, weight, largest, k, v = carry
        owner = (me - turn) % DEVICES
        scores = jnp.einsum("qhd,khd->qhk", q, k) / WIDTH**0.5
        causal = (owner * size + places)[None, :] <= (me * size + places)[:, None]
        scores = jnp.where(causal[:, None, :], scores, -jnp.inf)
        new = jnp.maximum(largest, scores.max(axis=-1))
        p = jnp.exp(scores - new[..., None])
        scale = jnp.exp(largest - new)
        total = total * scale[..., None] + jnp.einsum("qhk,khd->qhd", p, v)
        weight = weight * scale + p.sum(axis=-1)
        k, v = lax.ppermute((k, v), "ring", [(i, (i + 1) % DEVICES) for i in range(DEVICES)])
        return total, weight, new, k, v

    # The first block of a device is its own, whose diagonal gives each row a score: no row has the maximum of an empty set.
    zeros = jnp.zeros_like(q[..., 0])
    total, weight, *_ = lax.fori_loop(0, DEVICES, visit, (jnp.zeros_like(q), zeros, zeros - jnp.inf, k, v))
    return total / weight[..., None]


def main():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, LENGTH, HEADS, WIDTH), dtype=np.float32)
    plain = jax.nn.dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    split = jax.device_put((q, k, v), NamedSharding(mesh, P("ring")))
    found = export("ring_attention", ring_attention, *split)
    print(f"the largest difference from plain attention is {np.abs(found - plain).max():.1e}")


if __name__ == "__main__":
    main()
