// A number goes round a ring of ranks, and every rank learns the sum. Any MPI.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double Setting(const char* name, double otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : atof(text);
}

int main(int argc, char** argv) {
  const int steps = (int)Setting("STEPS", 50);
  const double pause = Setting("PAUSE", 0);  // seconds after every step, to watch it at work
  const char* role = getenv("SHOAL_ROLE");
  const char* index = getenv("SHOAL_INDEX");
  int rank, size;
  long long total = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d in %s-%s\n", rank, size, role == NULL ? "?" : role, index == NULL ? "?" : index);
  printf("ready\n");
  fflush(stdout);
  for (int step = 0; step < steps; ++step) {
    int token = rank, sum = 0;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    total += sum;
    usleep((useconds_t)(pause * 1e6));
  }
  if (total != (long long)steps * size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 4);
  if (rank == 0) printf("%d steps, sum %lld\n", steps, total);
  MPI_Finalize();
  return 0;
}
