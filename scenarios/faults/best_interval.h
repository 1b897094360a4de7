// What the failures of a finished course say: their mean distance, and the best interval between checkpoints.
#pragma once

#include "reports/course/job_course.h"

namespace tandem {

// Sets the mean time to a failure, JobCourse::best_interval_s and best_availability. `rate`: failures in a second as
// the scenario gives it; 0: as observed. `write_s`: the seconds for which training waits for a checkpoint.
void add_failure_figures(JobCourse& course, double rate, double write_s);

}  // namespace tandem
