#include "reports/base/statistics.h"

#include <algorithm>

#include "topologies/base/error.h"

namespace tandem {
namespace {

template <typename Value>
Value middle_of(std::vector<Value> values) {
  TANDEM_REQUIRE(!values.empty(), "the median of no values");
  std::sort(values.begin(), values.end());
  const Value upper = values[values.size() / 2];
  if (values.size() % 2 == 1) return upper;
  const Value lower = values[values.size() / 2 - 1];
  return lower + (upper - lower) / 2;
}

template <typename Value>
Value nearest_rank_95(std::vector<Value> values) {
  TANDEM_REQUIRE(!values.empty(), "a percentile of no values");
  std::sort(values.begin(), values.end());
  return values[(95 * values.size() + 99) / 100 - 1];
}

}  // namespace

Nanoseconds median_of(std::vector<Nanoseconds> values) {
  return middle_of(std::move(values));
}

double median_of(std::vector<double> values) {
  return middle_of(std::move(values));
}

Nanoseconds median_absolute_deviation(std::vector<Nanoseconds> values) {
  const Nanoseconds center = median_of(values);
  for (Nanoseconds& value : values) value = value < center ? center - value : value - center;
  return median_of(std::move(values));
}

Nanoseconds p95_of(std::vector<Nanoseconds> values) {
  return nearest_rank_95(std::move(values));
}

double p95_of(std::vector<double> values) {
  return nearest_rank_95(std::move(values));
}

}  // namespace tandem
