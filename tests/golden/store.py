"""Stores golden programs: the text of each beside its inputs and the outputs of JAX."""

import pathlib

import jax
import numpy as np

HERE = pathlib.Path(__file__).parent


def store(programs, named={}):
    """Runs each (name, tolerance, spmd text, inputs, JAX function), and writes NAME.spmd and NAME.npz; `named` has functions by name."""
    for name, tolerance, text, inputs, function in programs:
        outputs = jax.jit(function or named[name])(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        signature = text[text.index("(") + 1 : text.index(") ->")]
        params = [part.split(":")[0].strip() for part in split_params(signature)]
        arrays = {f"in.{param}": value for param, value in zip(params, inputs, strict=True)}
        arrays |= {f"out.{i}": np.asarray(value) for i, value in enumerate(outputs)}
        np.savez(HERE / f"{name}.npz", **arrays)
        (HERE / f"{name}.spmd").write_text(f"//! tolerance: {tolerance}\nmesh (X = 2, Y = 4);\n{text}\n")
    print(f"{len(programs)} programs")


def split_params(signature):
    parts, depth = [""], 0
    for char in signature:
        depth += (char in "[(") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
