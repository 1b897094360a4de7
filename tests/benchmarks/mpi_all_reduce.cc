// MPI_Allreduce of f32 sums between the ranks it is started with; rank 0 prints the bus bandwidth in bytes/s.
// Usage: mpirun -n 2 mpi_all_reduce BYTES
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// Seconds of one call, the mean over a few after warming up.
double seconds_per_call(const float* from, std::vector<float>& to) {
  constexpr int kWarmUp = 2, kCalls = 5;
  const void* source = from == nullptr ? MPI_IN_PLACE : static_cast<const void*>(from);
  const int count = static_cast<int>(to.size());
  for (int i = 0; i < kWarmUp; ++i) MPI_Allreduce(source, to.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < kCalls; ++i) MPI_Allreduce(source, to.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / kCalls;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long bytes = argc == 2 ? std::strtol(argv[1], nullptr, 10) : 0;
  if (bytes < 4) {
    if (rank == 0) std::fprintf(stderr, "usage: mpi_all_reduce BYTES, at least 4\n");
    MPI_Finalize();
    return 1;
  }
  std::vector<float> to(static_cast<std::size_t>(bytes / 4), 1.0F);
  const std::vector<float> from(to.size(), 1.0F);
  // In place and out of place take different ways through MPI: the better one counts.
  const double seconds = std::min(seconds_per_call(nullptr, to), seconds_per_call(from.data(), to));
  if (rank == 0) std::printf("%.0f\n", static_cast<double>(bytes) / seconds * 2 * (ranks - 1) / ranks);
  MPI_Finalize();
  return 0;
}
