"""A convolutional network of flax reads handwritten digits: the images are split over four devices.

    python3 examples/jax/digits_cnn.py
    spmdc run examples/jax/digits_cnn.mlir --args examples/jax/digits_cnn.npz

The script trains the network in JAX for a few seconds; the exported program is the inference, with the parameters as arguments.
"""

from export import ROOT, auto_mesh, export

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, images):
        x = images.reshape(-1, 8, 8, 1).astype(jnp.float32) / 16
        for channels in (16, 32):
            x = nn.relu(nn.Conv(channels, kernel_size=(3, 3))(x))
            x = nn.max_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(len(x), -1)))
        return nn.Dense(10)(x)


model = Cnn()
optimizer = optax.adam(3e-3)


def loss(params, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, images), labels).mean()


@jax.jit
def step(params, state, images, labels):
    updates, state = optimizer.update(jax.grad(loss)(params, images, labels), state)
    return optax.apply_updates(params, updates), state


def predict(params, images):
    """The digit on each image, and the probabilities of all digits."""
    logits = model.apply(params, images)
    return {"digit": jnp.argmax(logits, axis=-1), "probability": nn.softmax(logits)}


def main():
    data = {name: np.load(ROOT / f"examples/data/digits/{name}.npy") for name in ("train_x", "train_y", "test_x", "test_y")}
    params = model.init(jax.random.key(0), data["train_x"][:1])
    state = optimizer.init(params)
    rng = np.random.default_rng(0)
    for _ in range(500):
        batch = rng.choice(len(data["train_x"]), 128, replace=False)
        params, state = step(params, state, data["train_x"][batch], data["train_y"][batch])

    mesh = auto_mesh(data=4)
    params = jax.device_put(params, NamedSharding(mesh, P()))
    images = jax.device_put(data["test_x"][:100], NamedSharding(mesh, P("data")))
    found = export("digits_cnn", predict, params, images)
    print(f"{np.sum(found['digit'] == data['test_y'][:100])} of 100 digits are right")


if __name__ == "__main__":
    main()
