// What the cuda engine is, for the table of engines.
#pragma once

#include "engine/engine_info.h"

namespace tandem {

inline EngineInfo cuda_engine_info() {
  return {.name = "cuda",
          .graphs = true,
          .faults = FaultSupport::devices,
          .device_types = {DeviceType::cpu, DeviceType::gpu},
          .default_device = DeviceType::gpu};
}

// Returns the versions of CUDA, cuBLAS and NCCL that the engine was built with.
LibraryVersions cuda_libraries();

}  // namespace tandem
