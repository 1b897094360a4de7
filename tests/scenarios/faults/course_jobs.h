// Jobs whose courses can be worked out by hand.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "scenarios/faults/course_clock.h"
#include "scenarios/faults/course_model.h"

namespace tandem {

inline double time_of(const JobCourse& course, CourseState state) {
  return course.time_s[static_cast<std::size_t>(state)];
}

inline FailFault failure_at(double date_s, std::optional<double> back_after_s = 0, int worker = 0) {
  FailFault fail;
  fail.target.task = worker;
  fail.at_s = date_s;
  fail.back_after_s = back_after_s;
  return fail;
}

// Steps of 2 s; checkpoints every 10 steps that take 1 s; detecting 3 s, restarting 5 s, loading 4 s.
inline FaultSettings usual_recovery() {
  FaultSettings faults;
  faults.recovery.detection_s = 3;
  faults.recovery.restart_s = 5;
  faults.recovery.checkpoint = {.every_steps = 10, .time_s = 1, .load_s = 4};
  return faults;
}

inline CourseJob job_of_steps(double steps, RecoveryPolicy policy = RecoveryPolicy::restart_all, int workers = 4) {
  return {.steps = steps, .workers = workers, .policy = policy, .step_s = [workers](const ClusterState& state) {
            double seconds = 2.0 * workers / (workers - state.lost_workers);
            for (const auto& slow : state.slow) seconds *= slow.first >= 0 ? 1.5 : 1;
            return seconds;
          }};
}

inline void expect_times_add_up(const JobCourse& course) {
  EXPECT_NEAR(std::accumulate(course.time_s.begin(), course.time_s.end(), 0.0), course.seconds, 1e-6 * course.seconds);
  for (const auto& slice : course.slices) EXPECT_NEAR(std::accumulate(slice.begin(), slice.end(), 0.0), 1, 1e-6);
}

}  // namespace tandem
