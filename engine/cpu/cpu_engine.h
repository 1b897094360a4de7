// The cpu engine: this machine's processor as a cluster. Every logical device is a set of host threads (one per
// stream) over ordinary memory; several workers share the process.
#pragma once

#include <memory>

#include "engine/engine_info.h"

namespace tandem {

inline EngineInfo cpu_engine_info() {
  return {.name = "cpu", .faults = FaultSupport::devices};
}

// `options` have been checked: see open_engine().
std::unique_ptr<Engine> open_cpu_engine(EngineOptions options);

LibraryVersions cpu_libraries();  // OpenBLAS

}  // namespace tandem
