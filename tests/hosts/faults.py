"""Faults on one of three hosts: each ends the whole job in time, with a message that names the culprit, and leaves no output file."""

import os
import re
import shutil
import signal
import time
import zipfile

from job import Job
from network import HOSTS

# Seconds.
TIMEOUT = 4
GRACE = 6
# How long a job may take to end: for what the launcher notices, for what only the time limit ends, and for a launcher that has to be
# killed: its two signals are two seconds apart.
NOTICED = 10
WAITED = TIMEOUT + 10
KILLED = WAITED + GRACE + 4

LOOP = """mesh (X = 6);
fn main(x: f32[12@X], at: i32[12@X], n: i32) -> f32[12@X] {
  let mut y = x;
  print("started");
  for i in 0..n { y = 0.5 * y + 0.04 * sum(y) + f32(7 // (n - at)); }
  y
}
"""
WORDS = ["--arg", "x=ones", "--timeout", str(TIMEOUT), "--out", "out.npz"]
LONG = ["--arg", "at=zeros", "--arg", "n=2000000000"]
# A process on the second host that ends itself, successfully, at a signal.
QUITTER = """
#include <signal.h>
#include <unistd.h>
static void quit(int number) { (void)number; _exit(0); }
__attribute__((constructor)) static void prepare(void) { signal(SIGUSR1, quit); }
"""


class Fault:
    """What is done to a job on three hosts, and what follows."""

    def __init__(self, says, seconds, act=None, status=None, words=LONG):
        self.says, self.seconds, self.act, self.status, self.words = says, seconds, act, status, words


def send(number, host=HOSTS[1]):
    """Sends a signal to the process on a host."""
    def act(network, program):
        [process] = network.running(host, program)
        os.kill(process, number)
    return act


NAMED = r"process 1 runs on `h1`"
BY_LAUNCHER = r"node h1 exited|RUNNING AT h1|Peer host:  h1|process 1 runs on `h1`"
FAULTS = {
    "killed": Fault(BY_LAUNCHER, NOTICED, send(signal.SIGKILL)),
    "crashed": Fault(BY_LAUNCHER, NOTICED, send(signal.SIGSEGV)),
    "stopped": Fault(NAMED, WAITED, send(signal.SIGSTOP), status=75),
    "first stopped": Fault(r"process 0 runs on `h0`", WAITED, send(signal.SIGSTOP, HOSTS[0]), status=75),
    "quit": Fault(BY_LAUNCHER + "|has not completed", NOTICED, send(signal.SIGUSR1)),
    "unplugged": Fault(NAMED, KILLED, lambda network, _: network.unplug(HOSTS[1]), status=75),
    "without power": Fault(NAMED, KILLED, lambda network, _: network.cut_power(HOSTS[1])),
    "at an error": Fault(r"error\[E0802\].*\n  --> .*loop.spmd:5:", NOTICED, words=["--arg", "at=iota", "--arg", "n=11"]),
    "another program": Fault(r"process 1 on `h1` has another program than process 0 on `h0`", NOTICED, status=65),
    "full at --out": Fault(r"out.npz.*No space left", NOTICED),
    "full at save": Fault(r"out-\d.npz.*No space left", NOTICED),
    "killed at save": Fault(BY_LAUNCHER, NOTICED, send(signal.SIGKILL)),
    "stopped at save": Fault(NAMED, WAITED, send(signal.SIGSTOP), status=75),
}


class FaultyPrograms:
    """The executables: the same path on all hosts, what it leads to differs."""

    def __init__(self, build):
        self.loop = build.text("loop", LOOP)
        other = build.text("other", LOOP.replace("0.5", "0.25"))
        self.odd = build.script("odd", f"""if [ "$(hostname)" = h1 ]; then exec {other} "$@"; fi\nexec {self.loop} "$@"\n""")
        big = "mesh (X = 6);\nfn main(x: f32[1000000@X]) -> f32[1000000@X] {{\n  {}\n  x + 1\n}}\n"
        self.full = build.text("full", big.format(""))
        self.full_save = build.text("full_save", big.format('for i in 0..9 { save("out-{}.npz", i, x); }'))
        # All processes write every file.
        self.saving = build.text("saving_on", """mesh (X = 6);
fn main(x: f32[1000000@X]) -> f32[1000000@X] {
  let mut y = x;
  for i in 0..2000000000 { y = 0.5 * y + 1; save("out-{}.npz", i % 5, (y, 2 * y)); if i == 4 { print("started"); } }
  y
}
""")
        self.preload = self.quitter(build)

    def quitter(self, build):
        """A script that starts the loop so that a signal ends it with status 0; None without a C compiler."""
        compiler = next((name for name in ["cc", "gcc", "clang"] if shutil.which(name)), None)
        if compiler is None:
            return None
        source = build.folder / "quitter.c"
        source.write_text(QUITTER)
        assert os.system(f"{compiler} -shared -fPIC -o {build.folder}/quitter.so {source}") == 0
        return build.script("quitting", f"""export LD_PRELOAD={build.folder}/quitter.so\nexec {self.loop} "$@"\n""")

    def of(self, name):
        """The executable for a fault, and its words."""
        words = WORDS + FAULTS[name].words
        match name:
            case "quit":
                return self.preload, words
            case "another program":
                return self.odd, words
            case "full at --out":
                return self.full, ["--arg", "x=ones", "--timeout", str(TIMEOUT), "--out", "disk/out.npz"]
            case "full at save":
                return self.full_save, ["--arg", "x=ones", "--timeout", str(TIMEOUT)]
            case "killed at save" | "stopped at save":
                return self.saving, ["--arg", "x=ones", "--timeout", str(TIMEOUT)]
            case _:
                return self.loop, words


def on_small_disk(build, program, folder):
    """A script that runs a program in a folder on a disk of 1 MB, and lists what is left there."""
    return build.script("small", f"""disk={folder}/disk
mkdir -p $disk
mount -t tmpfs -o size=1m disk $disk
cd {"$disk" if program.name == "full_save" else folder}
{program} "$@"
status=$?
[ "$(hostname)" = h0 ] && ls -A $disk > {folder}/left
exit $status
""")


def check_fault(network, build, programs, mpi, name):
    """Injects a fault; the seconds after which the launcher and the last process have ended."""
    fault = FAULTS[name]
    program, words = programs.of(name)
    if program is None:
        return "skipped: there is no C compiler"
    started = on_small_disk(build, program, network.folder) if name.startswith("full") else program
    executable = programs.loop if program in [programs.odd, programs.preload] else program
    job = Job(network, build.spmdc, mpi, started, words, ["--grace", str(GRACE)])
    if fault.act is not None:
        job.wait_for("started")
        time.sleep(0.3)
        fault.act(network, executable)
    begin = time.monotonic()
    last = None
    while job.launch.poll() is None or last is None:
        now = time.monotonic() - begin
        # Without an act the processes may not have begun.
        has_begun = fault.act is not None or job.launch.poll() is not None
        if last is None and has_begun and not any(network.running(host, executable) for host in HOSTS):
            last = now
        assert now < fault.seconds + 30, f"the job has not ended after {now:.0f} s"
        time.sleep(0.05)
    seconds = time.monotonic() - begin
    status, out, err = job.end(1)
    said = f"exit status {status} after {seconds:.1f} s, and this on standard error:\n{err}"
    assert status != 0, said
    assert fault.status in (None, status), said
    assert seconds < fault.seconds, said
    # MPICH's launcher names a lost process on standard output.
    assert re.search(fault.says, out + err), said
    assert "error[" in err, said
    if name.endswith("ed at save"):
        for path in network.folder.glob("out-*.npz"):
            # What has its name is complete: the checksums are right.
            assert zipfile.ZipFile(path).testzip() is None, f"{path.name} is half there"
            path.unlink()
        # Only a process that is not killed itself can remove what it has begun.
        for path in network.folder.glob(".out-*.tmp") if name.startswith("killed") else []:
            path.unlink()
    left = [path.name for path in network.folder.rglob("*.npz*")]
    if name.startswith("full"):
        left += [line for line in (network.folder / "left").read_text().splitlines() if not line.endswith(".npz")]
        left += [line for line in (network.folder / "left").read_text().splitlines() if name == "full at --out"]
    assert not left, f"these files are left: {left}"
    return f"{seconds:.1f} s, the last process {last:.1f} s"
