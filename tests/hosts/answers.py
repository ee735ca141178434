"""Programs on three hosts give what they give in one process: the same text, and the same bytes in files."""

import json

from job import ROOT, Job
from network import HOSTS, ran

DIGITS = ROOT / "examples/data/digits"
MESH = "mesh (X = 6);\n"
# A program for each collective; six devices are two on each host.
PROGRAMS = {
    "all_reduce": "fn main(x: f32[13@X, 5]) -> f32[5] { sum(sin(x), axis=0) }",
    "all_gather": "fn main(x: f32[13@X, 5]) -> f32[13, 5] { reshard(cos(x), P()) }",
    "reduce_scatter": "fn main(x: f32[7, 13@X], y: f32[13@X, 12]) -> f32[7, 12@X] { x @ y }",
    "all_to_all": "fn main(x: f32[12@X, 13]) -> f32[12, 13@X] { reshard(2 * x, P(None, X)) }",
    "collective_permute": "fn main(x: f32[13@X]) -> f32[13@X] { roll(x, 3) + roll(x, -1) }",
}
TRANSFER = """mesh all (X = 6);
mesh some (A = 2) devices [3, 0];
fn main(x: f32[13@X]) -> f32[13@A] on some {
  let y = transfer(exp(x), some, P(A));
  print("sum {:.5}", sum(y));
  y
}"""
SAVING = """fn main(x: f32[13@X]) -> f32[13@X] {
  let mut y = x;
  for i in 0..3 { y = y + 0.1 * mean(y); save("saved-{}.npz", i, y); print("{} {:.6}", i, sum(y)); }
  y
}"""
ARRAYS = ["--arg", "x=normal:1"]


def programs(build, is_long):
    """Each with its name and arguments."""
    for name, text in PROGRAMS.items():
        yield name, build.text(name, MESH + text), ARRAYS + (["--arg", "y=normal:2"] if "y:" in text else [])
        if not is_long:
            return
        plan = [build.spmdc, "plan", build.folder / f"{name}.spmd", "--format", "json"]
        planned = ran(plan, check=True, capture_output=True, text=True).stdout
        assert name in json.dumps(json.loads(planned)["collectives"]), f"{name} is not in its program:\n{planned}"
    yield "saving", build.text("saving", MESH + SAVING), ARRAYS
    yield "transfer", build.text("transfer", TRANSFER), ARRAYS
    images = {name: ["--arg", f"{name}=@{DIGITS / file}.npy"] for name, file in
              [("images", "train_x"), ("labels", "train_y"), ("tests", "test_x"), ("answers", "test_y")]}
    examples = [("heat", "2x3", []), ("kmeans", "2x3", ["images", "labels"]), ("network", "3x2", []),
                ("train_step", "6", []), ("digits_stream", "6", list(images))]
    for name, mesh, inputs in examples:
        yield name, build.file(ROOT / f"examples/{name}.spmd", "--mesh", mesh), sum((images[one] for one in inputs), [])


def written(folder):
    """The files that a run has left, and removes them."""
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.npz"))}
    for name in files:
        (folder / name).unlink()
    return files


def check_devices(network, build, mpi):
    """The table of devices names all hosts."""
    program = build.text("devices", MESH + PROGRAMS["all_reduce"])
    status, out, err = Job(network, build.spmdc, mpi, program, ["--show-devices", "--format", "json"]).end(60)
    assert status == 0, err
    expected = [{"process": number, "host": host, "devices": [2 * number, 2 * number + 1]}
                for number, host in enumerate(HOSTS)]
    assert json.loads(out) == {"devices": 6, "processes": expected}, out


def check_program(network, build, mpi, program, words):
    """Runs a program in one process and on all hosts."""
    words = [*words, "--out", "results.npz", "--timeout", "30"]
    alone = ran([program, *words], cwd=network.folder, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    files = written(network.folder)
    status, out, err = Job(network, build.spmdc, mpi, program, words).end(120)
    assert status == 0, err
    assert out == alone.stdout, f"one process prints\n{alone.stdout}\nand the hosts\n{out}"
    found = written(network.folder)
    assert found.keys() == files.keys(), f"files {list(found)} instead of {list(files)}"
    for name, content in files.items():
        assert found[name] == content, f"{name} has other bytes"
