// Courses beside a model that takes every step by itself, and beside published figures and formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/scenarios/faults/course_jobs.h"

namespace tandem {
namespace {

using testing::ElementsAre;

// A model that takes every step by itself, for `restart_all` and failures at dates.
double seconds_step_by_step(double steps, const FaultSettings& faults, double step_s) {
  std::vector<double> failures;
  for (const FailFault& fail : faults.fail) failures.push_back(*fail.at_s);
  std::ranges::sort(failures);
  std::size_t next = 0;
  double now = 0, done = 0, saved = 0;
  const RecoverySettings& recovery = faults.recovery;
  const auto fails_until = [&](double end) { return next < failures.size() && failures[next] < end; };
  const auto recover = [&] {
    now = failures[next++];
    done = saved;
    for (bool again = true; again;) {
      again = false;
      for (const double phase : {*recovery.detection_s, *recovery.restart_s, *recovery.checkpoint.load_s}) {
        if (fails_until(now + phase)) {
          now = failures[next++];
          again = true;
          break;
        }
        now += phase;
      }
    }
  };
  while (done < steps) {
    if (fails_until(now + step_s)) {
      recover();
      continue;
    }
    now += step_s;
    ++done;
    if (std::fmod(done, static_cast<double>(*recovery.checkpoint.every_steps)) != 0 || done == steps) continue;
    if (fails_until(now + *recovery.checkpoint.time_s)) {
      recover();
      continue;
    }
    now += *recovery.checkpoint.time_s;
    saved = done;
  }
  return now;
}

TEST(CourseFigures, IsWhatTakingEveryStepGives) {
  std::mt19937 random(11);
  const auto draw = [&](int most) { return static_cast<double>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 300; ++i) {
    FaultSettings faults;
    faults.recovery.detection_s = draw(9) / 2;
    faults.recovery.restart_s = draw(40) / 4;
    faults.recovery.checkpoint = {.every_steps = 1 + static_cast<int>(draw(60)), .time_s = draw(5), .load_s = draw(7)};
    for (int n = static_cast<int>(draw(25)); n > 0; --n) faults.fail.push_back(failure_at(draw(4000) + 0.125));
    const double steps = 1 + draw(2000);
    const JobCourse course = course_of(job_of_steps(steps), faults);
    EXPECT_NEAR(course.seconds, seconds_step_by_step(steps, faults, 2), 1e-6) << i;
    expect_times_add_up(course);
  }
}

TEST(CourseFigures, TheBestIntervalIsYoungs) {
  FaultSettings faults = usual_recovery();
  FailFault fail;
  fail.target.which = FaultTarget::Which::any;
  fail.mttf_s = 20'000;
  fail.back_after_s = 0;
  faults.fail = {fail};
  faults.recovery.checkpoint.time_s = 25;
  double best_s = kNever;
  int best = 0;
  std::optional<double> youngs;
  for (const int every : {62, 125, 250, 500, 1000, 2000, 4000}) {
    faults.recovery.checkpoint.every_steps = every;
    const JobCourse course = course_of(job_of_steps(50'000'000), faults);
    if (course.seconds < best_s) {
      best_s = course.seconds;
      best = every;
    }
    youngs = course.best_interval_s;
    EXPECT_GT(course.failures, 4000);
  }
  ASSERT_TRUE(youngs);
  EXPECT_DOUBLE_EQ(*youngs, 1000) << "sqrt(2 x 20,000 x 25)";
  EXPECT_EQ(best, 500) << "steps of 2 s";
}

TEST(CourseFigures, AvailabilityAtTheBestIntervalIsThatOfTheFormula) {
  FaultSettings faults;
  FailFault fail;
  fail.target.which = FaultTarget::Which::any;
  fail.mttf_s = 20'000;
  fail.back_after_s = 0;
  faults.fail = {fail};
  faults.recovery = {.detection_s = 0, .restart_s = 0, .checkpoint = {.every_steps = 500, .time_s = 25, .load_s = 0}};
  const JobCourse course = course_of(job_of_steps(50'000'000), faults);
  EXPECT_NEAR(course.goodput(), *course.best_availability, 0.003);
}

// 54 days on 16,384 GPUs with an interruption every 3.1 h (Llama 3): what may each take for a goodput of 0.9?
TEST(CourseFigures, BreakEvenOfLlama3) {
  FaultSettings faults;
  FailFault fail;
  fail.target.which = FaultTarget::Which::any;
  fail.mttf_s = 3.1 * 3600;
  faults.fail = {fail};
  CourseJob job = job_of_steps(54 * 86400.0 / 2, RecoveryPolicy::restart_all, 2048);
  const JobCourse course = whole_course(job, faults);
  EXPECT_NEAR(static_cast<double>(course.failures), 54 * 24 / 3.1, 60);
  EXPECT_THAT(course.unknown, ElementsAre("detection", "restart", "checkpoint.load", "checkpoint.every", "back_after"));
  ASSERT_EQ(course.break_even.size(), 3U);
  EXPECT_DOUBLE_EQ(course.break_even[1].goodput, 0.9);
  EXPECT_NEAR(course.break_even[1].seconds / 60, 19, 2.5);
  job.extra_s = course.break_even[1].seconds;
  EXPECT_NEAR(course_of(job, faults).goodput(), 0.9, 0.001);
}

}  // namespace
}  // namespace tandem
