"""Times programs of spmdc and of JAX on the CPU, in turns, and prints how many times as long JAX takes.

    cargo build --release --workspace
    python3 tests/benches/beside_jax.py [SECTION ..]

Needs jax and numpy. Both sides get one device and all cores, and compile before the clock starts. JAX is timed twice: as it is
called, which makes a new buffer for each result, and in a loop inside of one computation, where it can reuse them.
"""

import os
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp

import command

CACHE, MEMORY = 1 << 18, 1 << 24
ROUNDS = 5


def square(n):
    side = int(n**0.5)
    return (side, side)


def layer_norm(x, g, b):
    c = x - jnp.mean(x, axis=-1, keepdims=True)
    return c * jax.lax.rsqrt(jnp.mean(c * c, axis=-1, keepdims=True) + 1e-5) * g + b


LAYER_NORM = """let c = x - mean(x, axis=-1, keepdims=true);
  c * rsqrt(mean(square(c), axis=-1, keepdims=true) + 1e-5) * g + b"""

# section: (program, the same in JAX, shapes of the parameters for a number of elements)
CASES = {
    "elementwise": [
        ("2*x", lambda x: 2 * x, lambda n: {"x": (n,)}),
        ("x + y", lambda x, y: x + y, lambda n: {"x": (n,), "y": (n,)}),
        ("2*sin(x)+1", lambda x: 2 * jnp.sin(x) + 1, lambda n: {"x": (n,)}),
        ("exp(-x)", lambda x: jnp.exp(-x), lambda n: {"x": (n,)}),
        ("tanh(x)", jnp.tanh, lambda n: {"x": (n,)}),
        ("gelu(x)", jax.nn.gelu, lambda n: {"x": (n,)}),
        ("x.T", lambda x: x.T + 0, lambda n: {"x": square(n)}),
    ],
    "reduction": [
        ("sum(x)", jnp.sum, lambda n: {"x": square(n)}),
        ("sum(x, axis=1)", lambda x: jnp.sum(x, axis=1), lambda n: {"x": square(n)}),
        ("sum(x, axis=0)", lambda x: jnp.sum(x, axis=0), lambda n: {"x": square(n)}),
        ("max(x, axis=1)", lambda x: jnp.max(x, axis=1), lambda n: {"x": square(n)}),
        ("argmax(x, axis=1)", lambda x: jnp.argmax(x, axis=1), lambda n: {"x": square(n)}),
        ("softmax(x, axis=-1)", lambda x: jax.nn.softmax(x, axis=-1), lambda n: {"x": square(n)}),
        (LAYER_NORM, layer_norm, lambda n: {"x": square(n), "g": square(n)[:1], "b": square(n)[:1]}),
    ],
    "matmul": [("x @ y", jnp.matmul, lambda n: {"x": square(n), "y": square(n)})],
}
SIZES = {"matmul": [64 * 64, 128 * 128, 256 * 256, 512 * 512, 1024 * 1024]}


def shape_text(shape):
    return "f32[" + ", ".join(map(str, shape)) + "]"


class Ours:
    """The least milliseconds of a run, by the command's own clock."""

    def __init__(self, folder, body, shapes, runs):
        self.path = os.path.join(folder, "p.spmd")
        params = ", ".join(f"{name}: {shape_text(shape)}" for name, shape in shapes.items())
        with open(self.path, "w") as file:
            file.write(f"fn main({params}) {{\n  {body}\n}}\n")
        self.arguments = [f"{name}=normal:{seed}" for seed, name in enumerate(shapes)]
        self.runs = runs

    def least(self):
        return min(command.bench(self.path, self.arguments, self.runs)["run_ms"])


class Jax:
    """The least milliseconds of a call, and of a round of a loop."""

    def __init__(self, function, shapes, runs):
        keys = jax.random.split(jax.random.key(0), max(len(shapes), 2))
        self.args = [jax.random.normal(key, shape) for key, shape in zip(keys, shapes.values())]
        self.call = jax.jit(function)
        self.runs = runs
        self.trips = max(1, min(100, runs))

        def looped(first, *rest):
            # The operand changes a little with every trip, so that nothing can be taken out of the loop.
            def body(_, carried):
                first, _ = carried
                result = function(first, *rest)
                first = first.at[(0,) * first.ndim].add(jnp.ravel(result)[0].astype(first.dtype) * 1e-30)
                return first, result

            start = (first, jax.eval_shape(function, first, *rest))
            start = (first, jnp.zeros(start[1].shape, start[1].dtype))
            return jax.lax.fori_loop(0, self.trips, body, start)

        self.loop = jax.jit(looped, donate_argnums=0)
        jax.block_until_ready(self.call(*self.args))
        jax.block_until_ready(self.loop(jnp.array(self.args[0]), *self.args[1:]))

    def least(self):
        calls, loops = [], []
        for _ in range(self.runs):
            begin = time.perf_counter()
            jax.block_until_ready(self.call(*self.args))
            calls.append(time.perf_counter() - begin)
        for _ in range(max(3, self.runs // self.trips)):
            first = jax.block_until_ready(jnp.array(self.args[0]))
            begin = time.perf_counter()
            jax.block_until_ready(self.loop(first, *self.args[1:]))
            loops.append((time.perf_counter() - begin) / self.trips)
        return 1e3 * min(calls), 1e3 * min(loops)


def main():
    wanted = sys.argv[1:] or list(CASES)
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, milliseconds")
    print(f"{'':<32}{'elements':>10}{'spmdc':>10}{'JAX call':>10}{'ratio':>8}{'JAX loop':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for section in wanted:
            for size in SIZES.get(section, [CACHE, MEMORY]):
                runs = 500 if size <= CACHE else 20
                for body, function, shapes in CASES[section]:
                    shapes = shapes(size)
                    ours, theirs = Ours(folder, body, shapes, runs), Jax(function, shapes, runs)
                    rounds = [(ours.least(), *theirs.least()) for _ in range(ROUNDS)]
                    mine, call, loop = (min(times) for times in zip(*rounds))
                    name = "layer norm" if body == LAYER_NORM else body
                    print(f"{name:<32}{size:>10}{mine:>10.4f}{call:>10.4f}{call / mine:>8.2f}{loop:>10.4f}{loop / mine:>8.2f}")


main()
