// Simulates published throughputs of asynchronous training with parameter servers.
#pragma once

#include <string>
#include <vector>

#include "scenarios/validation/training.h"

namespace tandem::validation {

// Predicts the rows of tables of one file that have parameter servers: on each worker one device, and on machines of
// their own the servers.
//
// `fits_first_row`: fits the worker of each table to its row of one worker. Fits the server, whose rate no source
// states, to one row of the file: the last one of the first table whose throughput falls 10 % short of that many times
// one worker. Predicts all other rows. Otherwise every row is predicted from the figures of the machines.
void replay_parameter_servers(const std::string& file, const std::vector<TrainingTable>& tables, bool fits_first_row,
                              TrainingReplay& replay);

}  // namespace tandem::validation
