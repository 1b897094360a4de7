// Evaluations in the course of a job, by arithmetic that can be done by hand.
#include <gtest/gtest.h>

#include "tests/scenarios/faults/course_jobs.h"

namespace tandem {
namespace {

// Evaluations every 5 steps take 0.5 s, 0.75 s with a worker fewer.
CourseJob evaluating(CourseJob job) {
  job.evaluation_every = 5;
  job.evaluation_s = [](const ClusterState& state) { return state.lost_workers > 0 ? 0.75 : 0.5; };
  return job;
}

TEST(CourseEvaluations, AreAStateOfTheTime) {
  const JobCourse course = course_of(evaluating(job_of_steps(35)), usual_recovery());
  EXPECT_EQ(course.evaluations, 7);
  EXPECT_EQ(course.checkpoints, 3);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::evaluating), 3.5);
  EXPECT_DOUBLE_EQ(course.seconds, 35 * 2 + 3 + 3.5);
  EXPECT_DOUBLE_EQ(course.goodput(), 70 / course.seconds);
  expect_times_add_up(course);
}

TEST(CourseEvaluations, ComeBetweenCheckpointsThatAreMoreFrequent) {
  FaultSettings often = usual_recovery();
  often.recovery.checkpoint.every_steps = 2;
  CourseJob job = evaluating(job_of_steps(1000));
  job.evaluation_every = 100;
  const JobCourse course = course_of(job, often);
  EXPECT_EQ(course.evaluations, 10);
  EXPECT_EQ(course.checkpoints, 499) << "none after the last step";
  EXPECT_NEAR(course.seconds, 2000 + 499 + 5, 1e-6);
}

// Fails in step 18: steps 11 to 17 and half of 18 are done again, and so is the evaluation after step 15.
TEST(CourseEvaluations, OfStepsThatAreDoneAgainAreDoneAgain) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(10 * 2 + 2 * 0.5 + 1 + 7.5 * 2 + 0.5)};
  const JobCourse course = course_of(evaluating(job_of_steps(20)), faults);
  EXPECT_DOUBLE_EQ(course.steps_lost, 7.5);
  EXPECT_EQ(course.evaluations, 5) << "after 5, 10, 15, 15 and 20";
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::evaluating), 2.5);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::lost), 15);
  EXPECT_DOUBLE_EQ(course.seconds, 40 + 15 + 12 + 1 + 2.5);
  expect_times_add_up(course);
}

// The failure interrupts the evaluation after step 10, before its checkpoint.
TEST(CourseEvaluations, ThatAFailureInterruptsBeginAnew) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(10 * 2 + 0.5 + 0.25)};
  const JobCourse restarted = course_of(evaluating(job_of_steps(12)), faults);
  EXPECT_DOUBLE_EQ(restarted.steps_lost, 10);
  EXPECT_EQ(restarted.evaluations, 3) << "after 5, 5 and 10";
  EXPECT_DOUBLE_EQ(time_of(restarted, CourseState::evaluating), 3 * 0.5 + 0.25);

  faults.recovery.checkpoint = {};
  const JobCourse waited = course_of(evaluating(job_of_steps(12, RecoveryPolicy::wait)), faults);
  EXPECT_DOUBLE_EQ(waited.steps_lost, 0);
  EXPECT_EQ(waited.evaluations, 2) << "the others keep their state";
  EXPECT_DOUBLE_EQ(time_of(waited, CourseState::evaluating), 2 * 0.5 + 0.25);
}

TEST(CourseEvaluations, TakeLongerWithFewerWorkers) {
  FaultSettings faults;
  faults.fail = {failure_at(1, kNever)};
  const JobCourse course = course_of(evaluating(job_of_steps(10, RecoveryPolicy::elastic)), faults);
  EXPECT_EQ(course.evaluations, 2);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::evaluating), 1.5);
}

}  // namespace
}  // namespace tandem
