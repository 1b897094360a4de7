// Formats the errors of predicted training throughputs, for validation_text().
#pragma once

#include <string>
#include <vector>

#include "reports/run/error_bands.h"
#include "reports/validation/validation.h"

namespace tandem {

// Returns the errors by strategy, one node or several, and file, beside those of predicting a multiple of one device's
// throughput; then those of the groups of error_bands.h. With `by_row`, a table of all rows comes first.
std::string training_errors_text(const std::vector<TrainingPoint>& points, bool by_row);

// Returns the errors of the groups of which there are points, in the order of prediction_groups(). `is_fitted`: how the
// points were predicted (GroupErrors).
std::vector<GroupErrors> group_errors(const std::vector<TrainingPoint>& points, bool is_fitted);

}  // namespace tandem
