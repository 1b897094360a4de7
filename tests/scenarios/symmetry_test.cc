// A run in which workers represent others ends with the figures of the run in which every worker is simulated, to the
// nanosecond.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "reports/report_json.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Job {
  std::string machine = "hgx-h100";
  std::string fabric = "switch";
  int workers = 6;
  int per_worker = 8;
  std::string strategy = "{name: multi_worker_mirrored}";
  std::string workload;
  bool has_chief = false;
  bool has_straggler = false;
  bool has_slow_link = false;

  std::string text() const {
    return fmt::format(
        "name: symmetry\nworkload: {}\nstrategy: {}\nengine: {{name: sim}}\n"
        "topology: {{cluster: {{node: {}, workers: {}, fabric: {}}}}}\n"
        "devices: {{type: gpu, workers: {}, per_worker: {}, chief: {}}}\nsteps: 3\nwarmup_steps: 1\n",
        workload, strategy, machine, workers, fabric, workers, per_worker, has_chief);
  }
};

std::string layers(int batch, const std::string& bucket = "2MB") {
  return fmt::format("{{kind: layers, model: resnet15, batch: {}, dtype: f32, bucket_bytes: {}}}", batch, bucket);
}

// The topology again, with one worker whose GPUs compute at half the rate, or with one slow link to the network.
std::shared_ptr<Topology> with_faults(const Topology& topology, bool has_straggler, bool has_slow_link) {
  auto changed = std::make_shared<Topology>(topology);
  const int worker = topology.worker_count() / 2;
  std::map<const DeviceModel*, std::shared_ptr<const DeviceModel>> slow;
  for (NodeIndex index = 0; index < topology.node_count() && has_straggler; ++index) {
    if (topology.worker(index) != worker || topology.kind(index) != NodeKind::gpu) continue;
    auto& model = slow[topology.device(index).get()];
    if (!model) {
      auto slower = std::make_shared<DeviceModel>(*topology.device(index));
      slower->memory_bandwidth_bytes_per_s.value /= 2;
      slower->boost_clock_hz.value /= 2;
      model = slower;
    }
    changed->set_device(index, model);
  }
  for (LinkIndex index = 0; index < topology.link_count() && has_slow_link; ++index) {
    const Link link = topology.link(index);
    if (link.model->kind != LinkKind::network || topology.worker(link.from) != worker) continue;
    auto slower = std::make_shared<LinkModel>(*link.model);
    slower->bandwidth_bytes_per_s.value /= 3;
    changed->set_link_model(index, slower);
    break;
  }
  return changed;
}

// The topology again, each node and link of which takes memory of its own.
std::shared_ptr<Topology> one_by_one(const Topology& topology) {
  auto made = std::make_shared<Topology>(topology.name());
  for (NodeIndex index = 0; index < topology.node_count(); ++index) made->add_node(topology.node(index));
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    made->add_link(link.from, link.to, link.model, link.direction);
  }
  for (const CollectiveSample& sample : topology.collectives()) made->add_collective(sample);
  made->set_p2p(topology.p2p());
  made->set_nvlink_domain(topology.nvlink_domain());
  return made;
}

// With symmetry on machines that are described once, without it on machines that are built one by one.
RunResult run(const Job& job, bool symmetry) {
  const Scenario scenario = read_scenario(job.text());
  RunOptions options;
  options.measures_scaling = false;
  options.symmetry = symmetry;
  const auto topology = with_faults(*scenario.topology, job.has_straggler, job.has_slow_link);
  options.topology = symmetry ? topology : one_by_one(*topology);
  return run_scenario(scenario, options);
}

// What a record says, but for its number, which counts the calls of a run.
std::string text_of(const Record& record) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(record.kind), name_of(record.category),
                     record.name, record.worker, record.device, record.stream, record.step, record.start_ns,
                     record.end_ns, record.bytes, record.flops, record.ranks, record.algorithm);
}

std::vector<std::string> records_of(const Timeline& timeline, int worker) {
  std::vector<std::string> texts;
  for (const Record& record : timeline.records) {
    if (record.worker == worker) texts.push_back(text_of(record));
  }
  return texts;
}

constexpr const char* kAllSimulated = "every worker was simulated: ";

// Returns how many workers were simulated.
int expect_equal_runs(const Job& job) {
  SCOPED_TRACE(job.text() + (job.has_straggler ? "with a straggler\n" : "") +
               (job.has_slow_link ? "with a slow link\n" : ""));
  const RunResult all = run(job, false);
  RunResult some = run(job, true);
  EXPECT_THAT(all.timeline.classes, IsEmpty());
  int workers = 0;
  for (std::size_t i = 0; i < some.timeline.classes.size(); ++i) {
    const WorkerClass& one = some.timeline.classes[i];
    workers += one.workers;
    EXPECT_EQ(records_of(some.timeline, one.representative), records_of(all.timeline, one.representative));
    const WorkerSummary& mine = some.report.summary.workers.at(i);
    const WorkerSummary& theirs = all.report.summary.workers.at(static_cast<std::size_t>(one.representative));
    EXPECT_EQ(mine.step_time.median, theirs.step_time.median);
    EXPECT_EQ(mine.step_time.p95, theirs.step_time.p95);
    EXPECT_EQ(mine.per_step, theirs.per_step);
  }
  const auto simulated = static_cast<int>(some.timeline.classes.size());
  const auto says_all = [](const std::string& note) { return note.starts_with(kAllSimulated); };
  const auto notes = std::erase_if(some.report.notes, says_all);
  if (simulated > 0) {
    EXPECT_EQ(notes, 0U);
  }
  if (simulated > 0) {
    EXPECT_EQ(workers, job.workers);
    some.report.classes.clear();
    some.report.summary.workers = all.report.summary.workers;
    const Summary& whole = all.report.summary;
    for (const RankWaiting& mine : some.report.summary.ranks) {
      const auto theirs = std::find_if(whole.ranks.begin(), whole.ranks.end(),
                                       [&](const RankWaiting& rank) { return rank.device == mine.device; });
      EXPECT_EQ(mine.waiting, theirs->waiting);
      EXPECT_EQ(mine.transfer, theirs->transfer);
      EXPECT_EQ(mine.caused, theirs->caused);
    }
    some.report.summary.ranks = whole.ranks;
    for (std::size_t i = 0; i < whole.collectives.size(); ++i) {
      some.report.summary.collectives.at(i).ranks = whole.collectives[i].ranks;
    }
  }
  EXPECT_EQ(report_to_json(some.report).dump(2), report_to_json(all.report).dump(2));
  return simulated > 0 ? simulated : job.workers;
}

// Returns why every worker was simulated, or nothing.
std::string note_of(const Job& job) {
  const RunResult result = run(job, true);
  for (const std::string& note : result.report.notes) {
    if (note.starts_with(kAllSimulated)) return note;
  }
  return {};
}

TEST(Symmetry, TheReportSaysWhyEveryWorkerWasSimulated) {
  EXPECT_THAT(note_of({.machine = "dgx-a100",
                       .fabric = "{kind: rail, workers_per_leaf: 3, spines: 4, oversubscription: 5}",
                       .per_worker = 1,
                       .strategy = "{name: fully_sharded}",
                       .workload = layers(17, "5MB")}),
              HasSubstr("workers share links with different others, so that at most 4 workers are alike"));
  EXPECT_EQ(note_of({.workload = layers(6 * 8 * 4)}), "") << "one worker represents the others";
  EXPECT_EQ(note_of({.workers = 4, .workload = layers(4 * 8 * 4)}), "") << "it is not tried";
}

TEST(Symmetry, OneWorkerStandsForAllOfADataParallelJob) {
  EXPECT_EQ(expect_equal_runs({.workload = layers(6 * 8 * 4)}), 1);
  EXPECT_EQ(expect_equal_runs({.strategy = "{name: fully_sharded}", .workload = layers(6 * 8 * 4)}), 1);
}

TEST(Symmetry, UnevenSharesSplitAClass) {
  EXPECT_EQ(expect_equal_runs({.workers = 9, .workload = layers(9 * 8 * 4 + 8 * 4)}), 2);
  EXPECT_EQ(expect_equal_runs({.workers = 13, .workload = layers(13 * 8 * 4 + 6 * 8 + 3)}), 3);
}

TEST(Symmetry, AStragglerAndASlowLinkAreClassesOfTheirOwn) {
  EXPECT_GE(expect_equal_runs({.workers = 9, .workload = layers(9 * 8 * 4), .has_straggler = true}), 2);
  EXPECT_GE(expect_equal_runs({.workers = 9, .workload = layers(9 * 8 * 4), .has_slow_link = true}), 2);
}

TEST(Symmetry, FabricsWithManyPathsStayExact) {
  for (const char* fabric :
       {"{kind: leaf_spine, workers_per_leaf: 4, spines: 2}", "{kind: rail, workers_per_leaf: 4, spines: 4}",
        "{kind: leaf_spine, workers_per_leaf: 4, spines: 3, oversubscription: 8}",
        "{kind: rail, workers_per_leaf: 4, spines: 3, oversubscription: 4}",
        "{kind: fat_tree, workers_per_leaf: 2, leaves_per_pod: 2, spines: 2, cores_per_spine: 2, rails: true}",
        "{kind: fat_tree, workers_per_leaf: 2, leaves_per_pod: 3, spines: 3, core_oversubscription: 16}",
        "{kind: torus, dimensions: [2, 2, 3]}", "{kind: torus, dimensions: [4, 3], oversubscription: 16}",
        "{kind: dragonfly, workers_per_leaf: 2, leaves_per_pod: 2, spines: 2, core_oversubscription: 4}",
        "{kind: dragonfly, workers_per_leaf: 1, leaves_per_pod: 3, spines: 3, rails: true}"}) {
    expect_equal_runs({.fabric = fabric, .workers = 12, .workload = layers(12 * 8 * 4)});
  }
}

TEST(Symmetry, RacksOfNvlinkUnderAFatTreeStayExact) {
  expect_equal_runs({.machine = "gb200-nvl72",
                     .fabric = "{kind: fat_tree, workers_per_leaf: 6, leaves_per_pod: 3, spines: 2, rails: true}",
                     .workers = 36,
                     .per_worker = 4,
                     .workload = layers(36 * 4 * 4)});
}

TEST(Symmetry, WhatWorkersOfAModelSendEachOtherIsOneFlowAClass) {
  const std::string mlp = "{kind: mlp, hidden: [512, 512, 512, 512], batch: 768}";
  EXPECT_EQ(expect_equal_runs({.workers = 12,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 12, tensor: 2, pipeline: 2, micro_batches: 4}",
                               .workload = mlp}),
            2);
  EXPECT_EQ(expect_equal_runs({.workers = 8,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 8, tensor: 4, micro_batches: 2}",
                               .workload = mlp}),
            1);
}

// A GPU's examples and its gradients cross one PCIe link, but never at the same time. Trees of all-reduces tell
// machines apart, so that each would be a class of its own if they did.
TEST(Symmetry, FlowsThatAreNeverUnderWayTogetherTellNothingApart) {
  EXPECT_EQ(expect_equal_runs({.machine = "dgx-a100",
                               .workers = 16,
                               .strategy = "{name: mesh, data: 16, tensor: 8, micro_batches: 2}",
                               .workload = "{kind: mlp, hidden: [512, 512, 512, 512], batch: 1024}"}),
            1);
}

TEST(Symmetry, TokensAndExpertsThatStayInAWorkerTellNothingApart) {
  const std::string experts = "{kind: layers, model: files/experts.yaml, batch: 96, dtype: f16}";
  EXPECT_EQ(expect_equal_runs({.strategy = "{name: mesh, data: 24, context: 2, expert: 8}", .workload = experts}), 1);
  EXPECT_EQ(
      expect_equal_runs({.strategy = "{name: mesh, data: 6, context: 4, tensor: 2, expert: 4}", .workload = experts}),
      1);
  // Some devices of two workers: every worker is simulated.
  expect_equal_runs({.per_worker = 4, .strategy = "{name: mesh, data: 24, expert: 8}", .workload = experts});
  EXPECT_THAT(note_of({.per_worker = 4, .strategy = "{name: mesh, data: 24, expert: 8}", .workload = experts}),
              HasSubstr("a group of devices has some of the workers that are alike, but not all"));
}

TEST(Symmetry, TheReportSaysWhoStoodForWhom) {
  const RunResult result = run({.workers = 9, .workload = layers(9 * 8 * 4 + 8 * 4)}, true);
  ASSERT_EQ(result.report.classes.size(), 2U);
  EXPECT_EQ(result.report.classes[0].representative, "/job:worker/task:0");
  EXPECT_EQ(result.report.classes[0].workers, 4);
  EXPECT_EQ(result.report.classes[0].devices, 32);
  EXPECT_EQ(result.report.classes[1].representative, "/job:worker/task:4");
  EXPECT_EQ(result.report.classes[1].workers, 5);
}

TEST(Symmetry, WorkersThatMeetOtherwiseAreAllSimulated) {
  const Job job{.strategy = "{name: parameter_server}", .workload = layers(6 * 8 * 4)};
  const RunResult result = run(job, true);
  EXPECT_THAT(result.report.classes, IsEmpty());
  for (const std::string& note : result.report.notes) EXPECT_THAT(note, Not(HasSubstr("every worker was simulated")));
}

// Random numbers from a seed, the same on every machine.
class Choices {
 public:
  explicit Choices(int seed) : random_(static_cast<std::mt19937::result_type>(seed)) {}
  int number(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1));
  }
  bool one_in(int count) { return number(1, count) == 1; }
  template <class Choice>
  Choice of(const std::vector<Choice>& choices) {
    return choices[random_() % choices.size()];
  }

 private:
  std::mt19937 random_;
};

// Returns tori of one, two and three dimensions with so many workers.
std::vector<std::string> tori_of(int workers) {
  std::vector<std::string> tori = {fmt::format("[{}]", workers)};
  for (int a = 2; a <= workers / 2; ++a) {
    if (workers % a != 0) continue;
    tori.push_back(fmt::format("[{}, {}]", a, workers / a));
    for (int b = 2; b <= workers / a / 2; ++b) {
      if (workers / a % b == 0) tori.push_back(fmt::format("[{}, {}, {}]", a, b, workers / a / b));
    }
  }
  return tori;
}

std::string random_fabric(Choices& choose, int workers) {
  const auto number = [&choose](int least, int most) { return choose.number(least, most); };
  switch (number(0, 5)) {
    case 0:
      return "switch";
    case 1:
      return fmt::format("{{kind: leaf_spine, workers_per_leaf: {}, spines: {}, oversubscription: {}}}", number(1, 6),
                         number(1, 4), number(1, 8));
    case 2:
      return fmt::format("{{kind: rail, workers_per_leaf: {}, spines: {}, oversubscription: {}}}", number(1, 6),
                         number(1, 4), number(1, 8));
    case 3:
      return fmt::format(
          "{{kind: fat_tree, workers_per_leaf: {}, leaves_per_pod: {}, spines: {}, cores_per_spine: {}, "
          "core_oversubscription: {}, rails: {}}}",
          number(1, 3), number(1, 3), number(1, 3), number(1, 3), number(1, 4), choose.one_in(2));
    case 4:
      return fmt::format("{{kind: torus, dimensions: {}, oversubscription: {}}}", choose.of(tori_of(workers)),
                         number(1, 8));
    default:
      return fmt::format(
          "{{kind: dragonfly, workers_per_leaf: {}, leaves_per_pod: {}, spines: {}, core_oversubscription: {}, "
          "rails: {}}}",
          number(1, 3), number(1, 3), number(1, 3), number(1, 4), choose.one_in(2));
  }
}

// A perceptron divided among all devices by one strategy, or among those of a mesh.
void divide_at_random(Job& job, Choices& choose) {
  const int devices = job.workers * job.per_worker;
  const int kind = choose.number(0, 5);
  std::string hidden = "256, 512, 256";
  int replicas = 1;
  if (kind == 0 && devices <= 64) {
    // Each device has a part of every layer, the first of which has 64 inputs.
    job.strategy = "{name: tensor_parallel}";
    hidden = "512, 512";
  } else if (kind == 1 && devices <= 32) {
    job.strategy = "{name: pipeline_parallel, micro_batches: 4}";
    hidden = "64";
    for (int i = 0; i < devices; ++i) hidden += ", 64";
  } else {
    const int tensor = choose.of(std::vector{1, job.per_worker});
    const int pipeline = choose.of(std::vector{1, 2});
    const bool is_whole = devices % (tensor * pipeline) == 0;
    replicas = devices / (is_whole ? tensor * pipeline : tensor);
    job.strategy = fmt::format("{{name: mesh, data: {}, tensor: {}, pipeline: {}, micro_batches: 2}}", replicas, tensor,
                               is_whole ? pipeline : 1);
  }
  const int batch = replicas > 1 && choose.one_in(3) ? replicas * 4 + choose.number(0, 3) : replicas * 8;
  job.workload = fmt::format("{{kind: mlp, hidden: [{}], batch: {}}}", hidden, batch);
}

Job random_job(int seed) {
  Choices choose(seed);
  Job job;
  job.machine = choose.of<std::string>({"hgx-h100", "dgx1-v100", "dgx2", "dgx-a100", "pcie-8gpu", "mi300x-8gpu"});
  job.workers = choose.number(5, 16);
  job.per_worker = choose.one_in(2) ? 8 : 1 << choose.number(0, 2);
  job.fabric = random_fabric(choose, job.workers);
  const int replicas = job.workers * job.per_worker;
  const int batch = replicas * choose.number(1, 4) + (choose.one_in(2) ? 0 : choose.number(0, replicas));
  job.workload = layers(batch, choose.of<std::string>({"100KB", "1MB", "5MB", "25MB"}));
  job.strategy = choose.of<std::string>({"{name: multi_worker_mirrored}", "{name: fully_sharded}"});
  job.has_chief = choose.one_in(3);
  if (choose.one_in(2)) divide_at_random(job, choose);
  job.has_straggler = choose.one_in(4);
  job.has_slow_link = choose.one_in(4);
  return job;
}

constexpr int kSeeds = 60;

// Random jobs; the seed is part of the test's name.
class RandomSymmetry : public testing::TestWithParam<int> {};

TEST_P(RandomSymmetry, EqualsTheFullSimulation) {
  expect_equal_runs(random_job(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSymmetry, testing::Range(1, kSeeds + 1));

// What the comparison is worth: in how many of the jobs some workers represent others, over all and by strategy.
TEST(Symmetry, RandomJobsUseIt) {
  std::map<std::string, int> jobs, used;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Job job = random_job(seed);
    const bool is_used = !run(job, true).timeline.classes.empty();
    const std::string strategy = job.strategy.substr(0, job.strategy.find_first_of(",}"));
    for (const std::string& name : {std::string("all"), strategy}) {
      ++jobs[name];
      used[name] += is_used ? 1 : 0;
    }
  }
  for (const auto& [name, count] : jobs) {
    RecordProperty(name, fmt::format("{} of {}", used[name], count));
    std::cout << name << ": " << used[name] << " of " << count << "\n";
  }
  EXPECT_GE(used["all"] * 2, jobs["all"]);
}

}  // namespace
}  // namespace tandem
