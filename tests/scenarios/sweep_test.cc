// Sweeps: conditions, the points they leave, and the scenario of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "engine/launched_job.h"
#include "scenarios/reading/condition.h"
#include "scenarios/sweep/point_runner.h"
#include "scenarios/sweep/process_pool.h"
#include "scenarios/sweep/results_file.h"
#include "scenarios/sweep/sweep.h"
#include "scenarios/sweep/sweep_space.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool holds(const std::string& text, const std::map<std::string, ConditionValue>& values = {}) {
  const Condition condition(text);
  return condition.holds([&](std::size_t name) { return values.at(condition.names()[name]); });
}

std::string sweep_problem_of(const std::string& text) {
  try {
    return holds(text, {{"a", 6.0}, {"word", std::string("mesh")}}) ? "holds" : "does not hold";
  } catch (const ConditionError& error) {
    return std::to_string(error.where()) + ": " + error.what();
  }
}

TEST(Condition, FollowsThePrecedenceOfArithmetic) {
  EXPECT_TRUE(holds("1 + 2 * 3 == 7"));
  EXPECT_TRUE(holds("(1 + 2) * 3 == 9"));
  EXPECT_TRUE(holds("8 - 4 - 2 == 2")) << "from left to right";
  EXPECT_TRUE(holds("7 / 2 == 3.5 and 7 % 4 == 3"));
  EXPECT_TRUE(holds("1 == 2 or 2 == 2 and not 1 == 2"));
  EXPECT_FALSE(holds("(1 == 2 or 2 == 2) and 1 == 2"));
  EXPECT_TRUE(holds("25MB == 25000000 and 1 <= 1 and not 1 < 1"));
  EXPECT_TRUE(holds("true and not false"));
}

TEST(Condition, KnowsNamesAndTexts) {
  const std::map<std::string, ConditionValue> values{
      {"data", 4.0}, {"tensor", 2.0}, {"workload.sizes.layers", 96.0}, {"strategy", std::string("mesh")}};
  EXPECT_TRUE(holds("data * tensor == 8 and workload.sizes.layers % data == 0", values));
  EXPECT_TRUE(holds("strategy == 'mesh' and strategy != 'mirrored'", values));
  EXPECT_EQ(Condition("data * data == devices").names(), (std::vector<std::string>{"data", "devices"}));
}

TEST(Condition, SkipsWhatAndAndOrDoNotNeed) {
  EXPECT_TRUE(holds("true or 1 / 0 == 1"));
  EXPECT_FALSE(holds("false and 1 / 0 == 1"));
}

TEST(Condition, SaysWhereItIsWrong) {
  EXPECT_EQ(sweep_problem_of("a ==="), "4: expected a value, found '='");
  EXPECT_EQ(sweep_problem_of("a == "), "5: ends too early");
  EXPECT_EQ(sweep_problem_of("(a == 6"), "7: expected )");
  EXPECT_EQ(sweep_problem_of("a == 6 7"), "7: expected an operator");
  EXPECT_EQ(sweep_problem_of("a == 'x"), "5: a text without its end");
  EXPECT_EQ(sweep_problem_of("a == 3x"), "5: '3x' is no number");
  EXPECT_EQ(sweep_problem_of("word == 6"), "5: compares a text with a number");
  EXPECT_EQ(sweep_problem_of("word * 2 == 6"), "0: 'mesh' is no number");
  EXPECT_EQ(sweep_problem_of("a % 0 == 1"), "2: divides by 0");
  EXPECT_EQ(sweep_problem_of("1 <= a <= 8"),
            "7: one comparison after another; join them with `and`, as in 1 <= a and a <= 8");
  EXPECT_EQ(sweep_problem_of(std::string(2000, '(')), "0: longer than 1000 characters");
  EXPECT_EQ(sweep_problem_of(std::string(500, '(')), "101: nested too deeply");
}

constexpr const char* kBase = R"(name: small
workload: {kind: layers, model: gpt, sizes: {hidden: 64, heads: 4, layers: 4, tokens: 32}, batch: 32, dtype: bf16}
strategy: {name: mesh, data: 4, tensor: 2}
engine: {name: sim}
topology: {cluster: {node: hgx-h100, workers: 4}}
devices: {workers: 1, per_worker: 8}
steps: 2
warmup_steps: 1
sweep:
)";

Scenario with_sweep(const std::string& sweep) {
  return read_scenario(kBase + sweep);
}

std::string sweep_refusal_of(const std::string& sweep) {
  try {
    swept_points(with_sweep(sweep));
  } catch (const InputError& error) {
    std::string text;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      text += std::to_string(diagnostic.line) + ":" + std::to_string(diagnostic.column) + ": " + diagnostic.path +
              ": " + diagnostic.message + "\n";
    }
    return text;
  }
  return "accepted";
}

std::vector<std::string> texts_of(const SweepTable& table) {
  std::vector<std::string> texts;
  for (const SweptPoint& point : table.points) {
    std::string text;
    for (const auto& [field, value] : point.values) text += (text.empty() ? "" : " ") + value;
    texts.push_back(text);
  }
  return texts;
}

TEST(SweepSpace, HasEveryCombinationThatMeetsTheConditions) {
  const SweepTable table = swept_points(with_sweep(R"(
  values:
    strategy.data: {from: 1, to: 8, times: 2}
    strategy.tensor: [1, 2, 4]
    strategy.pipeline: [1, 2]
  where: [data * tensor * pipeline == devices]
)"));
  EXPECT_EQ(table.fields, (std::vector<std::string>{"strategy.data", "strategy.tensor", "strategy.pipeline"}));
  EXPECT_THAT(texts_of(table), ElementsAre("1 4 2", "2 2 2", "2 4 1", "4 1 2", "4 2 1", "8 1 1"));
}

TEST(SweepSpace, CountsTheDevicesOfEachPoint) {
  const SweepTable table = swept_points(with_sweep(R"(
  values: {devices.workers: {from: 1, to: 4, step: 1}, devices.per_worker: [4, 8], strategy.data: [4, 8, 16]}
  where: [data * tensor == devices, replicas == 8]
)"));
  EXPECT_THAT(texts_of(table), ElementsAre("1 8 4", "2 8 8", "4 8 16"));
}

TEST(SweepSpace, RangesEndAtTheirBounds) {
  const auto values = [](const std::string& range) {
    return texts_of(swept_points(with_sweep("  values: {workload.batch: " + range + "}\n")));
  };
  EXPECT_THAT(values("{from: 8, to: 20, step: 4}"), ElementsAre("8", "12", "16", "20"));
  EXPECT_THAT(values("{from: 1, to: 1000, times: 10}"), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(values("{from: 5, to: 5, step: 1}"), ElementsAre("5"));
  EXPECT_THAT(values("{from: 1MB, to: 4MB, times: 2}"), ElementsAre("1000000", "2000000", "4000000"));
}

TEST(SweepSpace, RefusesWhatIsWrongBeforeAnyPointRuns) {
  EXPECT_EQ(sweep_refusal_of("  values: {strategy.tensr: [1]}\n"), "11:29: strategy: unknown key 'tensr'\n");
  EXPECT_THAT(sweep_refusal_of("  values: {workload.batch: []}\n"), HasSubstr("has no values; needs at least one"));
  EXPECT_THAT(sweep_refusal_of("  values: {workload.batch: {from: 8, to: 4, step: 1}}\n"),
              HasSubstr("no value is from 8 to 4"));
  EXPECT_THAT(sweep_refusal_of("  values: {workload.batch: [8, 8]}\n"), HasSubstr("'8' for the second time"));
  EXPECT_EQ(sweep_refusal_of("  values: {workload.bucket_bytes: [25MB, 25000000, 1MB, 2.5e7]}\n"),
            "11:42: sweep.values.workload.bucket_bytes[1]: '25000000' is '25MB' again\n"
            "11:57: sweep.values.workload.bucket_bytes[3]: '2.5e7' is '25MB' again\n");
  EXPECT_EQ(sweep_refusal_of("  values: {workload.batch: {from: 0.5, to: 4, step: 0.5}}\n"),
            "11:28: workload.batch: expected a whole number, found '0.5'\n");
  EXPECT_THAT(sweep_refusal_of("  values: {workload.sizes.layers: {from: 1, to: 4, times: 1.5}}\n"),
              HasSubstr("workload.sizes.layers: expected a whole number"));
  EXPECT_THAT(sweep_refusal_of("  values: {workload.batch: {from: 1, to: 8, step: 0}}\n"),
              HasSubstr("must be greater than 0"));
  EXPECT_THAT(sweep_refusal_of("  values: {workload.batch: {from: 1, to: 1e9, step: 1}}\n"),
              HasSubstr("has 1e+09 values"));
  EXPECT_THAT(sweep_refusal_of("  values: {workload.batch: [8], workload: [{}]}\n"),
              HasSubstr("'workload.batch' is part of 'workload'; give one of them"));
  EXPECT_THAT(sweep_refusal_of("  values: {steps.first: [8]}\n"), HasSubstr("'steps' is '2' in this scenario"));
  EXPECT_THAT(sweep_refusal_of("  values: {name: [a, b]}\n"), HasSubstr("'name' cannot be swept"));
  EXPECT_THAT(sweep_refusal_of("  values: {engine.name: [sim, cpu]}\n"), HasSubstr("the engine cannot be swept"));
  EXPECT_THAT(sweep_refusal_of("  values: {engine: [{name: sim}]}\n"), HasSubstr("the engine cannot be swept"));
  EXPECT_THAT(sweep_refusal_of("  values: {}\n"), HasSubstr("needs at least one field"));
  EXPECT_THAT(sweep_refusal_of("  value: {workload.batch: [8]}\n"), HasSubstr("missing key 'values'"));
}

TEST(SweepSpace, RefusesConditionsThatNothingMeets) {
  EXPECT_EQ(sweep_refusal_of("  values: {strategy.data: [1, 2]}\n  where: [data == 3]\n"),
            "12:10: sweep.where: none of the 2 combinations meets the conditions\n");
  EXPECT_EQ(sweep_refusal_of("  values: {strategy.data: [1, 2]}\n  where: [data + == 3]\n"),
            "12:11: sweep.where[0]: 'data + == 3', at character 8: expected a value, found '='\n");
  EXPECT_THAT(sweep_refusal_of("  values: {strategy.data: [1, 2]}\n  where: [dta == 3]\n"),
              testing::AllOf(HasSubstr("12:11: sweep.where[0]: 'dta == 3': unknown name 'dta'"),
                             HasSubstr("did you mean 'data'?")));
  EXPECT_THAT(sweep_refusal_of("  values: {strategy.data: [1, 2]}\n  where: [strategy == 3]\n"),
              HasSubstr("compares a text with a number"));
  EXPECT_THAT(sweep_refusal_of("  values: {strategy.data: [1, 2]}\n  where: [workload.sizes.width == 3]\n"),
              HasSubstr("'workload.sizes.width' has no value"));
}

TEST(SweepSpace, RefusesABillionPoints) {
  EXPECT_EQ(sweep_refusal_of(
                "  values:\n    workload.batch: {from: 1, to: 1000, step: 1}\n    strategy.data: {from: 1, to: 1000, "
                "step: 1}\n    strategy.tensor: {from: 1, to: 1000, step: 1}\n"),
            "11:3: sweep: has more than 100000 points; narrow it\n");
  EXPECT_THAT(sweep_refusal_of(
                  "  values:\n    workload.batch: {from: 1, to: 1000, step: 1}\n    strategy.data: {from: 1, to: 1000, "
                  "step: 1}\n"),
              HasSubstr("has more than 100000 points; narrow it"));
}

TEST(SweepSpace, MakesTheScenarioOfAPoint) {
  const Scenario base = with_sweep(R"(
  values:
    workload.dtype: [f32, bf16]
    topology.cluster.overrides.nvlink.bandwidth: [100GB/s]
    strategy: [{name: fully_sharded}]
)");
  const SweepSpace space(base);
  const auto points = space.points();
  ASSERT_EQ(points.size(), 2u);
  SharedParts parts;
  const Scenario first = space.scenario(points[0], parts), second = space.scenario(points[1], parts);
  EXPECT_EQ(std::get<LayersSettings>(first.workload.kind).dtype, DType::f32);
  EXPECT_EQ(std::get<LayersSettings>(second.workload.kind).dtype, DType::bf16);
  EXPECT_EQ(first.strategy.name, "fully_sharded");
  EXPECT_EQ(first.topology, second.topology) << "made once";
  EXPECT_NE(first.topology, base.topology);
  EXPECT_FALSE(first.sweep);
}

// Keys with dots and patterns, which the scenario need not have.
TEST(SweepSpace, SweepsSingleNodesAndLinks) {
  const Scenario base = with_sweep(R"(
  values:
    topology.cluster.workers: [3]
    topology.cluster.overrides."*.nic5".slowdown: [4]
    topology.cluster.overrides.*.nic6.bandwidth: [20GB/s]
    topology.cluster.overrides.w1.gpu2.slowdown: [2]
    topology.cluster.overrides."w0.gpu3 - w0.nvswitch0".bandwidth: [100GB/s]
)");
  const SweepSpace space(base);
  SharedParts parts;
  const Topology& topology = *space.scenario(space.points().front(), parts).topology;
  const auto port = [&](const char* nic) {
    return topology.node(topology.find(nic).value()).port->bandwidth_bytes_per_s.value / 1e9;
  };
  EXPECT_EQ(port("w2.nic5"), 12.5);
  EXPECT_EQ(port("w2.nic6"), 20);
  EXPECT_EQ(port("w2.nic4"), 50);
  EXPECT_EQ(topology.device(topology.find("w1.gpu2").value())->peak_flops_per_s.at(DType::bf16).value, 989e12 / 2);
}

TEST(SweepSpace, PointsAtTheValueOfThePointThatIsWrong) {
  const Scenario base = with_sweep("  values: {workload.dtype: [bf16, bf61]}\n");
  const SweepSpace space(base);
  SharedParts parts;
  try {
    space.scenario(space.points()[1], parts);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.diagnostics().front().line, 11);
    EXPECT_EQ(error.diagnostics().front().column, 35);
    EXPECT_THAT(error.what(), HasSubstr("workload.dtype: unknown word 'bf61'"));
  }
}

// A mistake in a part that would be shared is found again at the next point.
TEST(SharedParts, KeepNothingOfAScenarioWithMistakes) {
  const Scenario base =
      with_sweep("  values: {topology: [{cluster: {node: hgx-h100, workrs: 2, workers: 4}}], steps: [2, 3]}\n");
  EXPECT_THAT(
      sweep_refusal_of("  values: {topology: [{cluster: {node: hgx-h100, workrs: 2, workers: 4}}], steps: [2, 3]}\n"),
      HasSubstr("unknown key 'workrs'"));
}

TEST(Scenario, HasTheSameHashWithAnotherSweep) {
  const std::string first = with_sweep("  values: {workload.batch: [8, 16]}\n").hash;
  EXPECT_EQ(with_sweep("  values: {workload.batch: [8, 16, 32]}\n").hash, first);
}

TEST(Sweep, RunsEveryPointAsTheScenarioWouldRun) {
  const Scenario base = with_sweep("  values: {strategy.data: [4, 8, 2], strategy.tensor: [1, 2]}\n");
  SweepTable table = swept_points(base);
  run_sweep(base, {.processes = 2}, table);
  ASSERT_EQ(table.points.size(), 6u);
  EXPECT_EQ(table.points[0].state, PointState::failed);
  EXPECT_THAT(table.points[0].problem, HasSubstr("a mesh of data 4 x tensor 1 x pipeline 1 needs 4 devices, found 8"));
  EXPECT_EQ(table.count(PointState::done), 2) << "4 x 2 and 8 x 1";
  const Report alone = run_unscaled(base);
  // One device represents its neighbour: dates of its ops may differ by the last nanosecond.
  EXPECT_NEAR(table.points[1].step_time, alone.summary.step_time.median, 1);
  EXPECT_NEAR(table.points[1].throughput / alone.throughput(), 1, 1e-6);
  for (const StepPart& part : step_figures()) {
    EXPECT_NEAR(table.points[1].per_step.*part.time, alone.summary.per_step.*part.time, 100) << part.name;
  }
  EXPECT_EQ(table.points[1].memory, alone.memory);
  EXPECT_EQ(table.points[1].devices, 8);
}

TEST(Sweep, APointThatNeedsMoreThanItsShareOfTheMemoryRunsAlone) {
  const Scenario base = with_sweep("  values: {strategy.data: [4]}\n");
  const SweepSpace space(base);
  const std::vector<SweepSpace::Point> points = space.points();
  const std::vector<std::string> files{""};
  EXPECT_EQ(PointRunner(space, points, files, nullptr, 1e-9).line(0), "") << "for later";
  const std::string line = PointRunner(space, points, files, nullptr, 1).line(0);
  EXPECT_EQ(point_of_line(line, "a result", 1).point.state, PointState::done) << line;
}

TEST(ProcessPool, GivesEveryJobToSomeProcessAndSurvivesItsEnd) {
  std::map<int, std::string> results, lost;
  ProcessPool pool(3, [](int job) {
    if (job == 4) std::abort();
    return std::string(static_cast<std::size_t>(job) * 50'000, 'x') + std::to_string(job);
  });
  const std::vector<int> jobs{0, 1, 2, 3, 4, 5, 6, 7};
  pool.run(jobs, {.done = [&](int job, const std::string& result) { results[job] = result; },
                  .lost = [&](int job, const std::string& why) { lost[job] = why; },
                  .tick = [] {}});
  EXPECT_EQ(results.size(), 7u);
  for (const auto& [job, result] : results) {
    EXPECT_EQ(result.size(), static_cast<std::size_t>(job) * 50'000 + 1);
    EXPECT_TRUE(result.ends_with(std::to_string(job)));
  }
  EXPECT_EQ(lost, (std::map<int, std::string>{{4, "its process was ended by signal 6 (Aborted)"}}));
}

TEST(ResultsFile, WaitsForAnotherSweepThatEndsAndForNoOther) {
  std::string folder = (std::filesystem::temp_directory_path() / "tandem-sweep-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto file = std::filesystem::path(folder) / "s.sweep.jsonl";
  auto first = std::make_unique<ResultsFile>(file, SweepIdentity{"s", "1"});
  const auto opens = [&](std::chrono::milliseconds patience) {
    try {
      const ResultsFile second(file, {"s", "1"}, patience);
      return std::string("opens");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(opens(std::chrono::milliseconds(50)), testing::EndsWith("another process is writing to it"));
  const std::jthread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first.reset();
  });
  EXPECT_EQ(opens(std::chrono::seconds(60)), "opens");
  std::filesystem::remove_all(folder);
}

TEST(Ranks, ComeFromTheEnvironmentOfTheLauncher) {
  const auto rank_with = [](const std::map<std::string, std::string>& variables) {
    return rank_of_process([variables](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(rank_with({}).count, 1);
  EXPECT_EQ(rank_with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).index, 2);
  EXPECT_EQ(rank_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}).count, 3);
  EXPECT_EQ(rank_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}).on_host, 0) << "as far as is known";
  EXPECT_EQ(rank_with({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}}).on_host, 1);
  EXPECT_EQ(rank_with({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}).count, 8);
  EXPECT_EQ(rank_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).count, 1) << "a batch script is no task";
  EXPECT_THROW(rank_with({{"PMI_RANK", "3"}, {"PMI_SIZE", "3"}}), RunError);
  EXPECT_THROW(rank_with({{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}), RunError);
}

}  // namespace
}  // namespace tandem
