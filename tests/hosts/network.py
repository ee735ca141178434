"""Three hosts on this machine: network namespaces joined by a bridge. `on` runs a command on one of them."""

import os
import pathlib
import shutil
import signal
import subprocess

HOSTS = ["h0", "h1", "h2"]
HERE = pathlib.Path(__file__).resolve().parent
# Seconds after which a command that always ends soon is in trouble.
LONGEST = 120


def ran(words, **options):
    """Runs a command to its end; an exception if it takes too long."""
    return subprocess.run(words, timeout=LONGEST, **options)


def missing():
    """Why there can be no such hosts here; None if there can."""
    if os.geteuid() != 0:
        return "making hosts needs root"
    for command in ["ip", "unshare"]:
        if shutil.which(command) is None:
            return f"`{command}` is not installed"
    name = f"spmdc-{os.getpid()}-try"
    tried = ran(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode == 0:
        tried = ran(["ip", "netns", "exec", name, "unshare", "--uts", "--pid", "--fork", "--mount-proc",
                     "true"], capture_output=True, text=True)
        ran(["ip", "netns", "delete", name], capture_output=True)
    return None if tried.returncode == 0 else f"network namespaces cannot be made: {tried.stderr.strip()}"


def ip(*words):
    ran(["ip", *words], check=True)


class Network:
    """The hosts, which exist inside `with`. `folder` is one that all of them see."""

    def __init__(self, folder):
        self.prefix = f"spmdc-{os.getpid()}-"
        self.folder = folder
        self.env = dict(os.environ, HOSTS_NETWORK=self.prefix, HOSTS_FOLDER=str(folder))

    def namespace(self, host):
        return self.prefix + host

    def __enter__(self):
        switch = self.namespace("switch")
        ip("netns", "add", switch)
        try:
            ip("-n", switch, "link", "add", "bridge", "type", "bridge")
            ip("-n", switch, "link", "set", "bridge", "up")
            addresses = ["127.0.0.1 localhost"]
            for number, host in enumerate(HOSTS):
                own = self.namespace(host)
                ip("netns", "add", own)
                ip("-n", own, "link", "set", "lo", "up")
                ip("link", "add", host, "netns", switch, "type", "veth", "peer", "name", "eth0", "netns", own)
                ip("-n", switch, "link", "set", host, "master", "bridge")
                ip("-n", switch, "link", "set", host, "up")
                ip("-n", own, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
                ip("-n", own, "link", "set", "eth0", "up")
                addresses.append(f"10.77.0.{number + 1} {host}")
            (self.folder / "hosts").write_text("\n".join(addresses) + "\n")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for off in self.folder.glob("*.off"):
            off.unlink()
        for host in [*HOSTS, "switch"]:
            for process in self.processes(host):
                kill(process)
            ran(["ip", "netns", "delete", self.namespace(host)], capture_output=True)

    def processes(self, host):
        """The numbers of all processes on a host."""
        listed = ran(["ip", "netns", "pids", self.namespace(host)], capture_output=True, text=True)
        return [int(number) for number in listed.stdout.split()]

    def running(self, host, program):
        """The processes on a host that run this executable."""
        def runs(process):
            try:
                return os.path.samefile(f"/proc/{process}/exe", program)
            except OSError:
                return False
        return [process for process in self.processes(host) if runs(process)]

    def on(self, host, words):
        """The words of a command that runs another one on a host."""
        return [str(HERE / "on"), host, *words]

    def unplug(self, host):
        """Pulls the cable of a host."""
        ip("-n", self.namespace("switch"), "link", "set", host, "down")

    def cut_power(self, host):
        """Ends a host without a word to the others."""
        (self.folder / f"{host}.off").touch()
        self.unplug(host)
        for process in self.processes(host):
            kill(process)


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
