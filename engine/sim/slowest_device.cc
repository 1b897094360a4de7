#include "engine/sim/slowest_device.h"

#include <cmath>
#include <map>
#include <mutex>

#include "topologies/base/portable_math.h"

namespace tandem::sim {
namespace {

// Beyond this limit there is nothing left to add, for any number of devices that a double can count.
constexpr double kLimit = 10;
constexpr int kIntervals = 4000;

double normal_distribution(double x) {
  return 0.5 * portable::erfc(-x / std::sqrt(2.0));
}

// The mean of a variable with the distribution function F is the integral of 1 - F over the positive numbers minus that
// of F over the negative ones. The maximum of `count` variables has the distribution function F to the power `count`.
// Integrates by Simpson's rule.
double integrate(int count) {
  const double width = kLimit / kIntervals;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double x = i * width;
    const double value =
        1 - portable::pow(normal_distribution(x), count) - portable::pow(normal_distribution(-x), count);
    const bool is_end = i == 0 || i == kIntervals;
    sum += value * (is_end ? 1 : i % 2 == 1 ? 4 : 2);
  }
  return sum * width / 3;
}

}  // namespace

// Computed once in a process for each count: the points of a sweep ask for few of them, again and again.
double expected_maximum(int count) {
  if (count <= 1) return 0;
  static std::mutex mutex;
  static std::map<int, double> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(count);
  if (is_new) found->second = integrate(count);
  return found->second;
}

}  // namespace tandem::sim
