#include "reports/error_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tandem {
namespace {

// The 95th percentiles (nearest rank) of the absolute errors of launches on a calibrated machine in docs/fidelity.md.
constexpr double kEnoughCores = 0.131, kShortOfCores = 0.256;
constexpr int kEnoughCoresRuns = 45, kShortOfCoresRuns = 39;
// The 95th percentiles (nearest rank) of the absolute errors there.
using enum PredictionGroup;
constexpr std::array<GroupErrors, 11> kErrors = {{
    {one_device, false, 88, 0.219},
    {one_node, false, 199, 0.258},
    {several_nodes, false, 51, 0.538},
    {several_nodes_mesh, false, 10, 0.134},
    {parameter_server, false, 24, 2.433},
    {central_storage, false, 16, 0.453},
    {one_node, true, 193, 0.083},
    {several_nodes, true, 45, 0.340},
    {several_nodes_mesh, true, 9, 0.073},
    {parameter_server, true, 20, 0.065},
    {central_storage, true, 12, 0.408},
}};

}  // namespace

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
  const auto found = std::find_if(kErrors.begin(), kErrors.end(), [&](const GroupErrors& one) {
    return one.group == group && one.is_fitted == is_fitted;
  });
  return found == kErrors.end() ? std::nullopt : std::optional(*found);
}

ErrorBand error_band_of(const PredictionKind& kind) {
  if (kind.figures == FigureBasis::calibrated && kind.nodes == 1 && !kind.on_gpus) {
    const bool is_short = kind.is_short_of_cores;
    return {.relative = is_short ? kShortOfCores : kEnoughCores,
            .basis = fmt::format("{} comparisons on a calibrated machine, with {} CPU devices than cores",
                                 is_short ? kShortOfCoresRuns : kEnoughCoresRuns, is_short ? "more" : "no more")};
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
