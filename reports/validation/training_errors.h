// Formats the errors of predicted training throughputs, for validation_text().
#pragma once

#include <string>
#include <vector>

#include "reports/validation/validation.h"

namespace tandem {

// Returns the errors by strategy, one node or several, and file, beside those of predicting a multiple of one device's
// throughput. With `by_row`, a table of all rows comes first.
std::string training_errors_text(const std::vector<TrainingPoint>& points, bool by_row);
// Returns the errors of predicted peaks of memory by file; with `by_row`, a table of all rows comes first.
std::string peak_errors_text(const std::vector<TrainingPoint>& points, bool by_row);

}  // namespace tandem
