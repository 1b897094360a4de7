// Simulates published training throughputs.
#pragma once

#include <string>
#include <vector>

#include "scenarios/measurements/training_file.h"
#include "scenarios/validation/training_replay.h"

namespace tandem::validation {

// Predicts the rows of the tables. With `fits_first_row`, fits the device to the row of one device and predicts the
// other rows; leaves out tables without such a row, or without others. Otherwise predicts every row from the device's
// figures.
TrainingReplay replay_training(const std::string& file, const std::vector<TrainingTable>& tables, bool fits_first_row);

}  // namespace tandem::validation
