// Strategies side by side, each measured and simulated: how far its prediction is off, and whether the predictions
// order the strategies as the measurements do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/base/json_document.h"
#include "reports/comparison/compare.h"

namespace tandem {

struct StrategyComparison {
  std::vector<Comparison> comparisons;  // at least one
  std::vector<std::string> left_out{};  // "pipeline_parallel on 4 devices: why"
};

// Absolute errors of comparisons that belong together.
struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0, worst = 0;
};

struct StrategySummary {
  ErrorSummary enough_cores, short_of_cores;  // of the step, by SharedCores::are_short()
  ErrorSummary parts;                         // of the part of each step that is farthest off, in percent of the step
  // The speed-up is the time on one device divided by that on several. Empty if nothing ran on one device.
  ErrorSummary speed_ups;
  // Pairs of runs on equally many devices whose measured steps differ by more than the noise of both.
  int pairs = 0;
  std::vector<std::string> reversed{};  // pairs that are simulated the other way round: "a before b on 4 devices"
};

// Disturbed comparisons do not count.
StrategySummary summary_of(const std::vector<Comparison>& comparisons);

// Sorts by the number of devices, then by the measured step.
void sort_by_time(std::vector<Comparison>& comparisons);
// Returns a name for each: the strategy, with its cross-device ops where runs of it on as many devices have others.
std::vector<std::string> strategy_labels(const std::vector<Comparison>& comparisons);
// Returns the part of a step that is farthest off in either direction.
std::optional<DecidingPart> farthest_part(const Comparison& comparison);

nlohmann::ordered_json strategy_comparison_to_json(const StrategyComparison& strategies);
// Throws InputError with everything that is missing or wrong.
StrategyComparison strategy_comparison_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin);

// A sentence for each figure of the summary, which texts and pages show.
std::vector<std::string> summary_sentences(const std::vector<Comparison>& comparisons);
std::string strategy_comparison_text(const StrategyComparison& strategies);

}  // namespace tandem
