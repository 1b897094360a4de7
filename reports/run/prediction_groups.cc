#include "reports/run/prediction_groups.h"

#include <array>

namespace tandem {
namespace {

using enum PredictionGroup;
constexpr std::array kGroups = {one_device,    one_node,         several_nodes,  several_nodes_mesh,
                                fully_sharded, parameter_server, central_storage};

}  // namespace

std::span<const PredictionGroup> prediction_groups() {
  return kGroups;
}

std::string_view name_of(PredictionGroup group) {
  switch (group) {
    case one_device:
      return "one device";
    case one_node:
      return "one node";
    case several_nodes:
      return "several nodes, data parallel";
    case several_nodes_mesh:
      return "several nodes, mesh";
    case fully_sharded:
      return "fully sharded";
    case parameter_server:
      return "parameter servers";
    case central_storage:
      break;
  }
  return "central storage";
}

std::optional<PredictionGroup> prediction_group(std::string_view strategy, int devices, int nodes) {
  if (strategy == "servers") return parameter_server;
  if (strategy == "central") return central_storage;
  const bool is_mesh = strategy == "mesh", is_sharded = strategy == "sharded";
  if (!is_mesh && !is_sharded && strategy != "replicas") return std::nullopt;
  if (devices == 1) return one_device;
  if (is_sharded) return fully_sharded;
  if (nodes == 1) return one_node;
  return is_mesh ? several_nodes_mesh : several_nodes;
}

}  // namespace tandem
