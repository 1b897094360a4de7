// A run whose passes are simulated in part ends with the figures of the run in which all of them are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/run/steady_state.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

constexpr Nanoseconds kRoundingOfAPeriod = 2;

struct SteadyJob {
  std::string strategy = "{name: mesh, tensor: 2, pipeline: 4, micro_batches: 32}";
  std::string workload = "batch: 32";  // its keys
  std::string machine = "hgx-h100";
  int workers = 1, per_worker = 8;

  std::string text() const {
    return fmt::format(
        "name: steady\n"
        "workload: {{kind: layers, model: gpt, sizes: {{layers: 8, hidden: 4096, heads: 32, tokens: 2048}}, "
        "dtype: bf16, {}}}\n"
        "strategy: {}\nengine: {{name: sim}}\ntopology: {{cluster: {{node: {}, workers: {}}}}}\n"
        "devices: {{type: gpu, workers: {}, per_worker: {}}}\nsteps: 3\nwarmup_steps: 1\n",
        workload, strategy, machine, workers, workers, per_worker);
  }
};

Report report_of(const SteadyJob& job, bool in_part) {
  return run_scenario(read_scenario(job.text()), {.measures_scaling = false, .only_report = in_part}).report;
}

bool is_in_part(const Report& report) {
  return std::ranges::any_of(
      report.notes, [](const std::string& note) { return note.find("of a step are simulated") != std::string::npos; });
}

// Expects the same figures from both, and that the second one saved something.
void expect_equal_reports(const SteadyJob& job, int periods_left_out) {
  SCOPED_TRACE(job.text());
  const Report all = report_of(job, false), some = report_of(job, true);
  EXPECT_FALSE(is_in_part(all));
  EXPECT_TRUE(is_in_part(some));
  const Nanoseconds rounding = kRoundingOfAPeriod * (periods_left_out + 1);
  EXPECT_NEAR(some.summary.step_time.mean, all.summary.step_time.mean, rounding);
  EXPECT_NEAR(some.summary.step_time.median, all.summary.step_time.median, rounding);
  EXPECT_DOUBLE_EQ(some.units_per_step, all.units_per_step);
  // Every op of a period is rounded.
  const auto of_parts = static_cast<Nanoseconds>(1e-4 * static_cast<double>(all.summary.step_time.mean));
  Nanoseconds sum = 0;
  for (const StepPart& part : step_figures()) {
    EXPECT_NEAR(some.summary.per_step.*part.time, all.summary.per_step.*part.time, of_parts) << part.name;
  }
  for (const StepPart& part : step_parts()) sum += some.summary.per_step.*part.time;
  EXPECT_EQ(sum, some.summary.step_time.mean);
  ASSERT_EQ(some.summary.collectives.size(), all.summary.collectives.size());
  for (std::size_t i = 0; i < all.summary.collectives.size(); ++i) {
    const CollectiveSummary &mine = some.summary.collectives[i], &theirs = all.summary.collectives[i];
    EXPECT_EQ(mine.calls_per_step, theirs.calls_per_step) << theirs.operation << " " << theirs.bytes;
    EXPECT_NEAR(mine.waiting_ns, theirs.waiting_ns, of_parts) << theirs.operation << " " << theirs.bytes;
  }
  ASSERT_TRUE(some.summary.critical_path && all.summary.critical_path);
  // Where several paths take equally long, rounding decides which of them it is.
  const Nanoseconds of_path = all.summary.step_time.mean / 200;
  EXPECT_NEAR(some.summary.critical_path->compute, all.summary.critical_path->compute, of_path);
  EXPECT_NEAR(some.summary.critical_path->communication, all.summary.critical_path->communication, of_path);
}

TEST(SteadyState, OneForwardOneBackward) {
  expect_equal_reports({.strategy = "{name: mesh, tensor: 2, pipeline: 4, micro_batches: 64}", .workload = "batch: 64"},
                       44);
  expect_equal_reports({.strategy = "{name: mesh, data: 2, pipeline: 4, micro_batches: 24}", .workload = "batch: 48"},
                       17);
  expect_equal_reports({.strategy = "{name: pipeline_parallel, micro_batches: 40}", .workload = "batch: 40"}, 29);
}

TEST(SteadyState, StagesOfUnequalSize) {
  expect_equal_reports(
      {.strategy = "{name: mesh, tensor: 2, pipeline: 4, micro_batches: 32, stage_blocks: [1, 2, 2, 3]}"}, 25);
}

// The first stage waits for what it began four micro-batches ago.
TEST(SteadyState, MicroBatchesOfTwoLengthsThatTakeTurns) {
  const SteadyJob job{.strategy = "{name: mesh, tensor: 2, pipeline: 4, micro_batches: 63, stage_blocks: [1, 3, 3, 1]}",
                      .workload = "batch: 63"};
  expect_equal_reports(job, 17);
  EXPECT_THAT(report_of(job, true).notes,
              testing::Contains(testing::HasSubstr("21 of the 63 of a step are simulated; a "
                                                   "period of 2 repeats")));
}

// What devices that divide the sequence exchange shares NICs with what stages send.
TEST(SteadyState, MicroBatchesThatRepeatAfterEight) {
  expect_equal_reports({.strategy = "{name: mesh, tensor: 2, context: 2, pipeline: 4, micro_batches: 63}",
                        .workload = "batch: 63",
                        .workers = 2},
                       4);
}

TEST(SteadyState, InterleavedStagesRepeatARoundOfMicroBatches) {
  expect_equal_reports({.strategy = "{name: mesh, tensor: 2, pipeline: 4, virtual_stages: 2, micro_batches: 64}",
                        .workload = "batch: 64"},
                       10);
}

TEST(SteadyState, GradientsOfWeightsThatArePassesOfTheirOwn) {
  for (const char* schedule : {"zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v", "dualpipe"}) {
    expect_equal_reports(
        {.strategy = fmt::format("{{name: mesh, tensor: 2, pipeline: 4, micro_batches: 64, schedule: {}}}", schedule),
         .workload = "batch: 64"},
        56);
  }
}

TEST(SteadyState, PassesThatAccumulateGradients) {
  for (const char* strategy : {"mirrored", "fully_sharded"}) {
    expect_equal_reports(
        {.strategy = fmt::format("{{name: {}}}", strategy), .workload = "batch: 256, gradient_accumulation_steps: 16"},
        12);
  }
}

TEST(SteadyState, OnSeveralMachinesWithADividedOptimizer) {
  expect_equal_reports(
      {.strategy = "{name: mesh, data: 8, tensor: 2, pipeline: 4, micro_batches: 16, distributed_optimizer: true, "
                   "overlap_gather: true}",
       .workload = "batch: 128, optimizer: adam, parameter_dtype: f32, sequence_parallel: true",
       .workers = 8},
      9);
}

TEST(SteadyState, EverythingIsSimulatedWhereNothingRepeatsOrItIsAskedFor) {
  const auto is_whole = [](const SteadyJob& job) { return !is_in_part(report_of(job, true)); };
  EXPECT_TRUE(is_whole({.strategy = "{name: mesh, tensor: 2, pipeline: 4, micro_batches: 8}"})) << "too few";
  EXPECT_TRUE(is_whole({.workload = "batch: 32, spread: 0.2"}));
  EXPECT_TRUE(is_whole({.strategy = "{name: mirrored}", .workload = "batch: 200, gradient_accumulation_steps: 16"}))
      << "unequal passes";
  Scenario scenario = read_scenario(SteadyJob{}.text());
  scenario.engine.steady_state = false;
  EXPECT_FALSE(is_in_part(run_scenario(scenario, {.only_report = true}).report));
}

TEST(SteadyState, FewerPassesAreACopyOfTheJobWithEqualPasses) {
  const Scenario scenario = read_scenario(SteadyJob{}.text());
  const Job job = job_of(scenario);
  const auto fewer = fewer_passes(job);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->passes, 8);
  EXPECT_EQ(fewer->of, 32);
  EXPECT_EQ(fewer->periods_left_out(), 24);
  EXPECT_EQ(fewer->scenario.workload.batch, 8);
  EXPECT_EQ(fewer->scenario.strategy.mesh.micro_batches, 8);
  const auto more = fewer_passes(job, 2 * fewer->passes);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->passes, 20);
  EXPECT_FALSE(fewer_passes(job, 2 * more->passes)) << "44 of 32";
  const auto by_fives = fewer_passes(job, 1, 5);
  ASSERT_TRUE(by_fives);
  EXPECT_EQ(by_fives->passes, 12) << "20 are left out";
  EXPECT_FALSE(fewer_passes(job, 21)) << "25 of 32 save less than a quarter";
}

}  // namespace
}  // namespace tandem
