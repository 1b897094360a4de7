// The results of runs of one job under many schedules. Values must not depend on the order in which tasks run; times
// may.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "reports/base/json_document.h"
#include "reports/run/report.h"

namespace tandem {

struct FailedSchedule {
  std::uint64_t seed = 0;
  std::string what;     // what differs, or the run's error
  std::string command;  // the command that repeats the run
};

struct Exploration {
  Report unseeded;                // in the engine's own order
  bool values_compared = false;   // the runs carry values
  std::uint64_t first_seed = 1;   // the seeds are consecutive
  int schedules = 0;              // number asked for
  int completed = 0;              // number of runs with the same outcome as the unseeded run
  std::uint64_t choices = 0;      // how often a seed decided who went first, summed over the runs
  Nanoseconds min_step_time = 0;  // over the mean step times of the completed runs
  Nanoseconds max_step_time = 0;
  std::optional<FailedSchedule> failure;  // the first one, which ends the exploration

  // Counts a run that has completed.
  void add(const Report& run);
};

// Describes the first value (loss, then metrics) whose bits differ: "loss of step 3 is 2.25, and 2.5 without a seed".
// Returns an empty text when all are equal.
std::string difference_of_values(const Report& run, const Report& unseeded);

std::string exploration_text(const Exploration& exploration);
nlohmann::ordered_json exploration_to_json(const Exploration& exploration);
// Throws InputError with everything that is missing or wrong.
Exploration exploration_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

}  // namespace tandem
