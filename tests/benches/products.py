"""Times products of matrices beside JAX, in turns, and prints milliseconds and how many times as long JAX takes.

    cargo build --release --workspace
    python3 tests/benches/products.py [f32 f64 bf16 i8 ..]
    taskset -c 0 python3 tests/benches/products.py      # on one core

Needs jax and numpy. Products of bf16 are timed with and without --native-bf16. Sizes are square ones, tall and wide ones, rows of few
columns, batches, and all orders of letters.
"""

import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
import jax
import jax.numpy as jnp

import command

ROUNDS = 2
SQUARE = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
# Letters: `b` counts matrices, `m` rows, `n` columns, and `k` terms.
SHAPES = [
    ("mk,kn->mn", dict(m=1, k=2048, n=2048)),
    ("mk,kn->mn", dict(m=8, k=2048, n=2048)),
    ("mk,kn->mn", dict(m=32, k=2048, n=2048)),
    ("mk,kn->mn", dict(m=8192, k=64, n=64)),
    ("mk,kn->mn", dict(m=64, k=8192, n=64)),
    ("mk,kn->mn", dict(m=64, k=64, n=8192)),
    ("mk,kn->mn", dict(m=8192, k=784, n=128)),
    ("mk,nk->mn", dict(m=1024, k=1024, n=1024)),
    ("km,kn->mn", dict(m=1024, k=1024, n=1024)),
    ("km,nk->mn", dict(m=1024, k=1024, n=1024)),
    ("mk,kn->nm", dict(m=1024, k=1024, n=1024)),
    ("bmk,bkn->bmn", dict(b=4096, m=4, k=4, n=4)),
    ("bmk,bkn->bmn", dict(b=1024, m=16, k=16, n=16)),
    ("bmk,bkn->bmn", dict(b=64, m=32, k=32, n=32)),
    ("bmk,bkn->bmn", dict(b=16, m=256, k=256, n=256)),
    ("mbk,nbk->bmn", dict(b=16, m=256, k=64, n=256)),
    ("bmn,nbk->mbk", dict(b=16, m=256, k=64, n=256)),
    ("mkb,knb->mnb", dict(b=64, m=32, k=32, n=32)),
]
TYPES = {"f32": jnp.float32, "f64": jnp.float64, "bf16": jnp.bfloat16, "i8": jnp.int8}


def cases():
    yield from (("mk,kn->mn", dict(m=n, k=n, n=n)) for n in SQUARE)
    yield from SHAPES


def jax_side(spec, shapes, dtype):
    """A function that calls JAX once, and waits for the result."""
    sums = jnp.int32 if dtype == "i8" else None
    call = jax.jit(lambda x, y: jnp.einsum(spec, x, y, preferred_element_type=sums))
    x, y = (
        jax.random.randint(jax.random.key(at), shape, -100, 100, jnp.int8)
        if dtype == "i8"
        else jax.random.normal(jax.random.key(at), shape, TYPES[dtype])
        for at, shape in enumerate(shapes)
    )
    return lambda: jax.block_until_ready(call(x, y))


def fastest(call, seconds):
    """The least milliseconds of a call, of those that fit into this time after the first."""
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best * 1e3


def main(types):
    print("| product | sizes | type | spmdc | JAX | JAX / spmdc |\n|---|---|---|---|---|---|")
    for dtype in types:
        for spec, sizes in cases():
            steps = 1
            for size in sizes.values():
                steps *= size
            if steps > 2**36 and dtype not in ("f32",):
                continue
            operands = spec.split("->")[0].split(",")
            shapes = [tuple(sizes[letter] for letter in labels) for labels in operands]
            types_of = [f"{dtype}[{', '.join(map(str, shape))}]" for shape in shapes]
            x, y = ("i32(x)", "i32(y)") if dtype == "i8" else ("x", "y")
            text = f'fn main(x: {types_of[0]}, y: {types_of[1]}) {{ einsum("{spec}", {x}, {y}) }}\n'
            side = jax_side(spec, shapes, dtype)
            seconds = 0.06 if steps < 2**32 else 1.0
            runs = max(3, min(2000, int(seconds * 2e11 / (steps + 1e5))))
            for native in [False, True] if dtype == "bf16" else [False]:
                options = ["--native-bf16"] if native else []
                ours = theirs = float("inf")
                with tempfile.TemporaryDirectory() as folder:
                    program = pathlib.Path(folder, "p.spmd")
                    program.write_text(text)
                    for _ in range(ROUNDS):
                        kind = ["x=iota", "y=iota"] if dtype == "i8" else ["x=normal:0", "y=normal:1"]
                        ours = min(ours, *command.bench(program, kind, runs, options)["run_ms"])
                        theirs = min(theirs, fastest(side, seconds))
                named = dtype + (", native" if native else "")
                lengths = ", ".join(f"{letter}={size}" for letter, size in sizes.items())
                print(f"| `{spec}` | {lengths} | {named} | {ours:.4g} | {theirs:.4g} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(TYPES))
