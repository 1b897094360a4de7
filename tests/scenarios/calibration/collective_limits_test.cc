// What reports and pages learn from a topology about the collectives of a run.
#include "scenarios/run/collective_limits.h"

#include <gtest/gtest.h>

#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

TEST(CalibratedRanges, AreTheSizesAndTimesOfEachOperationAndNumberOfDevices) {
  const std::vector<CollectiveSample> samples = {
      {.operation = "all_reduce", .devices = 8, .bytes = 4096, .time_s = 20e-6},
      {.operation = "all_reduce", .devices = 8, .bytes = 1024, .time_s = 25e-6},
      {.operation = "all_reduce", .devices = 8, .bytes = 512, .time_s = 1e-6, .nodes = 2},
      {.operation = "all_gather", .devices = 8, .bytes = 64, .time_s = 3e-6}};
  const auto ranges = calibrated_ranges(samples);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].operation, "all_gather");
  EXPECT_EQ(ranges[1], (CalibratedRange{.operation = "all_reduce",
                                        .devices = 8,
                                        .nodes = 1,
                                        .from_bytes = 1024,
                                        .to_bytes = 4096,
                                        .from = 20'000,
                                        .to = 25'000}));
  EXPECT_EQ(ranges[2].nodes, 2);
}

// A run whose calls have records of `recorded` devices each, on machines of four, though `ranks` take part.
RunResult run_of(int ranks, int recorded, const char* device) {
  RunResult result;
  result.topology = std::make_shared<Topology>(load_catalog_node("dgx-a100"));
  result.machines = {0, 1, 2, 3};
  for (int i = 0; i < recorded; ++i) {
    result.timeline.devices.push_back({device, i / 4});
    Record record;
    record.kind = RecordKind::collective;
    record.name = "broadcast";
    record.worker = i / 4;
    record.device = i;
    record.ranks = ranks;
    result.timeline.records.push_back(record);
  }
  return result;
}

TEST(CollectiveBounds, AreThoseOfTheMachinesThatTakePart) {
  const char* gpu = "/job:worker/replica:0/task:0/device:GPU:0";
  const auto inside = collective_bounds(run_of(4, 4, gpu));
  ASSERT_EQ(inside.size(), 1U);
  EXPECT_EQ(inside[0].operation, "broadcast");
  EXPECT_EQ(inside[0].devices, 4);
  EXPECT_DOUBLE_EQ(inside[0].bus_bandwidth, 240e9);
  EXPECT_DOUBLE_EQ(collective_bounds(run_of(8, 8, gpu)).at(0).bus_bandwidth, 200e9) << "the ports of two machines";
  EXPECT_DOUBLE_EQ(collective_bounds(run_of(8, 4, gpu)).at(0).bus_bandwidth, 200e9) << "one represents both";
  EXPECT_TRUE(collective_bounds(run_of(4, 4, "/job:worker/replica:0/task:0/device:CPU:0")).empty());
  RunResult measured = run_of(4, 4, gpu);
  measured.topology = nullptr;
  EXPECT_TRUE(collective_bounds(measured).empty());
}

}  // namespace
}  // namespace tandem
