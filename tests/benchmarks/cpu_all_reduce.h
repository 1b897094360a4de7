// One measurement of an all-reduce between two devices of the cpu engine, and of the same by MPI between two ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

inline constexpr std::int64_t kAllReduceBytes = 64'000'000;

// Bytes per second of bus bandwidth (nccl-tests), the mean over a few calls after warming up. `timeline`, which may be
// null, is set to the records of all that was done.
double cpu_all_reduce_busbw(std::int64_t bytes, Timeline* timeline = nullptr);

// The same from `mpirun -n 2 mpi_all_reduce`. Nothing, with the reason, where MPI does not run.
std::optional<double> mpi_all_reduce_busbw(std::int64_t bytes, std::string& reason);

// Both measured in turns, `samples` times each.
struct AllReduceComparison {
  std::vector<double> cpu_busbw, mpi_busbw;
  double cpu_median() const;
  double mpi_median() const;
  double ratio() const { return cpu_median() / mpi_median(); }
};
std::optional<AllReduceComparison> compare_all_reduce(std::int64_t bytes, int samples, std::string& reason);

}  // namespace tandem
