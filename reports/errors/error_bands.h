// The errors that predictions have had, by what a prediction rests on and what it is of. The figures are data:
// reports/errors/known_errors.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/errors/prediction_groups.h"

namespace tandem {

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

// How far measurements have been from predictions of a kind.
struct ErrorBand {
  std::vector<ErrorInterval> intervals{};  // by level; empty: none is known
  std::string basis{};                     // what was compared, or why no interval is known

  // Returns the interval of the highest level; null: none is known.
  const ErrorInterval* widest() const { return intervals.empty() ? nullptr : &intervals.back(); }
  bool operator==(const ErrorBand&) const = default;
};

// Returns the errors of a group, or nothing if no measurements of it were compared.
std::optional<GroupErrors> errors_of(const PredictionRows& of, FigureBasis figures);

// Returns the band of a prediction. If a device was fitted, but no runs of the group were compared with fitted devices,
// the band is that of stated figures.
ErrorBand error_band_of(const PredictionKind& kind);
// Returns the band of collectives or memory.
ErrorBand error_band_of(const PredictionRows& of, FigureBasis figures);

std::string band_text(const ErrorBand& band);        // "-19..+35 %", "unknown"
std::string band_basis_text(const ErrorBand& band);  // "19 of 20 measured were within that of predicted: 45 ..."

}  // namespace tandem
