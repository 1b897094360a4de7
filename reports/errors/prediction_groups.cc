#include "reports/errors/prediction_groups.h"

#include <fmt/format.h>

#include <array>

#include "reports/base/size_bands.h"

namespace tandem {
namespace {

using enum PredictionGroup;
constexpr std::array kGroups = {one_device,         one_node,         several_nodes,    several_nodes_mesh,
                                fully_sharded,      parameter_server, central_storage,  device_memory,
                                collectives_nvlink, collectives_pcie, collectives_rdma, collectives_other_networks};
constexpr std::array kBases = {FigureBasis::stated, FigureBasis::fitted, FigureBasis::calibrated};

std::string_view name_of_group(PredictionGroup group) {
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
      return "central storage";
    case device_memory:
      return "memory of a device";
    case collectives_nvlink:
      return "collectives over NVLink";
    case collectives_pcie:
      return "collectives over PCIe";
    case collectives_rdma:
      return "collectives over InfiniBand or RoCE";
    case collectives_other_networks:
      break;
  }
  return "collectives over other networks";
}

}  // namespace

std::span<const FigureBasis> figure_bases() {
  return kBases;
}

std::string_view name_of(FigureBasis basis) {
  switch (basis) {
    case FigureBasis::stated:
      return "nothing fitted";
    case FigureBasis::fitted:
      return "device fitted";
    case FigureBasis::calibrated:
      break;
  }
  return "calibrated";
}

std::span<const PredictionGroup> prediction_groups() {
  return kGroups;
}

bool is_of_collectives(PredictionGroup group) {
  return group >= collectives_nvlink;
}

std::vector<PredictionRows> all_prediction_rows() {
  std::vector<PredictionRows> all;
  for (const PredictionGroup group : kGroups) {
    if (!is_of_collectives(group)) {
      all.push_back({group, {}});
      continue;
    }
    for (std::size_t sizes = 0; sizes < kSizeBands.size(); ++sizes) all.push_back({group, sizes});
  }
  return all;
}

std::string name_of(const PredictionRows& rows) {
  const std::string_view group = name_of_group(rows.group);
  return rows.sizes ? fmt::format("{}, {}", group, kSizeBands.at(*rows.sizes).name) : std::string(group);
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
