"""Stores golden programs: the text of each beside its inputs and the outputs of another implementation."""

import pathlib

import jax
import numpy as np

HERE = pathlib.Path(__file__).parent


def store(programs, named={}):
    """Runs each (name, tolerance, spmd text, inputs, JAX function) and writes it; `named` has functions by name."""
    for name, tolerance, text, inputs, function in programs:
        write(name, tolerance, text, inputs, jax.jit(function or named[name])(*inputs))
    print(f"{len(programs)} programs")


def write(name, tolerance, text, inputs, outputs, save=np.savez, meshes=None, mesh="X = 2, Y = 4"):
    """Writes NAME.spmd and NAME.npz; without meshes the program runs on all that golden programs run on. `mesh` has the axes."""
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    arrays = {f"in.{param}": np.asarray(value) for param, value in zip(parameters(text), inputs, strict=True)}
    arrays |= {f"out.{i}": np.asarray(value) for i, value in enumerate(outputs)}
    where = f"//! meshes: {meshes}\n" if meshes else ""
    save(HERE / f"{name}.npz", **arrays)
    (HERE / f"{name}.spmd").write_text(f"//! tolerance: {tolerance}\n{where}mesh ({mesh});\n{text}\n")


def parameters(text):
    """The names of the parameters of the first function in a program."""
    parts, depth = [""], 0
    for char in text[text.index("(") + 1 :]:
        if char == ")" and depth == 0:
            break
        depth += (char in "[(") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.split(":")[0].strip() for part in parts]
