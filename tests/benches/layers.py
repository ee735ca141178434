#!/usr/bin/env python3
"""Measures the compilation of training steps of transformers: gradients, AdamW and clipping, with all layers written out.

    python3 tests/benches/layers.py [LAYERS..]

Prints for each number of layers the milliseconds from text to machine code, of `check`, and of `plan`: the least of five. SPMDC names the command.
"""

import json
import pathlib
import sys
import tempfile
import time

from command import SPMDC, output

PROGRAM = """mesh (data = 2, model = 2);
import "std/nn.spmd" as nn;
import "std/optim.spmd" as optim;
const WIDTH = 64;
const HEADS = 4;
const PER_HEAD = WIDTH / HEADS;
const HIDDEN = 192;
type Layer = {{ attend: f32[WIDTH], q: f32[WIDTH, HEADS@model, PER_HEAD], k: f32[WIDTH, HEADS@model, PER_HEAD],
               v: f32[WIDTH, HEADS@model, PER_HEAD], o: f32[HEADS@model, PER_HEAD, WIDTH],
               feed: f32[WIDTH], gate: f32[WIDTH, HIDDEN@model], up: f32[WIDTH, HIDDEN@model], down: f32[HIDDEN@model, WIDTH] }};
type Model = {{ table: f32[256, WIDTH], layers: ({types}), last: f32[WIDTH] }};
fn turned(x, places) {{
  let half = PER_HEAD // 2;
  let angle = f32(places)[:, None, None] * 10000.0 ** (-arange(half) / half);
  let (a, b) = (x[..., :half], x[..., half:]);
  concatenate([a * cos(angle) - b * sin(angle), b * cos(angle) + a * sin(angle)], axis=-1)
}}
fn units(x, p) {{ (silu(x @ p.gate) * (x @ p.up)) @ p.down }}
fn block(x, p) {{
  let places = arange(x.shape[1]);
  let h = rms_norm(x, p.attend);
  let q = turned(einsum("btd,dnh->btnh", h, p.q), places);
  let k = turned(einsum("btd,dnh->btnh", h, p.k), places);
  let v = einsum("btd,dnh->btnh", h, p.v);
  let y = x + einsum("btnh,nhd->btd", attention(q, k, v, causal=true), p.o);
  y + units(rms_norm(y, p.feed), p)
}}
fn loss(p: Model, bytes) {{
  let mut x = p.table[bytes[:, :-1]];
{calls}
  nn.cross_entropy(rms_norm(x, p.last) @ p.table.T / sqrt(f32(WIDTH)), bytes[:, 1:])
}}
fn main(p: Model, mean: Model, square: Model, steps: i32, bytes: i32[4@data, 33]) -> (Model, Model, Model, i32, f32) {{
  let (loss, g) = value_and_grad(loss)(p, bytes);
  let state = {{ mean: mean, square: square, steps: steps }};
  let (p, state) = optim.adamw(p, optim.clip_by_global_norm(g, 1.0), state, rate=0.001);
  (p, state.mean, state.square, state.steps, loss)
}}
"""
FIELDS = "attend q k v o feed gate up down".split()


def program(layers):
    calls = "\n".join(f"  x = block(x, p.layers.{at});" for at in range(layers))
    return PROGRAM.format(types=", ".join(["Layer"] * layers), calls=calls)


def arguments(layers):
    leaves = ["table", "last", *(f"layers.{at}.{field}" for at in range(layers) for field in FIELDS)]
    given = [f"{tree}.{leaf}=zeros" for tree in ("p", "mean", "square") for leaf in leaves]
    return [word for argument in (*given, "steps=0", "bytes=zeros") for word in ("--arg", argument)]


def compile_ms(words):
    lines = output(words)[1].splitlines()
    return json.loads(next(line for line in lines if line.startswith("{")))["compile_ms"]


def command_ms(words):
    start = time.perf_counter()
    output(words)
    return (time.perf_counter() - start) * 1e3


def main():
    print("layers     code    check     plan")
    for layers in map(int, sys.argv[1:] or ["2", "12", "48"]):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.spmd"
            path.write_text(program(layers))
            run = [SPMDC, "run", path, "--no-cache", *arguments(layers), "--out", f"{folder}/out.npz", "--stats", "json"]
            code = min(compile_ms(run) for _ in range(5))
            check, plan = (min(command_ms([SPMDC, name, path]) for _ in range(5)) for name in ("check", "plan"))
        print(f"{layers:6} {code:8.1f} {check:8.1f} {plan:8.1f}")


main()
