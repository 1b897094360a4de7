// Statistics of a calibration: medians with their spread, and the line that a link's times lie on.
#pragma once

#include <vector>

namespace tandem::calibration {

struct Statistic {
  double median = 0;
  double relative_spread = 0;  // median absolute deviation / median
};

// None may be empty (TANDEM_CHECK).
double median_of(std::vector<double> values);
Statistic statistic_of(const std::vector<double>& values);

// The mean of the middle half, for many times that are not much longer than the clock's step: their median is one of
// few values.
Statistic middle_of(std::vector<double> values);

struct SizedTime {
  double bytes = 0;
  double time_s = 0;
};

// time = latency_s + bytes / bytes_per_s. At least two different sizes (TANDEM_CHECK).
struct Line {
  double latency_s = 0;  // never negative
  double bytes_per_s = 0;
  double relative_error = 0;  // median of |line / time - 1|
};

// The line with the least squares of relative errors: a small copy counts as much as a large one.
Line fit_line(const std::vector<SizedTime>& times);

}  // namespace tandem::calibration
