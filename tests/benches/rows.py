"""Times small programs of many kinds beside the same in C with OpenMP, in turns, compares the results, and prints ratios.

    cargo build --release -p spmdc
    python3 tests/benches/rows.py [SPMDC] [--rounds R] [--mesh M] [--gcc FLAGS] [--json FILE] [--markdown] [--small] [ROW ..]

Needs gcc and numpy. Both sides of a row stand in `tests/benches/rows`: the program, whose constants and parameters the peer in C gets as well,
and the peer. It is compiled twice, as `-O3 -march=native` does it and with vectors of 512 bits. C keeps the rules of IEEE 754, but for sums and
maxima, whose loops allow any order, and products that are added without rounding; `--gcc=-ffast-math` adds flags. ROW selects by prefix. A
ratio above 1 means that C takes longer. A row with a wrong result fails.

`--mesh` is another mesh for the programs that have one. `--markdown` prints the tables of `docs/benchmarks.md`. `--small` only compares
results, at the sizes in the header of each program. On a machine in use, `chrt -r 1` before the command lets the measured processes go first.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import sys
import tempfile

import numpy as np

import command

HERE = pathlib.Path(__file__).resolve().parent / "rows"
GCC = ["gcc", "-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-Wall"]
PEERS = {"c": [], "c512": ["-mprefer-vector-width=512"]}
# Seconds for the runs of one side in one round.
SECONDS = 0.4


@dataclasses.dataclass
class Row:
    """What a program computes, and how its arguments are drawn.

    `draw` gives the range of a parameter, as numbers or names of constants, with a third part if the elements ascend; others are normal
    floats, or integers of all sizes. Of two results at most `outliers` of the elements may differ by more than `tolerance` times their root
    mean square or the element; None is the bound of the element type. Each element of the arguments and results moves `passes` times.
    """

    what: str
    draw: dict = dataclasses.field(default_factory=dict)
    tolerance: float | None = None
    outliers: float = 0.0
    passes: str | int = 1


GROUPS = {
    "Element types": {
        "norm_f64": Row("`sqrt(x*x + y*y)`, `f64`"),
        "math_f64": Row("`exp(-x*x) * sin(3*x)`, `f64`"),
        "relu_f16": Row("`maximum(2*x + 1, 0)`, `f16`"),
        "matvec_bf16": Row("matrix by vector, `bf16`, sums in `f32`"),
        "matvec_i8": Row("matrix by vector, `i8`, sums in `i32`"),
        "grey_u8": Row("colours to grey, `u8[.., 3]`"),
        "quantize_i8": Row("rows to `i8`, each with its scale"),
        "hash_u32": Row("three rounds of a hash, `u32`"),
        "mix_u64": Row("a hash with two products, `u64`"),
        "mask_bool": Row("a mask of three conditions, and its count"),
        "complex_c64": Row("`x * conj(y) + x * x`, `c64`", tolerance=1e-3),
        "divmod_i32": Row("`a // b + a % 10`, `i32`", {"a": (-(10**9), 10**9), "b": (1, 10**5)}),
    },
    "Sizes that divide by nothing": {
        "silu_uneven": Row("`h / (1 + exp(-h))` of 4001 x 4003"),
        "log_softmax_uneven": Row("`log_softmax` of 16411 x 1003"),
        "stencil_uneven": Row("20 steps of four neighbours, 1999 x 1999", passes="T"),
        "mean_middle": Row("`mean(x, axis=1)` of 256 x 256 x 250"),
    },
    "Scans and recurrences": {
        "cumsum_rows": Row("`cumsum(x, axis=1)`"),
        "integral_image": Row("`cumsum` along both dimensions"),
        "cummax": Row("`cummax` of a vector"),
        "recurrence": Row("`h = a * h + x[t]`, all `h` kept", {"a": (0, 1)}),
        "moving_average": Row("`convolve` with 9 weights"),
    },
    "Indices": {
        "gather": Row("`x[idx]`, 4 MiB of `x`", {"idx": (0, "M")}),
        "take_rows": Row("rows of 64 by index", {"idx": (0, "V")}),
        "cross_entropy": Row("`log_softmax` times `one_hot`", {"t": (0, "C")}),
        "histogram": Row("`bincount` of 256", {"x": (0, "K")}),
        "scatter_add": Row("`y[idx] += v`, 64 Ki sums", {"idx": (0, "M")}),
        "segment_sum": Row("rows of 16, ascending segments", {"ids": (0, "K", "ascending")}),
        "sort_rows": Row("`sort` of rows of 64 Ki"),
        "argmax_rows": Row("`argmax(x, axis=1)`"),
        "argmax_columns": Row("`argmax(x, axis=0)`"),
    },
    "Small arrays in long loops": {
        "small_update": Row("20,000 pointwise steps, 4096 elements"),
        "small_normalize": Row("2,000 steps with mean and variance, 16384 elements"),
        "power_iteration": Row("10,000 products, 96 x 96", tolerance=1e-3),
        "lorenz_f64": Row("2,000 steps of Runge and Kutta, 256 systems"),
        "wave": Row("5,000 steps of a wave, 8192 elements", tolerance=1e-3),
        "best_row": Row("the best of 2,048 rows, kept by an `if`"),
    },
    "Programs": {
        "black_scholes": Row("prices of options", {"s": (5, 30), "k": (1, 100), "t": (0.25, 10)}, outliers=1e-6),
        "life_u8": Row("10 steps of Life, `u8`, by `roll`", {"v": (0, 2)}, passes="T"),
        "mandelbrot": Row("100 steps, 1024 x 1024", {"re": (-2.2, 0.8, "ascending"), "im": (-1.5, 1.5, "ascending")}, outliers=2e-3),
        "collatz": Row("100 steps of `where`, `i32`", {"x": (1, 10**6)}),
        "jacobi_3d": Row("10 steps of six neighbours, 256 x 256 x 256", passes="T"),
        "polynomial": Row("16 steps of Horner's rule"),
        "kernel_density": Row("8192 x 8192 terms with `exp`"),
        "nearest": Row("the least of 8192 x 8192 distances in space"),
        "outer_relu_sum": Row("sums of 16384 x 16384 products"),
    },
    "Products and reductions": {
        "matvec": Row("`a @ x`, 8192 x 4096"),
        "dot": Row("`dot(x, y)`", tolerance=1e-2),
        "add_transposed": Row("`x + y.T`"),
        "logsumexp_columns": Row("`logsumexp(x, axis=0)`"),
        "var_columns": Row("`var(x, axis=0)`"),
    },
}
ROWS = {name: row for rows in GROUPS.values() for name, row in rows.items()}
BOUNDS = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-4, "c64": 1e-4, "f64": 1e-10}
NUMPY = {"f16": "f2", "bf16": "V2", "f32": "f4", "f64": "f8", "c64": "c8", "bool": "?"}


def of_numpy(dtype):
    return np.dtype(NUMPY.get(dtype) or f"{dtype[0]}{int(dtype[1:]) // 8}")


def read_type(text):
    """The element type and the shape of `f32[8@X,4]`."""
    dtype, _, sizes = text.partition("[")
    return dtype, [int(re.match(r"\d+", size)[0]) for size in re.sub(r"\([^)]*\)", "", sizes).rstrip("]").split(",") if size]


class Program:
    """A program with the sizes of its constants, its parameters and results."""

    def __init__(self, name, spmdc, mesh="", small=False):
        self.name, self.row, self.path, self.spmdc = name, ROWS[name], HERE / f"{name}.spmd", spmdc
        text = self.path.read_text()
        self.constants = {key: int(value) for key, value in re.findall(r"^const (\w+) = (\d+);", text, re.M)}
        self.options = ["--mesh", mesh] if mesh and text.find("\nmesh ") >= 0 else []
        if small:
            sizes = dict(re.findall(r"(\w+)=(\d+)", re.search(r"^//! small: (.*)", text)[1]))
            self.constants.update({key: int(value) for key, value in sizes.items()})
            self.options += [word for key, value in sizes.items() for word in ("--set", f"{key}={value}")]
        dump = [spmdc, "dump", self.path, "--stage", "optimized", "--format", "json", *self.options]
        facts = json.loads(command.output(dump)[0])
        self.params = {param["name"]: read_type(param["type"]) for param in facts["params"]}
        self.results = [read_type(result["type"]) for result in facts["results"]]
        self.operations = facts["flops_per_device"] * math.prod([axis["size"] for axis in facts["mesh"]])

    def value(self, number):
        return self.constants.get(number, number)

    def bytes(self):
        """Those of the arguments and the results, times the passes over them."""
        types = [*self.params.values(), *self.results]
        return self.value(self.row.passes) * sum(of_numpy(dtype).itemsize * math.prod(shape) for dtype, shape in types)

    def draw(self, folder):
        """Writes the arguments to files."""
        for seed, (name, (dtype, shape)) in enumerate(self.params.items()):
            random, kind = np.random.default_rng(seed), of_numpy(dtype)
            low, high, *ascending = map(self.value, self.row.draw.get(name, (None, None)))
            if kind.kind in "iu":
                most = np.iinfo(kind)
                low, high = (most.min, most.max + 1) if low is None else (low, high)
                array = random.integers(low, high, shape, kind)
            elif low is not None:
                array = random.uniform(low, high, shape).astype(kind)
            elif kind.kind == "b":
                array = random.integers(0, 2, shape, np.uint8).astype(kind)
            elif kind.kind == "c":
                array = random.standard_normal([*shape, 2], np.float32).view(kind).reshape(shape)
            else:
                array = random.standard_normal(shape, np.float64 if kind.itemsize == 8 else np.float32)
                array = (array.view(np.uint32) >> 16).astype(np.uint16).view(kind) if dtype == "bf16" else array.astype(kind)
            np.save(folder / f"{name}.npy", np.sort(array) if ascending else array)

    def compile(self, folder, more):
        """Compiles the peers, with the constants as macros and more flags."""
        macros = [f"-D{name}={value}L" for name, value in self.constants.items()]
        for peer, flags in PEERS.items():
            command.output([*GCC, *flags, *more, *macros, HERE / f"{self.name}.c", "-lm", "-o", folder / peer])

    def ours(self, folder, runs):
        """The least milliseconds of a run; the results stay in the folder."""
        arguments = [f"{name}=@{folder / name}.npy" for name in self.params]
        return min(command.bench(self.path, arguments, runs, self.options, folder / "ours.npz", self.spmdc)["run_ms"])

    def peer(self, folder, peer, seconds):
        """The same of C."""
        files = [f"{of_numpy(dtype).itemsize * math.prod(shape)}:{folder / peer}.{at}" for at, (dtype, shape) in enumerate(self.results)]
        said = command.output([folder / peer, seconds, *(folder / f"{name}.npy" for name in self.params), "--", *files])[0]
        return 1e3 * float(said)

    def wrong(self, folder, peer):
        """Why the results of both sides differ, or None."""
        archive = np.load(folder / "ours.npz")
        for at, (dtype, shape) in enumerate(self.results):
            theirs = np.fromfile(f"{folder / peer}.{at}", of_numpy(dtype)).reshape(shape)
            ours = archive[archive.files[at]]
            if dtype == "bf16":
                ours, theirs = ((array.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for array in (ours, theirs))
            wide = np.float64 if ours.dtype.kind == "f" else ours.dtype
            ours, theirs = ours.astype(wide), theirs.astype(wide)
            bound = self.row.tolerance or BOUNDS.get(dtype, 0)
            if bound:
                scale = np.sqrt(np.mean(np.abs(theirs) ** 2))
                differs = ~(np.abs(ours - theirs) <= bound * np.maximum(np.abs(theirs), scale))
            else:
                differs = ours != theirs
            if np.count_nonzero(differs) > self.row.outliers * differs.size:
                first = tuple(int(index) for index in np.unravel_index(np.argmax(differs), differs.shape))
                return f"result {at}: {np.count_nonzero(differs)} of {differs.size} differ; at {first} {ours[first]}, {peer} {theirs[first]}"
        return None


def measure(name, options):
    """The least milliseconds of each side, operations and bytes."""
    program = Program(name, options.spmdc, options.mesh, options.small)
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        program.draw(folder)
        program.compile(folder, options.gcc.split())
        times = {"ours": program.ours(folder, 2)}
        runs = max(3, min(1000, int(1e3 * SECONDS / max(times["ours"], 1e-3))))
        for _ in range(1 if options.small else options.rounds):
            turn = {"ours": program.ours(folder, 1 if options.small else runs)}
            turn.update({peer: program.peer(folder, peer, 0 if options.small else SECONDS) for peer in PEERS})
            times = {side: min(times.get(side, math.inf), each) for side, each in turn.items()}
        wrong = next(filter(None, (program.wrong(folder, peer) for peer in PEERS)), None)
    finally:
        shutil.rmtree(folder)
    return {**times, "operations": program.operations, "bytes": program.bytes(), "wrong": wrong}


def ratios(table, peer):
    return [each[peer] / each["ours"] for each in table.values()]


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def markdown(table):
    """The tables of the page."""
    for group, rows in GROUPS.items():
        if not rows.keys() & table.keys():
            continue
        print(f"\n| {group.lower()} | | ms | GB/s | C, ms | ratio | C, 512 bits | ratio |\n|---|---|---|---|---|---|---|---|")
        for name in filter(table.get, rows):
            t = table[name]
            sides = " | ".join(f"{t[peer]:.3g} | {t[peer] / t['ours']:.2f}" for peer in PEERS)
            rate = t["bytes"] / t["ours"] / 1e6
            print(f"| `{name}` | {rows[name].what} | {t['ours']:.3g} |{f' {rate:.1f}' if rate >= 1 else ''} | {sides} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spmdc", nargs="?", default=command.SPMDC)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mesh", default="")
    parser.add_argument("--gcc", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_intermixed_args()
    if not os.path.exists(options.spmdc):
        options.rows.insert(0, options.spmdc)
        options.spmdc = command.SPMDC
    table = {}
    for name in [name for name in ROWS if not options.rows or name.startswith(tuple(options.rows))]:
        table[name] = t = measure(name, options)
        if options.small:
            print(f"{name:<20} {t['wrong'] or 'equal'}", flush=True)
        elif not options.markdown:
            sides = "  ".join(f"{peer} {t[peer]:9.3f} ({t[peer] / t['ours']:5.2f})" for peer in PEERS)
            print(f"{name:<20} {t['ours']:9.3f} ms  {sides}  {t['wrong'] or ''}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(table, indent=1))
    if options.markdown:
        markdown(table)
    for peer in () if options.small else PEERS:
        of = ratios(table, peer)
        print(f"{peer}: geometric mean {mean(of):.2f}, least {min(of):.2f}, {sum(r < 0.95 for r in of)} of {len(of)} rows below 0.95")
    wrong = [f"{name}: {t['wrong']}" for name, t in table.items() if t["wrong"]]
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
