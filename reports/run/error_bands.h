// The errors that predictions have had, by what a prediction rests on and what it is of. The figures are data:
// reports/run/known_errors.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/run/prediction_groups.h"

namespace tandem {

// What the figures of the devices rest on.
enum class FigureBasis : std::uint8_t {
  stated,      // a catalog, a datasheet, an assumption: nothing is fitted
  fitted,      // the device was measured or fitted to a measurement, the links were not all
  calibrated,  // every figure was measured on the machine
};

// What decides how wrong predictions of a kind have been.
struct PredictionKind {
  FigureBasis figures = FigureBasis::stated;
  std::string strategy{};  // "replicas", "mesh", "sharded", "servers" or "central"; empty: one that was never compared
  int devices = 1;         // that train
  int nodes = 1;           // on which devices train
  bool on_gpus = true;
  bool is_short_of_cores = false;  // whether a machine has fewer cores than CPU devices
  bool is_layers = true;           // whether the workload is a table of layers
};

// The error of predictions: 19 of 20 were within `relative` (0.26: 26 %).
struct ErrorBand {
  std::optional<double> relative{};  // empty: no band is known
  std::string basis{};               // what was compared, or why no band is known

  bool operator==(const ErrorBand&) const = default;
};

// Returns the errors of a group, or nothing if no runs of it were compared.
std::optional<GroupErrors> errors_of(PredictionGroup group, bool is_fitted);

// Returns the band of a prediction. If a device was fitted, but no runs of the group were compared with fitted devices,
// the band is that of stated figures.
ErrorBand error_band_of(const PredictionKind& kind);

}  // namespace tandem
