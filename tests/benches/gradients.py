"""Times gradients: written by hand, by `grad`, and by JAX on the CPU, in turns, and prints the ratios to the form by `grad`.

    cargo build --release --workspace
    python3 tests/benches/gradients.py [ROW ..]

Needs jax and numpy. All run on eight devices, JAX on one as well, of which the faster counts. Compilation is not timed.
"""

import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

import command

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 15


def perceptron(sizes):
    """The shapes of its parameters, and its loss."""
    shapes = [shape for n, m in zip(sizes, sizes[1:]) for shape in ((n, m), (m,))]

    def loss(net, x, y):
        for w, b in zip(net[:-2:2], net[1:-2:2]):
            x = jax.nn.relu(x @ w + b)
        return jnp.sum((x @ net[-2] + net[-1] - y) ** 2) / x.shape[0]

    return shapes, loss


def descent(loss, rate, steps):
    """So many steps of gradient descent."""

    def step(net, x, y):
        return jax.tree.map(lambda v, s: v - rate * s, net, jax.grad(loss)(net, x, y))

    return lambda net, x, y: jax.lax.fori_loop(0, steps, lambda _, net: step(net, x, y), net)


def logistic(line, x, y):
    return jnp.mean((jax.nn.sigmoid(x @ line[0] + line[1]) - y) ** 2)


def attention(_, q, k, v, d):
    attend = lambda q, k, v: jax.nn.softmax(q @ k.swapaxes(-1, -2) / 8, axis=-1) @ v
    return jax.vjp(attend, q, k, v)[1](d)


LARGE, SMALL = perceptron([784, 1024, 1024, 1024, 10]), perceptron([256, 256, 256, 10])
HEADS = [(8, 8, 512, 64)] * 4

# row: (the function in JAX, shapes of its parameters, shapes of its split operands, names of the arguments of the programs)
ROWS = {
    "mlp_step": (descent(LARGE[1], 1e-5, 1), LARGE[0], [(1024, 784), (1024, 10)], ["net", "x", "y"]),
    "logistic_100": (descent(logistic, 1e-2, 100), [(32, 1), (1,)], [(1024, 32), (1024, 1)], ["x", "y"]),
    "mlp_100": (descent(SMALL[1], 1e-5, 100), SMALL[0], [(512, 256), (512, 10)], ["first", "x", "y"]),
    "attention": (attention, [], HEADS, ["q", "k", "v", "d"]),
}


def ours(program, names):
    """The least milliseconds of a run, by the command's own clock."""
    arguments = []
    for seed, name in enumerate(names):
        fields = [name]
        if name in ("net", "first"):
            layers = 4 if name == "net" else 3
            fields = [f"{name}.{kind}{layer}" for layer in range(layers) for kind in "wb"]
        arguments += [f"{field}=normal:{seed}" for field in fields]
    return min(command.bench(os.path.join(HERE, "gradients", f"{program}.spmd"), arguments, 9)["run_ms"])


class Jax:
    """A compiled function and its operands, whose first dimension is split over some devices."""

    def __init__(self, function, params, operands, devices):
        mesh = jax.make_mesh((devices,), ("X",), devices=jax.devices()[:devices])
        put = lambda shape, spec: jax.device_put(0.1 * jnp.ones(shape), NamedSharding(mesh, spec))
        self.args = [[put(shape, P()) for shape in params], *(put(shape, P("X")) for shape in operands)]
        self.call = jax.jit(function)
        jax.block_until_ready(self.call(*self.args))

    def least(self):
        times = []
        for _ in range(9):
            begin = time.perf_counter()
            jax.block_until_ready(self.call(*self.args))
            times.append(time.perf_counter() - begin)
        return 1e3 * min(times)


def main():
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, milliseconds")
    print(f"{'':<16}{'by grad':>10}{'by hand':>10}{'ratio':>8}{'JAX':>10}{'ratio':>8}")
    for row in sys.argv[1:] or ROWS:
        function, params, operands, names = ROWS[row]
        theirs = [Jax(function, params, operands, devices) for devices in (1, 8)]
        turn = lambda: (*(ours(f"{row}_by_{way}", names) for way in ("grad", "hand")), min(t.least() for t in theirs))
        grad, hand, other = (min(times) for times in zip(*[turn() for _ in range(ROUNDS)]))
        print(f"{row:<16}{grad:>10.3f}{hand:>10.3f}{hand / grad:>8.2f}{other:>10.3f}{other / grad:>8.2f}")


main()
