"""Arguments of Python as arrays of the types of parameters, and results as arrays and named tuples."""

from __future__ import annotations

import difflib
import keyword
import os
import sys
from collections import namedtuple
from collections.abc import Mapping

import numpy as np

from ._errors import ArgumentError

# Types that NumPy has.
NUMPY = {
    "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
    "f16": "f2", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16",
}
# The names in `ml_dtypes` of types that NumPy does not have, and the type of their bits.
ML_DTYPES = {"bf16": ("bfloat16", "u2"), "f8e4m3": ("float8_e4m3fn", "u1"), "f8e5m2": ("float8_e5m2", "u1")}
NAMES = {np.dtype(code): name for name, code in NUMPY.items()}
ORDER = "biufc"


def ml_dtype(name):
    """The type of this name in `ml_dtypes`, if that package can be imported; None for other types."""
    if name not in ML_DTYPES:
        return None
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(getattr(ml_dtypes, ML_DTYPES[name][0]))


def type_text(array):
    """The type of an array as the language writes it: `f32[2, 3]`."""
    name = NAMES.get(array.dtype.newbyteorder("="))
    if name is None:
        name = next((ours for ours, (theirs, _) in ML_DTYPES.items() if array.dtype.name == theirs), str(array.dtype))
    return f"{name}[{', '.join(map(str, array.shape))}]" if array.shape else name


class Leaf:
    """A parameter or result without parts: its place in the order of all, path, type as text, element type and shape."""

    __slots__ = ("index", "path", "second_path", "type", "name", "dtype", "bits", "shape", "is_stream", "rank")

    def __init__(self, index, fields):
        self.index, self.path, self.second_path = index, fields["path"], fields["second_path"]
        self.type, self.name, self.is_stream = fields["type"], fields["dtype"], fields["is_stream"]
        self.shape = tuple(fields["shape"])
        self.rank = len(self.shape)
        foreign = ml_dtype(self.name)
        if self.name == "key":
            self.dtype, self.shape = np.dtype("u4"), (*self.shape, 2)
            self.bits = self.dtype
        elif self.name in ML_DTYPES:
            self.bits = np.dtype(ML_DTYPES[self.name][1])
            self.dtype = foreign or self.bits
        else:
            self.dtype = self.bits = np.dtype(NUMPY[self.name])

    def array(self, value, native):
        """The elements of an argument, contiguous; an `ArgumentError` if its type is another one."""
        if type(value) is np.ndarray and value.dtype == self.bits and value.shape == self.shape and value.flags.c_contiguous:
            return value
        if self.is_stream and isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        return self.converted(value, native)

    def converted(self, value, native):
        if isinstance(value, (bool, int, float, complex, list, tuple)):
            array = self.of_literal(value, native)
        elif isinstance(value, np.ndarray):
            array = value
        elif hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
            try:
                array = np.asarray(value)
            except (TypeError, ValueError):
                array = None
        else:
            array = np.from_dlpack(value)
        if array is None or array.dtype.kind not in "biufcV":
            raise native.refused(self.index, f"a value of the Python type `{type(value).__name__}`")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if array.dtype not in (self.dtype, self.bits) or array.shape != self.shape:
            raise native.refused(self.index, type_text(array))
        return np.ascontiguousarray(array).reshape(self.shape).view(self.bits)

    def of_literal(self, value, native):
        """Numbers of Python adapt to the type of the parameter, as literals of the language do."""
        if self.name == "key" and isinstance(value, int) and not isinstance(value, bool) and self.rank == 0:
            return np.array([(value >> 32) & 0xFFFFFFFF, value & 0xFFFFFFFF], np.uint32)
        try:
            given = np.asarray(value)
            if given.size == 0:
                given = given.astype(self.dtype)
            kind = "f" if self.dtype.kind == "V" or self.name in ML_DTYPES else self.dtype.kind
            fits = given.dtype.kind == kind if "b" in (kind, given.dtype.kind) else ORDER.find(given.dtype.kind) <= ORDER.find(kind)
            # An integer for an unsigned type: NumPy refuses negative ones below.
            if kind == "u" and given.dtype.kind == "i":
                fits = True
            if kind == "i" and given.dtype.kind == "u":
                fits = False
            if not fits:
                raise native.refused(self.index, type_of_literal(given))
            if kind in "iu" and given.size and not (np.iinfo(self.dtype).min <= given.min() and given.max() <= np.iinfo(self.dtype).max):
                raise native.refused(self.index, f"`{value}`")
            return float_bits(given, self) if self.name in ML_DTYPES and self.dtype == self.bits else given.astype(self.dtype)
        except (ValueError, OverflowError):
            raise native.refused(self.index, f"`{value}`") from None

    def result(self, buffer):
        """The array of a result, which keeps the buffer alive."""
        array = np.frombuffer(buffer, self.bits) if len(buffer) else np.empty(0, self.bits)
        if self.dtype is not self.bits:
            array = array.view(self.dtype)
        return array.reshape(self.shape)


def float_bits(given, leaf):
    message = f"numbers for `{leaf.path}: {leaf.type}` need the package `ml_dtypes`"
    raise ArgumentError.of_message("E0701", message, f"install it, or pass the bits as an array of {leaf.bits}")


def type_of_literal(given):
    name = {"b": "bool", "i": "i64", "u": "u64", "f": "f64", "c": "c128"}.get(given.dtype.kind, str(given.dtype))
    return f"{name}[{', '.join(map(str, given.shape))}]" if given.shape else name


def tree(leaves):
    """Leaves by the parts of their paths, as nested dictionaries."""
    root = {}
    for leaf in leaves:
        *parents, last = leaf.path.split(".")
        node = root
        for part in parents:
            node = node.setdefault(part, {})
        node[last] = leaf
    return root


def is_tuple(node):
    return bool(node) and all(name.isdigit() for name in node)


def signature_of(node):
    """The type of a parameter or result as the language writes it."""
    if isinstance(node, Leaf):
        return node.type
    if is_tuple(node):
        return f"({', '.join(signature_of(part) for part in node.values())})"
    return f"{{ {', '.join(f'{name}: {signature_of(part)}' for name, part in node.items())} }}"


class Parameters:
    """The parameters of a program, which turn the arguments of calls into arrays."""

    def __init__(self, entries, native):
        self.leaves = [Leaf(index, fields) for index, fields in enumerate(entries)]
        self.tree = tree(self.leaves)
        self.native = native
        self.names = list(self.tree)

    def bind(self, args, kwargs):
        """The arrays of all leaves, in order; an `ArgumentError` for wrong, missing or unknown arguments."""
        if len(args) > len(self.names):
            message = f"the program has {counted(len(self.names), 'parameter')}, but {len(args)} positional arguments were given"
            raise ArgumentError.of_message("E0702", message, self.known())
        given = dict(zip(self.names, args))
        for name, value in kwargs.items():
            if name not in self.tree:
                raise self.unknown(name, name, self.names)
            if name in given:
                raise ArgumentError.of_message("E0702", f"`{name}` is given twice")
            given[name] = value
        arrays, missing = [], []
        for name, node in self.tree.items():
            if name not in given:
                missing += leaves_of(node)
            elif isinstance(node, Leaf):
                arrays.append(node.array(given[name], self.native))
            else:
                self.flatten(name, node, given[name], arrays, missing)
        if missing:
            listed = ", ".join(f"`{leaf.path}: {leaf.type}`" for leaf in missing)
            verb = "argument is" if len(missing) == 1 else "arguments are"
            message = f"{len(missing)} {verb} missing: {listed}"
            raise ArgumentError.of_message("E0702", message, f"pass them by name, as in `{missing[0].path.split('.')[0]}=...`")
        return arrays

    def flatten(self, path, node, value, arrays, missing):
        parts = self.parts(path, node, value)
        for name, part in node.items():
            inner = f"{path}.{name}"
            if name not in parts:
                missing += leaves_of(part)
            elif isinstance(part, Leaf):
                arrays.append(part.array(parts[name], self.native))
            else:
                self.flatten(inner, part, parts[name], arrays, missing)
        for name in parts:
            if name not in node:
                raise self.unknown(f"{path}.{name}", str(name), list(node))

    def parts(self, path, node, value):
        """The fields of a struct, or the elements of a tuple."""
        if isinstance(value, Mapping):
            return {str(name): part for name, part in value.items()}
        if hasattr(value, "_fields"):
            return {name: getattr(value, name) for name in value._fields}
        if isinstance(value, (list, tuple)) and is_tuple(node):
            return {str(at): part for at, part in enumerate(value)}
        if hasattr(value, "__dataclass_fields__"):
            return {name: getattr(value, name) for name in value.__dataclass_fields__}
        kind = "a tuple or list" if is_tuple(node) else "a dictionary or named tuple"
        message = f"`{path}` has type {signature_of(node)}, but a value of the Python type `{type(value).__name__}` was given"
        raise ArgumentError.of_message("E0701", message, f"pass {kind}")

    def unknown(self, path, name, names):
        near = difflib.get_close_matches(name, names, 1)
        help = f"did you mean `{path[: len(path) - len(name)]}{near[0]}`?" if near else self.known()
        return ArgumentError.of_message("E0702", f"the program has no parameter `{path}`", help)

    def known(self):
        if not self.leaves:
            return "it has no parameters"
        return "its parameters are " + ", ".join(f"`{leaf.path}: {leaf.type}`" for leaf in self.leaves)


def leaves_of(node):
    return [node] if isinstance(node, Leaf) else [leaf for part in node.values() for leaf in leaves_of(part)]


def counted(number, noun):
    return f"{number} {noun}" + ("" if number == 1 else "s")


class Results:
    """The results of a program, which become arrays, tuples and named tuples."""

    def __init__(self, entries):
        self.leaves = [Leaf(index, fields) for index, fields in enumerate(entries)]
        self.tree = tree(self.leaves)
        single = len(self.leaves) == 1 and self.leaves[0].path == "0"
        self.node = self.leaves[0] if single else self.tree
        self.make = self.maker("Result", self.node)

    def maker(self, title, node):
        """A function from the arrays of all leaves to a value."""
        if isinstance(node, Leaf):
            index = node.index
            return lambda arrays: arrays[index]
        makers = [self.maker(f"{title}_{name}", part) for name, part in node.items()]
        if not node:
            return lambda arrays: None
        if is_tuple(node):
            return lambda arrays: tuple([make(arrays) for make in makers])
        names = [f"{name}_" if keyword.iskeyword(name) else name for name in node]
        struct = namedtuple(title, names, rename=True, module=sys.modules[__package__].__name__)
        return lambda arrays: struct._make([make(arrays) for make in makers])

    def value(self, buffers):
        """The results of a run."""
        return self.make([leaf.result(buffer) for leaf, buffer in zip(self.leaves, buffers)])
