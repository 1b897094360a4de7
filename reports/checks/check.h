// Compares a report with a stored baseline: did the timings change?
//
// Simulated times have no noise: they must be equal, or within the tolerance if one is given. Measured runs must have
// done the same work (work_counts.h), where both reports say it and workers step together. Their times are
// compared by the ratio of the medians, or of the means where steps are uneven (compared_figure()). A change within the
// tolerance is ok. A larger one is inconclusive, because two launches of one program differ as well: paired_check.h and
// history.h judge measured times.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/comparison/report_changes.h"
#include "reports/run/report.h"

namespace tandem {

class JsonField;

enum class Verdict : std::uint8_t { ok, improved, regressed, model_changed, inconclusive };
std::string_view name_of(Verdict verdict);  // "ok", ..., "model changed"
Verdict verdict_from_json(const JsonField& field);

struct CheckLimits {
  std::optional<double> tolerance{};  // of the step time; empty: 3 % for measured times, 0 for simulated ones
  int min_samples = 9;                // fewest steps of a measured run for a verdict
  bool compares_content = true;       // whether a scenario with other content is another job
  std::optional<Nanoseconds> max_step_time_ns{};  // a longer step is a regression, whatever the baseline says
};
inline constexpr double kMeasuredTolerance = 0.03;

struct CheckResult {
  Verdict verdict = Verdict::ok;
  StepFigure figure = &StepTime::mean;  // the one compared
  double change = 0;                    // current / baseline - 1, of this figure of the step time
  double tolerance = 0;                 // the one applied
  double noise = 0;                     // of both runs combined, relative to the step time; 0 for simulated ones
  std::vector<CheckedFigure> differences;
  // The part that changed most, of those that add up to the step (simulations only): of equal changes the first in the
  // order of the parts; and its share of the step's change, where all parts change in the direction of the step.
  // Another time, without a share, if no part differs.
  std::optional<CheckedFigure> largest_difference{};
  std::optional<double> largest_share{};
  bool is_of_another_job = false;    // the baseline is of another job, so that the change means nothing
  bool counts_differ = false;        // measured runs did not do the same work, which decides
  std::vector<std::string> reasons;  // sentences, the decisive one first
  std::string accept{};              // the command that makes this run the baseline; empty: nothing is to be accepted
};

// Returns exact_figure() for two simulations, and compared_figure() for runs with noise (step_time.h).
StepFigure compared_figure(const Report& report, const Report& baseline);

// `content_changes` says in what the contents of the two scenarios differ, if they do; empty: only the hashes are
// known.
CheckResult check(const Report& report, const Report& baseline, const CheckLimits& limits,
                  const std::vector<std::string>& content_changes = {});

nlohmann::ordered_json check_to_json(const CheckResult& result, const Report& report, const Report& baseline);
std::string check_text(const CheckResult& result, const Report& report, const Report& baseline);

// A check as its document has it. Throws InputError with everything that is missing or wrong.
struct StoredCheck {
  CheckResult result;  // without largest_difference, which its reasons name
  Report report;
  Report baseline;
};
StoredCheck check_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

}  // namespace tandem
