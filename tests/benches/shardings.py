#!/usr/bin/env python3
"""Compares the estimated times of layouts, by which `spmdc shard` chooses, with measured ones.

    python3 tests/benches/shardings.py [PROGRAM..]

Each program of `tests/shardings` runs with the layout that the search finds, without layouts, as it is, and with layouts by chance, eight in all.
Prints for each program the measured time of the layout found, divided by that of the fastest, and the rank correlation of estimates and
measurements (Spearman's), then the correlation over all. SPMDC names the command.
"""

import json
import pathlib
import random
import re
import sys
import tempfile

from command import SPMDC, output

LAYOUTS = 8
ROOT = pathlib.Path(__file__).resolve().parents[2]
# A product has spaces around its `@`.
LAYOUT = re.compile(r"(?<=[\w)\]])@(\w+|\([^)]*\))")
TYPE = re.compile(r"\b(f32|f64|c64|i32)\[([^\[\]]*)\]")


def by_chance(text, axes, draw):
    """The program with layouts of the parameters of `main`, and of the fields of types, by chance."""
    head, body = text.split("fn main(", 1)
    depth, end = 1, 0
    while depth:
        depth += {"(": 1, ")": -1}.get(body[end], 0)
        end += 1

    def annotated(match):
        dims = [dim.strip() for dim in match.group(2).split(",") if dim.strip()]
        split = [[] for _ in dims]
        for axis in axes:
            at = draw.randrange(len(dims) + 1)
            if at < len(dims):
                split[at].append(axis)
        shown = [dim + (f"@({', '.join(own)})" if own else "@_") for dim, own in zip(dims, split)]
        return f"{match.group(1)}[{', '.join(shown)}]"

    types = re.sub(r"^type .*?;$", lambda item: TYPE.sub(annotated, item.group(0)), head, flags=re.M | re.S)
    return types + "fn main(" + TYPE.sub(annotated, body[:end]) + body[end:]


def searched(path, *options):
    return json.loads(output([SPMDC, "shard", path, "--hosts", "1", "--format", "json", *options])[0])


def found(text, layout):
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    for edit in sorted(layout["edits"], key=lambda edit: (-edit["line"], -edit["column"])):
        at = begins[edit["line"] - 1] + edit["column"] - 1
        text = text[:at] + edit["to"] + text[at + len(edit["from"]) :]
    return text


def measured(path):
    plan = json.loads(output([SPMDC, "dump", path, "--stage", "partitioned", "--format", "json"])[0])
    values = {param["name"]: "iota" if param["type"].startswith("i32") else "uniform:1" for param in plan["params"]}
    given = [word for name, value in values.items() for word in ("--arg", f"{name}={value}")]
    run = [SPMDC, "run", path, "--no-cache", *given, "--bench", "20", "--stats", "json", "--out", f"{path}.npz"]
    lines = output(run)[1].splitlines()
    return min(json.loads(next(line for line in lines if line.startswith("{")))["run_ms"])


def ranks(values):
    order = sorted(range(len(values)), key=lambda at: values[at])
    places = [0] * len(values)
    for place, at in enumerate(order):
        places[at] = place
    return places


def correlation(pairs):
    a, b = (ranks(values) for values in zip(*pairs))
    count = len(pairs)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (count * (count**2 - 1))


def main():
    print(f"{'program':22} {'found/fastest':>13} {'correlation':>11}")
    every = []
    for path in sorted((ROOT / "tests/shardings").glob("*.spmd")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        text = path.read_text()
        axes = re.findall(r"(\w+) = \d+", re.search(r"^mesh \((.*)\);", text, re.M).group(1))
        free, draw, pairs = LAYOUT.sub("", text), random.Random(path.stem), []
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "layout.spmd"
            file.write_text(free)
            best = searched(file)["layouts"][0]
            versions = [found(free, best), free, text]
            while len(versions) < LAYOUTS:
                versions.append(by_chance(free, axes, draw))
            for version in versions:
                file.write_text(version)
                estimate = searched(file, "--time-limit", "0")["before"]["nanoseconds"]
                pairs.append((estimate, measured(file)))
        every += pairs
        ratio = pairs[0][1] / min(time for _, time in pairs)
        print(f"{path.stem:22} {ratio:13.2f} {correlation(pairs):11.2f}", flush=True)
        if "-v" in sys.argv:
            print([f"{a / 1e6:.2f}/{b:.2f}" for a, b in pairs])
    print(f"{'all':22} {'':13} {correlation(every):11.2f}")


main()
