#include "scenarios/faults/best_interval.h"

#include <algorithm>
#include <cmath>

namespace tandem {

void add_failure_figures(JobCourse& course, double rate, double write_s) {
  course.is_mttf_given = rate > 0;
  course.mttf_s = rate > 0 ? 1 / rate : course.failures > 0 ? course.seconds / static_cast<double>(course.failures) : 0;
  if (course.mttf_s <= 0 || write_s <= 0) return;
  course.best_interval_s = std::sqrt(2 * course.mttf_s * write_s);
  course.best_availability = std::max(0.0, 1 - std::sqrt(2 * write_s / course.mttf_s));
}

}  // namespace tandem
