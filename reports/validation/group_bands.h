// The bands of groups of predictions, and whether they hold for sources that they do not rest on.
//
// Rows of one source share machines, software and whoever measured, so that they say little about those of another one.
// A band is therefore judged by sources: that of a group is made without one of them, and its rows are counted that are
// within it, for each source in turn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/prediction_groups.h"
#include "reports/validation/validation.h"

namespace tandem {

struct SourcedError {
  PredictionGroup group = PredictionGroup::one_device;
  std::string source{};
  double error = 0;  // absolute
};

// Returns the errors of all groups. Rows that are reported apart do not count, but those of central storage, which one
// process always drives.
std::vector<SourcedError> errors_for_bands(const std::vector<TrainingPoint>& points);

std::vector<double> errors_in(PredictionGroup group, const std::vector<SourcedError>& errors);

// Returns the 95th percentile of the errors of a group that has some; where fewer than four sources have rows of it, at
// least that of all groups together, without parameter servers and central storage, which have a group of their own
// because they are predicted much worse.
GroupErrors band_of(PredictionGroup group, const std::vector<SourcedError>& errors);

// Returns the share of a group's rows that are within the band that the other sources give; nothing if no row has one.
std::optional<double> share_of_new_sources(PredictionGroup group, const std::vector<SourcedError>& errors);

}  // namespace tandem
