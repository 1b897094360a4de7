// Reads the `faults:` and `recovery:` of a scenario.
#pragma once

#include <filesystem>
#include <memory>

#include "scenarios/faults/fault_settings.h"
#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Returns what the two say of the job of this scenario, whose topology, devices and strategy have been read; null where
// both are absent. Files are relative to `folder`.
std::shared_ptr<const FaultSettings> read_faults(const YamlReader& faults, const YamlReader& recovery,
                                                 const Scenario& scenario, const std::filesystem::path& folder);

}  // namespace tandem
