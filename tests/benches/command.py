"""The command `spmdc` as benchmarks run it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SPMDC = os.environ.get("SPMDC", str(pathlib.Path(__file__).resolve().parent / "../../target/release/spmdc"))

# Every run compiles its program: no folder for code can be made here. Commands of earlier versions have no `--no-cache`.
ENV = {**os.environ, "XDG_CACHE_HOME": os.devnull}


def output(words):
    """What a command writes to standard output and to standard error. One that fails ends the benchmark."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=ENV)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout, done.stderr


def bench(program, arguments, runs, options=(), out=None, spmdc=None):
    """Runs a program so many times: the object of `--stats json`.

    `arguments` are texts as `x=normal:0`. Results go to the file `out`, if it is given.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = [spmdc or SPMDC, "run", program, "--bench", runs, "--stats", "json", "--out", out or os.path.join(folder, "out.npz")]
        words += [word for argument in arguments for word in ("--arg", argument)]
        said = output([*words, *options])[1]
    return json.loads(next(line for line in said.splitlines() if line.startswith("{")))
