#!/usr/bin/env python3
"""XLA as a second opinion on programs: exports each, runs it with `jaxlib` on 8 devices of the host, and compares with `spmdc run`.

    cargo run -q -p spmdc-tests --bin programs -- /tmp/programs 0 2000
    tests/stablehlo/second_opinion.py target/debug/spmdc /tmp/programs tests/cases

It requires `jax` and `ml_dtypes`. Integers, truth values and NaN must be equal, and floats up to an error in relation to the largest element.
A program that stops with an error, or that StableHLO cannot express, is counted and listed with `--list`.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback
import zlib

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_cpu_enable_fast_math=false"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import compiler, xla_bridge  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jax._src.lib.mlir import ir  # noqa: E402
from jax._src.sharding_impls import GSPMDSharding  # noqa: E402
from jaxlib import lapack  # noqa: E402

jax.config.update("jax_enable_x64", True)
lapack._lapack.initialize()

DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f64": np.float64, "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}  # fmt: skip

# The error of floats in relation to the largest element, by the narrowest type with which the program computes.
TOLERANCE = {"f64": 1e-8, "f32": 2e-4, "f16": 1e-2, "bf16": 8e-2, "f8E4M3FN": 0.5, "f8E5M2": 0.75}


# Outcomes that are a fault of the text, or of XLA.
WRONG = ("differs", "refused by XLA", "crashes XLA", "the script fails")


def tensor(text):
    """The shape and the element type of `tensor<2x3xf32>`."""
    inside = re.fullmatch(r"tensor<(.*)>", text).group(1)
    *sizes, element = re.fullmatch(r"((?:\d+x)*)(.*)", inside).groups()
    return tuple(int(size) for size in sizes[0].split("x") if size), DTYPES[element]


def signature(text):
    """The parameters of `main`, (path, shape, dtype), and the names of its results."""
    head = re.search(r"@main\((.*)\) -> \((.*)\) \{$", text, re.M)
    params = re.findall(r"%[\w.]+: (tensor<[^{]*?>)(?: \{[^%]*?\})? loc\(\"([^\"]*)\"\)", head.group(1))
    results = re.findall(r"jax.result_info = \"([^\"]*)\"", head.group(2))
    return [(path, *tensor(ty)) for ty, path in params], results


def drawn(path, shape, dtype):
    """Floats between -2 and 2, and integers below 7."""
    draw = np.random.default_rng(zlib.crc32(path.encode()))
    if np.dtype(dtype).kind == "c":
        return (draw.uniform(-2, 2, shape) + 1j * draw.uniform(-2, 2, shape)).astype(dtype)
    if np.dtype(dtype).kind == "b":
        return draw.uniform(size=shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return draw.integers(0, 7, shape).astype(dtype)
    return draw.uniform(-2, 2, shape).astype(np.float64).astype(dtype)


def given_by(text, path, shape, dtype):
    """The argument that the header of a test case gives, or a drawn one."""
    header = re.search(r"^//! args:(.*)$", text, re.M)
    found = re.search(rf"(?:^|\s){re.escape(path)}=(\S+)", header.group(1)) if header else None
    count = int(np.prod(shape))
    match found.group(1) if found else "":
        case "iota":
            return np.arange(count).reshape(shape).astype(dtype)
        case "ones":
            return np.ones(shape, dtype)
        case "zeros":
            return np.zeros(shape, dtype)
        case literal if re.fullmatch(r"[\[\]\d.,e+-]+", literal):
            return np.array(json.loads(literal), dtype)
        case _:
            return drawn(path, shape, dtype)


def run_xla(text, args):
    """The results of a module on as many devices as it has partitions."""
    devices = int(re.search(r"num_partitions = (\d+)", text).group(1))
    backend = xla_bridge.get_backend()
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        own = backend.devices()[:devices]
        options = compiler.get_compile_options(
            num_replicas=1, num_partitions=devices, device_assignment=np.arange(devices).reshape(1, devices)
        )
        options.executable_build_options.use_shardy_partitioner = True
        executable = backend.compile_and_load(module, xla_client.DeviceList(tuple(own)), options)

    def placed(sharding):
        return GSPMDSharding(tuple(own), sharding)

    def shardings(protos, count):
        # A program for one device has none.
        if protos is None:
            return [xla_client.HloSharding.replicate()] * count
        return [xla_client.HloSharding.from_proto(proto) for proto in protos]

    given = shardings(executable.get_parameter_shardings(), len(args))
    kept = [jax.device_put(arg, placed(sharding)) for arg, sharding in zip(args, given, strict=True)]
    made = executable.execute_sharded(kept).disassemble_into_single_device_arrays()
    results = []
    for parts, sharding in zip(made, shardings(executable.get_output_shardings(), len(made)), strict=True):
        layout = placed(sharding)
        shape = list(parts[0].shape)
        for dim, count in enumerate(dimension_counts(sharding, len(shape))):
            shape[dim] *= count
        results.append(np.asarray(jax.make_array_from_single_device_arrays(tuple(shape), layout, parts)))
    return results


def dimension_counts(sharding, rank):
    """The number of blocks of each dimension."""
    if sharding.is_replicated() or rank == 0:
        return [1] * rank
    return list(sharding.tile_assignment_dimensions())[:rank]


def tolerance(text):
    """The error that the types of a text allow."""
    return max((error for name, error in TOLERANCE.items() if re.search(rf"[x<]{name}>", text)), default=0)


def error(got, want):
    if got.shape != want.shape:
        return np.inf
    if got.dtype.itemsize == want.dtype.itemsize and want.dtype.kind == "V":
        want = want.view(got.dtype)
    if got.dtype != want.dtype:
        return np.inf
    if got.dtype.kind in "biu":
        return 0.0 if np.array_equal(got, want) else np.inf
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return np.inf
    scale = max(float(np.max(np.abs(want[finite]), initial=0)), 1e-3)
    return float(np.max(np.abs(got[finite] - want[finite]), initial=0)) / scale


def opinion(options, path, folder):
    """The outcome for a program: `equal`, or the reason why there is none, and a detail."""
    text = path.read_text()
    mesh = ["--mesh", options.mesh] if options.mesh and re.search(r"^mesh", text, re.M) else []
    exported = subprocess.run([options.spmdc, "export", path, *mesh], capture_output=True, text=True, check=False)
    if exported.returncode != 0:
        return ("no text" if "E0112" in exported.stderr else "no program"), exported.stderr
    devices = int(re.search(r"num_partitions = (\d+)", exported.stdout).group(1))
    if devices > 8:
        return "more than 8 devices", ""
    params, names = signature(exported.stdout)
    if not names:
        return "no results", ""
    args = [given_by(text, *param) for param in params]
    given, out = folder / "args.npz", folder / "out.npz"
    np.savez(given, **{name: arg for (name, *_), arg in zip(params, args, strict=True)})
    inputs = ["--args", given] if params else []
    command = [options.spmdc, "run", path, *mesh, *inputs, "--out", out, "--no-cache"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if ran.returncode != 0:
        return "stops", ran.stderr
    if "unreduced=" in re.search(r"@main.*", exported.stdout).group():
        return "partial sums outside", ""
    try:
        results = run_xla(exported.stdout, args)
    except Exception as failure:  # noqa: BLE001
        detail = "".join(traceback.format_exception_only(failure))
        return "refused by XLA", detail
    with np.load(out) as archive:
        wanted = [archive[name] for name in names]
    worst = [error(got, want) for got, want in zip(results, wanted, strict=True)]
    if max(worst, default=0) <= tolerance(exported.stdout):
        return "equal", ""
    at = int(np.argmax(worst))
    return "differs", f"result {names[at]}: error {worst[at]:.3g}\n{results[at]}\n{wanted[at]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spmdc")
    parser.add_argument("programs", nargs="+", type=pathlib.Path, help="files, and folders of .spmd files")
    parser.add_argument("--mesh", help="the sizes of the axes, such as 2x4")
    parser.add_argument("--list", action="store_true", help="name each program that has no equal result, with the reason")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    paths = []
    for path in options.programs:
        paths += sorted(path.rglob("*.spmd")) if path.is_dir() else [path]
    if options.worker:
        return work(options)
    counts = collections.Counter()
    worker = None
    for path in paths:
        worker = worker or subprocess.Popen(
            [sys.executable, *sys.argv, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        worker.stdin.write(f"{path}\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
        if answer:
            outcome, detail = json.loads(answer)
        else:
            outcome, detail, worker = "crashes XLA", "", None
        counts[outcome] += 1
        if outcome in WRONG or (options.list and outcome != "equal"):
            print(f"{path}: {outcome}\n{detail[:1500]}\n", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    sys.exit(1 if any(counts[outcome] for outcome in WRONG) else 0)


def work(options):
    """Answers for each path of standard input: XLA may end the process."""
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            try:
                answer = opinion(options, pathlib.Path(line.strip()), pathlib.Path(folder))
            except Exception as failure:  # noqa: BLE001
                answer = "the script fails", "".join(traceback.format_exception(failure))
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
