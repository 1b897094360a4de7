// What every engine that runs tasks on threads of this process asks of its options.
#pragma once

#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace tandem::threads {

// Throws Error naming what `engine`, which has devices of these types, cannot do.
void check_options(const EngineOptions& options, std::string_view engine, const std::vector<DeviceType>& types);

}  // namespace tandem::threads
