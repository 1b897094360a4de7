// What the device that needs most memory holds in the course of a step, by part.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/timeline.h"
#include "reports/run/memory_need.h"

namespace tandem {

class JsonField;

// From `at` on, until the next point.
struct MemoryPoint {
  Nanoseconds at = 0;  // from the start of the step
  std::int64_t activations = 0, workspace = 0;
  std::string moment{};  // "the forward pass of micro-batch 3, head"; empty: no pass is at work

  bool operator==(const MemoryPoint&) const = default;
};

struct MemoryCurve {
  std::string device{};
  int step = 0;
  Nanoseconds length = 0;  // of the step
  MemoryNeed need{};       // the peak; its other parts are the same at all points
  std::vector<MemoryPoint> points{};

  std::int64_t total_at(const MemoryPoint& point) const {
    return need.total() - need.activations - need.workspace + point.activations + point.workspace;
  }
  bool operator==(const MemoryCurve&) const = default;
};

// Pages and documents have no more points. Neighbours become one, that with most bytes.
inline constexpr std::size_t kMostMemoryPoints = 1000;
void make_coarse(MemoryCurve& curve, std::size_t most_points = kMostMemoryPoints);

nlohmann::ordered_json memory_curve_to_json(const MemoryCurve& curve);
MemoryCurve memory_curve_from_json(const JsonField& field);

}  // namespace tandem
