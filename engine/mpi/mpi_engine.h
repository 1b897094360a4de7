// The mpi engine: the processes that mpirun or srun has started, as a cluster. Each process has workers of its own,
// whose devices are threads like those of the cpu engine; MPI executes collectives between processes. A process that
// was started alone has all workers and needs no MPI.
#pragma once

#include <memory>

#include "engine/engine_info.h"

namespace tandem {

inline EngineInfo mpi_engine_info() {
  return {.name = "mpi"};
}

// `options` have been checked: see open_engine(). Throws UnavailableError where MPI cannot be used.
std::unique_ptr<Engine> open_mpi_engine(EngineOptions options);

// Joins the processes of the launch; null where this one is alone.
LaunchedJob* join_mpi_job();

LibraryVersions mpi_libraries();  // the MPI that the engine was built with

}  // namespace tandem
