#!/bin/bash
# A job of Slurm: one process on each of two nodes, with all its cores. Submit it with `sbatch slurm.sh`.
#SBATCH --job-name=spmd
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00

# pmix is for Open MPI, pmi2 for MPICH; `srun --mpi=list` shows what there is. Without -K1 the others would wait for a killed process.
srun --mpi=pmix -K1 ./program --arg x=@x.npy --out y.npy
