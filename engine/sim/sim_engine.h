// The sim engine: strategy code as actors of a SimGrid simulation of a topology.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace tandem {

std::unique_ptr<Engine> open_sim_engine(EngineOptions options);

}  // namespace tandem
