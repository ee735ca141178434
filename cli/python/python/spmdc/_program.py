"""Compiled programs as functions of Python."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

from . import _native
from ._errors import CompileWarning
from ._html import page
from ._values import Parameters, Results, signature_of


class Plan(dict):
    """The costs of a program as `spmdc plan --format json` prints them; `str(plan)` is the text of `spmdc plan`.

    Memory is in bytes (`peak_bytes_per_device`), operations are floating-point operations of one device (`flops_per_device`), and
    `collectives` is a list with kind, bytes, trips and line of each. A program with several meshes has `timeline` and `meshes` instead.
    """

    def __init__(self, fields, text):
        super().__init__(fields)
        self.text = text

    def __str__(self):
        return self.text


class Program:
    """A program that was compiled for a mesh: a function of arrays.

    Arguments are passed by position or by name: NumPy arrays, and other objects with the buffer protocol, `__array__` or `__dlpack__`, of
    exactly the shape and element type of the parameter; numbers of Python adapt to the type. A struct is a dictionary, named tuple or data
    class, a tuple is a tuple or list, a random key is an integer or two words of `uint32`, and a stream is an array or the name of a file.
    Results are NumPy arrays, which nobody else uses, tuples and named tuples of them; an entry without result returns None.

    Wrong arguments raise `ArgumentError`, and a program that stops raises `ProgramError`. Both have code, message and place. The program can be
    called again afterwards. While it runs, other threads of Python run, too; calls of one program take turns.
    """

    def __init__(self, native, found):
        self._native = native
        self._parameters = Parameters(native.params, native)
        self._results = Results(native.results)
        for fields in found:
            warnings.warn(CompileWarning(fields), stacklevel=3)
        self.__name__ = native.entry
        self.__doc__ = f"{self.signature}\n\n{inspect.getdoc(Program)}"

    def __call__(self, /, *args, **kwargs):
        arrays = self._parameters.bind(args, kwargs)
        return self._results.value(self._native.run(arrays))

    @property
    def signature(self) -> str:
        """The entry with its parameters and results, as the language writes them: `main(x: f32[8@X]) -> f32[8@X]`."""
        params = ", ".join(f"{name}: {signature_of(node)}" for name, node in self._parameters.tree.items())
        result = f" -> {signature_of(self._results.node)}" if self._results.leaves else ""
        return f"{self._native.entry}({params}){result}"

    @property
    def params(self) -> dict[str, str]:
        """The type of each parameter by its path: `{"p.w": "f32[8@X, 4]"}`."""
        return {leaf.path: leaf.type for leaf in self._parameters.leaves}

    @property
    def results(self) -> dict[str, str]:
        """The type of each result by its path; a single result is called `0`."""
        return {leaf.path: leaf.type for leaf in self._results.leaves}

    @property
    def source(self) -> str:
        """The text of the program."""
        return self._native.source

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self._native.devices

    @property
    def __signature__(self):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        named = [name for name in self._parameters.names if name.isidentifier()]
        return inspect.Signature([inspect.Parameter(name, kind) for name in named])

    def plan(self) -> Plan:
        """Memory, operations and collectives of each device, without running the program."""
        fields, text = self._native.plan()
        return Plan(json.loads(fields), text)

    def why(self, line: int, value: str | None = None) -> str:
        """The reasons for the layouts and collectives of a line, from 1 on, or of one value of it, and edits that avoid them."""
        return self._native.why(line, value)

    def dump(self, stage: str = "partitioned") -> str:
        """The program after a stage: `ast typed differentiated propagated partitioned optimized clif asm`; ValueError for other names."""
        text = self._native.dump(stage)
        if text is None:
            raise ValueError(f"there is no stage `{stage}`; the stages are ast, typed, differentiated, propagated, partitioned, optimized, clif and asm")
        return text

    def viz(self, *values: str) -> str:
        """Drawings of the layouts of these values, or of all, as `spmdc viz` prints them."""
        return self._native.drawings(list(values))

    def _repr_html_(self):
        return page(self.signature, self._native.layouts(), self.params)

    def __repr__(self):
        return f"<spmdc.Program {self.signature} on {self.devices} device{'' if self.devices == 1 else 's'}>"


def mesh_text(mesh):
    """A mesh as the command takes it after `--mesh`."""
    if mesh is None or isinstance(mesh, str):
        return mesh
    if isinstance(mesh, Mapping):
        return ",".join(f"{name}={size}" for name, size in mesh.items())
    sizes = [mesh] if isinstance(mesh, int) else mesh
    return "x".join(str(size) for size in sizes)


def setting(value):
    """A constant as the command takes it after `--set`."""
    text = str(value)
    return text.lower() if text in ("True", "False") else text


def compile(
    path: str | os.PathLike | None = None,
    *,
    source: str | None = None,
    name: str | None = None,
    mesh: Mapping[str, int] | tuple[int, ...] | str | None = None,
    entry: str | None = None,
    set: Mapping[str, object] | None = None,
    cache: bool = True,
    timeout: float | None = None,
    workers: int | None = None,
    memory_limit: int | None = None,
) -> Program:
    """Compiles a program for this process.

    The program is the file `path`, or the text `source`, which messages call `name`. A name that ends in `.mlir` is StableHLO text.
    `mesh` has the sizes of the axes by name, `{"X": 2, "Y": 4}`, or in order, `(2, 4)`. `entry` is the function to run instead of `main`, and
    `set` overrides constants of the program. `cache=False` compiles even if the code is in the cache of the user, and does not keep it.
    `timeout` bounds the wait of a device for others, in seconds (60), `workers` the number of threads (one per core), and `memory_limit` the
    memory of the program in bytes.

    Raises `CompileError` for a wrong program, mesh or constant, and OSError for a file that cannot be read. Warnings of the compiler are
    `CompileWarning`s.
    """
    if (path is None) == (source is None):
        raise TypeError("pass either the path of a program or its text as `source`")
    if source is None:
        source = Path(path).read_text(encoding="utf-8")
        name = name or os.fspath(path)
    options = {"entry": entry, "cache": cache, "timeout": timeout, "workers": workers, "memory_limit": memory_limit}
    sets = [(str(constant), setting(value)) for constant, value in (set or {}).items()]
    return Program(*_native.compile(name or "<source>", source, mesh=mesh_text(mesh), sets=sets, **options))
