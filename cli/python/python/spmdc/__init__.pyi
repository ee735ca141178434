import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

__version__: str

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Mesh = Mapping[str, int] | tuple[int, ...] | int | str | None
_Stage = Literal["ast", "typed", "differentiated", "propagated", "partitioned", "optimized", "clif", "asm"]

class Error(Exception):
    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    help: str | None

class CompileError(Error):
    diagnostics: list[Error]

class ArgumentError(Error, TypeError): ...
class ProgramError(Error, RuntimeError): ...

class CompileWarning(UserWarning):
    diagnostic: Error

class Plan(dict[str, Any]):
    text: str

class Program:
    __name__: str
    # Arrays and scalars of NumPy, `ml_dtypes` and others, numbers, and structs and tuples of them; the result likewise.
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def signature(self) -> str: ...
    @property
    def params(self) -> dict[str, str]: ...
    @property
    def results(self) -> dict[str, str]: ...
    @property
    def source(self) -> str: ...
    @property
    def devices(self) -> int: ...
    def plan(self) -> Plan: ...
    def why(self, line: int, value: str | None = None) -> str: ...
    def dump(self, stage: _Stage = "partitioned") -> str: ...
    def viz(self, *values: str) -> str: ...
    def _repr_html_(self) -> str: ...

class Jitted(Generic[_P, _R]):
    # As `_R`, with arrays of NumPy.
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def lower(self, *args: _P.args, **kwargs: _P.kwargs) -> Program: ...

def compile(
    path: str | os.PathLike[str] | None = None,
    *,
    source: str | None = None,
    name: str | None = None,
    mesh: _Mesh = None,
    entry: str | None = None,
    set: Mapping[str, bool | int | float | str] | None = None,
    cache: bool = True,
    timeout: float | None = None,
    workers: int | None = None,
    memory_limit: int | None = None,
) -> Program: ...
@overload
def jit(
    function: Callable[_P, _R],
    *,
    mesh: _Mesh = None,
    cache: bool = True,
    timeout: float | None = None,
    workers: int | None = None,
    memory_limit: int | None = None,
) -> Jitted[_P, _R]: ...
@overload
def jit(
    function: None = None,
    *,
    mesh: _Mesh = None,
    cache: bool = True,
    timeout: float | None = None,
    workers: int | None = None,
    memory_limit: int | None = None,
) -> Callable[[Callable[_P, _R]], Jitted[_P, _R]]: ...
