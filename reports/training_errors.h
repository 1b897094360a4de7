// The errors of predicted training throughputs, for validation_text().
#pragma once

#include <string>
#include <vector>

#include "reports/validation.h"

namespace tandem {

// Errors by strategy, one node or several, and file, beside those of as many times one device. `by_row`: after a table
// of all rows.
std::string training_errors_text(const std::vector<TrainingPoint>& points, bool by_row);

}  // namespace tandem
