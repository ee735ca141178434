#!/usr/bin/env python3
"""Runs programs on three hosts, which are network namespaces of this machine, and injects faults into them.

    tests/hosts/run.py target/debug/spmdc                 a program and a fault, in less than a minute
    tests/hosts/run.py target/debug/spmdc --all           all of them, in a few minutes
    tests/hosts/run.py target/debug/spmdc --all --mpi openmpi --only stopped --show

Needs root, `ip`, and Open MPI or MPICH; says so and succeeds without them.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import answers
import faults
import network
from job import Builder, installed

SHORT = ["stopped"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spmdc", type=pathlib.Path, help="the command that builds and launches the programs")
    parser.add_argument("--all", action="store_true", help="all programs and all faults")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="under this MPI alone")
    parser.add_argument("--only", help="checks with this in their names alone")
    parser.add_argument("--show", action="store_true", help="show what the jobs write to standard error")
    return parser.parse_args()


def checks(build, mpis, is_long):
    """All checks: a name, and what is to be called with a network."""
    programs = list(answers.programs(build, is_long))
    faulty = faults.FaultyPrograms(build)
    for mpi in mpis:
        yield f"{mpi}: devices", lambda net, mpi=mpi: answers.check_devices(net, build, mpi)
        for name, program, words in programs:
            yield f"{mpi}: {name}", lambda net, mpi=mpi, program=program, words=words: answers.check_program(
                net, build, mpi, program, words)
        for name in faults.FAULTS if is_long else SHORT:
            yield f"{mpi}: {name}", lambda net, mpi=mpi, name=name: faults.check_fault(net, build, faulty, mpi, name)


def main():
    args = arguments()
    why = network.missing()
    mpis = [mpi for mpi in installed() if args.mpi in (None, mpi)] if why is None else []
    if not mpis:
        print(f"skipped: {why or 'no MPI is installed'}")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="spmdc-hosts-") as folder:
        folder = pathlib.Path(folder)
        for name, check in checks(Builder(args.spmdc.resolve(), folder), mpis, args.all):
            if args.only is not None and args.only not in name:
                continue
            begin = time.monotonic()
            # A network of its own for each: a cable that was pulled is not remembered by others.
            with network.Network(folder) as net:
                try:
                    said = check(net) or f"{time.monotonic() - begin:.1f} s"
                except AssertionError as error:
                    failed += 1
                    said = f"FAILED: {error}"
            print(f"{name}: {said}", flush=True)
            if args.show:
                print((folder / "job.err").read_text(), flush=True)
    print(f"{failed} failed" if failed else "all is as it should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
