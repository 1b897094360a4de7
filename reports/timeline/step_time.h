// How long the steps of a run take.
//
// Work follows the mean: n steps take n times as long. The median says what a usual step takes. Where some steps do
// more than others, such as every fourth one of local SGD, which exchanges, the two differ, and reports show both.
//
// Threads: any.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

// Steps in two groups by their length: those that are longer than the others. The border between the groups is the one
// with the least variance within them (Otsu's method).
struct LongSteps {
  int count = 0;
  Nanoseconds time = 0;    // median of the long ones
  Nanoseconds others = 0;  // median of the others
  int every = 0;           // the distance from each long step to the next, in steps; 0: it varies, or is seen once

  bool operator==(const LongSteps&) const = default;
};

struct StepTime {
  Nanoseconds mean = 0;  // throughput and the parts of a step follow it
  Nanoseconds median = 0;
  Nanoseconds min = 0;
  Nanoseconds p95 = 0;  // nearest rank
  Nanoseconds median_absolute_deviation = 0;
  int samples = 0;
  std::optional<LongSteps> long_steps{};  // if the steps are uneven
  bool has_mean = true;  // false: of an earlier version, whose parts add up to the median, as `mean` is

  // Returns whether mean and median differ by more than kUneven of the median.
  bool is_uneven() const;
  static constexpr double kUneven = 0.02;

  bool operator==(const StepTime&) const = default;
};

// Summarizes the lengths of steps, of which there must be at least one. With `in_order`, successive lengths are those
// of successive steps, so that the distance between long ones has a meaning.
StepTime step_time_of(const std::vector<Nanoseconds>& lengths, bool in_order);

// Returns the figure by which runs with noise are compared. It is the median, which a single late step does not move.
// It is the mean if at least half of the runs are uneven by more than one step, because then the program is, and no
// step is the usual one.
using StepFigure = Nanoseconds StepTime::*;
StepFigure compared_figure(std::span<const StepTime> runs);
// Returns the figure by which two runs without noise are compared: the mean, or the median if one has no mean.
StepFigure exact_figure(const StepTime& one, const StepTime& other);
std::string_view name_of(StepFigure figure);  // "mean" or "median"

}  // namespace tandem
