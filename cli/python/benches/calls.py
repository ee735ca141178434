"""Microseconds of one call from Python, beside `jax.jit` if JAX is installed: small arrays, and arrays of 256 MiB.

    python3 cli/python/benches/calls.py
"""

import timeit

import numpy as np
import spmdc

SMALL, LARGE = 8, 64 << 20


def least(call, seconds=0.5):
    """The least time of a call, in microseconds."""
    call()
    number = max(1, int(seconds / 5 / timeit.timeit(call, number=1)))
    return min(timeit.repeat(call, number=number, repeat=7)) / number * 1e6


def programs(size):
    array = f"f32[{size}]"
    split = f"f32[{size}@X]"
    return {
        "array to array": spmdc.compile(source=f"fn main(x: {array}) -> {array} {{ x + 1 }}"),
        "array to array, two devices": spmdc.compile(source=f"mesh (X = 2); fn main(x: {split}) -> {split} {{ x + 1 }}"),
        "array to number": spmdc.compile(source=f"fn main(x: {array}) -> f32 {{ sum(x) }}"),
        "number to array": spmdc.compile(source=f"fn main(x: f32) -> {array} {{ full({array}, x) }}"),
    }


def functions(size):
    try:
        import jax
    except ImportError:
        return {}
    return {
        "array to array": jax.jit(lambda x: x + 1),
        "array to number": jax.jit(lambda x: x.sum()),
        "number to array": jax.jit(lambda x: jax.numpy.full(size, x)),
    }


for size in (SMALL, LARGE):
    array = np.ones(size, np.float32)
    jitted = functions(size)
    for name, program in programs(size).items():
        argument = np.float32(1) if name.startswith("number") else array
        ours = least(lambda: program(argument))
        line = f"{4 * size:>11} bytes, {name:28} {ours:10.1f} us"
        if name in jitted:
            theirs = least(lambda: np.asarray(jitted[name](argument)))
            line += f", jax.jit {theirs:10.1f} us"
        print(line)
