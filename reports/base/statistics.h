// Order statistics of integer times: exact, without a floating-point step, so that equal records give equal reports.
#pragma once

#include <vector>

#include "engine/timeline.h"

namespace tandem {

// All need at least one value. The median of an even number of values is the mean of the middle two, rounded down.
Nanoseconds median_of(std::vector<Nanoseconds> values);
// Returns the median of the distances from the median. (Boost 1.74's function of that name returns a value, no
// distance.)
Nanoseconds median_absolute_deviation(std::vector<Nanoseconds> values);
// Returns the smallest value that at least 95 % of the values do not exceed (nearest rank).
Nanoseconds p95_of(std::vector<Nanoseconds> values);

// The same for relative errors.
double median_of(std::vector<double> values);
double p95_of(std::vector<double> values);

}  // namespace tandem
