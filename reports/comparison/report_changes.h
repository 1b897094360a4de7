// In what two reports differ: their times, their jobs, and what else decides times.
//
// Threads: any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/run/report.h"

namespace tandem {

// A figure that differs from the baseline. For measured runs only the step time is compared.
struct CheckedFigure {
  std::string name;  // "step_time.median", "per_step.compute", "all_reduce 1048576 B x 8"
  Nanoseconds baseline_ns = 0;
  Nanoseconds current_ns = 0;
};
std::string change_text(const CheckedFigure& figure);  // "+3.2 %", or "-" if the baseline lacks the figure

// Returns the times of the step's figures and of its collectives, by name: "per_step.compute".
std::map<std::string, Nanoseconds> parts_of(const Report& report);
// Returns a setting of the report's scenario; "(none)" if it has none of that name.
std::string setting_of(const Report& report, const std::string& name);

// Returns the times of the two reports that differ by more than `tolerance` of the baseline's, by name. Parts of the
// step are compared where both reports know them, and both are those of the mean step.
std::vector<CheckedFigure> time_changes(const Report& report, const Report& baseline, double tolerance);

// Says in what the jobs of the two reports differ, a sentence each. `content_changes` says in what the contents of the
// scenarios differ, if they do; empty: only the hashes are known.
std::vector<std::string> job_changes(const Report& report, const Report& baseline, bool compares_content,
                                     const std::vector<std::string>& content_changes = {});

// Says in what differs what times depend on besides the job: versions, network model, topology.
std::vector<std::string> model_changes(const Report& report, const Report& baseline);

}  // namespace tandem
