"""Compiles sharded array programs, and functions of JAX, to native code that runs in this process.

    import numpy as np, spmdc

    f = spmdc.compile(source="fn main(x: f32[8@X, 4]) -> f32[8@X] { sum(x * x, axis=1) }", mesh={"X": 2})
    f(np.ones((8, 4), np.float32))

`compile` makes a `Program` of the language, and `jit` one of a function of JAX.
"""

from ._errors import ArgumentError, CompileError, CompileWarning, Error, ProgramError
from ._jax import Jitted, jit
from ._native import __version__
from ._program import Plan, Program, compile

__all__ = ["ArgumentError", "CompileError", "CompileWarning", "Error", "Jitted", "Plan", "Program", "ProgramError", "compile", "jit"]
