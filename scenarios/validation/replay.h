// Simulates what was measured: one run of the model for each table, over all of its sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/validation/validation.h"
#include "scenarios/measurements/measurement_file.h"

namespace tandem::validation {

struct ReplayedRow {
  std::int64_t bytes = 0;
  double measured_us = 0;
  double model_us = 0;  // of the model as it is, without a fit
  std::string algorithm{};
};

struct ReplayedTable {
  std::string file{};
  std::string site{};  // who published it
  std::string family{};
  PredictionGroup group = PredictionGroup::collectives_nvlink;
  std::string node{};  // the machine's name in the catalog, or its file
  std::string operation{};
  std::string dtype{};
  int devices = 0;
  int nodes = 1;
  std::string apart{};
  std::vector<ReplayedRow> rows{};  // by size
};

struct Replay {
  std::vector<ReplayedTable> tables{};
  std::vector<LeftOut> left_out{};
};

// Replays the tables of the files. Calls `progress`, which may be empty, after each table.
Replay replay_collectives(const std::vector<MeasurementFile>& files,
                          const std::function<void(int done, int total)>& progress);

}  // namespace tandem::validation
