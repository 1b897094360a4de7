// Simulates published throughputs of training with parameter servers.
#pragma once

#include <string>
#include <vector>

#include "scenarios/measurements/training_file.h"
#include "scenarios/validation/training_replay.h"

namespace tandem::validation {

// Predicts the rows of those tables of a file that have parameter servers. Each worker has as many devices as the table
// says, and the servers have machines of their own.
//
// With `fits_first_row`, fits the worker of each table to its row of one worker, and the server, whose rate no source
// states, to one row of the file: the last row of the first table whose throughput is at least 10 % less than that of
// one worker times the number of workers. Predicts all other rows. Otherwise predicts every row from the figures of the
// machines.
void replay_parameter_servers(const std::string& file, const std::vector<TrainingTable>& tables, bool fits_first_row,
                              TrainingReplay& replay);

}  // namespace tandem::validation
