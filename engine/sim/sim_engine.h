// The sim engine: runs strategy code as actors in a SimGrid simulation of a topology.
#pragma once

#include <memory>

#include "engine/engine_info.h"

namespace tandem {

inline EngineInfo sim_engine_info() {
  return {.name = "sim",
          .needs_topology = true,
          .seeded_schedule = true,
          .graphs = true,
          .models_collectives = true,
          .optional_values = true,
          .symmetry = true,
          .faults = FaultSupport::all,
          .device_types = {DeviceType::cpu, DeviceType::gpu}};
}

// `options` have been checked: see open_engine(). Throws Error where the topology lacks a worker's machine, and
// UnavailableError where that machine lacks the devices.
std::unique_ptr<Engine> open_sim_engine(EngineOptions options);

LibraryVersions sim_libraries();  // SimGrid

}  // namespace tandem
