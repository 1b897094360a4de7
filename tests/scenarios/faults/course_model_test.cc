// The course of a job: what each second is spent on, by arithmetic that can be done by hand.
#include "scenarios/faults/course_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/scenarios/faults/course_jobs.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(CourseModel, WithoutFailuresStepsFollowOneAnother) {
  const JobCourse course = course_of(job_of_steps(35), usual_recovery());
  EXPECT_DOUBLE_EQ(course.seconds, 35 * 2 + 3);
  EXPECT_EQ(course.checkpoints, 3);
  EXPECT_EQ(course.failures, 0);
  EXPECT_DOUBLE_EQ(course.goodput(), 70.0 / 73);
  EXPECT_THAT(course.ended, IsEmpty());
  expect_times_add_up(course);
}

// Fails during step 17: 7 steps and a half since the checkpoint are lost.
TEST(CourseModel, AFailureLosesWhatComesAfterTheLastCheckpoint) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(10 * 2 + 1 + 7.5 * 2)};
  const JobCourse course = course_of(job_of_steps(20), faults);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::lost), 15);
  EXPECT_DOUBLE_EQ(course.steps_lost, 7.5);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::training), 40);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::detecting), 3);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::restarting), 5);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::loading), 4);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::waiting), 0);
  EXPECT_DOUBLE_EQ(course.seconds, 40 + 15 + 12 + 1);
  expect_times_add_up(course);
}

TEST(CourseModel, AFailureInARecoveryBeginsItAnew) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(21 + 15), failure_at(21 + 15 + 3 + 2, 0, 1)};  // the second one 2 s into the restart
  const JobCourse course = course_of(job_of_steps(20), faults);
  EXPECT_EQ(course.failures, 2);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::detecting), 6);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::restarting), 7);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::lost), 15) << "nothing was done in between";
}

TEST(CourseModel, WaitsForAMachineOrEndsWhereNoneComes) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(5, 60)};
  const JobCourse waits = course_of(job_of_steps(20), faults);
  EXPECT_DOUBLE_EQ(time_of(waits, CourseState::waiting), 57) << "the failure is known 3 s after it";
  faults.fail = {failure_at(5, kNever)};
  const JobCourse ends = course_of(job_of_steps(20), faults);
  EXPECT_THAT(ends.ended, HasSubstr("no machine takes the place"));
  EXPECT_DOUBLE_EQ(ends.steps_done, 0);
}

TEST(CourseModel, ASpareTakesThePlaceAndComesBackAsASpare) {
  FaultSettings faults = usual_recovery();
  faults.recovery.spares = 1;
  faults.fail = {failure_at(5, 60), failure_at(200, kNever, 1), failure_at(300, kNever, 2)};
  const JobCourse course = course_of(job_of_steps(1000, RecoveryPolicy::spare), faults);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::waiting), 0);
  EXPECT_EQ(course.failures, 3);
  EXPECT_THAT(course.ended, HasSubstr("no machine")) << "the third finds no spare";
}

// The others go on at 4 / 3 of the time of a step, for the 60 s until the worker is back.
TEST(CourseModel, OthersContinueMeanwhile) {
  FaultSettings faults;
  faults.fail = {failure_at(20, 60)};
  CourseJob job = job_of_steps(100, RecoveryPolicy::continue_);
  job.repeats_functions = true;
  const JobCourse course = course_of(job, faults);
  EXPECT_DOUBLE_EQ(course.seconds, 20 + 60 + 2 * (100 - 10 - 60 / (2 * 4.0 / 3)));
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::training), 200);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::slower), 60 - 2 * 60 / (2 * 4.0 / 3));
  EXPECT_EQ(course.updates_twice, 1);
  EXPECT_DOUBLE_EQ(course.steps_lost, 0);
}

TEST(CourseModel, ElasticJobsRestartWithFewerAndAgainWithAll) {
  FaultSettings faults = usual_recovery();
  faults.recovery.checkpoint.time_s = 0;
  faults.fail = {failure_at(25, 100)};
  const JobCourse course = course_of(job_of_steps(100, RecoveryPolicy::elastic), faults);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::waiting), 0);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::detecting), 3);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::restarting), 10);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::loading), 8);
  EXPECT_GT(time_of(course, CourseState::slower), 20);
  EXPECT_DOUBLE_EQ(course.steps_lost, 2.5);
}

TEST(CourseModel, WaitingLosesTheStepUnderWayOnly) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(21 + 15, 30)};
  const JobCourse course = course_of(job_of_steps(20, RecoveryPolicy::wait), faults);
  EXPECT_DOUBLE_EQ(course.steps_lost, 0.5);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::waiting), 27);
  EXPECT_DOUBLE_EQ(course.seconds, 40 + 1 + 1 + 30 + 4);
}

TEST(CourseModel, ACheckpointThatIsStillWrittenKeepsNothing) {
  FaultSettings faults = usual_recovery();
  faults.recovery.checkpoint = {.every_steps = 10, .time_s = 6, .overlapped = true, .load_s = 4};
  faults.fail = {failure_at(24)};
  EXPECT_DOUBLE_EQ(course_of(job_of_steps(20), faults).steps_lost, 12);
  faults.fail = {failure_at(27)};
  const JobCourse kept = course_of(job_of_steps(20), faults);
  EXPECT_DOUBLE_EQ(kept.steps_lost, 3.5);
  EXPECT_DOUBLE_EQ(time_of(kept, CourseState::checkpointing), 0);
}

TEST(CourseModel, SlowPeriodsStretchTheStepsInThem) {
  FaultSettings faults;
  SlowFault slow;
  slow.factor = 1.5;
  slow.when = {.from_s = 10, .to_s = 40};
  faults.slow = {slow};
  const JobCourse by_date = course_of(job_of_steps(100), faults);
  EXPECT_DOUBLE_EQ(time_of(by_date, CourseState::slower), 10) << "30 s at two thirds of the pace";
  faults.slow[0].when = {.first_step = 10, .last_step = 19};
  const JobCourse by_steps = course_of(job_of_steps(100), faults);
  EXPECT_DOUBLE_EQ(by_steps.seconds, 200 + 10);
}

TEST(CourseModel, AFailureBeforeAStepComesOnce) {
  FaultSettings faults = usual_recovery();
  FailFault fail;
  fail.step = 15;
  faults.fail = {fail};
  const JobCourse course = course_of(job_of_steps(20), faults);
  EXPECT_EQ(course.failures, 1);
  EXPECT_DOUBLE_EQ(course.steps_lost, 5);
}

// Each removal of a machine of the job costs what the policy says, and nothing else does.
TEST(CourseModel, ATraceCostsTheSumOverItsEvents) {
  FaultSettings faults = usual_recovery();
  faults.recovery.checkpoint = {.every_steps = 1, .time_s = 0, .load_s = 4};
  faults.trace = {{0, true, "a"},     {0, true, "b"},    {0, true, "c"},   {0, true, "d"},
                  {0, true, "e"},     {101, false, "b"}, {160, true, "f"}, {301, false, "e"},
                  {401, false, "zz"}, {502, false, "f"}, {562, true, "g"}};
  const JobCourse waits = course_of(job_of_steps(1000), faults);
  EXPECT_EQ(waits.failures, 2) << "e is not of the job's four, and zz never came";
  EXPECT_DOUBLE_EQ(waits.seconds, 2000 + 2 * 1 + (160 - 101) + (562 - 502) + 2 * (5 + 4))
      << "half a step is lost each time";
  const JobCourse spares = course_of(job_of_steps(1000, RecoveryPolicy::spare), faults);
  EXPECT_DOUBLE_EQ(time_of(spares, CourseState::waiting), 562 - 505)
      << "e takes the place of b, f that of e, and then none is left";
}

// Failures go on at random, and no machine comes any more.
TEST(CourseModel, WaitingInVainEndsTheJobWhateverElseHappens) {
  FaultSettings faults = usual_recovery();
  FailFault fail;
  fail.target.which = FaultTarget::Which::any;
  fail.mttf_s = 60;
  fail.back_after_s = kNever;
  faults.fail = {fail};
  EXPECT_THAT(course_of(job_of_steps(1000), faults).ended, HasSubstr("no machine takes the place"));
  faults.recovery.spares = 2;
  const JobCourse spares = course_of(job_of_steps(1000, RecoveryPolicy::spare), faults);
  EXPECT_THAT(spares.ended, HasSubstr("no machine takes the place"));
  EXPECT_EQ(spares.failures, 3);
  SlowFault slow;
  slow.factor = 2;
  slow.again = Recurrence{.mean_s = 30, .duration_s = 5};
  faults.slow = {slow};
  faults.fail = {failure_at(10, kNever)};
  EXPECT_THAT(course_of(job_of_steps(1000), faults).ended, HasSubstr("no machine takes the place"));
}

// 10 steps until the checkpoint begins, which is written in 6 s; the failure comes in between, and the wait is long.
TEST(CourseModel, ACheckpointIsWrittenWhileOthersWait) {
  FaultSettings faults = usual_recovery();
  faults.recovery.checkpoint = {.every_steps = 10, .time_s = 6, .overlapped = true, .load_s = 4};
  faults.fail = {failure_at(23, 60)};
  const JobCourse course = course_of(job_of_steps(20, RecoveryPolicy::wait), faults);
  EXPECT_DOUBLE_EQ(course.steps_lost, 0.5);
  EXPECT_DOUBLE_EQ(time_of(course, CourseState::training), 40);
  EXPECT_DOUBLE_EQ(course.seconds, 40 + 1 + 60 + 4);
  EXPECT_EQ(course.checkpoints, 1);
}

TEST(CourseModel, ALostMachineIsNoSpareUnlessItIsSaidToComeBack) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(10, std::nullopt)};
  EXPECT_THAT(course_of(job_of_steps(100, RecoveryPolicy::spare), faults).ended, HasSubstr("no machine"));
  faults.recovery.spares = 1;
  EXPECT_THAT(course_of(job_of_steps(100, RecoveryPolicy::spare), faults).ended, IsEmpty());
}

TEST(CourseModel, EachWorkerAndEachLinkIsSlowByItself) {
  std::vector<ClusterState> states;
  CourseJob job = job_of_steps(40, RecoveryPolicy::continue_);
  job.step_s = [&](const ClusterState& state) {
    states.push_back(state);
    return 2.0;
  };
  FaultSettings faults;
  SlowFault each, link;
  each.factor = link.factor = 2;
  each.target.which = FaultTarget::Which::each;
  each.when = {.first_step = 10, .last_step = 11};
  link.target.links = {3};
  faults.slow = {each, link};
  faults.fail = {failure_at(40, 10)};
  course_of(job, faults);
  const auto has = [&](const ClusterState& state) { return std::ranges::count(states, state) > 0; };
  EXPECT_TRUE(has({.slow = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}}})) << "all four, and the link";
  EXPECT_TRUE(has({.slow = {{1, 0}}, .lost_workers = 1})) << "the link stays slow without worker 0";
}

TEST(CourseModel, AServerStopsTheJobUntilItIsBack) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(15, 30)};
  faults.fail[0].target.job = "ps";
  const JobCourse waits = course_of(job_of_steps(20, RecoveryPolicy::continue_), faults);
  EXPECT_DOUBLE_EQ(time_of(waits, CourseState::waiting), 27);
  EXPECT_DOUBLE_EQ(time_of(waits, CourseState::lost), 15);
  EXPECT_EQ(waits.updates_twice, 0);
  faults.fail[0].back_after_s = kNever;
  EXPECT_THAT(course_of(job_of_steps(20, RecoveryPolicy::continue_), faults).ended, HasSubstr("no machine"));
}

TEST(CourseModel, StatedFailuresAndATraceAreOneCluster) {
  FaultSettings faults = usual_recovery();
  faults.fail = {failure_at(100, kNever)};
  faults.trace = {{150, false, "x"}, {200, true, "y"}, {250, true, "z"}};
  const JobCourse course = course_of(job_of_steps(400), faults);
  EXPECT_EQ(course.failures, 2) << "x is one of the machines that are left";
  EXPECT_THAT(course.ended, IsEmpty());
}

TEST(CourseModel, EqualSeedsGiveEqualCourses) {
  FaultSettings faults = usual_recovery();
  FailFault fail;
  fail.target.which = FaultTarget::Which::each;
  fail.mttf_s = 5000;
  fail.seed = 3;
  faults.fail = {fail};
  const JobCourse one = course_of(job_of_steps(100'000), faults);
  EXPECT_EQ(one, course_of(job_of_steps(100'000), faults));
  faults.fail[0].seed = 4;
  EXPECT_NE(one, course_of(job_of_steps(100'000), faults));
  EXPECT_DOUBLE_EQ(one.mttf_s, 1250) << "four workers";
}

}  // namespace
}  // namespace tandem
