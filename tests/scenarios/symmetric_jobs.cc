#include "tests/scenarios/symmetric_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/run/report_json.h"
#include "tests/scenarios/running.h"

namespace tandem::symmetric {
namespace {

constexpr const char* kAllSimulated = "every worker was simulated: ";

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
  for (const CollectiveSample& sample : topology.facts().collectives) made->facts().collectives.push_back(sample);
  made->facts().p2p = topology.facts().p2p;
  made->facts().nvlink_domain = topology.facts().nvlink_domain;
  made->facts().add_notes(topology.facts().notes);
  made->facts().stated_keys = topology.facts().stated_keys;
  return made;
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

// Expects that links carried as much as in the run `all`: those of the machines whose workers represent others, and
// those of the fabric.
void expect_equal_links(const Timeline& some, const Timeline& all) {
  const auto key = [](const LinkUse& link) { return std::pair(link.from, link.to); };
  std::map<std::pair<std::string, std::string>, double> carried;
  for (const LinkUse& link : some.links) carried[key(link)] = link.bytes;
  const auto is_of = [](const LinkUse& link, int worker) {
    const std::string machine = fmt::format("w{}.", worker);
    return link.from.starts_with(machine) && link.to.starts_with(machine);
  };
  std::size_t compared = 0;
  for (const LinkUse& link : all.links) {
    const auto mine = carried.find(key(link));
    const bool is_shown = std::any_of(some.classes.begin(), some.classes.end(),
                                      [&](const WorkerClass& one) { return is_of(link, one.representative); });
    if (is_shown) {
      EXPECT_NE(mine, carried.end()) << link.from << " " << link.to;
    }
    if (mine == carried.end()) continue;
    EXPECT_NEAR(mine->second, link.bytes, 1e-9 * link.bytes) << link.from << " " << link.to;
    ++compared;
  }
  EXPECT_EQ(compared, carried.size());
}

}  // namespace

std::string SymmetricJob::text() const {
  return fmt::format(
      "name: symmetry\nworkload: {}\nstrategy: {}\nengine: {{name: sim}}\n"
      "topology: {{cluster: {{node: {}, workers: {}, fabric: {}, overrides: {{{}}}}}}}\n"
      "devices: {{type: gpu, workers: {}, per_worker: {}, chief: {}}}\nsteps: 3\nwarmup_steps: 1\n",
      workload, strategy, machine, workers, fabric, overrides, workers, per_worker, has_chief);
}

std::string layers(int batch, const std::string& bucket) {
  return fmt::format("{{kind: layers, model: resnet15, batch: {}, dtype: f32, bucket_bytes: {}}}", batch, bucket);
}

RunResult run(const SymmetricJob& job, bool symmetry) {
  Scenario scenario = read_scenario(job.text());
  scenario.engine.symmetry = symmetry;
  const auto topology = with_faults(*scenario.topology, job.has_straggler, job.has_slow_link);
  scenario.topology = symmetry ? topology : one_by_one(*topology);
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options);
}

int expect_equal_runs(const SymmetricJob& job) {
  SCOPED_TRACE(job.text() + (job.has_straggler ? "with a straggler\n" : "") +
               (job.has_slow_link ? "with a slow link\n" : ""));
  const RunResult all = run(job, false);
  RunResult some = run(job, true);
  EXPECT_THAT(all.timeline.classes, testing::IsEmpty());
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
    expect_equal_links(some.timeline, all.timeline);
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

std::string note_of(const SymmetricJob& job) {
  const RunResult result = run(job, true);
  for (const std::string& note : result.report.notes) {
    if (note.starts_with(kAllSimulated)) return note;
  }
  return {};
}

}  // namespace tandem::symmetric
