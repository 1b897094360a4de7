// The mpi engine: the processes that mpirun or srun has started, as a cluster, or the tasks of a cluster that were
// started one by one (set_tasks). Each process has workers of its own. Their devices are threads like those of the cpu
// engine, and MPI executes collectives between processes, or TCP connections do between tasks; or they are the
// process's GPUs, and NCCL does. A process that was started alone has all workers. Only a launch needs MPI.
#pragma once

#include <memory>

#include "engine/engine_info.h"
#include "engine/threads/process_devices.h"

namespace tandem {

inline EngineInfo mpi_engine_info() {
  return {.name = "mpi", .faults = FaultSupport::devices};
}

// Opens the GPUs of this process. Throws UnavailableError where there is none.
using OpenGpus = std::unique_ptr<threads::ProcessDevices> (*)();

// `options` have been checked: see open_engine(). `open_gpus` is called if workers compute on GPUs, which they do only
// where it is not null. Throws UnavailableError where MPI cannot be used, or on some rank no GPU.
std::unique_ptr<Engine> open_mpi_engine(EngineOptions options, OpenGpus open_gpus = nullptr);

// Joins the processes of the launch; null where this one is alone.
LaunchedJob* join_mpi_job();

LibraryVersions mpi_libraries();  // the MPI that is found here, and the one that the engine was built with

}  // namespace tandem
