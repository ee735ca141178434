"""Makes the golden arrays of training programs, as `make.py` does, by JAX and Optax.

    pip install "jax==0.10.2" numpy optax==0.2.8
    python3 tests/golden/make_training.py [NAME..]
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from make_libraries import floats
from store import HERE, write

jax.config.update("jax_platforms", "cpu")

STEPS = 6
LIBRARY = 'import "std/optim.spmd" as optim;\n'

# (our call, the optimizer of Optax); the state of our call is `OPTIMIZER_state(p)`.
OPTIMIZERS = [
    ("momentum(p, g, s, 0.1)", optax.sgd(0.1, momentum=0.9)),
    ("momentum(p, g, s, 0.05, decay=0.8, nesterov=true)", optax.sgd(0.05, momentum=0.8, nesterov=True)),
    ("adam(p, g, s, rate=0.02)", optax.adam(0.02)),
    ("adam(p, g, s, rate=0.01, b1=0.8, b2=0.99, eps=1e-5)", optax.adam(0.01, b1=0.8, b2=0.99, eps=1e-5)),
    ("adamw(p, g, s, rate=0.01, weight_decay=0.05)", optax.adamw(0.01, weight_decay=0.05)),
    ("lion(p, g, s, rate=0.003, weight_decay=0.1)", optax.lion(0.003, weight_decay=0.1)),
    ("adafactor(p, g, s, rate=0.05)", optax.adafactor(0.05)),
]


def loss(p, x, y):
    return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) - y) ** 2)


# Signs of gradients that rounding can turn are not compared over the large array: there the optimizer with rows and columns is enough.
FACTORED = [("adafactor(p, g, s, rate=0.05)", optax.adafactor(0.05))]


def trained(optimizers, w, b, x, y):
    results = []
    for _, optimizer in optimizers:
        p = {"w": w, "b": b}
        state = optimizer.init(p)
        for _ in range(STEPS):
            updates, state = optimizer.update(jax.grad(loss)(p, x, y), state, p)
            p = optax.apply_updates(p, updates)
        results += [p["w"], p["b"]]
    g = jax.grad(loss)({"w": w, "b": b}, x, y)
    for limit in (0.001, 100.0):
        clipped, _ = optax.clip_by_global_norm(limit).update(g, optax.EmptyState())
        results += [clipped["w"], clipped["b"]]
    clipped, _ = optax.clip(0.01).update(g, optax.EmptyState())
    return (*results, optax.tree.norm(g), clipped["w"])


def training(optimizers, inner, features, samples):
    """A program that trains one layer by each of the optimizers."""
    calls = ""
    for number, (call, _) in enumerate(optimizers):
        name = call.split("(")[0]
        calls += (f"  let mut p{number} = p;\n  let mut s{number} = optim.{name}_state(p);\n  for i in 0..{STEPS} {{\n"
                  f"    let g = grad(loss)(p{number}, x, y);\n"
                  f"    let (next, state) = optim.{call.replace('(p,', f'(p{number},').replace(' s,', f' s{number},')};\n"
                  f"    p{number} = next;\n    s{number} = state;\n  }}\n")
    results = ", ".join(f"p{number}.w, p{number}.b" for number in range(len(optimizers)))
    return (LIBRARY + f"fn main(w: f32[{inner}@Y, {features}], b: f32[{features}], x: f32[{samples}@X, {inner}], y: f32[{samples}@X, {features}]) {{\n"
            "  let p = { w: w, b: b };\n" + calls + "  let g = grad(loss)(p, x, y);\n  let low = optim.clip_by_global_norm(g, 0.001);\n"
            "  let high = optim.clip_by_global_norm(g, 100.0);\n"
            f"  ({results}, low.w, low.b, high.w, high.b, optim.global_norm(g), optim.clip_by_value(g, 0.01).w)\n}}\n"
            "fn loss(p, x, y) { mean((tanh(x @ p.w + p.b) - y) ** 2) }")


def inputs(name, inner, features, samples):
    x = floats(name + "x", samples, inner) / np.float32(np.sqrt(inner))
    return [floats(name + "w", inner, features), floats(name + "b", features), x,
            floats(name + "y", samples, features)]


def rates(steps):
    schedules = [optax.linear_schedule(0.5, 0.1, 10), optax.polynomial_schedule(0.5, 0.1, 2, 10), optax.exponential_decay(0.5, 4, 0.7),
                 optax.cosine_decay_schedule(0.5, 10, 0.2), optax.warmup_cosine_decay_schedule(0.05, 0.5, 4, 12, 0.02)]
    return tuple(np.array([schedule(step) for step in steps], np.float32) for schedule in schedules)


RATES = (LIBRARY + "fn main(steps: i32[16@Y]) {\n  (optim.linear_rate(steps, 0.5, 0.1, 10), optim.polynomial_rate(steps, 0.5, 0.1, 10, power=2),\n"
         "   optim.exponential_rate(steps, 0.5, 0.7, 4), optim.cosine_rate(steps, 0.5, 10, least=0.2),\n"
         "   optim.warmup_cosine_rate(steps, 0.5, 4, 12, start=0.05, end=0.02))\n}")

def init_layer(key, inputs, outputs):
    first, second = jax.random.split(key)
    return {"w": jax.random.normal(first, (inputs, outputs)) / jnp.sqrt(inputs), "b": jax.random.normal(second, (outputs,))}


def predict(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def network_losses(sizes, samples, steps):
    """The losses of `examples/network.spmd` before each step, and after the last one."""
    key, *keys = jax.random.split(jax.random.key(0), len(sizes))
    layers = [init_layer(*layer) for layer in zip(keys, sizes[:-1], sizes[1:])]
    _, *keys = jax.random.split(key, 3)
    x, y = jax.random.normal(keys[0], (samples, sizes[0])), jax.random.normal(keys[1], (samples, sizes[-1]))
    own_loss = jax.jit(jax.value_and_grad(lambda layers: jnp.mean(jnp.sum((predict(layers, x) - y) ** 2, axis=1))))
    losses = []
    for _ in range(steps):
        value, g = own_loss(layers)
        losses.append(value)
        layers = jax.tree.map(lambda p, g: p - 1e-5 * g, layers, g)
    return np.array([*losses, own_loss(layers)[0]], np.float32)


def regression():
    """The parameters of `examples/train_step.spmd` after its last step, and its loss."""
    key = jax.random.key(1701)
    x = jax.random.normal(key, (1024, 32))
    y = (x @ jax.random.normal(key, (32, 1)) > 0).astype(np.float32)
    own_loss = jax.jit(lambda p: jnp.mean((jax.nn.sigmoid(x @ p["w"] + p["b"]) - y) ** 2))
    p = {"w": jnp.zeros((32, 1)), "b": jnp.zeros(1)}
    for _ in range(100):
        p = jax.tree.map(lambda p, g: p - 0.01 * g, p, jax.grad(own_loss)(p))
    return p["w"], p["b"], own_loss(p)


def attended(q, k, v):
    """Attention of grouped heads with and without a causal mask, and its gradients."""
    results = []
    for causal in (False, True):
        def own(q, k, v):
            return jax.nn.dot_product_attention(q, k, v, is_causal=causal)
        results += [own(q, k, v), *jax.grad(lambda *args: jnp.sum(jnp.sin(own(*args))), (0, 1, 2))(q, k, v)]
    return tuple(results)


ATTENTION = ("fn main(q: f32[2@X, 7, 4@Y, 6], k: f32[2@X, 7, 2, 6], v: f32[2@X, 7, 2, 6]) {\n"
             "  let plain = |q, k, v| attention(q, k, v);\n  let causal = |q, k, v| attention(q, k, v, causal=true);\n"
             "  let of = |f| |q, k, v| sum(sin(f(q, k, v)));\n"
             "  (plain(q, k, v), grad(of(plain), argnums=(0, 1, 2))(q, k, v), causal(q, k, v), grad(of(causal), argnums=(0, 1, 2))(q, k, v))\n}")

# (name, tolerance, spmd text, inputs, function of JAX)
PROGRAMS = [
    ("training_optimizers", "reduction", training(OPTIMIZERS, 7, 5, 11), inputs("small", 7, 5, 11), partial(trained, OPTIMIZERS)),
    ("training_adafactor", "reduction", training(FACTORED, 131, 129, 6), inputs("large", 131, 129, 6), partial(trained, FACTORED)),
    ("training_attention", "reduction", ATTENTION, [floats("q", 2, 7, 4, 6), floats("k", 2, 7, 2, 6), floats("v", 2, 7, 2, 6)], attended),
    ("training_rates", "reduction", RATES, [np.arange(16, dtype=np.int32)], rates),
]

if __name__ == "__main__":
    for name, tolerance, text, arrays, function in PROGRAMS:
        if not sys.argv[1:] or name in sys.argv[1:]:
            write(name, tolerance, text, arrays, function(*arrays))
    if not sys.argv[1:] or "known" in sys.argv[1:]:
        w, b, after = regression()
        losses = network_losses([784, 1024, 1024, 1024, 10], 1024, 30)
        np.savez(HERE / "known.npz", network=losses, regression_w=w, regression_b=b, regression_loss=after)
