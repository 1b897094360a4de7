#include "reports/error_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/known_errors.h"

namespace tandem {
namespace {

using enum PredictionGroup;
constexpr std::array kGroups = {one_device,         one_node,         several_nodes,
                                several_nodes_mesh, parameter_server, central_storage};

ErrorBand calibrated_band(bool is_short_of_cores) {
  const auto& all = known_errors().calibrated;
  const auto found = std::ranges::find(all, is_short_of_cores, &CalibratedErrors::is_short_of_cores);
  if (found == all.end()) return {.relative = {}, .basis = "no prediction on a calibrated machine was compared"};
  return {.relative = found->p95,
          .basis = fmt::format("{} comparisons on a calibrated machine, with {} CPU devices than cores",
                               found->launches, is_short_of_cores ? "more" : "no more")};
}

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
  const bool is_mesh = strategy == "mesh";
  if (!is_mesh && strategy != "replicas") return std::nullopt;
  if (devices == 1) return one_device;
  if (nodes == 1) return one_node;
  return is_mesh ? several_nodes_mesh : several_nodes;
}

std::optional<GroupErrors> errors_of(PredictionGroup group, bool is_fitted) {
  const auto& all = known_errors().published;
  const auto found = std::ranges::find_if(
      all, [&](const GroupErrors& one) { return one.group == group && one.is_fitted == is_fitted; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

ErrorBand error_band_of(const PredictionKind& kind) {
  if (kind.figures == FigureBasis::calibrated && kind.nodes == 1 && !kind.on_gpus) {
    return calibrated_band(kind.is_short_of_cores);
  }
  if (!kind.is_layers) return {.relative = {}, .basis = "no prediction of such a workload was compared"};
  if (!kind.on_gpus) return {.relative = {}, .basis = "no prediction for CPU devices of stated figures was compared"};
  const auto group = prediction_group(kind.strategy, kind.devices, kind.nodes);
  if (!group) return {.relative = {}, .basis = "no prediction with such a strategy was compared"};
  std::optional<GroupErrors> errors;
  if (kind.figures != FigureBasis::stated) errors = errors_of(*group, true);
  const bool is_fitted = errors.has_value();
  if (!errors) errors = errors_of(*group, false);
  return {.relative = errors->p95,
          .basis = fmt::format("{} published throughputs ({}), {}", errors->rows, name_of(*group),
                               is_fitted ? "device fitted" : "nothing fitted")};
}

}  // namespace tandem
