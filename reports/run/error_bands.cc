#include "reports/run/error_bands.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/run/known_errors.h"

namespace tandem {
namespace {

ErrorBand calibrated_band(bool is_short_of_cores) {
  const auto& all = known_errors().calibrated;
  const auto found = std::ranges::find(all, is_short_of_cores, &CalibratedErrors::is_short_of_cores);
  if (found == all.end()) return {.relative = {}, .basis = "no prediction on a calibrated machine was compared"};
  return {.relative = found->p95,
          .basis = fmt::format("{} comparisons on a calibrated machine, with {} CPU devices than cores",
                               found->launches, is_short_of_cores ? "more" : "no more")};
}

}  // namespace

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
  if (!errors) return {.relative = {}, .basis = fmt::format("no prediction ({}) was compared", name_of(*group))};
  const std::string all = errors->is_of_all ? fmt::format(", of {} {}, and other kinds", errors->sources,
                                                          errors->sources == 1 ? "source" : "sources")
                                            : "";
  return {.relative = errors->band,
          .basis = fmt::format("{} published throughputs ({}){}, {}", errors->rows, name_of(*group), all,
                               is_fitted ? "device fitted" : "nothing fitted")};
}

}  // namespace tandem
