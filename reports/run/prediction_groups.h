// The groups of published training runs for which errors are known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tandem {

enum class PredictionGroup : std::uint8_t {
  one_device,
  one_node,
  several_nodes,
  several_nodes_mesh,
  fully_sharded,
  parameter_server,
  central_storage,
};

std::span<const PredictionGroup> prediction_groups();  // all of them

// Returns the name of the group in tables, "one node".
std::string_view name_of(PredictionGroup group);

// Returns the group of a training run (PredictionKind::strategy), or nothing if no such published run is known.
std::optional<PredictionGroup> prediction_group(std::string_view strategy, int devices, int nodes);

// The errors of published training runs of a group.
struct GroupErrors {
  PredictionGroup group = PredictionGroup::one_device;
  bool is_fitted = false;  // the device was fitted to the row of one device; those rows are not counted
  int rows = 0;
  int sources = 1;         // that published them
  double band = 0;         // within which 95 % of the absolute errors are; 0.1 is 10 %
  bool is_of_all = false;  // because few sources have rows of the group, the band is that of all groups
};

}  // namespace tandem
