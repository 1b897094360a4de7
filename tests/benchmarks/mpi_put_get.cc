// MPI_Put and MPI_Get between rank 0 and a window of rank 1, which serves it from within MPI_Barrier; rank 0 prints the
// medians. Usage: mpirun -n 2 mpi_put_get BYTES
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kSamples = 41;

template <typename Call>
double median_seconds(MPI_Win window, Call&& call) {
  std::vector<double> seconds;
  for (int i = 0; i < kSamples; ++i) {
    const double start = MPI_Wtime();
    call();
    MPI_Win_flush(1, window);
    seconds.push_back(MPI_Wtime() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kSamples / 2, seconds.end());
  return seconds[kSamples / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long bytes = argc == 2 ? std::strtol(argv[1], nullptr, 10) : 0;
  if (bytes < 1 || ranks != 2) {
    if (rank == 0) std::fprintf(stderr, "usage: mpirun -n 2 mpi_put_get BYTES\n");
    MPI_Finalize();
    return 1;
  }
  std::vector<char> mine(static_cast<std::size_t>(bytes), 1), there(rank == 1 ? mine.size() : 0, 2);
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(there.data(), static_cast<MPI_Aint>(there.size()), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(0, window);
  if (rank == 0) {
    const int count = static_cast<int>(bytes);
    const double put =
        median_seconds(window, [&] { MPI_Put(mine.data(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, window); });
    const double get =
        median_seconds(window, [&] { MPI_Get(mine.data(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, window); });
    std::printf("MPI_Put of %ld bytes %.1f us, MPI_Get %.1f us, both %.1f us\n", bytes, put * 1e6, get * 1e6,
                (put + get) * 1e6);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
