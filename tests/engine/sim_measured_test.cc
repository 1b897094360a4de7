// Measured collectives of GPUs: they take the measured time where nothing else is on their links, and share these.
#include <algorithm>
#include <cmath>

#include "tests/engine/sim_support.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

constexpr double kMebibyte = 1 << 20;

CollectiveSample measured(int devices, double bytes, double time_s, int nodes = 1) {
  CollectiveSample sample;
  sample.operation = "all_gather";
  sample.devices = devices;
  sample.nodes = nodes;
  sample.bytes = bytes;
  sample.time_s = time_s;
  return sample;
}

// One worker for each DGX A100.
EngineOptions machines_with(const std::vector<CollectiveSample>& samples, int gpus, int machines = 1) {
  Topology topology = make_cluster("dgx-a100", machines);
  topology.facts().collectives = samples;
  EngineOptions options;
  options.topology = std::make_shared<const Topology>(std::move(topology));
  options.workers.clear();
  for (int task = 0; task < machines; ++task) {
    options.workers.push_back(
        {.job = "worker", .task = task, .topology_worker = task, .device_type = DeviceType::gpu, .device_count = gpus});
  }
  return options;
}

// `calls` all_gathers at the same time, each on a stream of its own, of buffers of so many bytes.
Timeline all_gathers(const EngineOptions& options, std::int64_t bytes, int calls = 1) {
  std::vector<DeviceId> ids;
  for (const WorkerSpec& spec : options.workers) {
    for (int i = 0; i < spec.device_count; ++i) ids.push_back({spec.job, spec.task, spec.device_type, i});
  }
  const auto part = bytes / static_cast<std::int64_t>(ids.size());
  return simulate(options, [&](Worker& worker) {
    for (int call = 0; call < calls; ++call) {
      std::vector<Tensor> parts, wholes;
      std::vector<Stream*> streams;
      for (Device* device : worker.devices()) {
        parts.push_back(device->allocate(DType::u8, {part}));
        wholes.push_back(device->allocate(DType::u8, {bytes}));
        streams.push_back(&device->stream(call));
      }
      worker.communicator(ids).all_gather(wholes, parts, streams);
    }
    for (Device* device : worker.devices()) device->synchronize();
  });
}

double longest_s(const Timeline& timeline) {
  double longest = 0;
  for (const CollectiveTiming& timing : collective_timings(timeline.records)) {
    longest = std::max(longest, static_cast<double>(timing.duration_ns) * 1e-9);
  }
  return longest;
}

std::string algorithm_of(const Timeline& timeline) {
  return collective_timings(timeline.records).front().record->algorithm;
}

TEST(MeasuredInSim, GpusTakeTheMeasuredTime) {
  const auto options = machines_with({measured(8, 1 * kMebibyte, 40e-6), measured(8, 64 * kMebibyte, 500e-6)}, 8);
  for (const auto& [bytes, time_s] : {std::pair(1 * kMebibyte, 40e-6), std::pair(64 * kMebibyte, 500e-6)}) {
    const Timeline timeline = all_gathers(options, static_cast<std::int64_t>(bytes));
    EXPECT_NEAR(longest_s(timeline), time_s, 0.01e-6 + 1e-3 * time_s);
    EXPECT_THAT(algorithm_of(timeline), testing::EndsWith(", measured"));
    EXPECT_THAT(timeline.notes, testing::Not(testing::Contains(testing::HasSubstr("extrapolated"))));
  }
}

TEST(MeasuredInSim, OtherSizesAndDevicesAreNoted) {
  const auto options = machines_with({measured(2, 32 * kMebibyte, 150e-6), measured(4, 64 * kMebibyte, 400e-6)}, 8);
  const Timeline on_eight = all_gathers(options, static_cast<std::int64_t>(64 * kMebibyte));
  EXPECT_THAT(on_eight.notes, testing::Contains("extrapolated: all_gather on 8 devices, line over 2 and 4 devices"));
  EXPECT_THAT(algorithm_of(on_eight), testing::EndsWith(", extrapolated from measured times"));
  const Timeline on_four = all_gathers(machines_with({measured(4, 64 * kMebibyte, 400e-6)}, 4), 1024);
  EXPECT_THAT(on_four.notes, testing::Contains("extrapolated: all_gather on 4 devices outside the measured sizes"));
}

// Each node is twice as slow as its links say, so two of them are as well.
TEST(MeasuredInSim, MoreMachinesTakeTheResidualOfOne) {
  const auto bytes = static_cast<std::int64_t>(64 * kMebibyte);
  const double one_s = longest_s(all_gathers(machines_with({}, 8), bytes));
  const double two_s = longest_s(all_gathers(machines_with({}, 8, 2), bytes));
  const Timeline timeline = all_gathers(machines_with({measured(8, 64 * kMebibyte, 2 * one_s)}, 8, 2), bytes);
  EXPECT_NEAR(longest_s(timeline) / (2 * two_s), 1, 2e-3);
  EXPECT_THAT(timeline.notes,
              testing::Contains("extrapolated: all_gather on 16 devices of 2 nodes, residual of 1 node"));
}

TEST(MeasuredInSim, CallsOnTheSameLinksStillShareThem) {
  const auto options = machines_with({measured(8, 64 * kMebibyte, 500e-6), measured(8, 256 * kMebibyte, 1600e-6)}, 8);
  const auto bytes = static_cast<std::int64_t>(256 * kMebibyte);
  EXPECT_NEAR(longest_s(all_gathers(options, bytes)), 1600e-6, 2e-6);
  EXPECT_GT(longest_s(all_gathers(options, bytes, 2)), 1.3 * 1600e-6);
}

}  // namespace
}  // namespace tandem
