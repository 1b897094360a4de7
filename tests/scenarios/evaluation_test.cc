// Evaluations between steps and beside them: what they find out, how long they take, and that training stays as it is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/comparison/compare.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/job/job.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;

const std::string kDigits = "workload: {kind: mlp, data: digits, hidden: [32], batch: 64, learning_rate: 0.1}\n";
const std::string kEvaluatedGpt =
    "workload: {kind: layers, model: gpt, sizes: {tokens: 32, hidden: 64, heads: 4, layers: 4, vocabulary: 512}, "
    "batch: 64, dtype: bf16}\n";

// On three simulated machines, of which an evaluator has the last one.
Scenario simulated(const std::string& workload, const std::string& strategy, const std::string& evaluation,
                   const std::string& more = "devices: {type: gpu, workers: 2, per_worker: 2}\nsteps: 12\n",
                   const std::string& engine = "name: sim") {
  return read_scenario(
      fmt::format("{}strategy: {{{}}}\nengine: {{{}}}\ntopology: {{cluster: {{node: hgx-h100, workers: 3}}}}\n{}{}",
                  workload, strategy, engine, more, evaluation.empty() ? "" : "evaluation: {" + evaluation + "}\n"));
}

Scenario on_cpu(const std::string& strategy, const std::string& devices, const std::string& evaluation) {
  return read_scenario(fmt::format(
      "{}strategy: {{name: {}}}\nengine: {{name: cpu}}\ndevices: {{type: cpu, {}}}\nsteps: 12\nevaluation: {{{}}}\n",
      kDigits, strategy, devices, evaluation));
}

Evaluations evaluations_of(const Scenario& scenario) {
  return run_unscaled(scenario).evaluations.value();
}

std::vector<std::int64_t> steps_of(const Evaluations& evaluations) {
  std::vector<std::int64_t> steps;
  for (const Evaluated& one : evaluations.done) steps.push_back(one.step);
  return steps;
}

TEST(Evaluations, FindOutTheSameOnEveryEngineAndByWhomever) {
  const std::string between = "every: 4 steps, batch: 100", real = "name: sim, values: real";
  const Report cpu = run_unscaled(on_cpu("multi_worker_mirrored", "workers: 2, per_worker: 2", between));
  const Evaluations sim =
      evaluations_of(simulated(kDigits, "name: multi_worker_mirrored", between,
                               "devices: {type: gpu, workers: 2, per_worker: 2}\nsteps: 12\n", real));
  const Evaluations beside =
      evaluations_of(on_cpu("multi_worker_mirrored", "workers: 2, per_worker: 2", between + ", on: evaluator"));
  ASSERT_TRUE(cpu.evaluations);
  EXPECT_EQ(steps_of(*cpu.evaluations), (std::vector<std::int64_t>{4, 8, 12}));
  EXPECT_EQ(steps_of(sim), steps_of(*cpu.evaluations));
  const Evaluated& last = cpu.evaluations->done.back();
  ASSERT_TRUE(last.loss && last.accuracy && sim.done.back().loss && beside.done.back().loss);
  EXPECT_LT(*last.loss, *cpu.evaluations->done.front().loss) << "or it learned nothing";
  EXPECT_DOUBLE_EQ(*last.accuracy, cpu.metrics.at("test_accuracy")) << "of all test rows after the last step";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(*sim.done[i].loss / *cpu.evaluations->done[i].loss, 1, 1e-4) << i;
    EXPECT_DOUBLE_EQ(*sim.done[i].accuracy, *cpu.evaluations->done[i].accuracy) << i;
  }
  EXPECT_EQ(beside.done.back().step, 12) << "the newest variables are evaluated";
  EXPECT_NEAR(*beside.done.back().loss / *last.loss, 1, 1e-4);
  EXPECT_DOUBLE_EQ(*beside.done.back().accuracy, *last.accuracy);
}

TEST(Evaluations, OfSomeRowsOnly) {
  const Evaluations some = evaluations_of(on_cpu("mirrored", "per_worker: 2", "every: 12 steps, batch: 100, steps: 1"));
  const Evaluations all = evaluations_of(on_cpu("mirrored", "per_worker: 2", "every: 12 steps"));
  EXPECT_EQ(some.passes, 1);
  EXPECT_EQ(all.passes, 6) << "359 test rows in batches of 64";
  const double right = *some.done.front().accuracy * 100;
  EXPECT_NEAR(right, std::round(right), 1e-9) << "of 100 rows";
  EXPECT_NE(*some.done.front().loss, *all.done.front().loss);
}

struct OfStrategy {
  const char* strategy;
  double change = 1e-5;  // of a step, at most
};

class EvaluationsOfStrategy : public testing::TestWithParam<OfStrategy> {};

// Steps are what they are without evaluations, and these take no longer than forward passes of as many steps.
TEST_P(EvaluationsOfStrategy, LeaveStepsAsTheyAre) {
  const auto [strategy, change] = GetParam();
  const Report without = run_unscaled(simulated(kEvaluatedGpt, strategy, ""));
  const Report with = run_unscaled(simulated(kEvaluatedGpt, strategy, "every: 3 steps, steps: 2"));
  const auto step = static_cast<double>(with.summary.step_time.mean);
  EXPECT_NEAR(step / static_cast<double>(without.summary.step_time.mean), 1, change);
  EXPECT_NEAR(
      static_cast<double>(with.summary.per_step.compute) / static_cast<double>(without.summary.per_step.compute), 1,
      1e-3);
  ASSERT_TRUE(with.evaluations);
  EXPECT_FALSE(without.evaluations);
  const Evaluations& done = *with.evaluations;
  EXPECT_EQ(steps_of(done), (std::vector<std::int64_t>{3, 6, 9, 12}));
  EXPECT_FALSE(done.done.front().loss) << "values mean nothing";
  EXPECT_EQ(done.waited, done.time());
  const auto median = static_cast<double>(done.median_time());
  EXPECT_GT(median, 0);
  EXPECT_LT(median, 2 * step) << "two forward passes against two steps";
  EXPECT_NEAR(static_cast<double>(done.job - done.waited) / (12 * step), 1, change + 0.05) << "steps of one worker";
  const Evaluations twice = evaluations_of(simulated(kEvaluatedGpt, strategy, "every: 3 steps, steps: 4"));
  EXPECT_GT(static_cast<double>(twice.median_time()), 1.5 * median);
  EXPECT_LT(static_cast<double>(twice.median_time()), 2.01 * median);
}

// A step after an evaluation finds parameters that are still whole where all of them are in few pieces; servers serve
// workers in another order.
INSTANTIATE_TEST_SUITE_P(
    All, EvaluationsOfStrategy,
    testing::Values(OfStrategy{"name: multi_worker_mirrored"}, OfStrategy{"name: fully_sharded", 1e-3},
                    OfStrategy{"name: mesh, data: 2, tensor: 2"},
                    OfStrategy{"name: mesh, pipeline: 4, micro_batches: 8"},
                    OfStrategy{"name: mesh, data: 4, shard_parameters: true", 1e-3},
                    OfStrategy{"name: mesh, data: 2, pipeline: 2, micro_batches: 4, virtual_stages: 2"},
                    OfStrategy{"name: mesh, data: 4, distributed_optimizer: true, overlap_gather: true"},
                    OfStrategy{"name: mesh, pipeline: 4, micro_batches: 8, schedule: zero_bubble"},
                    OfStrategy{"name: mesh, data: 2, pipeline: 2, micro_batches: 4, schedule: dualpipe_v"},
                    OfStrategy{"name: parameter_server, updates: sync", 0.03}));

TEST(Evaluations, ByWorkersThatRepresentOthers) {
  const auto job = [&](const char* symmetry) {
    return run_unscaled(read_scenario(
        fmt::format("{}strategy: {{name: multi_worker_mirrored}}\nengine: {{name: sim, symmetry: {}}}\n"
                    "topology: {{cluster: {{node: hgx-h100, workers: 12}}}}\ndevices: {{type: gpu, per_worker: 4}}\n"
                    "steps: 6\nevaluation: {{every: 2 steps, steps: 1}}\n",
                    kEvaluatedGpt, symmetry)));
  };
  const Report some = job("auto"), all = job("off");
  EXPECT_FALSE(some.classes.empty());
  EXPECT_TRUE(all.classes.empty());
  EXPECT_EQ(some.summary.step_time, all.summary.step_time);
  EXPECT_EQ(some.evaluations, all.evaluations);
}

TEST(Evaluations, BesideLetTrainingGoOn) {
  const std::string work = "every: 4 steps, steps: 20";
  const Evaluations between = evaluations_of(simulated(kEvaluatedGpt, "name: multi_worker_mirrored", work));
  const Evaluations beside =
      evaluations_of(simulated(kEvaluatedGpt, "name: multi_worker_mirrored", work + ", on: evaluator"));
  EXPECT_TRUE(beside.is_beside);
  EXPECT_EQ(beside.due, 3);
  EXPECT_GT(beside.waited, 0) << "for copies of the variables";
  EXPECT_LT(beside.waited, between.waited / 2);
  EXPECT_LT(beside.job, between.job);
  EXPECT_GT(beside.afterwards, 0);
}

// An evaluation takes longer than the steps between two of them.
TEST(Evaluations, ThatAreTooLateTakeTheNewestVariables) {
  const Evaluations beside = evaluations_of(
      simulated(kEvaluatedGpt, "name: multi_worker_mirrored", "every: 1 step, steps: 60, on: evaluator"));
  EXPECT_EQ(beside.due, 12);
  EXPECT_GT(beside.overtaken(), 0);
  EXPECT_EQ(static_cast<std::int64_t>(beside.done.size()), beside.due - beside.overtaken());
  EXPECT_EQ(beside.done.back().step, 12);
  EXPECT_TRUE(std::ranges::is_sorted(steps_of(beside)));
}

TEST(Evaluations, BesideParameterServers) {
  for (const Report& report :
       {run_unscaled(on_cpu("parameter_server", "workers: 2, per_worker: 1", "every: 6 steps, on: evaluator")),
        run_unscaled(simulated(kDigits, "name: parameter_server", "every: 6 steps, on: evaluator",
                               "devices: {type: gpu, workers: 1, per_worker: 1, ps: 1}\nsteps: 12\n",
                               "name: sim, values: real"))}) {
    ASSERT_TRUE(report.evaluations) << report.engine;
    EXPECT_EQ(report.evaluations->done.back().step, 12);
    EXPECT_GT(*report.evaluations->done.back().accuracy, 0.2) << report.engine;
  }
}

TEST(Evaluations, TakeTheLastMachineWhereNoNumberOfWorkersIsStated) {
  const Scenario scenario =
      simulated(kEvaluatedGpt, "name: multi_worker_mirrored", "every: 2 steps, steps: 1, on: evaluator",
                "devices: {type: gpu, per_worker: 8}\nsteps: 4\n");
  const Job job = job_of(scenario);
  EXPECT_EQ(job.workers, 2);
  ASSERT_EQ(job.tasks.size(), 3U);
  EXPECT_EQ(job.tasks.back().text(), "/job:evaluator/task:0");
  EXPECT_EQ(job.tasks.back().topology_worker, 2);
  EXPECT_EQ(job.devices, 16);
}

TEST(Evaluations, NeedMemoryForTheirBatch) {
  const auto need = [](const std::string& evaluation) {
    const Scenario scenario = simulated(kEvaluatedGpt, "name: multi_worker_mirrored", evaluation);
    return memory_need(job_of(scenario)).value();
  };
  const MemoryNeed none = need(""), small = need("every: 2 steps, steps: 1"),
                   large = need("every: 2 steps, steps: 1, batch: 65536"),
                   beside = need("every: 2 steps, steps: 1, batch: 65536, on: evaluator");
  EXPECT_EQ(small.total(), none.total()) << "passes of training keep more";
  EXPECT_GT(large.total(), none.total());
  EXPECT_EQ(large.activations, 0) << "nothing is kept";
  EXPECT_THAT(large.moment, HasSubstr("an evaluation"));
  EXPECT_EQ(large.gradients, none.gradients);
  EXPECT_EQ(beside.gradients, 0);
  EXPECT_NEAR(static_cast<double>(beside.workspace) / static_cast<double>(large.workspace), 2, 1e-6)
      << "two devices in place of four";
}

TEST(Evaluations, AreCompared) {
  const Report report = run_unscaled(simulated(kDigits, "name: multi_worker_mirrored", "every: 4 steps",
                                               "devices: {type: gpu, workers: 2, per_worker: 2}\nsteps: 12\n",
                                               "name: sim, values: real"));
  Report other = report;
  other.evaluations->done.back().loss = *report.evaluations->done.back().loss * 1.5;
  const Comparison comparison = compare(report, other);
  EXPECT_EQ(comparison.figure("evaluation").error, 0);
  ASSERT_TRUE(comparison.evaluated_loss_max_relative_difference);
  EXPECT_NEAR(*comparison.evaluated_loss_max_relative_difference, 0.5, 1e-9);
  EXPECT_THAT(comparisons_text({comparison}), HasSubstr("loss of evaluations: at most 5.0e-01 apart"));
}

}  // namespace
}  // namespace tandem
