"""Writes a function of JAX, its arguments and its results as files that `spmdc run` and the tests of the examples read.

Each script of this folder imports this module first, because it gives JAX eight devices on the processor.
"""

import pathlib
import re
import sys
import tempfile

import jax
import numpy as np
from jax.sharding import AxisType

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "python"))
import spmdc

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
# One line of Python for each operation: whole tracebacks are twice the text.
jax.config.update("jax_traceback_in_locations_limit", 1)
# Locations name files from the root of the repository or of a library, whichever machine prints them.
jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{re.escape(str(ROOT))}/|.*/site-packages/")


def auto_mesh(**sizes):
    """A mesh on whose axes the compiler chooses the shardings that the program leaves open: `auto_mesh(data=2, model=4)`."""
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))


def export(name, function, *args):
    """Writes `NAME.mlir`, its arguments `NAME.npz`, and JAX's results `answers/NAME.npz`, which are `0`, `1` and so on.

    `function` is plain or jitted. Arguments are trees of arrays; those that JAX does not use are left out. Returns the results.
    """
    function = function if hasattr(function, "lower") else jax.jit(function)
    with tempfile.TemporaryDirectory() as folder:
        spmdc.jit(function).write(folder, *args)
        for file, suffix in [("f.mlir", ".mlir"), ("args.npz", ".npz")]:
            (HERE / name).with_suffix(suffix).write_bytes(pathlib.Path(folder, file).read_bytes())
    # Last, because donated arguments do not outlive the call.
    results = function(*args)
    answers = {str(at): np.asarray(leaf) for at, leaf in enumerate(jax.tree.leaves(results))}
    np.savez(HERE / "answers" / name, **answers)
    return results
