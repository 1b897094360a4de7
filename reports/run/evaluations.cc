#include "reports/run/evaluations.h"

#include "reports/base/statistics.h"

namespace tandem {

Nanoseconds Evaluations::median_time() const {
  if (done.empty()) return 0;
  std::vector<Nanoseconds> times;
  for (const Evaluated& one : done) times.push_back(one.time);
  return median_of(std::move(times));
}

Nanoseconds Evaluations::time() const {
  Nanoseconds sum = 0;
  for (const Evaluated& one : done) sum += one.time;
  return sum;
}

}  // namespace tandem
