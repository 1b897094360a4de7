// The course of a job: what each second is spent on, by arithmetic that can be done by hand, and beside a model that
// takes every step by itself.
#include "scenarios/faults/course_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "scenarios/faults/course_clock.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

double time_of(const JobCourse& course, CourseState state) {
  return course.time_s[static_cast<std::size_t>(state)];
}

FailFault failure_at(double date_s, std::optional<double> back_after_s = 0, int worker = 0) {
  FailFault fail;
  fail.target.task = worker;
  fail.at_s = date_s;
  fail.back_after_s = back_after_s;
  return fail;
}

// Steps of 2 s; checkpoints every 10 steps that take 1 s; detecting 3 s, restarting 5 s, loading 4 s.
FaultSettings usual_recovery() {
  FaultSettings faults;
  faults.recovery.detection_s = 3;
  faults.recovery.restart_s = 5;
  faults.recovery.checkpoint = {.every_steps = 10, .time_s = 1, .load_s = 4};
  return faults;
}

CourseJob job_of_steps(double steps, RecoveryPolicy policy = RecoveryPolicy::restart_all, int workers = 4) {
  return {.steps = steps, .workers = workers, .policy = policy, .step_s = [workers](const ClusterState& state) {
            double seconds = 2.0 * workers / (workers - state.lost_workers);
            for (const auto& slow : state.slow) seconds *= slow.first >= 0 ? 1.5 : 1;
            return seconds;
          }};
}

void expect_times_add_up(const JobCourse& course) {
  EXPECT_NEAR(std::accumulate(course.time_s.begin(), course.time_s.end(), 0.0), course.seconds, 1e-6 * course.seconds);
  for (const auto& slice : course.slices) EXPECT_NEAR(std::accumulate(slice.begin(), slice.end(), 0.0), 1, 1e-6);
}

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

TEST(CourseModel, IsWhatTakingEveryStepGives) {
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

TEST(CourseModel, TheBestIntervalIsYoungs) {
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

TEST(CourseModel, AvailabilityAtTheBestIntervalIsThatOfTheFormula) {
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
TEST(CourseModel, BreakEvenOfLlama3) {
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
