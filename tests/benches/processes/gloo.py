"""One of two processes that time a collective of JAX: prints the least seconds of one, over some rounds.

    gloo.py PORT PROCESS KIND ELEMENTS TRIPS ROUNDS
"""

import sys
import time

import jax

port, process, kind, elements, trips, rounds = sys.argv[1], int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"localhost:{port}", 2, process)
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2,), ("X",), axis_types=(jax.sharding.AxisType.Auto,))
double = kind in ("reduce_scatter", "all_to_all")
shape = (elements * (2 if double else 1) * 2,)


def collective(y):
    match kind:
        case "all_reduce":
            return jax.lax.pcast(jax.lax.psum(y, "X"), "X", to="varying")
        case "all_gather":
            return jax.lax.all_gather(y, "X", tiled=True)[elements:]
        case "reduce_scatter":
            return jax.lax.psum_scatter(y, "X", tiled=True)
        case "all_to_all":
            return jax.lax.all_to_all(y, "X", 0, 0, tiled=True)[elements:]
        case "permute":
            return jax.lax.ppermute(y, "X", [(0, 1), (1, 0)])


# A trip goes on with one of its results, so that nothing else is copied.
trip = lambda _, y: y.at[0].set(collective(y)[0])
repeated = lambda x: jax.lax.fori_loop(0, trips, trip, x)
call = jax.jit(jax.shard_map(repeated, mesh=mesh, in_specs=P("X"), out_specs=P("X")))
x = jax.make_array_from_callback(shape, NamedSharding(mesh, P("X")), lambda index: jnp.zeros(shape)[index])
call(x).block_until_ready()
least = float("inf")
for _ in range(rounds):
    begin = time.perf_counter()
    call(x).block_until_ready()
    least = min(least, (time.perf_counter() - begin) / trips)
if process == 0:
    print(f"least {least:.9f}", flush=True)
