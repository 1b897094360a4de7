// Order statistics of integer times: exact, without a floating-point step, so that equal records give equal reports.
#pragma once

#include <vector>

#include "engine/timeline.h"

namespace tandem {

// Each needs at least one value. Of an even count the median is the integer mean (rounded down) of the middle two.
Nanoseconds median_of(std::vector<Nanoseconds> values);
// Median of the distances from the median. Boost 1.74's function of that name returns a value instead of a distance.
Nanoseconds median_absolute_deviation(std::vector<Nanoseconds> values);
// Nearest rank: the smallest value that at least 95 % of the values do not exceed.
Nanoseconds p95_of(std::vector<Nanoseconds> values);

// The same for relative errors.
double median_of(std::vector<double> values);
double p95_of(std::vector<double> values);

}  // namespace tandem
