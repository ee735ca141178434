"""A small GPT of equinox writes characters: the loop over the positions is in the program, and the prompts are split over four devices.

    python3 examples/jax/gpt_generate.py
    spmdc run examples/jax/gpt_generate.mlir --args examples/jax/gpt_generate.npz

The script trains the model in JAX for a minute on the text of some pages; the exported program continues each prompt with the most likely
characters.
"""

from export import ROOT, auto_mesh, export

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec as P

CHARACTERS, LENGTH, WIDTH, HEADS, LAYERS = 128, 64, 48, 4, 2
# The elements of the embedding, which also makes the logits, have the standard deviation 1.
SCALE = 1 / 4


class Block(eqx.Module):
    norm1: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    norm2: eqx.nn.LayerNorm
    mlp: eqx.nn.MLP

    def __init__(self, key):
        keys = jax.random.split(key)
        self.norm1, self.norm2 = eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=keys[0])
        self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 4 * WIDTH, depth=1, activation=jax.nn.gelu, key=keys[1])

    def __call__(self, x):
        y = jax.vmap(self.norm1)(x)
        x = x + self.attention(y, y, y, mask=jnp.tri(len(x), dtype=bool))
        return x + jax.vmap(self.mlp)(jax.vmap(self.norm2)(x))


class Gpt(eqx.Module):
    embedding: eqx.nn.Embedding
    positions: jax.Array
    blocks: list[Block]
    norm: eqx.nn.LayerNorm

    def __init__(self, key):
        keys = jax.random.split(key, LAYERS + 2)
        self.embedding = eqx.nn.Embedding(CHARACTERS, WIDTH, key=keys[0])
        self.positions = 0.02 * jax.random.normal(keys[1], (LENGTH, WIDTH))
        self.blocks = [Block(key) for key in keys[2:]]
        self.norm = eqx.nn.LayerNorm(WIDTH)

    def __call__(self, text):
        """The logits of the character after each of `text`."""
        x = SCALE * jax.vmap(self.embedding)(text) + self.positions
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.norm)(x) @ self.embedding.weight.T * SCALE


optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0, 4e-3, 100, 1500))


def loss(model, text):
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(text[:, :-1]), text[:, 1:]).mean()


@eqx.filter_jit(donate="all")
def step(model, state, text):
    value, grads = eqx.filter_value_and_grad(loss)(model, text)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value


def trained():
    text = np.load(ROOT / "examples/data/text/pages.npy").astype(np.int32)
    rng = np.random.default_rng(0)
    model = Gpt(jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    for at in range(1500):
        starts = rng.integers(len(text) - LENGTH, size=(32, 1))
        model, state, value = step(model, state, text[starts + np.arange(LENGTH + 1)])
        if at % 300 == 299:
            print(f"step {at + 1}: loss {value:.3f}")
    return model


def main():
    weights, rest = eqx.partition(trained(), eqx.is_array)

    def generate(weights, prompts):
        """Whole texts, whose first characters are the prompts."""
        model = eqx.combine(weights, rest)
        size = prompts.shape[1]

        def write(at, texts):
            logits = jax.vmap(model)(texts)[:, at - 1]
            return texts.at[:, at].set(jnp.argmax(logits, axis=-1))

        texts = jnp.pad(prompts, ((0, 0), (0, LENGTH - size)))
        return jax.lax.fori_loop(size, LENGTH, write, texts)

    prompts = ["fn main(x: f", "mesh (X = 4,", "`sum(x, axis", "for i in 0.."]
    mesh = auto_mesh(data=4)
    weights = jax.device_put(weights, NamedSharding(mesh, P()))
    prompts = jax.device_put(np.int32([list(map(ord, p)) for p in prompts]), NamedSharding(mesh, P("data")))
    for text in np.asarray(export("gpt_generate", generate, weights, prompts)):
        print(repr(bytes(text.tolist()).decode("ascii")))


if __name__ == "__main__":
    main()
