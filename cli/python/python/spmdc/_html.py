"""Drawings of layouts for notebooks, as HTML without scripts. Colours are translucent, so that they suit dark and light pages."""

from __future__ import annotations

from html import escape

STYLE = """
<style>
.spmdc { overflow-x: auto; font: 13px/1.5 ui-monospace, monospace; color: inherit; }
.spmdc details { margin: 0.3em 0; }
.spmdc table { border-collapse: collapse; margin: 0.2em 0 0.4em 1.5em; display: inline-table; color: inherit; }
.spmdc td, .spmdc th { padding: 0.2em 0.7em; text-align: center; background: none; font-weight: normal; color: inherit; }
.spmdc td { border: 1px solid color-mix(in srgb, currentColor 40%, transparent); min-width: 1.5em; }
.spmdc th, .spmdc p { opacity: 0.7; }
.spmdc p { margin: 0 0 0.2em 1.5em; }
</style>
"""


def colour(devices):
    """A colour for the devices of a block: neighbouring numbers have distant hues."""
    first = int("".join(c if c.isdigit() else " " for c in devices).split()[0]) if devices else 0
    return f"hsl({first * 137.5 % 360:.0f} 70% 50% / 0.28)"


def table(drawn):
    rows = []
    if any(drawn["above"]):
        corner = "<th></th>" if any(drawn["side"]) else ""
        rows.append(f"<tr>{corner}{''.join(f'<th>{escape(label)}</th>' for label in drawn['above'])}</tr>")
    for label, cells in zip(drawn["side"], drawn["cells"]):
        side = f"<th>{escape(label)}</th>" if any(drawn["side"]) else ""
        blocks = "".join(f'<td style="background: {colour(cell)}">{escape(cell)}</td>' for cell in cells)
        rows.append(f"<tr>{side}{blocks}</tr>")
    head = f"<caption>{escape(drawn['head'])}</caption>" if drawn["head"] else ""
    return f"<table>{head}{''.join(rows)}</table>"


def page(signature, values, params):
    """The signature of a program, and a table of blocks for each value: the numbers in a block are the devices that hold it. The tables of
    parameters and results are open."""
    parts = [STYLE, '<div class="spmdc">', f"<b>{escape(signature)}</b>"]
    mesh = None
    for value in values:
        if value["mesh"] != mesh:
            mesh = value["mesh"]
            parts.append(f"<p>{f'mesh ({escape(mesh)})' if mesh else 'one device'}; a block has the numbers of the devices that hold it</p>")
        tables = "".join(table(drawn) for drawn in value["tables"])
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in value["remarks"])
        is_open = value["name"] in params or value["name"].startswith("result ")
        summary = f"<summary>{escape(value['name'])}: {escape(value['type'])}</summary>"
        parts.append(f"<details{' open' if is_open else ''}>{summary}{tables}{remarks}</details>")
    parts.append("</div>")
    return "".join(parts)
