"""Functions of JAX as native programs."""

from __future__ import annotations

import functools
import inspect
import threading

import numpy as np

from ._program import compile


def jit(function=None, *, mesh=None, cache=True, timeout=None, workers=None, memory_limit=None):
    """A function of JAX, plain or from `jax.jit`, that runs as a native program: `spmdc.jit(f)(*args)` is `jax.jit(f)(*args)`.

    The first call with arguments of new shapes, element types or trees lowers the function to StableHLO, and compiles that. The mesh and
    the shardings are those of JAX; `mesh` gives other sizes of the axes, or a mesh to a function without one. The other options are those of
    `spmdc.compile`. Results are NumPy arrays in the tree of JAX; random keys are keys of JAX. `spmdc.jit(mesh=...)` without a function is a
    decorator.

    Raises ImportError if JAX is not installed, and `CompileError` if the program has operations that are not supported.
    """
    options = {"mesh": mesh, "cache": cache, "timeout": timeout, "workers": workers, "memory_limit": memory_limit}
    if function is None:
        return lambda function: Jitted(function, options)
    return Jitted(function, options)


def imported():
    try:
        import jax
    except ImportError as error:
        raise ImportError("`spmdc.jit` needs JAX, which is not installed: pip install jax") from error
    return jax


class Jitted:
    """A function of JAX with a compiled program for each combination of shapes and element types."""

    def __init__(self, function, options):
        self.jax = imported()
        # Without `keep_unused`, JAX leaves out the parameters of arguments that nothing uses; its locations name the others.
        self.is_own = not hasattr(function, "lower")
        self.lowering = self.jax.jit(function, keep_unused=True) if self.is_own else function
        self.options = options
        self.compiled = {}
        self.lock = threading.Lock()
        functools.update_wrapper(self, function)

    def __call__(self, /, *args, **kwargs):
        leaves, tree = self.jax.tree_util.tree_flatten((args, kwargs))
        key = (tree, tuple(map(self.abstract, leaves)))
        found = self.compiled.get(key)
        if found is None:
            with self.lock:
                found = self.compiled.get(key) or self.compiled.setdefault(key, self.made(args, kwargs))
        program, places, results = found
        # Arguments of 64 bits become those of 32 bits that JAX computes with, unless it is told otherwise.
        arrays = [leaf.array(self.numpy(leaves[place], leaf), program._native) for place, leaf in zip(places, program._parameters.leaves)]
        return results(program._results, program._native.run(arrays))

    def lower(self, /, *args, **kwargs):
        """The `spmdc.Program` for arguments of these shapes and element types; its `source` is the StableHLO text."""
        leaves, tree = self.jax.tree_util.tree_flatten((args, kwargs))
        key = (tree, tuple(map(self.abstract, leaves)))
        with self.lock:
            return (self.compiled.get(key) or self.compiled.setdefault(key, self.made(args, kwargs)))[0]

    def abstract(self, value):
        """Everything that a lowering depends on, of one argument."""
        dtype = getattr(value, "dtype", None)
        if dtype is None:
            # A function from `jax.jit` may have static arguments, whose values count.
            return type(value) if self.is_own and isinstance(value, (bool, int, float, complex)) else (type(value), value)
        return value.shape, dtype, getattr(value, "weak_type", False), getattr(value, "sharding", None)

    def numpy(self, value, leaf):
        if type(value) is np.ndarray and value.dtype == leaf.bits:
            return value
        array = np.asarray(self.jax.random.key_data(value) if self.is_key(value) else value)
        return array if array.dtype in (leaf.dtype, leaf.bits) else array.astype(leaf.dtype)

    def is_key(self, value):
        dtype = getattr(value, "dtype", None)
        return dtype is not None and not isinstance(dtype, np.dtype) and self.jax.dtypes.issubdtype(dtype, self.jax.dtypes.prng_key)

    def made(self, args, kwargs):
        """A program, the leaf of the arguments for each parameter, and a function from its buffers to the results."""
        lowered = self.lowering.lower(*args, **kwargs)
        name = getattr(self, "__name__", "function").strip("<>")
        program = compile(source=lowered.as_text(debug_info=True), name=f"{name}.mlir", **self.options)
        infos, tree = self.jax.tree_util.tree_flatten(lowered.out_info)
        keys = [info.dtype if self.is_key(info) else None for info in infos]

        def results(of_program, buffers):
            arrays = [leaf.result(buffer) for leaf, buffer in zip(of_program.leaves, buffers)]
            values = [self.jax.random.wrap_key_data(array) if key is not None else array for array, key in zip(arrays, keys)]
            return tree.unflatten(values)

        return program, self.places(program, args, kwargs), results

    def places(self, program, args, kwargs):
        parameters = program._parameters.leaves
        leaves = self.jax.tree_util.tree_leaves((args, kwargs))
        if self.is_own or len(parameters) == len(leaves):
            return range(len(leaves))
        bound = inspect.signature(self.lowering).bind(*args, **kwargs).arguments
        paths = self.jax.tree_util.tree_flatten_with_path(dict(bound))[0]
        # The arguments by name are in the order of the signature there, and in alphabetical order among `leaves`.
        names = {path[0].key + self.jax.tree_util.keystr(path[1:]): value for path, value in paths}
        numbers = {id(value): number for number, value in enumerate(leaves)}
        return [numbers[id(names[leaf.second_path or leaf.path])] for leaf in parameters]
