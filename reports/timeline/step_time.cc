#include "reports/timeline/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reports/base/statistics.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// Rounds to the nearest nanosecond, half up. Exact: no floating-point number takes part.
Nanoseconds mean_of(const std::vector<Nanoseconds>& values) {
  const auto count = static_cast<Nanoseconds>(values.size());
  Nanoseconds whole = 0, rest = 0;  // a sum of the values might overflow
  for (const Nanoseconds value : values) {
    whole += value / count;
    rest += value % count;
  }
  return whole + (2 * rest + count) / (2 * count);
}

// Returns how many of the ascending values are below the border between two groups: the number for which the variance
// between the groups, weighted by their sizes, is greatest.
std::size_t border_of(const std::vector<Nanoseconds>& ascending) {
  const double sum = std::accumulate(ascending.begin(), ascending.end(), 0.0);
  const auto count = static_cast<double>(ascending.size());
  double below = 0, greatest = -1;
  std::size_t border = 0;
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    below += static_cast<double>(ascending[i - 1]);
    if (ascending[i] == ascending[i - 1]) continue;
    const auto size = static_cast<double>(i);
    const double distance = (sum - below) / (count - size) - below / size;
    const double between = size * (count - size) * distance * distance;
    if (between > greatest) {
      greatest = between;
      border = i;
    }
  }
  return border;
}

// A distance that is seen once is no rule.
int distance_of_long(const std::vector<Nanoseconds>& lengths, Nanoseconds least) {
  int distance = 0, last = -1, seen = 0;
  for (int step = 0; step < static_cast<int>(lengths.size()); ++step) {
    if (lengths[static_cast<std::size_t>(step)] < least) continue;
    if (last >= 0 && distance != 0 && step - last != distance) return 0;
    if (last >= 0) distance = step - last;
    last = step;
    ++seen;
  }
  constexpr int kFewest = 3;
  return seen < kFewest ? 0 : distance;
}

LongSteps long_steps_of(const std::vector<Nanoseconds>& lengths, bool in_order) {
  std::vector<Nanoseconds> ascending = lengths;
  std::sort(ascending.begin(), ascending.end());
  const auto border = ascending.begin() + static_cast<std::ptrdiff_t>(border_of(ascending));
  TANDEM_CHECK(border != ascending.begin(), "steps of one length have the same mean and median");
  return {.count = static_cast<int>(ascending.end() - border),
          .time = median_of(std::vector<Nanoseconds>(border, ascending.end())),
          .others = median_of(std::vector<Nanoseconds>(ascending.begin(), border)),
          .every = in_order ? distance_of_long(lengths, *border) : 0};
}

}  // namespace

bool StepTime::is_uneven() const {
  return std::abs(static_cast<double>(mean - median)) > kUneven * static_cast<double>(median);
}

StepTime step_time_of(const std::vector<Nanoseconds>& lengths, bool in_order) {
  StepTime time{.mean = mean_of(lengths),
                .median = median_of(lengths),
                .min = *std::min_element(lengths.begin(), lengths.end()),
                .p95 = p95_of(lengths),
                .median_absolute_deviation = median_absolute_deviation(lengths),
                .samples = static_cast<int>(lengths.size())};
  if (time.is_uneven()) time.long_steps = long_steps_of(lengths, in_order);
  return time;
}

StepFigure compared_figure(std::span<const StepTime> runs) {
  const auto uneven = std::count_if(runs.begin(), runs.end(), [](const StepTime& run) {
    return run.long_steps && run.long_steps->count > 1 && run.samples - run.long_steps->count > 1;
  });
  return uneven > 0 && 2 * uneven >= std::ssize(runs) ? &StepTime::mean : &StepTime::median;
}

StepFigure exact_figure(const StepTime& one, const StepTime& other) {
  return one.has_mean == other.has_mean ? &StepTime::mean : &StepTime::median;
}

std::string_view name_of(StepFigure figure) {
  return figure == &StepTime::mean ? "mean" : "median";
}

}  // namespace tandem
