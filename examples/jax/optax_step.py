"""A training step with optax's AdamW and clipped gradients: the batch is split over two devices, and the layers over four.

    python3 examples/jax/optax_step.py
    spmdc run examples/jax/optax_step.mlir --args examples/jax/optax_step.npz

The first weight is split by columns and the second by rows, so each pair of layers adds partial sums once a direction. Parameters and
state are donated: the step updates them in place.
"""

from export import auto_mesh, export

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

BLOCKS, WIDTH, HIDDEN, BATCH = 2, 32, 64, 48
LAYOUT = {"up": P(None, "model"), "bias": P("model"), "down": P("model", None)}

optimizer = optax.chain(
    optax.clip_by_global_norm(0.5),
    optax.adamw(optax.cosine_decay_schedule(1e-2, decay_steps=100), weight_decay=1e-3),
)


def block(key):
    up, down = jax.random.split(key)
    return {
        "up": jax.random.normal(up, (WIDTH, HIDDEN)) / WIDTH**0.5,
        "bias": jnp.zeros(HIDDEN),
        "down": jax.random.normal(down, (HIDDEN, WIDTH)) / HIDDEN**0.5,
    }


def loss(params, x, y):
    for p in params:
        x = x + jax.nn.gelu(x @ p["up"] + p["bias"]) @ p["down"]
    return jnp.mean((x - y) ** 2)


def train_step(params, state, batch):
    value, grads = jax.value_and_grad(loss)(params, *batch)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def main():
    mesh = auto_mesh(data=2, model=4)
    layout = {name: NamedSharding(mesh, spec) for name, spec in LAYOUT.items()}
    params = [jax.device_put(block(key), layout) for key in jax.random.split(jax.random.key(0), BLOCKS)]
    state = optimizer.init(params)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, WIDTH), dtype=np.float32)
    batch = jax.device_put((x, np.sin(3 * x)), NamedSharding(mesh, P("data")))

    step = jax.jit(train_step, donate_argnums=(0, 1))
    for _ in range(10):
        params, state, value = step(params, state, batch)
    params, state, value = export("optax_step", step, params, state, batch)
    print(f"the loss of step 11 is {value:.4f}")


if __name__ == "__main__":
    main()
