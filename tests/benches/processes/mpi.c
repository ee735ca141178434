// Times collectives of MPI between two processes: prints the least seconds of one call, over some rounds.
//
//   mpicc -O3 mpi.c -o mpi && mpirun --bind-to none -n 2 ./mpi all_reduce ELEMENTS TRIPS ROUNDS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  const char *kind = argv[1];
  int n = atoi(argv[2]), trips = atoi(argv[3]), rounds = atoi(argv[4]), rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float *from = calloc((size_t)n * size, sizeof(float)), *to = calloc((size_t)n * size, sizeof(float));
  memset(from, 0, sizeof(float) * n * size);
  memset(to, 0, sizeof(float) * n * size);
  double least = 1e30;
  for (int round = 0; round < rounds; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int trip = 0; trip < trips; trip++) {
      if (!strcmp(kind, "all_reduce")) MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      else if (!strcmp(kind, "all_gather")) MPI_Allgather(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD);
      else if (!strcmp(kind, "reduce_scatter")) MPI_Reduce_scatter_block(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      else if (!strcmp(kind, "all_to_all")) MPI_Alltoall(from, n, MPI_FLOAT, to, n, MPI_FLOAT, MPI_COMM_WORLD);
      else if (!strcmp(kind, "permute")) {
        int next = (rank + 1) % size, last = (rank + size - 1) % size;
        MPI_Sendrecv(from, n, MPI_FLOAT, next, 0, to, n, MPI_FLOAT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else MPI_Abort(MPI_COMM_WORLD, 2);
      // As in the programs beside this one, a trip goes on with one of its results.
      from[0] = to[0];
    }
    double each = (MPI_Wtime() - begin) / trips;
    if (each < least) least = each;
  }
  if (rank == 0) printf("least %.9f\n", least);
  MPI_Finalize();
  return 0;
}
