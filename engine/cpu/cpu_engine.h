// The cpu engine: this machine's processor as a cluster. Every logical device is a set of host threads (one per
// stream) over ordinary memory; several workers share the process.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace tandem {

std::unique_ptr<Engine> open_cpu_engine(EngineOptions options);

}  // namespace tandem
