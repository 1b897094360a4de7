// The place of this process among those that mpirun or srun started together.
#pragma once

#include <functional>

namespace tandem {

struct Rank {
  int index = 0;
  int count = 1;
};

// Reads what Open MPI, MPICH and others with PMI, MVAPICH2 and Slurm's srun tell their processes; {0, 1} without them.
// Throws RunError for numbers that make no sense. `variable` returns the value of a variable, or null.
Rank rank_of_process(const std::function<const char*(const char* name)>& variable);

}  // namespace tandem
