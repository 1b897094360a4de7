// One job under many schedules: what must not depend on the order in which tasks run, and what may.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "reports/report.h"

namespace tandem {

struct FailedSchedule {
  std::uint64_t seed = 0;
  std::string what;     // what differs, or the run's error
  std::string command;  // that runs it again
};

struct Exploration {
  Report unseeded;                // in the engine's own order
  bool values_compared = false;   // the runs carry values
  std::uint64_t first_seed = 1;   // the seeds follow each other
  int schedules = 0;              // asked for
  int completed = 0;              // those that ended as the unseeded run did
  std::uint64_t choices = 0;      // of the runs together: how often a seed decided who went first
  Nanoseconds min_step_time = 0;  // of the median step times of the completed runs
  Nanoseconds max_step_time = 0;
  std::optional<FailedSchedule> failure;  // the first one; none follows it

  void add(const Report& run);  // one that has completed
};

// The first value (loss, then metrics) that is not bit for bit the same in both: "loss of step 3 is 2.25, and 2.5
// without a seed". Empty where there is none.
std::string difference_of_values(const Report& run, const Report& unseeded);

std::string exploration_text(const Exploration& exploration);
nlohmann::ordered_json exploration_to_json(const Exploration& exploration);

}  // namespace tandem
