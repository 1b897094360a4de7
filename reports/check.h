// Did the timings change? A report against the one stored as its baseline.
//
// Simulated times have no noise: they are compared for equality, or within the tolerance where one is given. Measured
// times compare by the ratio of the medians; a change counts when it exceeds the tolerance by more than the noise of
// the two runs, and is inconclusive in between.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace tandem {

enum class Verdict : std::uint8_t { ok, improved, regressed, model_changed, inconclusive };
std::string_view name_of(Verdict verdict);  // "ok", ..., "model changed"

struct CheckLimits {
  std::optional<double> tolerance{};  // of the step time; none: 3 % of measured times, nothing of simulated ones
  int min_samples = 9;                // steps a measured run needs before its median says anything
  std::optional<Nanoseconds> max_step_time_ns{};  // a budget: exceeding it is a regression, whatever the baseline says
};
inline constexpr double kMeasuredTolerance = 0.03;

// One figure that is not as in the baseline; of measured runs only the step time is judged.
struct CheckedFigure {
  std::string name;  // "step_time.median", "per_step.compute", "all_reduce 1048576 B x 8"
  Nanoseconds baseline_ns = 0;
  Nanoseconds current_ns = 0;
};

struct CheckResult {
  Verdict verdict = Verdict::ok;
  double change = 0;     // of the median step time: current / baseline - 1
  double tolerance = 0;  // what was applied
  double noise = 0;      // of both runs together, relative; 0 for simulated ones
  std::vector<CheckedFigure> differences;
  std::vector<std::string> reasons;  // sentences, the decisive one first
};

CheckResult check(const Report& report, const Report& baseline, const CheckLimits& limits);

nlohmann::ordered_json check_to_json(const CheckResult& result, const Report& report, const Report& baseline);
std::string check_text(const CheckResult& result, const Report& report, const Report& baseline);

}  // namespace tandem
