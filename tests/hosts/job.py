"""Programs that are built once and started on the hosts by `spmdc launch`."""

import pathlib
import shutil
import subprocess
import time

from network import HERE, HOSTS, ran

ROOT = HERE.parent.parent
# The launcher of each MPI, and what it says of itself.
LAUNCHERS = {"openmpi": (["mpirun.openmpi", "mpirun"], "Open MPI"), "mpich": (["mpiexec.hydra", "mpirun.mpich"], "HYDRA")}
# What makes the launchers call `on` in the place of ssh.
BY_ON = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_plm_rsh_agent": str(HERE / "on"),
    "HYDRA_LAUNCHER": "ssh",
    "HYDRA_LAUNCHER_EXEC": str(HERE / "on"),
}


def installed():
    """The MPIs that are installed; says which are not."""
    found = []
    for mpi, (names, says) in LAUNCHERS.items():
        paths = [name for name in names if shutil.which(name)]
        if any(says in ran([name, "--version"], capture_output=True, text=True).stdout for name in paths):
            found.append(mpi)
        else:
            print(f"skipped: {mpi} is not installed")
    return found


class Builder:
    """Builds programs in a folder that all hosts see."""

    def __init__(self, spmdc, folder):
        self.spmdc, self.folder = spmdc, folder

    def text(self, name, text):
        """An executable of this program."""
        source = self.folder / f"{name}.spmd"
        assert not source.exists() or source.read_text() == text, f"two programs are called {name}"
        source.write_text(text)
        return self.file(source)

    def file(self, source, *options):
        """An executable of the program in a file."""
        executable = self.folder / pathlib.Path(source).stem
        ran([self.spmdc, "build", source, "-o", executable, *options], check=True)
        return executable

    def script(self, name, text):
        """A script that is started in the place of an executable."""
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return path


class Job:
    """A program under way on all hosts, started from the first one."""

    def __init__(self, network, spmdc, mpi, program, words, options=()):
        self.out, self.err = network.folder / "job.out", network.folder / "job.err"
        line = [spmdc, "launch", "--hosts", ",".join(HOSTS), "--mpi", mpi, *options, "--", program, *words]
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.launch = subprocess.Popen(network.on(HOSTS[0], [f"'{word}'" for word in line]), stdout=out, stderr=err,
                                           env=dict(network.env, **BY_ON), cwd=network.folder)

    def wait_for(self, text, seconds=60):
        """Waits until the program has printed this text."""
        until = time.monotonic() + seconds
        while text not in self.out.read_text():
            if self.launch.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"`{text}` was not printed:\n{self.err.read_text()}")
            time.sleep(0.02)

    def end(self, seconds):
        """The exit status, and what was written to standard output and error."""
        status = self.launch.wait(seconds)
        return status, self.out.read_text(), self.err.read_text()
