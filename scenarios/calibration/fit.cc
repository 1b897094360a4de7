#include "scenarios/calibration/fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "topologies/base/error.h"

namespace tandem::calibration {
namespace {

double relative_error(const Line& line, const std::vector<SizedTime>& times, double resolution_s) {
  std::vector<double> errors;
  for (const auto& [bytes, time_s] : times) {
    errors.push_back(std::abs(line.latency_s + bytes / line.bytes_per_s - time_s) / std::max(time_s, resolution_s));
  }
  return median_of(std::move(errors));
}

// Fits a line through the origin, for times whose best line would have a negative latency.
double rate_alone(const std::vector<SizedTime>& times, double resolution_s) {
  double once = 0, twice = 0;
  for (const auto& [bytes, time_s] : times) {
    const double weight = 1 / (time_s * time_s + resolution_s * resolution_s);
    once += weight * bytes * time_s;
    twice += weight * bytes * bytes;
  }
  return twice / once;
}

}  // namespace

double lower_quartile_of(std::vector<double> values) {
  TANDEM_CHECK(!values.empty(), "a calibration left no records of something it issued");
  const auto quartile = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quartile, values.end());
  return *quartile;
}

double median_of(std::vector<double> values) {
  TANDEM_CHECK(!values.empty(), "a calibration left no records of something it issued");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Statistic statistic_of(const std::vector<double>& values) {
  const double median = median_of(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return {.median = median, .relative_spread = median > 0 ? median_of(deviations) / median : 0};
}

Statistic middle_of(std::vector<double> values) {
  Statistic statistic = statistic_of(values);
  std::sort(values.begin(), values.end());
  const std::size_t quarter = values.size() / 4;
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(quarter);
  const auto last = values.end() - static_cast<std::ptrdiff_t>(quarter);
  statistic.median = std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
  return statistic;
}

// Solves the normal equations with the weights 1 / (time^2 + resolution^2) for latency and slope.
Line fit_line(const std::vector<SizedTime>& times, double resolution_s) {
  double ones = 0, sizes = 0, squares = 0, rights = 0, right_sizes = 0;
  for (const auto& [bytes, time_s] : times) {
    const double weight = 1 / (time_s * time_s + resolution_s * resolution_s);
    ones += weight;
    sizes += weight * bytes;
    squares += weight * bytes * bytes;
    rights += weight * time_s;
    right_sizes += weight * time_s * bytes;
  }
  const double determinant = ones * squares - sizes * sizes;
  TANDEM_CHECK(determinant > 0, "a line through times of one size");
  Line line;
  line.latency_s = (rights * squares - sizes * right_sizes) / determinant;
  line.bytes_per_s = determinant / (ones * right_sizes - sizes * rights);
  if (line.latency_s < 0 || !(line.bytes_per_s > 0) || std::isinf(line.bytes_per_s)) {
    line = {.latency_s = 0, .bytes_per_s = rate_alone(times, resolution_s), .relative_error = 0};
  }
  line.relative_error = relative_error(line, times, resolution_s);
  return line;
}

}  // namespace tandem::calibration
