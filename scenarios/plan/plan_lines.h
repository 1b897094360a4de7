// What a plan keeps of a point beside its quick simulation, as a line of a results file (sweep/results_file.h), which
// sweeps pass over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/plan/plan_table.h"
#include "scenarios/sweep/results_file.h"

namespace tandem {

struct KeptOfPlan {
  enum class What : std::uint8_t {
    seen,      // PointBounds: `point` without its times, `planned` without is_whole
    whole,     // a simulation as `tandem run` does it
    too_long,  // such a simulation was given up after `seconds`
    variant,   // a quick simulation of the scenario as it is, with only these values of a point
  };
  What what = What::seen;
  SweptPoint point{};  // with its values
  PlannedPoint planned{};
  double seconds = 0;
  std::string files{};  // SweepSpace::files_hash()
};

std::string line_of_plan(const KeptOfPlan& kept);
// Returns nothing for a line of another format, which other states of Tandem have written. Throws InputError for a
// broken one.
std::optional<KeptOfPlan> kept_of_line(const LineOfPlan& line);

}  // namespace tandem
