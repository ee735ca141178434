"""Times loops and indices that once moved or copied more than they need, beside JAX on the CPU, in turns: a table of Markdown.

    cargo build --release -p spmdc
    python3 tests/benches/loops.py

Needs jax and numpy. JAX runs on as many devices as the program has, and on one, of which the faster counts; compilation is not timed. The
programs are those of `tests/benches/loops`, and those of `tests/xla`, whose bytes `docs/xla.md` compares.
"""

import os
import pathlib
import re
import sys
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "xla"))
import jax
import jax.numpy as jnp
import measure

import command

ROUNDS = 10


def samples(x):
    write = lambda i, h: jax.lax.cond(i % 10 == 9, lambda h: h.at[i].set(x), lambda h: h, h)
    return jax.lax.fori_loop(0, 50, write, jnp.zeros((50, 1000000))).sum()


def moves(x):
    move = lambda k, c: jax.lax.dynamic_update_slice(c, jax.lax.dynamic_slice(c, (k + 1,), (100,)), (k,))
    return jax.lax.fori_loop(0, 1000, move, x)


# The function in JAX, and each parameter with its shape and the dimensions that are split.
OWN = {
    "samples": (samples, {"x": ((1000000,), ())}),
    "moves": (moves, {"x": ((1000000,), ())}),
    "one_row": (lambda x, k: x[k, 0], {"x": ((2000, 64, 128), (None, "X")), "k": ((), ())}),
    "one_row_added": (lambda x, v, k: x.at[k].add(v), {"x": ((8, 32), ("X",)), "v": ((32,), ()), "k": ((), ())}),
}
COMPARED = ["accumulation", "accumulation_layers", "through_time", "fsdp_layers", "rfft_filter"]


def rows():
    for name, (function, params) in OWN.items():
        path = HERE / "loops" / f"{name}.spmd"
        devices = re.search(r"X = (\d+)", path.read_text())
        mesh = jax.make_mesh((int(devices[1]) if devices else 1,), ("X",), axis_types=(jax.sharding.AxisType.Auto,))
        yield path, function, mesh, {key: (shape, jax.sharding.PartitionSpec(*split)) for key, (shape, split) in params.items()}
    for name in COMPARED:
        path = HERE.parent / "xla" / f"{name}.spmd"
        mesh, params, _ = measure.signature(path.read_text())
        names = re.findall(r"(\w+): f32\[", re.search(r"fn main\((.*?)\) ->", path.read_text(), re.S)[1])
        yield path, measure.PROGRAMS[name], mesh, dict(zip(names, params, strict=True))


def ours(path, params):
    arguments = [f"{name}=normal:{seed}" if shape else f"{name}=3" for seed, (name, (shape, _)) in enumerate(params.items())]
    stats = command.bench(path, arguments, ROUNDS)
    return min(stats["run_ms"]), stats["peak_bytes_per_device"], sum(each["bytes"] for each in stats["collectives"])


def theirs(function, args, shardings):
    args = [jax.device_put(arg, at) for arg, at in zip(args, shardings)]
    compiled = jax.jit(function).lower(*args).compile()
    least = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        least = min(least, time.perf_counter() - start)
    return 1e3 * least


def main():
    print("| program | ms | memory of a device | bytes sent | JAX, ms | ratio |\n|---|---|---|---|---|---|")
    for path, function, mesh, params in rows():
        draw = lambda seed, shape: jax.random.normal(jax.random.key(seed), shape) if shape else jnp.int32(3)
        args = [draw(seed, shape) for seed, (shape, _) in enumerate(params.values())]
        split = [jax.sharding.NamedSharding(mesh, partition) for _, partition in params.values()]
        one = [jax.sharding.SingleDeviceSharding(jax.devices()[0])] * len(args)
        least, peak, sent = ours(path, params)
        jax_ms = min(theirs(function, args, shardings) for shardings in (split, one))
        print(f"| `{path.stem}` | {least:.3g} | {peak:,} | {sent:,} | {jax_ms:.3g} | {jax_ms / least:.2f} |", flush=True)


if __name__ == "__main__":
    main()
