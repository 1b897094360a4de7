// Statistics of a calibration: medians with their spread, and the line that fits the times of a link.
#pragma once

#include <vector>

namespace tandem::calibration {

struct Statistic {
  double median = 0;
  double relative_spread = 0;  // median absolute deviation / median
};

// None of these accepts an empty list (TANDEM_CHECK).
double lower_quartile_of(std::vector<double> values);
double median_of(std::vector<double> values);
Statistic statistic_of(const std::vector<double>& values);

// Returns the mean of the middle half, for times that are not much longer than the step of the clock, so that their
// median would be one of a few values.
Statistic middle_of(std::vector<double> values);

struct SizedTime {
  double bytes = 0;
  double time_s = 0;
};

// The line time = latency_s + bytes / bytes_per_s. Needs at least two different sizes (TANDEM_CHECK).
struct Line {
  double latency_s = 0;  // never negative
  double bytes_per_s = 0;
  double relative_error = 0;  // median of |line / time - 1|
};

// Fits a line by minimizing the squares of the relative errors, so that a small copy counts as much as a large one.
// Where times are known to `resolution_s` only, those that are not much longer count less.
Line fit_line(const std::vector<SizedTime>& times, double resolution_s = 0);

}  // namespace tandem::calibration
