#!/usr/bin/env python3
"""Compares two builds of `spmdc`: dumps, plans, reasons and answers of programs on three meshes must be the same bytes.

    cargo run -q -p spmdc-tests --bin programs -- /tmp/programs 0 400
    tests/compare_builds.py OLD NEW /tmp/programs tests/cases examples

For a change that must not change what the compiler makes. Programs that fix another number of axes are compared on their own mesh.
Without `--messages`, errors are compared by their codes and lines only.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

MESHES = ["1x1", "2x3", "4x2"]
STAGES = ["typed", "differentiated", "propagated", "partitioned", "optimized"]
# Every run compiles its program: no folder for code can be made here. Commands of earlier versions have no `--no-cache`.
ENV = {**os.environ, "XDG_CACHE_HOME": os.devnull}


def output(build, arguments):
    """The exit status and the output, without times."""
    done = subprocess.run([build, *arguments], capture_output=True, text=True, timeout=300, check=False, env=ENV)
    text = done.stdout + done.stderr
    return done.returncode, re.sub(r"\d+(\.\d+)? (ms|s|µs)\b", "TIME", text)


def inputs(text):
    """An argument for each parameter of `main`."""
    found = re.search(r"fn main(?:<[^>]*>)?\((.*?)\)\s*(?:->[^{]*)?\{", text, re.S)
    if not found:
        return []
    arguments = []
    for at, (name, dtype) in enumerate(re.findall(r"(\w+)\s*:\s*(\w+)", found.group(1))):
        kind = f"normal:{at}" if dtype.startswith(("f", "bf")) else "iota"
        arguments += ["--arg", f"{name}={kind}"]
    return arguments


def commands(path, mesh):
    text = path.read_text()
    program = [str(path), *(["--mesh", mesh] if mesh else [])]
    for stage in STAGES:
        yield ["dump", *program, "--stage", stage]
    yield ["plan", *program]
    lines = [at for at, line in enumerate(text.splitlines(), 1) if "=" in line and not line.startswith("//")]
    for line in lines[:: max(1, len(lines) // 3)][:3]:
        yield ["why", f"{path}:{line}", *program[1:]]
    yield ["run", *program, *inputs(text)]


def shown(result, messages):
    status, text = result
    if status == 0 or messages:
        return result
    return status, sorted(set(re.findall(r"\b[EW]\d{4}\b|\.spmd:\d+", text)))


def compare(options, path):
    """The commands whose results differ, each with both results."""
    failed, count = [], 0
    axes = re.search(r"^mesh\s*\(([^)]*)\)", path.read_text(), re.M)
    fits = axes is not None and axes.group(1).count("=") == 2
    for mesh in MESHES if fits else [None]:
        for arguments in commands(path, mesh):
            count += 1
            old, new = (shown(output(build, arguments), options.messages) for build in (options.old, options.new))
            if old != new:
                failed.append((arguments, old, new))
    return failed, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("programs", nargs="+", type=pathlib.Path, help="files, and folders of .spmd files")
    parser.add_argument("--messages", action="store_true", help="compare the text of errors, too")
    options = parser.parse_args()
    paths = [file for path in options.programs for file in (sorted(path.rglob("*.spmd")) if path.is_dir() else [path])]
    total, differ = 0, 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for failed, count in pool.map(lambda path: compare(options, path), paths):
            total += count
            for arguments, old, new in failed:
                differ += 1
                print("differs:", " ".join(arguments), f"\n  old: {str(old)[:400]}\n  new: {str(new)[:400]}")
    print(f"{total} results of {len(paths)} programs, {differ} differ")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
