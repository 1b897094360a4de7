// Courses of simulated jobs, beside simulations of each of their steps.
#include "scenarios/run/course_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Scenario job(const std::string& rest, int workers = 4, int steps = 20) {
  return read_scenario(fmt::format(
      "workload: {{kind: layers, model: resnet50, batch: {}, dtype: bf16}}\nstrategy: {{name: multi_worker_mirrored}}\n"
      "engine: {{name: sim}}\ntopology: {{cluster: {{node: hgx-h100, workers: {}, fabric: switch}}}}\n"
      "devices: {{type: gpu, per_worker: 8}}\nsteps: {}\nwarmup_steps: 2\n{}",
      workers * 512, workers, steps, rest));
}

double mean_step_s(const Scenario& scenario) {
  return static_cast<double>(run_unscaled(scenario).summary.step_time.mean) * 1e-9;
}

// When each step of a simulation of every step ends, in seconds since the first one began.
std::vector<double> ends_of_steps(const Scenario& scenario) {
  const RunResult result = run_scenario(scenario, {.measures_scaling = false});
  std::vector<double> ends(static_cast<std::size_t>(scenario.steps));
  double begin_s = kNoStep;
  for (const Record& record : result.timeline.records) {
    if (record.kind != RecordKind::step) continue;
    if (record.step == 0) begin_s = static_cast<double>(record.start_ns) * 1e-9;
    double& end = ends[static_cast<std::size_t>(record.step)];
    end = std::max(end, static_cast<double>(record.end_ns) * 1e-9);
  }
  for (double& end : ends) end -= begin_s;
  return ends;
}

TEST(CourseRun, IsWhatTheSimulationOfEveryStepGives) {
  const double step_s = mean_step_s(job(""));
  const double slow_from = 3.4 * step_s, slow_to = 9.2 * step_s, lost_at = 12.7 * step_s, restart = 2.5 * step_s;
  const auto slow = [](double from, double to) {
    return fmt::format("  - slow: {{worker: 1, factor: 2, from: {}s, to: {}s}}\n", from, to);
  };
  const std::string recovery = fmt::format(
      "recovery: {{detection: 0s, restart: {}s, checkpoint: {{every: 5 steps, time: 0s, load: 0s}}}}\n", restart);
  const Report report =
      run_unscaled(job("faults:\n" + slow(slow_from, slow_to) +
                       fmt::format("  - fail: {{worker: 2, at: {}s, back_after: 0s}}\n", lost_at) + recovery));
  ASSERT_TRUE(report.course);

  // The same by simulations of every step: until the failure, and from the checkpoint on.
  const std::vector<double> before = ends_of_steps(job("faults:\n" + slow(slow_from, slow_to)));
  const auto done = std::ranges::count_if(before, [&](double end) { return end <= lost_at; });
  const auto saved = done / 5 * 5;
  const std::vector<double> after = ends_of_steps(job("", 4, 20 - static_cast<int>(saved)));
  const double seconds = lost_at + restart + after.back();
  EXPECT_NEAR(report.course->seconds / seconds, 1, 0.01);
  EXPECT_GT(seconds, 20 * step_s * 1.2) << "or the faults show nothing";
  EXPECT_EQ(report.course->failures, 1);
}

TEST(CourseRun, EvaluationsTakeWhatTheyTakeBetweenSimulatedSteps) {
  const std::string evaluation = "evaluation: {every: 4 steps, steps: 3}\n";
  const Report steps = run_unscaled(job(evaluation));
  const Report course = run_unscaled(job(evaluation + "recovery: {checkpoint: {every: 15 steps, time: 0s}}\n"));
  ASSERT_TRUE(steps.evaluations && course.course);
  EXPECT_FALSE(course.evaluations) << "the course has them";
  EXPECT_EQ(course.course->evaluations, 5);
  const double waited_s = static_cast<double>(steps.evaluations->waited) * 1e-9;
  const double evaluating_s = course.course->time_s[static_cast<std::size_t>(CourseState::evaluating)];
  EXPECT_NEAR(evaluating_s / waited_s, 1, 0.01);
  EXPECT_NEAR(course.course->seconds / (static_cast<double>(steps.evaluations->job) * 1e-9), 1, 0.01);
  EXPECT_THAT(report_text(course), HasSubstr("evaluating"));
  EXPECT_EQ(report_from_json(report_to_json(course).dump(), "again").course, course.course);
  const Report never = run_unscaled(job("recovery: {checkpoint: {every: 15 steps, time: 0s}}\n"));
  EXPECT_FALSE(report_to_json(never)["job"]["time_s"].contains("evaluating"));
}

// What fewer workers do with the same share of the batch, they also evaluate.
TEST(CourseRun, EvaluationsOfFewerWorkers) {
  const Report report =
      run_unscaled(job("evaluation: {every: 10 steps, steps: 2, batch: 1024}\n"
                       "faults: [{fail: {worker: 3, at: 1ms, back_after: never}}]\nrecovery: {policy: elastic}\n"));
  const Report all = run_unscaled(job("evaluation: {every: 10 steps, steps: 2, batch: 1024}\n"));
  ASSERT_TRUE(report.course && all.evaluations);
  EXPECT_EQ(report.course->evaluations, 2);
  EXPECT_GT(report.course->time_s[static_cast<std::size_t>(CourseState::evaluating)],
            static_cast<double>(all.evaluations->waited) * 1e-9 * 1.1)
      << "the same batches on three machines, not four";
}

TEST(CourseRun, SaysSoFirstAndReadsBack) {
  const Report report = run_unscaled(
      job("faults:\n  - fail: {worker: any, mttf: 8h}\nrecovery: {checkpoint: {every: 500 steps, time: 4s}}\n", 4,
          5'000'000));
  const std::string text = report_text(report);
  EXPECT_TRUE(text.starts_with("WITH FAULTS worker:any is lost at random, every 8 h")) << text;
  EXPECT_THAT(text, HasSubstr("Unknown, and counted as 0: detection, restart, checkpoint.load, back_after"));
  EXPECT_EQ(report.steps, 10) << "the sample";
  ASSERT_TRUE(report.course);
  EXPECT_EQ(report.course->steps, 5'000'000);
  const Report again = report_from_json(report_to_json(report).dump(), "again");
  EXPECT_EQ(again.course, report.course);
  EXPECT_EQ(again.faults, report.faults);
}

TEST(CourseRun, PoliciesAreThoseOfTheStrategy) {
  const std::string lost = "faults:\n  - fail: {worker: 1, at: 1s}\n";
  EXPECT_EQ(run_unscaled(job(lost)).course->policy, "restart_all");
  EXPECT_THROW(run_unscaled(job(lost + "recovery: {policy: continue}\n")), InputError);
  const Scenario one = read_scenario(
      "workload: {kind: layers, model: resnet50, batch: 64, dtype: bf16}\nstrategy: {name: mirrored}\nengine: {name: "
      "sim}\n"
      "topology: hgx-h100\ndevices: {type: gpu}\nsteps: 100\nfaults:\n  - fail: {device: \"worker:0/GPU:3\", at: "
      "0.05s}\n");
  const Report ended = run_unscaled(one);
  EXPECT_EQ(ended.course->policy, "end");
  EXPECT_THAT(ended.course->ended, HasSubstr("a worker was lost after"));
  EXPECT_LT(ended.course->steps_done, 100);
}

TEST(CourseRun, ServersGoOnWithTheWorkersThatAreLeft) {
  const Report report =
      run_unscaled(read_scenario("workload: {kind: layers, model: resnet50, batch: 128, dtype: f32}\nstrategy: {name: "
                                 "parameter_server}\nengine: {name: sim}\n"
                                 "topology: {cluster: {node: dgx-a100, workers: 4, fabric: switch}}\n"
                                 "devices: {type: gpu, per_worker: 1, workers: 4, ps: 1}\nsteps: 400\nfaults:\n  - "
                                 "fail: {worker: 1, at: 2s, back_after: 10s}\n"
                                 "recovery: {detection: 1s, restart: 1s, checkpoint: {load: 1s}}\n"));
  ASSERT_TRUE(report.course);
  EXPECT_EQ(report.course->policy, "continue");
  EXPECT_EQ(report.course->updates_twice, 1);
  EXPECT_GT(report.course->time_s[static_cast<std::size_t>(CourseState::slower)], 0);
  EXPECT_EQ(report.course->steps_lost, 0);
}

}  // namespace
}  // namespace tandem
