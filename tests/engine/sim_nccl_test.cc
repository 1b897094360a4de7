// NCCL's collectives in the simulation: their times, what they share, and what their records say.
#include <cmath>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/nccl/surveyor.h"
#include "tests/engine/sim_support.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

EngineOptions nccl_options(const std::string& machine, int workers, int gpus) {
  EngineOptions options;
  options.topology = std::make_shared<const Topology>(make_cluster(machine, workers));
  options.workers.clear();
  for (int task = 0; task < workers; ++task) {
    options.workers.push_back(
        {.job = "worker", .task = task, .topology_worker = task, .device_type = DeviceType::gpu, .device_count = gpus});
  }
  return options;
}

std::vector<Tensor> nccl_tensors(Worker& worker, std::int64_t count) {
  std::vector<Tensor> tensors;
  for (Device* device : worker.devices()) tensors.push_back(device->allocate(DType::f32, {count}));
  return tensors;
}

std::vector<Stream*> nccl_streams(Worker& worker, int index = 0) {
  std::vector<Stream*> streams;
  for (Device* device : worker.devices()) streams.push_back(&device->stream(index));
  return streams;
}

// One all_reduce over all GPUs.
Timeline nccl_all_reduce(const EngineOptions& options, int gpus, std::int64_t count) {
  const auto ids = gpus_of(static_cast<int>(options.workers.size()), gpus);
  return simulate(options, [&](Worker& worker) {
    auto tensors = nccl_tensors(worker, count);
    auto streams = nccl_streams(worker);
    worker.communicator(ids).all_reduce(tensors, Reduction::sum, streams);
    for (Stream* stream : streams) stream->synchronize();
  });
}

Record nccl_record(const Timeline& timeline) {
  const auto timings = collective_timings(timeline.records);
  Record record = *timings.front().record;
  record.end_ns = record.start_ns + timings.front().duration_ns;
  return record;
}

// What the model alone says of the same call.
double planned_us(const EngineOptions& options, int gpus, double bytes) {
  std::vector<NodeIndex> nodes;
  for (std::size_t worker = 0; worker < options.workers.size(); ++worker) {
    const auto all = options.topology->nodes_of(static_cast<int>(worker), NodeKind::gpu);
    nodes.insert(nodes.end(), all.begin(), all.begin() + gpus);
  }
  Router router(*options.topology);
  const sim::nccl::Surveyor surveyor(*options.topology, router);
  const sim::nccl::Communicator group(surveyor.survey(nodes), sim::nccl::settings_of(options.nccl));
  const sim::nccl::Plan plan = group.plan({CollectiveKind::all_reduce, bytes});
  return (plan.fixed_s + plan.transfer_s) * 1e6;
}

TEST(NcclInSim, AloneOnItsLinksTakesTheTimeOfTheMechanism) {
  const std::vector<std::tuple<std::string, int, int>> machines = {
      {"dgx-a100", 1, 8},  {"dgx-a100", 1, 3},  {"hgx-h100", 1, 8}, {"dgx1-v100", 1, 8},
      {"dgx1-v100", 1, 5}, {"pcie-8gpu", 1, 4}, {"dgx-a100", 2, 8}, {"hgx-h100", 2, 8},
      {"dgx1-v100", 2, 8}, {"aws-p4d", 2, 8},   {"hgx-h100", 4, 8}};
  for (const auto& [machine, workers, gpus] : machines) {
    for (const std::int64_t count : {2, 1 << 14, 1 << 20, 1 << 26}) {
      const EngineOptions options = nccl_options(machine, workers, gpus);
      const Record record = nccl_record(nccl_all_reduce(options, gpus, count));
      const double expected_us = planned_us(options, gpus, 4.0 * static_cast<double>(count));
      EXPECT_NEAR(static_cast<double>(duration_ns(record)) / 1e3, expected_us, 0.01 + 1e-4 * expected_us)
          << workers << " x " << gpus << " of " << machine << ", " << 4 * count << " bytes, " << record.algorithm;
    }
  }
}

TEST(NcclInSim, RecordsWhatItChose) {
  EngineOptions options = nccl_options("hgx-h100", 1, 8);
  const Timeline timeline = nccl_all_reduce(options, 8, 1 << 26);
  EXPECT_EQ(nccl_record(timeline).algorithm, "NVLS Simple, 16 channels");
  EXPECT_EQ(timeline.settings.at("nccl"), "model of 2.30.7, from links and public constants");
  options.nccl = {{"NCCL_ALGO", "ring"}, {"version", "2.27"}};
  const Timeline ring = nccl_all_reduce(options, 8, 1 << 26);
  EXPECT_EQ(nccl_record(ring).algorithm, "ring Simple, 24 channels");
  EXPECT_EQ(ring.settings.at("nccl"), "model of 2.27.0, from links and public constants; NCCL_ALGO=ring");
}

TEST(NcclInSim, RefusesVariablesBeforeTheRun) {
  EngineOptions options = nccl_options("hgx-h100", 1, 8);
  options.nccl = {{"NCCL_PROTO", "fast"}};
  EXPECT_THROW(open_sim_engine(options), UsageError);
}

TEST(NcclInSim, RepeatsItselfToTheByte) {
  const EngineOptions options = nccl_options("dgx1-v100", 2, 8);
  EXPECT_EQ(text_of(nccl_all_reduce(options, 8, 1 << 20)), text_of(nccl_all_reduce(options, 8, 1 << 20)));
}

// Two all_reduces at the same time, on two streams of every GPU.
TEST(NcclInSim, TwoCollectivesShareTheLinks) {
  const EngineOptions options = nccl_options("dgx-a100", 1, 8);
  const std::int64_t count = 1 << 28;
  const auto ids = gpus_of(1, 8);
  const Timeline timeline = simulate(options, [&](Worker& worker) {
    auto one = nccl_tensors(worker, count);
    auto other = nccl_tensors(worker, count);
    auto streams = nccl_streams(worker);
    auto others = nccl_streams(worker, 1);
    worker.communicator(ids).all_reduce(one, Reduction::sum, streams);
    worker.communicator(ids).all_reduce(other, Reduction::sum, others);
    for (Stream* stream : streams) stream->synchronize();
    for (Stream* stream : others) stream->synchronize();
  });
  const double alone_ns = static_cast<double>(duration_ns(nccl_record(nccl_all_reduce(options, 8, count))));
  const auto timings = collective_timings(timeline.records);
  ASSERT_EQ(timings.size(), 2U);
  for (const CollectiveTiming& timing : timings) {
    EXPECT_GT(static_cast<double>(timing.duration_ns), 1.8 * alone_ns);
    EXPECT_LT(static_cast<double>(timing.duration_ns), 2.0 * alone_ns) << "launches and steps are not shared";
  }
}

TEST(NcclInSim, ACopyOverTheSameLinkSlowsACollective) {
  const EngineOptions options = nccl_options("dgx1-v100", 1, 2);  // one link
  const std::int64_t count = 1 << 26;
  const auto ids = gpus_of(1, 2);
  const Timeline timeline = simulate(options, [&](Worker& worker) {
    auto tensors = nccl_tensors(worker, count);
    auto streams = nccl_streams(worker);
    Tensor from = worker.devices()[0]->allocate(DType::f32, {count});
    Tensor to = worker.devices()[1]->allocate(DType::f32, {count});
    Stream& copies = worker.devices()[0]->stream(1);
    copies.copy(to, from);
    worker.communicator(ids).all_reduce(tensors, Reduction::sum, streams);
    for (Stream* stream : streams) stream->synchronize();
    copies.synchronize();
  });
  const double alone_ns = static_cast<double>(duration_ns(nccl_record(nccl_all_reduce(options, 2, count))));
  EXPECT_GT(static_cast<double>(duration_ns(nccl_record(timeline))), 1.4 * alone_ns);
}

TEST(NcclInSim, ValuesDoNotDependOnTheModel) {
  EngineOptions options = nccl_options("dgx1-v100", 1, 4);
  options.values = ValueMode::real;
  const auto ids = gpus_of(1, 4);
  simulate(options, [&](Worker& worker) {
    auto tensors = nccl_tensors(worker, 3);
    auto streams = nccl_streams(worker);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      auto* values = static_cast<float*>(tensors[i].data());
      for (int j = 0; j < 3; ++j) values[j] = static_cast<float>(i + 1) * static_cast<float>(j);
    }
    worker.communicator(ids).all_reduce(tensors, Reduction::sum, streams);
    for (Stream* stream : streams) stream->synchronize();
    for (const Tensor& tensor : tensors) {
      const auto* values = static_cast<const float*>(tensor.data());
      EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{0, 10, 20}));
    }
  });
}

TEST(NcclInSim, WarnsOfANetworkWhoseSoftwareIsNotKnown) {
  EngineOptions options = nccl_options("hgx-h100", 2, 8);
  const auto notes = [&](std::int64_t count, Figure hop, const char* transport) {
    auto changed = std::make_shared<Topology>(*options.topology);
    changed->replace_links([&](const LinkModel& model) {
      if (model.kind != LinkKind::network) return std::shared_ptr<const LinkModel>();
      LinkModel other = model;
      other.transport = transport;
      other.hop_latency_s = hop;
      return std::make_shared<const LinkModel>(other);
    });
    options.topology = changed;
    return nccl_all_reduce(options, 8, count).notes;
  };
  const auto mentions = [](const char* text) { return testing::Contains(testing::HasSubstr(text)); };
  EXPECT_THAT(notes(1 << 10, {}, ""), mentions("hop_latency of the network"));
  EXPECT_THAT(notes(1 << 26, {}, ""), testing::Not(mentions("hop_latency of the network")));
  const Figure assumed{.value = 10e-6, .source = "as another", .low = 5e-6, .high = 40e-6};
  EXPECT_THAT(notes(1 << 10, assumed, "slingshot"),
              mentions("(slingshot) adds to a message, hop_latency 10 us of 5 us to 40 us"));
  EXPECT_THAT(notes(1 << 26, assumed, "slingshot"), testing::Not(mentions("hop_latency")));
  Figure measured = assumed;
  measured.provenance = Provenance::measured;
  EXPECT_THAT(notes(1 << 10, measured, "slingshot"), testing::Not(mentions("hop_latency")));
}

}  // namespace
}  // namespace tandem
