"""Times collectives between two processes beside MPI's own and JAX's, and programs in two processes beside two threads.

    cargo build --release --workspace
    python3 tests/benches/processes.py [collectives | programs ..] [--without jax]

All run in turns on this machine, one device in each process. Needs Open MPI with `mpicc`, and jax unless it is left out. A time is the
least of some rounds; a ratio above 1 means that the other side takes longer.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SPMDC = os.environ.get("SPMDC", os.path.join(ROOT, "target", "release", "spmdc"))
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
ENV = {**os.environ, **AS_ROOT, "JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": os.devnull}

KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"]
# Elements of f32 that a device has of the smaller side, calls in a round, and rounds. Long copies take up to twice as long in some rounds as in
# others, as other machines use the same memory, so the least needs many of them.
SIZES = {"4 KiB": (1 << 10, 2000, 5), "256 KiB": (1 << 16, 300, 5), "1 MiB": (1 << 18, 100, 10), "64 MiB": (1 << 24, 10, 25)}
ROUNDS = 5
TURNS = 3

# Programs that two devices share: words after `run`.
NET = [word for at, name in enumerate(["w", "b"]) for layer in range(4) for word in ("--arg", f"net.{name}{layer}=normal:{at}")]
PROGRAMS = {
    "heat, 1024 x 1024, 200 steps": ["examples/heat.spmd", "--mesh", "2x1", "--set", "N=1024", "--set", "STEPS=200"],
    "heat, 4096 x 4096, 20 steps": ["examples/heat.spmd", "--mesh", "2x1", "--set", "N=4096", "--set", "STEPS=20"],
    "one step of a perceptron": ["tests/benches/gradients/mlp_step_by_grad.spmd", "--mesh", "2", *NET,
                                 "--arg", "x=normal:2", "--arg", "y=normal:3"],
}


def output(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, env=ENV, cwd=ROOT, timeout=600, **options)
    if done.returncode != 0:
        sys.exit(f"{words}\n{done.stdout}{done.stderr}")
    return done


def ours(words, processes, rounds=ROUNDS):
    """The least milliseconds of a run."""
    with tempfile.TemporaryDirectory() as folder:
        words = [SPMDC, "run", *words, "--bench", str(rounds), "--stats", "json", "--out", os.path.join(folder, "out.npz")]
        if processes > 1:
            words = [SPMDC, "launch", "-n", str(processes), "--mpi", "openmpi", "--", *words]
        said = output(words).stderr
    stats = [line for line in said.splitlines() if line.startswith("{")]
    return min(json.loads(stats[-1])["run_ms"])


def least(text):
    """Milliseconds in what a peer prints."""
    return 1e3 * float(re.search(r"least ([\d.]+)", text).group(1))


def jax(kind, elements, trips, rounds):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = lambda process: [sys.executable, os.path.join(HERE, "processes", "gloo.py"), str(port), str(process), kind,
                             str(elements), str(trips), str(rounds)]
    other = subprocess.Popen(words(1), env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return least(output(words(0)).stdout)
    finally:
        other.kill()
        other.wait()


def collectives(with_jax):
    print(f"{'microseconds':<16}{'':>8}{'spmdc':>12}{'MPI':>12}{'ratio':>8}{'JAX':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        peer = os.path.join(folder, "mpi")
        output(["mpicc", "-O3", os.path.join(HERE, "processes", "mpi.c"), "-o", peer])
        for kind in KINDS:
            for size, (elements, trips, rounds) in SIZES.items():
                program = ["tests/benches/processes/" + kind + ".spmd", "--set", f"N={elements}", "--set", f"TRIPS={trips}",
                           "--arg", "x=zeros"]
                mpi = ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", "2", peer, kind, str(elements), str(trips),
                       str(rounds)]
                turns = [(ours(program, 2, rounds) / trips, least(output(mpi).stdout),
                          jax(kind, elements, trips, rounds) if with_jax else 0.0) for _ in range(TURNS)]
                own, plain, other = (1e3 * min(times) for times in zip(*turns))
                beside = f"{other:>12.2f}{other / own:>8.2f}" if with_jax else f"{'-':>12}{'-':>8}"
                print(f"{kind:<16}{size:>8}{own:>12.2f}{plain:>12.2f}{plain / own:>8.2f}{beside}", flush=True)


def programs():
    print(f"{'milliseconds':<32}{'2 processes':>12}{'2 threads':>12}{'ratio':>8}")
    for name, words in PROGRAMS.items():
        turns = [(ours(words, 2), ours(words, 1)) for _ in range(TURNS)]
        two, one = (min(times) for times in zip(*turns))
        print(f"{name:<32}{two:>12.2f}{one:>12.2f}{one / two:>8.2f}", flush=True)


def main():
    words = sys.argv[1:]
    with_jax = "--without" not in words
    sections = [word for word in words if word in ("collectives", "programs")] or ["collectives", "programs"]
    if "collectives" in sections:
        collectives(with_jax)
    if "programs" in sections:
        programs()


main()
