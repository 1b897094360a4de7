// A run in which one device represents its neighbours ends with the figures of the run in which all of them work.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scenarios/job/job.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

struct AlikeJob {
  std::string strategy = "{name: mesh, tensor: 4, pipeline: 2, micro_batches: 4}";
  std::string workload = "batch: 32";  // its keys
  std::string machine = "hgx-h100";
  std::string cluster{};  // more keys of the cluster
  int workers = 1, per_worker = 8;
  std::string model = "gpt";
  int machines = 0;  // 0: as many as workers
  int layers = 8;

  std::string text() const {
    return fmt::format(
        "name: alike\n"
        "workload: {{kind: layers, model: {}, sizes: {{layers: {}, hidden: 2048, heads: 16, tokens: 1024}}, "
        "dtype: bf16, {}}}\n"
        "strategy: {}\nengine: {{name: sim, steady_state: off}}\n"
        "topology: {{cluster: {{node: {}, workers: {}{}}}}}\n"
        "devices: {{type: gpu, workers: {}, per_worker: {}}}\nsteps: 2\nwarmup_steps: 1\n",
        model, layers, workload, strategy, machine, machines > 0 ? machines : workers, cluster, workers, per_worker);
  }
};

std::size_t gpus_with_records(const Timeline& timeline) {
  std::set<int> gpus;
  for (const Record& record : timeline.records) {
    if (record.device == kNoDevice) continue;
    const std::string& name = timeline.devices[static_cast<std::size_t>(record.device)].name;
    if (name.find("GPU") != std::string::npos) gpus.insert(record.device);
  }
  return gpus.size();
}

// By devices and bytes. A transfer between two devices has the name of the end that comes first, which is the sender's
// if the host issues the receive a few launches later: one thread issues those of all devices of a group.
using CallTimes = std::map<std::tuple<std::string, int, double>, std::pair<double, Nanoseconds>>;

CallTimes calls_of(const Summary& summary) {
  CallTimes calls;
  for (const CollectiveSummary& one : summary.collectives) {
    const bool is_transfer = one.operation == "send" || one.operation == "receive";
    auto& [count, time] = calls[{is_transfer ? "transfer" : one.operation, one.devices, one.bytes}];
    count += one.calls_per_step;
    time = one.time_ns;
  }
  return calls;
}

// Dates of single ops may move by the last nanosecond; when a receive begins to wait, by launches.
constexpr Nanoseconds kRoundingOfOps = 4;
constexpr Nanoseconds kOfLosses = 2'000;  // every replica brings its own to the host
constexpr double kOfParts = 6e-3;

// Expects the same figures from both, from fewer devices in one of them (0: that is not known). Returns by how many
// times as few.
std::size_t expect_equal_figures(const AlikeJob& job, std::size_t fewer, Nanoseconds rounding = kRoundingOfOps) {
  SCOPED_TRACE(job.text());
  const Scenario scenario = read_scenario(job.text());
  const RunResult all = run_scenario(scenario, {.measures_scaling = false});
  const RunResult some = run_scenario(scenario, {.measures_scaling = false, .only_report = true});
  const std::size_t found = gpus_with_records(all.timeline) / gpus_with_records(some.timeline);
  if (fewer > 0) {
    EXPECT_EQ(found, fewer);
  }
  const Summary &mine = some.report.summary, &theirs = all.report.summary;
  EXPECT_NEAR(mine.step_time.mean, theirs.step_time.mean, rounding);
  for (const StepPart& part : step_figures()) {
    EXPECT_NEAR(mine.per_step.*part.time, theirs.per_step.*part.time, kOfParts * theirs.step_time.mean) << part.name;
  }
  const CallTimes calls = calls_of(mine), all_calls = calls_of(theirs);
  EXPECT_EQ(calls.size(), all_calls.size());
  for (const auto& [key, call] : all_calls) {
    const std::string name = fmt::format("{} {}", std::get<0>(key), std::get<2>(key));
    const auto known = calls.find(key);
    const auto [count, time] = known != calls.end() ? known->second : std::pair<double, Nanoseconds>();
    EXPECT_EQ(count, call.first) << name;
    EXPECT_NEAR(time, call.second, kRoundingOfOps) << name;
  }
  std::int64_t of_some = 0, of_all = 0;
  for (const RankWaiting& rank : mine.ranks) of_some += rank.devices;
  for (const RankWaiting& rank : theirs.ranks) of_all += rank.devices;
  EXPECT_EQ(of_some, of_all);
  double bytes = 0, of_all_bytes = 0;
  for (const LinkUse& link : some.timeline.links) bytes += link.bytes;
  for (const LinkUse& link : all.timeline.links) of_all_bytes += link.bytes;
  EXPECT_NEAR(bytes, of_all_bytes, 1e-6 * of_all_bytes);
  return found;
}

TEST(AlikeDevices, TensorParallelNeighboursOnOneMachine) {
  expect_equal_figures({}, 4);
  expect_equal_figures({.strategy = "{name: tensor_parallel}", .workload = "batch: 4"}, 8);
}

TEST(AlikeDevices, TensorParallelNeighboursInReplicasThatAreNeighbours) {
  expect_equal_figures({.strategy = "{name: mesh, data: 2, tensor: 4}", .workload = "batch: 8, optimizer: adam"}, 8,
                       kOfLosses);
  expect_equal_figures({.strategy = "{name: mesh, data: 4, tensor: 2, pipeline: 2, micro_batches: 2}",
                        .workload = "batch: 8, optimizer: adam",
                        .workers = 2},
                       8, kOfLosses);
}

TEST(AlikeDevices, OnMachinesWithTwoGpusForEachSwitchOfPcie) {
  for (const char* machine : {"dgx-a100", "mi300x-8gpu", "l40s-8gpu"}) expect_equal_figures({.machine = machine}, 4);
}

TEST(AlikeDevices, OnManyMachinesWhereWorkersRepresentOthersAsWell) {
  const std::string workload = "batch: 64, optimizer: adam, parameter_dtype: f32, sequence_parallel: true";
  const std::map<std::string, std::size_t> fewer_on{
      {"", 8},
      {", fabric: {kind: leaf_spine, workers_per_leaf: 4, spines: 2, oversubscription: 8}",
       1},  // hashes choose a spine
      {", fabric: {kind: rail, workers_per_leaf: 16, spines: 1}", 8}};
  for (const auto& [cluster, fewer] : fewer_on) {
    expect_equal_figures({.strategy = "{name: mesh, data: 8, tensor: 8, pipeline: 2, micro_batches: 4, "
                                      "distributed_optimizer: true, overlap_gather: true}",
                          .workload = workload,
                          .cluster = cluster,
                          .workers = 16},
                         fewer);
  }
}

TEST(AlikeDevices, SequencesThatMachinesDivide) {
  expect_equal_figures({.strategy = "{name: mesh, data: 2, context: 2, tensor: 8, pipeline: 2, micro_batches: 2}",
                        .workload = "batch: 8, sequence_parallel: true",
                        .workers = 8},
                       8);
}

TEST(AlikeDevices, SequencesThatPartsOfAWorkerDivide) {
  const std::string mesh = "{name: mesh, data: 16, context: 2, tensor: 4, pipeline: 2, micro_batches: 2}";
  expect_equal_figures({.strategy = mesh, .workload = "batch: 32, sequence_parallel: true", .workers = 32}, 8);
  expect_equal_figures({.strategy = mesh,
                        .workload = "batch: 32, sequence_parallel: true",
                        .machine = "gb200-nvl72",
                        .cluster = ", nvlink_domain: 16",
                        .workers = 64,
                        .per_worker = 4},
                       4);
}

TEST(AlikeDevices, DevicesThatPassPiecesOn) {
  const auto of = [](const std::string& mesh, const std::string& exchange, int workers) {
    return AlikeJob{.strategy = "{name: mesh, " + mesh + ", micro_batches: 2, context_exchange: " + exchange + "}",
                    .workload = "batch: 16, sequence_parallel: true",
                    .workers = workers};
  };
  expect_equal_figures(of("data: 2, context: 4, tensor: 4", "all_to_all", 4), 8);
  expect_equal_figures(of("data: 4, context: 2, tensor: 4", "ring", 4), 8);  // rings in a worker
  expect_equal_figures(of("data: 2, context: 4, tensor: 2", "ring", 2), 8);
  expect_equal_figures(of("data: 2, context: 4, tensor: 4", "ring", 4), 4);  // half of a ring in each
  expect_equal_figures(of("data: 2, context: 4, tensor: 8", "ring", 8), 8);  // a worker for each place
  expect_equal_figures(of("data: 4, context: 2, tensor: 8, pipeline: 2", "ring", 16), 8);
  AlikeJob over_leaves = of("data: 8, context: 4, tensor: 8, pipeline: 2", "ring", 64);
  over_leaves.cluster = ", fabric: {kind: rail, workers_per_leaf: 2, spines: 1}";
  over_leaves.workload = "batch: 32, sequence_parallel: true";
  expect_equal_figures(over_leaves, 8);
  EXPECT_EQ(run_scenario(read_scenario(over_leaves.text()), {.only_report = true}).timeline.classes.size(), 8)
      << "those at one place of their rings do the same, in each of two stages";
}

// Each of those that run makes the sends of as many as it represents.
TEST(AlikeDevices, SeveralOfARingWhereTheirLinksDiffer) {
  expect_equal_figures({.strategy = "{name: mesh, data: 2, context: 8, pipeline: 2, micro_batches: 4, "
                                    "schedule: dualpipe, context_exchange: ring}",
                        .workload = "batch: 16",
                        .machine = "gcp-a2",
                        .workers = 4,
                        .model = "llama"},
                       4);
  // Workers still represent others where only the devices of each differ.
  expect_equal_figures({.strategy = "{name: mesh, data: 8, context: 2, tensor: 8, context_exchange: ring}",
                        .workload = "batch: 16, sequence_parallel: true",
                        .cluster = ", overrides: {\"*.nic2\": {slowdown: 4}}",
                        .workers = 16},
                       1);
}

TEST(AlikeDevices, TensorParallelNeighboursWithWholeExperts) {
  for (const auto& [experts, fewer] : std::map<std::string, std::size_t>{{"8", 8}, {"2", 1}, {"1", 8}}) {
    expect_equal_figures({.strategy = "{name: mesh, data: 4, tensor: 4, expert_tensor: 1, expert: " + experts + "}",
                          .workload = "batch: 8, sequence_parallel: true",
                          .workers = 2,
                          .model = "mixtral"},
                         fewer, kOfLosses);
  }
}

TEST(AlikeDevices, TensorParallelNeighboursOfWhichSomeDivideEachExpert) {
  const auto expect_fewer = [](int data, int tensor, int expert, std::size_t fewer) {
    expect_equal_figures({.strategy = fmt::format("{{name: mesh, data: {}, tensor: {}, expert_tensor: 2, expert: {}}}",
                                                  data, tensor, expert),
                          .workload = "batch: 8, sequence_parallel: true",
                          .workers = 2,
                          .model = "mixtral"},
                         fewer, kOfLosses);
  };
  expect_fewer(4, 4, 8, 8);
  expect_fewer(4, 4, 4, 8);
  expect_fewer(4, 4, 2, 4);
  expect_fewer(4, 4, 1, 8);
  expect_fewer(2, 8, 4, 8);
  expect_fewer(2, 8, 2, 1);
}

TEST(AlikeDevices, ReplicasWithoutTensorParallelism) {
  expect_equal_figures({.strategy = "{name: fully_sharded}", .workload = "batch: 64", .workers = 4}, 8, kOfLosses);
  expect_equal_figures({.strategy = "{name: mesh, data: 8, expert: 8}", .workload = "batch: 8", .model = "mixtral"}, 8,
                       kOfLosses);
}

TEST(AlikeDevices, WorkersThatShareAMachine) {
  expect_equal_figures({.strategy = "{name: fully_sharded}", .workers = 2, .per_worker = 4, .machines = 1}, 1,
                       kOfLosses);
  expect_equal_figures({.strategy = "{name: mesh, data: 2, tensor: 4}", .workers = 2, .per_worker = 4, .machines = 1},
                       1);
}

TEST(AlikeDevices, AllWorkWhereTheirLinksOrPartsDiffer) {
  expect_equal_figures({.cluster = ", overrides: {gpu2: {slowdown: 2}}"}, 1);
  expect_equal_figures({.strategy = "{name: mesh, tensor: 8, pipeline: 2, micro_batches: 4}",
                        .cluster = ", overrides: {\"*.nic2\": {slowdown: 4}}",
                        .workers = 2},
                       1);
}

AlikeJob random_mesh(int seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const auto of = [&random](const auto& choices) { return choices[random() % std::size(choices)]; };
  AlikeJob job;
  job.machine = of(std::vector<std::string>{"hgx-h100", "dgx-a100", "gb200-nvl72", "mi300x-8gpu", "l40s-8gpu"});
  job.per_worker = job.machine == "gb200-nvl72" ? 4 : 8;
  job.workers = of(std::vector{1, 2, 4, 6, 8, 12, 16});
  job.cluster =
      of(std::vector<std::string>{"", "", ", fabric: {kind: rail, workers_per_leaf: 4, spines: 2}",
                                  ", fabric: {kind: leaf_spine, workers_per_leaf: 2, spines: 2, oversubscription: 2}"});
  int left = job.workers * job.per_worker;
  const auto divide_by = [&](const std::vector<int>& sizes) {
    const int size = of(sizes);
    if (left % size != 0) return 1;
    left /= size;
    return size;
  };
  const int tensor = divide_by({1, 2, 4, 8}), context = divide_by({1, 2, 4}), pipeline = divide_by({1, 2});
  job.strategy = fmt::format("{{name: mesh, data: {}, tensor: {}, context: {}, pipeline: {}, micro_batches: 2", left,
                             tensor, context, pipeline);
  if (context > 1) {
    std::vector<std::string> exchanges = {"all_gather", "ring"};
    if (tensor * context <= 8) exchanges.emplace_back("all_to_all");  // it divides heads
    job.strategy += ", context_exchange: " + of(exchanges);
  }
  if (left * context % 2 == 0 && of(std::vector{0, 1}) == 1) {
    job.model = "mixtral";
  }
  if (of(std::vector{0, 1}) == 1) job.strategy += ", distributed_optimizer: true";
  if (of(std::vector{0, 1}) == 1) job.strategy += ", axis_order: tensor_pipeline_data";
  if (job.model == "mixtral") {
    const int parts = std::gcd(tensor, of(std::vector{1, 2, 4, 8}));
    const int experts = std::gcd(left * context * tensor / parts, of(std::vector{2, 4, 8}));
    job.strategy += fmt::format(", expert: {}, expert_tensor: {}", experts, parts);
  }
  job.strategy += "}";
  job.workload = fmt::format("batch: {}, optimizer: adam, sequence_parallel: {}", 4 * left, tensor > 1);
  job.layers = 4;
  return job;
}

class RandomAlikeDevices : public testing::TestWithParam<int> {};

TEST_P(RandomAlikeDevices, EndWithTheFiguresOfAll) {
  const std::size_t fewer = expect_equal_figures(random_mesh(GetParam()), 0, kOfLosses);
  RecordProperty("fewer", static_cast<int>(fewer));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomAlikeDevices, testing::Range(1, 41));

TEST(AlikeDevices, AJobSaysHowMany) {
  const auto of = [](const AlikeJob& job) {
    const Scenario scenario = read_scenario(job.text());
    return job_of(scenario).alike_devices;
  };
  EXPECT_EQ(of({}), 4);
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 2, tensor: 8}", .workers = 2}), 8);
  EXPECT_EQ(of({.strategy = "{name: mesh, tensor: 8, data: 2}", .workers = 4, .per_worker = 4}), 4);
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 8}"}), 8);
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 2, context: 4}", .workload = "batch: 4"}), 4);
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 2, context: 4, context_exchange: ring}", .workload = "batch: 4"}), 4);
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 2, context: 8, context_exchange: ring}",
                .workload = "batch: 4",
                .workers = 4,
                .per_worker = 4}),
            1)
      << "some send to neighbours, others to other workers";
  EXPECT_EQ(of({.strategy = "{name: mesh, pipeline: 8, micro_batches: 8}"}), 1);
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 2, tensor: 2, pipeline: 2, axis_order: tensor_pipeline_data}"}), 2)
      << "stages are between replicas";
  EXPECT_EQ(of({.strategy = "{name: mesh, data: 4, tensor: 2, axis_order: tensor_pipeline_data}"}), 8);
  EXPECT_EQ(of({.strategy = "{name: fully_sharded}"}), 8);
  EXPECT_EQ(of({.strategy = "{name: fully_sharded}", .workload = "batch: 33"}), 1) << "unequal shares";
  EXPECT_EQ(of({.strategy = "{name: mirrored}"}), 1);
}

}  // namespace
}  // namespace tandem
