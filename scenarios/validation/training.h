// Simulates published training throughputs.
#pragma once

#include <string>
#include <vector>

#include "reports/validation.h"
#include "scenarios/validation/training_file.h"

namespace tandem::validation {

// Predicts the rows of the tables. `fits_first_row`: fits the device to the row of one device, and predicts the others;
// tables without such a row, or without others, are left out. Otherwise every row is predicted from the device's
// figures.
struct TrainingReplay {
  std::vector<TrainingPoint> points;
  std::vector<LeftOut> left_out;
};
TrainingReplay replay_training(const std::string& file, const std::vector<TrainingTable>& tables, bool fits_first_row);

}  // namespace tandem::validation
