"""Random programs against NumPy: an oracle that shares nothing with the compiler's own evaluator.

    python3 -m venv venv && venv/bin/pip install numpy ml_dtypes
    venv/bin/python tests/oracle/run.py target/release/spmdc --programs 10000 --seed 0

Each program is a function; eight are compiled together, as one `main` on one random mesh. One in ten has arrays of more than 100,000
elements. A finding is cut down to the statements that the wrong result needs, and written to `--findings` with its arguments. Options that
are not known here are those of `spmdc run`.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from programs import Writer
from values import F64, wide

MESHES = ["1", "2", "7", "8", "2x1", "2x2", "2x3", "3x2", "2x4", "4x2", "1x8", "5x3", "3x4", "2x2x2"]


def made(seed, number, large, axes):
    r = random.Random(f"{seed}/{number}")
    writer = Writer(r, large, axes)
    for _ in range(r.randint(2, 7 if large else 14)):
        writer.statement()
    return writer


def program(mesh, axes, parts):
    """One text of several functions; `parts` are (writer, names of results). Also the arguments."""
    sizes = ", ".join(f"{axis} = {size}" for axis, size in zip(axes, mesh.split("x")))
    functions, calls, fields, arrays = [], [], [], {}
    for number, (writer, wanted) in enumerate(parts):
        used, text = writer.text(f"f{number}", wanted)
        functions.append(text)
        r = random.Random(f"{len(text)}")
        writer.r = r
        for p in used:
            fields.append(f"a{number}_{p.name}: {writer.type(p, r.random() < 0.7)}")
            arrays[f"a{number}_{p.name}"] = p.a
        calls.append(f"f{number}({', '.join(f'p.a{number}_{p.name}' for p in used)})")
    if not fields:
        fields, arrays = ["unused: i32"], {"unused": np.int32(0)}
    return f"mesh ({sizes});\ntype Arguments = {{ {', '.join(fields)} }};\n{''.join(functions)}fn main(p: Arguments) {{\n  ({', '.join(calls)},)\n}}\n", arrays


def differs(v, found):
    if found.dtype.kind == "V" and found.dtype.itemsize == v.a.dtype.itemsize:
        found = found.view(v.a.dtype)
    if found.dtype != v.a.dtype or found.shape != v.a.shape:
        return f"expected {v.a.dtype}{v.a.shape}, found {found.dtype}{found.shape}"
    a, b = wide(v.a), wide(found)
    if v.exact:
        same = (a == b) | ((a != a) & (b != b))
    else:
        with np.errstate(all="ignore"):
            same = np.abs(a.astype(F64) - b.astype(F64)) <= 1.01 * v.e
    if np.all(same):
        return None
    at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(same)))
    bound = "" if v.exact else f" within {np.atleast_1d(np.broadcast_to(v.e, v.shape))[at]}"
    return f"{int(np.sum(~same))} of {a.size} differ: {at}: expected {np.atleast_1d(a)[at]}{bound}, found {np.atleast_1d(b)[at]}"


def outcome(options, folder, mesh, axes, parts):
    """None, or what is wrong: (None, message) of all, or (part, result, message)."""
    text, arrays = program(mesh, axes, parts)
    source, given, out = (os.path.join(folder, name) for name in ("p.spmd", "in.npz", "out.npz"))
    with open(source, "w") as file:
        file.write(text)
    np.savez(given, **arrays)
    if os.path.exists(out):
        os.remove(out)
    command = [options.spmdc, "run", source, "--arg", f"p=@{given}", "--out", out, "--timeout", "60", "--no-cache", *options.more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None, None, "no end within 300 s"
    if done.returncode != 0:
        return None, None, f"status {done.returncode}: {done.stderr.strip()[:2000]}"
    with np.load(out) as results:
        for part, (writer, wanted) in enumerate(parts):
            for index, name in enumerate(wanted):
                v = next(v for v in writer.vars if v.name == name)
                wrong = differs(v, results[f"{part}.{index}"])
                if wrong:
                    return part, name, wrong
    return None


def names(writer):
    """Results: what no statement uses, and some more."""
    made = [v.name for v in writer.vars if v.name not in {p.name for p in writer.params}]
    used = {arg for _, _, args in writer.code for arg in args}
    return [n for i, n in enumerate(made) if n not in used or i % 3 == 0]


def reported(options, folder, mesh, axes, parts, wrong):
    """Cuts down what is wrong to one function and one result if that is wrong, too, and keeps it."""
    for writer, wanted in parts:
        for name in wanted:
            alone = [(writer, [name])]
            again = outcome(options, folder, mesh, axes, alone)
            if again:
                return keep(options, folder, again[2])
    for part in parts:
        again = outcome(options, folder, mesh, axes, [part])
        if again:
            return keep(options, folder, again[2])
    outcome(options, folder, mesh, axes, parts)
    return keep(options, folder, wrong[2])


def keep(options, folder, message):
    os.makedirs(options.findings, exist_ok=True)
    number = len([f for f in os.listdir(options.findings) if f.endswith(".spmd")])
    stem = os.path.join(options.findings, f"{os.getpid()}-{number}")
    with open(os.path.join(folder, "p.spmd")) as file:
        text = file.read()
    with open(stem + ".spmd", "w") as file:
        file.write(text + "".join(f"// {line}\n" for line in message.splitlines()))
    os.replace(os.path.join(folder, "in.npz"), stem + ".npz")
    return f"{stem}.spmd: {message}\n{text}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("spmdc")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--together", type=int, default=8, help="functions in one text")
    parser.add_argument("--findings", default="findings")
    parser.add_argument("--minutes", type=float, default=1e9)
    options, options.more = parser.parse_known_args()
    start, shown, small, large, found, statements = time.time(), time.time(), 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        number = options.first
        while number < options.first + options.programs and time.time() - start < 60 * options.minutes:
            r = random.Random(f"{options.seed}/mesh/{number}")
            mesh = r.choice(MESHES)
            axes = ["X", "Y", "Z"][:len(mesh.split("x"))]
            # In ten batches one is of large arrays, with as many programs.
            is_large = number // options.together % 10 == 9
            writers = [made(options.seed, number + i, is_large, axes) for i in range(options.together)]
            parts = [(w, names(w)) for w in writers if w.code]
            for at in range(0, len(parts), 2 if is_large else len(parts)):
                some = parts[at:at + 2] if is_large else parts
                wrong = outcome(options, folder, mesh, axes, some)
                if wrong:
                    found += 1
                    print(f"FINDING near program {number} on {mesh}: {reported(options, folder, mesh, axes, some, wrong)}", flush=True)
            statements += sum(len(w.code) for w, _ in parts)
            number += options.together
            small, large = (small, large + len(parts)) if is_large else (small + len(parts), large)
            if time.time() - shown > 30:
                shown = time.time()
                print(f"{small} small, {large} large programs, {statements} statements, {found} findings, {shown - start:.0f} s", flush=True)
    print(f"{small} small, {large} large programs, {statements} statements, {found} findings, {time.time() - start:.0f} s")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
