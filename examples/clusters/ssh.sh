#!/bin/sh
# Hosts that are reached by ssh without a password, and that see the folder of the program under the same path.
# One process on each host. Write `-n 4` for two on each of two hosts.
set -eu
hosts=${1:?usage: ssh.sh HOST,HOST...}
spmdc launch --hosts "$hosts" -- "$PWD/program" --arg x=@x.npy --out y.npy
