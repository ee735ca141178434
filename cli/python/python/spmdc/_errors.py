"""Exceptions and warnings of the package."""

from __future__ import annotations


class Error(Exception):
    """An error of the compiler or of a program.

    `code` is a stable code such as `E0301`, which `spmdc explain` describes. `message` is the text without place and help, and `help` the way
    out, or None. `file`, `line` and `column` are the place in the source, the numbers from 1 on; None if the error has no place. `str(error)`
    is the message as the command prints it, with the line of the source.
    """

    def __init__(self, fields: dict):
        super().__init__(fields["rendered"])
        self._fields = fields
        self.code = fields["code"]
        self.message = fields["message"]
        self.file = fields["file"]
        self.line = fields["line"]
        self.column = fields["column"]
        self.help = fields["help"]

    def __reduce__(self):
        # Pools of processes pickle exceptions.
        return type(self), (self._fields,)

    @classmethod
    def of_message(cls, code: str, message: str, help: str | None = None):
        """An error without a place."""
        rendered = f"error[{code}]: {message}" + (f"\n  help: {help}" if help else "")
        return cls({"code": code, "message": message, "file": None, "line": None, "column": None, "help": help, "rendered": rendered})


class CompileError(Error):
    """The program is wrong, or the mesh, the constants or the entry that it is compiled for.

    The attributes are those of the first error. `diagnostics` has all errors, each as an `Error`.
    """

    def __init__(self, diagnostics: list[dict]):
        super().__init__(diagnostics[0])
        self.args = ("\n\n".join(fields["rendered"] for fields in diagnostics),)
        self.diagnostics = [Error(fields) for fields in diagnostics]

    def __reduce__(self):
        return CompileError, ([error._fields for error in self.diagnostics],)


class ArgumentError(Error, TypeError):
    """An argument of a call has another type than its parameter (E0701), is missing, or has an unknown name (E0702)."""


class ProgramError(Error, RuntimeError):
    """The program stopped: a failed assertion, an index out of bounds, a lack of memory, a file that cannot be written, and so on.

    The program can be called again.
    """


class CompileWarning(UserWarning):
    """A warning of the compiler; `diagnostic` has its code and place as an `Error` has them."""

    def __init__(self, fields: dict):
        super().__init__(fields["rendered"])
        self.diagnostic = Error(fields)
