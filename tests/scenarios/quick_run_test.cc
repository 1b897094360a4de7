// A quick run, as sweeps make them, ends close to the run in which all work is issued and simulated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/job/job.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

struct QuickJob {
  std::string strategy;    // keys of the mesh
  std::string workload{};  // more keys of the workload
  std::string stack = "{}";
  std::string model = "llama";
  std::string machine = "hgx-h100";
  int workers = 4, per_worker = 8, batch = 64;
  std::string overrides{};

  std::string text() const {
    return fmt::format(
        "name: quick\n"
        "workload: {{kind: layers, model: {}, sizes: {{layers: 16, hidden: 2048, heads: 32, tokens: 2048}}, dtype: "
        "bf16, batch: {}, optimizer: adam, stack: {}{}}}\n"
        "strategy: {{name: mesh, {}}}\nengine: {{name: sim}}\ntopology: {{cluster: {{node: {}, workers: {}, overrides: "
        "{{{}}}}}}}\n"
        "devices: {{type: gpu, per_worker: {}}}\nsteps: 2\nwarmup_steps: 1\n",
        model, batch, stack, workload, strategy, machine, workers, overrides, per_worker);
  }
};

struct QuickTimes {
  Summary quick, exact;
  double step() const { return ratio(quick.step_time.mean, exact.step_time.mean); }
  // How far the parts are apart, in terms of the step.
  double parts() const {
    double most = 0;
    for (const StepPart& part : step_figures()) {
      const auto apart = static_cast<double>(quick.per_step.*part.time - exact.per_step.*part.time);
      most = std::max(most, std::abs(apart) / static_cast<double>(exact.step_time.mean));
    }
    return most;
  }

 private:
  static double ratio(Nanoseconds one, Nanoseconds other) {
    return static_cast<double>(one) / static_cast<double>(other) - 1;
  }
};

QuickTimes times_of(const QuickJob& job) {
  const Scenario scenario = read_scenario(job.text());
  RunOptions options{.measures_scaling = false, .only_report = true};
  QuickTimes times{.quick = {}, .exact = run_scenario(scenario, options).report.summary};
  options.is_quick = true;
  times.quick = run_scenario(scenario, options).report.summary;
  return times;
}

// Where transfers between stages have links of their own, and so nothing disturbs passes that repeat but collectives of
// other streams.
TEST(QuickRun, TakesEqualTimesWhereStagesHaveLinksOfTheirOwn) {
  const std::vector<QuickJob> jobs = {
      {.strategy = "tensor: 8, pipeline: 4, micro_batches: 16", .workload = ", sequence_parallel: true"},
      {.strategy = "tensor: 8, pipeline: 4, micro_batches: 8, virtual_stages: 2",
       .workload = ", sequence_parallel: true"},
      {.strategy = "data: 2, tensor: 8, pipeline: 2, micro_batches: 8", .workload = ", sequence_parallel: true"},
      {.strategy = "data: 2, tensor: 4, context: 2, pipeline: 2, micro_batches: 8",
       .workload = ", sequence_parallel: true, activation_checkpointing: true"},
      {.strategy =
           "data: 2, tensor: 8, pipeline: 2, micro_batches: 8, distributed_optimizer: true, overlap_gather: true",
       .workload = ", sequence_parallel: true"},
      {.strategy = "data: 2, tensor: 8, pipeline: 2, micro_batches: 8, schedule: zero_bubble",
       .workload = ", sequence_parallel: true"},
  };
  for (const QuickJob& job : jobs) {
    const QuickTimes times = times_of(job);
    EXPECT_LE(std::abs(times.step()), 1e-8) << job.text();
    EXPECT_LE(times.parts(), 1e-6) << job.text();
  }
}

QuickJob random_quick_job(int seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const auto of = [&random](const auto& choices) { return choices[random() % std::size(choices)]; };
  const auto is = [&random](unsigned part) { return random() % part == 0; };
  QuickJob job;
  job.machine = of(std::vector<std::string>{"hgx-h100", "hgx-h100", "dgx-a100", "gb200-nvl72"});
  job.per_worker = job.machine == "gb200-nvl72" ? 4 : 8;
  job.workers = of(std::vector{2, 4, 8});
  int left = job.workers * job.per_worker;
  const auto divide_by = [&](const std::vector<int>& sizes) {
    const int size = of(sizes);
    if (left % size != 0) return 1;
    left /= size;
    return size;
  };
  const int pipeline = divide_by({2, 4, 8}), tensor = divide_by({1, 2, 4, 8}), context = divide_by({1, 1, 2, 4});
  const int virtual_stages = pipeline > 1 && pipeline < 8 && is(2) ? 2 : 1;
  const int micro_batches = pipeline > 1 ? pipeline * of(std::vector{2, 3}) : 4;
  job.strategy = fmt::format("data: {}, tensor: {}, context: {}, pipeline: {}, virtual_stages: {}, micro_batches: {}",
                             left, tensor, context, pipeline, virtual_stages, micro_batches);
  if (context > 1 && is(2)) job.strategy += ", context_exchange: ring";
  if (is(3)) job.strategy += ", axis_order: tensor_pipeline_data";
  if (is(2)) job.strategy += ", distributed_optimizer: true, overlap_gather: true";
  if (left % 2 == 0 && is(3)) {
    job.model = "mixtral";
    job.strategy += ", expert: 2";
  }
  job.batch = left * micro_batches * 2;
  job.workload = fmt::format(", sequence_parallel: {}, activation_checkpointing: {}", tensor > 1 && is(2), is(2));
  return job;
}

// What is simulated has memory of its own for exchanges; what the job needs is said by its estimate.
TEST(QuickRun, RunsWhatFitsByTheEstimate) {
  QuickJob job{.strategy = "tensor: 8, pipeline: 4, virtual_stages: 2, micro_batches: 8",
               .workload = ", activation_checkpointing: true",
               .batch = 512};
  const Scenario scenario = read_scenario(job.text());
  const auto need = memory_need(job_of(scenario));
  ASSERT_TRUE(need.has_value());
  job.overrides = fmt::format("gpu: {{memory: {}B}}", need->total() + 1'000'000);
  EXPECT_GT(times_of(job).quick.step_time.mean, 0);
  job.overrides = fmt::format("gpu: {{memory: {}B}}", need->total() / 2);
  EXPECT_THROW(times_of(job), MemoryError);
}

class RandomQuickRun : public testing::TestWithParam<int> {};

TEST_P(RandomQuickRun, IsCloseToTheWholeRun) {
  const QuickJob job = random_quick_job(GetParam());
  const QuickTimes times = times_of(job);
  EXPECT_LE(std::abs(times.step()), 0.01) << job.text();
  EXPECT_LE(times.parts(), 0.01) << job.text();
  RecordProperty("per_mille", fmt::format("{:.3f}", 1000 * times.step()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomQuickRun, testing::Range(1, 31));

}  // namespace
}  // namespace tandem
