"""Draws what the rows reach beside the limits of the machine, as `docs/roofline.svg`, and prints the limits as a table.

    python3 tests/benches/rows.py --json rows.json
    python3 tests/benches/roofline.py rows.json [--out docs/roofline.svg] [--limits limits.json]

Operations are those of `spmdc plan`, in which a function as `exp` is one; bytes are those of the arguments and results, for each step of a
loop that does not fit into caches. The limits are measured by `limits.c`; on a machine in use, `--limits` keeps the best figures of several
runs in a file. Rows without operations are left out.
"""

import argparse
import html
import json
import math
import pathlib
import tempfile

import command
import rows

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1000, 620, 40, 24, 56, 40
# Operations for each byte, and billions of operations in a second.
X, Y = (0.05, 1e4), (0.3, 400)
COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b9770e", "#16807a", "#5d6d7e"]
LETTER, LINE = 5.3, 10
ROUNDS = 2
NAMES = {
    "fma": "multiplications and additions, `f32`",
    "L1": "`a = b + 3 * c` in the first cache",
    "L2": "`a = b + 3 * c` in the second cache",
    "triad": "`a = b + 3 * c` in memory",
    "bypassing": "the same with stores that bypass the caches",
    "reading": "sum of an array in memory",
}


def limits():
    """The figures of `limits.c`: by name those of one thread and of all."""
    with tempfile.TemporaryDirectory() as folder:
        exe = pathlib.Path(folder) / "limits"
        flags = [*rows.GCC, *rows.PEERS["c512"]]
        command.output([*flags, HERE / "limits.c", "-o", exe])
        found = {}
        for _ in range(ROUNDS):
            for said in command.output([exe])[0].splitlines():
                name, threads, rate = said.split()
                rates = found.setdefault(name, {})
                rates[threads] = max(rates.get(threads, 0), float(rate))
    return {name: list(rates.values()) for name, rates in found.items()}


def place(value, bounds, start, end):
    low, high = map(math.log, bounds)
    at = (math.log(min(max(value, bounds[0]), bounds[1])) - low) / (high - low)
    return start + at * (end - start)


def across(value):
    return place(value, X, LEFT, WIDTH - RIGHT)


def up(value):
    return place(value, Y, HEIGHT - BOTTOM, TOP)


def text(x, y, what, **style):
    style = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{html.escape(what)}</text>'


def line(x1, y1, x2, y2, **style):
    style = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{style}/>'


def axes():
    yield f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" fill="none" stroke="#999"/>'
    for value in (0.1, 1, 10, 100, 1000, 10000):
        yield line(across(value), TOP, across(value), HEIGHT - BOTTOM, stroke="#e4e4e4")
        yield text(across(value), HEIGHT - BOTTOM + 14, f"{value:g}", text_anchor="middle")
    for value in (1, 10, 100):
        yield line(LEFT, up(value), WIDTH - RIGHT, up(value), stroke="#e4e4e4")
        yield text(LEFT - 6, up(value) + 3, f"{value:g}", text_anchor="end")
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "operations for each byte of arguments and results", text_anchor="middle")
    yield text(LEFT, TOP - 8, "billions of operations in a second")


def roofs(found):
    """Lines of bandwidth up to the peak, and the peak."""
    peak = found["fma"][-1]
    memory = max(found[name][-1] for name in ("triad", "bypassing", "reading"))
    for name, rate in (("memory", memory), ("second cache", found["L2"][-1]), ("first cache", found["L1"][-1])):
        low = max(X[0], Y[0] / rate)
        yield line(across(low), up(low * rate), across(peak / rate), up(peak), stroke="#444", stroke_width=1.2)
        at, slope = across(1.6 * low), math.degrees(math.atan2(up(10) - up(1), across(10) - across(1)))
        turned = f"rotate({slope:.1f} {at:.1f} {up(1.6 * low * rate) - 4:.1f})"
        yield text(at, up(1.6 * low * rate) - 4, f"{name} {rate:.0f} GB/s", fill="#444", transform=turned)
    for threads, each in zip(("one thread", "all threads"), found["fma"]):
        low = each / found["L1"][0 if threads == "one thread" else -1]
        dash = "4 3" if threads == "one thread" else "none"
        yield line(across(low), up(each), WIDTH - RIGHT, up(each), stroke="#444", stroke_width=1.2, stroke_dasharray=dash)
        yield text(across(12), up(each) - 4, f"{each:.0f} GFLOP/s, {threads}", fill="#444")


def points(table):
    """Each row with its group, its name, and where it is, as is C."""
    for group, names in enumerate(rows.GROUPS.values()):
        for name in filter(table.get, names):
            row = table[name]
            if row["operations"]:
                rate = lambda side: row["operations"] / row[side] / 1e6
                yield group, name, across(row["operations"] / row["bytes"]), up(rate("ours")), up(rate("c"))


def overlaps(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def labels(found):
    """The nearest free box for each name. Boxes of points are taken."""
    taken = [(x - 3, y - 3, x + 3, y + 3) for _, _, x, y, _ in found]
    for group, name, x, y, _ in sorted(found, key=lambda point: point[2:4]):
        size = LETTER * len(name)
        tries = [(dx, dy) for dy in range(-15 * LINE, 15 * LINE, 3) for dx in (6, -size - 6, -size / 2, 30, -size - 30, 60, -size - 60)]
        tries.sort(key=lambda by: abs(by[1]) + abs(by[0] + size / 2) / 3)
        inside = lambda box: LEFT < box[0] and box[2] < WIDTH - RIGHT and TOP < box[1] and box[3] < HEIGHT - BOTTOM
        boxes = ((x + dx, y + dy - LINE / 2, x + dx + size, y + dy + LINE / 2) for dx, dy in tries)
        free = (box for box in boxes if inside(box) and not any(overlaps(box, other) for other in taken))
        box = next(free, (x + 6, y - LINE / 2, x + 6 + size, y + LINE / 2))
        taken.append(box)
        nearest = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
        if math.dist(nearest, (x, y)) > 8:
            yield line(x, y, *nearest, stroke=COLOURS[group], stroke_width=0.5, opacity=0.6)
        yield text(box[0], box[3] - 2, name, fill=COLOURS[group])


def picture(table, found):
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="10">'
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    at = LEFT
    for group, colour in zip(rows.GROUPS, COLOURS):
        yield f'<circle cx="{at + 4}" cy="16" r="3" fill="{colour}"/>' + text(at + 11, 20, group)
        at += 26 + LETTER * len(group)
    yield text(WIDTH - RIGHT, TOP - 8, "a line leads from a row to a bar, the rate of C", text_anchor="end")
    yield from axes()
    yield from roofs(found)
    found = list(points(table))
    for group, _, x, ours, c in found:
        yield line(x, ours, x, c, stroke=COLOURS[group], stroke_width=0.7, opacity=0.5)
        yield line(x - 3, c, x + 3, c, stroke=COLOURS[group], opacity=0.7)
    yield from labels(found)
    for group, _, x, ours, _ in found:
        yield f'<circle cx="{x:.1f}" cy="{ours:.1f}" r="3" fill="{COLOURS[group]}"/>'
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "../../docs/roofline.svg")
    parser.add_argument("--limits", type=pathlib.Path)
    options = parser.parse_args()
    found = limits()
    if options.limits and options.limits.exists():
        known = json.loads(options.limits.read_text())
        found = {name: list(map(max, rates, known[name])) for name, rates in found.items()}
    if options.limits:
        options.limits.write_text(json.dumps(found))
    options.out.write_text("\n".join(picture(json.loads(options.rows.read_text()), found)) + "\n")
    print("| limit | one thread | all threads |\n|---|---|---|")
    for name, (one, many) in found.items():
        unit = "GFLOP/s" if name == "fma" else "GB/s"
        print(f"| {NAMES[name]} | {one:.0f} {unit} | {many:.0f} {unit} |")


if __name__ == "__main__":
    main()
