// What a run of a scenario gives.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "reports/run/memory_curve.h"
#include "reports/run/report.h"
#include "topologies/topology.h"

namespace tandem {

struct RunResult {
  Report report;
  Timeline timeline;
  std::shared_ptr<const Topology> topology{};  // null: this machine, without figures
  std::vector<int> machines{};                 // of the topology, by worker
  std::optional<MemoryCurve> memory{};         // of a prediction that is not only for its report
};

}  // namespace tandem
