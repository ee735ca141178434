"""Runs functions of JAX as native programs: `spmdc.jit(f)(*args)` is `jax.jit(f)(*args)` by the command `spmdc`."""

import inspect
import pathlib
import re
import subprocess
import tempfile

import jax
import numpy as np


class Function:
    """A function, plain or jitted. `options` are those of `spmdc run`, such as `["--mesh", "2x4"]`."""

    def __init__(self, function, options=(), command="spmdc"):
        self.jitted = function if hasattr(function, "lower") else jax.jit(function)
        self.options, self.command = list(options), command

    def write(self, folder, *args, **kwargs):
        """Writes `f.mlir` and `args.npz` into a folder. Returns the shapes and types of the results as a tree."""
        lowered = self.jitted.lower(*args, **kwargs)
        text = lowered.as_text(debug_info=True)
        pathlib.Path(folder, "f.mlir").write_text(text)
        # JAX leaves out arguments that nothing uses; the locations name the others.
        named = set(re.findall(r'loc\("(.*?)"\)', text))
        bound = inspect.signature(self.jitted).bind(*args, **kwargs).arguments
        leaves = jax.tree_util.tree_flatten_with_path(dict(bound))[0]
        paths = [(path[0].key + jax.tree_util.keystr(path[1:]), leaf) for path, leaf in leaves]
        np.savez(pathlib.Path(folder, "args.npz"), **{name: to_numpy(leaf) for name, leaf in paths if name in named})
        return lowered.out_info

    def build(self, output, *args, **kwargs):
        """Makes an executable for arguments of these shapes, and `OUTPUT.npz` with the arguments for `--args`."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, *args, **kwargs)
            self.call("build", f"{folder}/f.mlir", "-o", output)
            pathlib.Path(f"{output}.npz").write_bytes(pathlib.Path(folder, "args.npz").read_bytes())

    def __call__(self, *args, **kwargs):
        with tempfile.TemporaryDirectory() as folder:
            results = self.write(folder, *args, **kwargs)
            self.call("run", f"{folder}/f.mlir", "--args", f"{folder}/args.npz", "--out", f"{folder}/out.npz")
            with np.load(f"{folder}/out.npz") as found:
                leaves, tree = jax.tree.flatten(results)
                return tree.unflatten([from_numpy(found[str(at)], leaf) for at, leaf in enumerate(leaves)])

    def call(self, action, *words):
        done = subprocess.run([self.command, action, *words, *self.options], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)


def to_numpy(leaf):
    return np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)


def from_numpy(array, leaf):
    return jax.random.wrap_key_data(array) if is_key(leaf) else array.view(leaf.dtype).reshape(leaf.shape)


def is_key(leaf):
    return jax.dtypes.issubdtype(getattr(leaf, "dtype", None), jax.dtypes.prng_key)


jit = Function
