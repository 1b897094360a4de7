#include "reports/errors/error_bands.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/errors/known_errors.h"

namespace tandem {
namespace {

ErrorBand calibrated_band(bool is_short_of_cores) {
  const auto& all = known_errors().calibrated;
  const auto found = std::ranges::find(all, is_short_of_cores, &CalibratedErrors::is_short_of_cores);
  if (found == all.end()) return {.intervals = {}, .basis = "no prediction on a calibrated machine was compared"};
  return {.intervals = {interval_of_error(found->p95)},
          .basis = fmt::format("{} comparisons on a calibrated machine, with {} CPU devices than cores",
                               found->launches, is_short_of_cores ? "more" : "no more")};
}

}  // namespace

std::optional<GroupErrors> errors_of(const PredictionRows& of, FigureBasis figures) {
  const auto& all = known_errors().published;
  const auto found =
      std::ranges::find_if(all, [&](const GroupErrors& one) { return one.of == of && one.figures == figures; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

ErrorBand error_band_of(const PredictionRows& of, FigureBasis figures) {
  std::optional<GroupErrors> errors = errors_of(of, figures);
  if (!errors) errors = errors_of(of, FigureBasis::stated);
  if (!errors) return {.intervals = {}, .basis = fmt::format("no prediction ({}) was compared", name_of(of))};
  const std::string_view what = is_of_collectives(of.group)                  ? "times"
                                : of.group == PredictionGroup::device_memory ? "peaks"
                                                                             : "throughputs";
  return {.intervals = errors->intervals,
          .basis = fmt::format("{} published {} of {} {} ({}){}, {}", errors->rows, what, errors->sites,
                               errors->sites == 1 ? "site" : "sites", name_of(of),
                               errors->is_widened ? ", and those of other kinds" : "", name_of(errors->figures))};
}

ErrorBand error_band_of(const PredictionKind& kind) {
  if (kind.figures == FigureBasis::calibrated && kind.nodes == 1 && !kind.on_gpus) {
    return calibrated_band(kind.is_short_of_cores);
  }
  if (!kind.is_layers) return {.intervals = {}, .basis = "no prediction of such a workload was compared"};
  if (!kind.on_gpus) return {.intervals = {}, .basis = "no prediction for CPU devices of stated figures was compared"};
  const auto group = prediction_group(kind.strategy, kind.devices, kind.nodes);
  if (!group) return {.intervals = {}, .basis = "no prediction with such a strategy was compared"};
  const bool is_fitted = kind.figures != FigureBasis::stated;
  return error_band_of({*group, {}}, is_fitted ? FigureBasis::fitted : FigureBasis::stated);
}

std::string band_text(const ErrorBand& band) {
  return band.widest() != nullptr ? interval_text(*band.widest()) : "unknown";
}

std::string band_basis_text(const ErrorBand& band) {
  if (band.intervals.empty()) return "no band is known: " + band.basis;
  std::string text = fmt::format("{} measured were within that of predicted", level_text(band.widest()->level));
  for (std::size_t i = band.intervals.size() - 1; i-- > 0;) {
    text += fmt::format(", {} within {}", level_text(band.intervals[i].level), interval_text(band.intervals[i]));
  }
  return text + ": " + band.basis;
}

}  // namespace tandem
