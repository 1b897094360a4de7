// The cuda engine: the GPUs of this machine as a cluster. Logical device i of a worker is on GPU i mod the number of
// GPUs; several workers share the process. Tasks, monitors and workers are those of engine/threads/.
#pragma once

#include <memory>

#include "engine/cuda/cuda_engine_info.h"
#include "engine/threads/process_devices.h"

namespace tandem {

// `options` have been checked: see open_engine(). Throws UnavailableError where there is no GPU, or no driver for it,
// with the reason.
std::unique_ptr<Engine> open_cuda_engine(EngineOptions options);

// Opens the GPUs for an engine whose runs span processes. Throws as open_cuda_engine() does.
std::unique_ptr<threads::ProcessDevices> open_process_gpus();

}  // namespace tandem
