// How fast this machine works now, and how far that is from another pace.
#include "scenarios/calibration/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(MachinePace, IsMeasuredOnAsManyCoresAsThereAre) {
  const MachinePace alone = measure_pace("cpu", 1), both = measure_pace("cpu", 2);
  EXPECT_GT(alone.product_s, 0);
  EXPECT_EQ(alone.exchange_s, 0) << "there is nobody to exchange with";
  EXPECT_GT(both.product_s, 0);
  EXPECT_GT(alone.update_s, 0);
  EXPECT_GT(both.update_s, 0);
}

TEST(MachinePace, IsKeptAmongTheConditionsOfATopology) {
  Topology topology("machine");
  EXPECT_FALSE(pace_of(topology, 2));
  topology.facts().measured_with = {{"date", "2026-11-26"}};
  set_pace(topology, {.product_s = 1.5e-4, .exchange_s = 2.5e-5});
  EXPECT_EQ(topology.facts().measured_with.at("date"), "2026-11-26");
  ASSERT_TRUE(pace_of(topology, 2));
  EXPECT_DOUBLE_EQ(pace_of(topology, 2)->product_s, 1.5e-4);
  EXPECT_DOUBLE_EQ(pace_of(topology, 2)->exchange_s, 2.5e-5);
}

TEST(MachinePace, WordsOfSomebodyElseAreNone) {
  Topology topology("machine");
  topology.facts().measured_with = {{"pace: products", "brisk"}};
  EXPECT_FALSE(pace_of(topology, 2));
}

TEST(MachinePace, MayDifferByWhatIsUsual) {
  const MachinePace usual{.product_s = 100e-6, .exchange_s = 40e-6};
  EXPECT_EQ(distance_between(usual, usual), 0);
  EXPECT_LT(distance_between(usual, {.product_s = 109e-6, .exchange_s = 54e-6}), 1);
  EXPECT_GT(distance_between(usual, {.product_s = 115e-6, .exchange_s = 40e-6}), 1);
  EXPECT_GT(distance_between(usual, {.product_s = 85e-6, .exchange_s = 40e-6}), 1) << "faster is another pace, too";
  EXPECT_GT(distance_between(usual, {.product_s = 100e-6, .exchange_s = 70e-6}), 1);
  EXPECT_LT(distance_between(usual, {.product_s = 100e-6, .exchange_s = 0}), 1) << "not measured";
}

Topology measured_machine() {
  Topology topology("machine");
  auto device = std::make_shared<DeviceModel>();
  device->cores = 2;
  device->op_overhead_s = {.value = 1e-6};
  device->memory_bandwidth_bytes_per_s = {.value = 1e10};
  constexpr double kUsual = 20 << 20, kOperands = 4 * 512 * (64 + 256);
  for (const int devices : {1, 2, 4}) {
    device->in_use.push_back({.devices = devices,
                              .in_use_bytes = kUsual + devices * kOperands,
                              .memory_bytes_per_s = 3e9 * devices,
                              .copy_many_bytes_per_s = 2e9 * devices});
  }
  topology.add_node({.name = "w0.cpu0", .kind = NodeKind::cpu, .worker = 0, .device = device});
  topology.facts().collectives.push_back({.operation = "all_reduce", .devices = 2, .bytes = 1e6, .time_s = 1e-3});
  set_pace(topology, {.product_s = 1e-4, .exchange_s = 2e-5});
  return topology;
}

// An update of 1.5 MiB, and packing and unpacking of 1 MiB each.
TEST(MachinePace, OfUpdatesFollowsFromTheRatesOfAsManyDevices) {
  const Topology topology = measured_machine();
  constexpr double kMiB = 1 << 20;
  EXPECT_DOUBLE_EQ(pace_of(topology, 1)->update_s, 1.5 * kMiB / 3e9 + 2 * kMiB / 2e9);
  EXPECT_DOUBLE_EQ(pace_of(topology, 2)->update_s, 1.5 * kMiB / 6e9 + 2 * kMiB / 4e9);
  EXPECT_EQ(pace_of(topology, 8)->update_s, pace_of(topology, 2)->update_s) << "two are measured, on two cores";
}

TEST(MachinePace, OfSeveralLooksIsTheirMean) {
  const MachinePace all = mean_of({{.product_s = 1, .exchange_s = 5, .update_s = 3},
                                   {.product_s = 2, .exchange_s = 4, .update_s = 3},
                                   {.product_s = 6, .exchange_s = 0, .update_s = 3}});
  EXPECT_EQ(all, (MachinePace{.product_s = 3, .exchange_s = 3, .update_s = 3}));
}

TEST(MachinePace, TheQuickerOfTwoHasTheLesserTimesOfBoth) {
  const MachinePace both =
      quicker_of({.product_s = 1, .exchange_s = 5, .update_s = 3}, {.product_s = 2, .exchange_s = 4, .update_s = 3});
  EXPECT_EQ(both, (MachinePace{.product_s = 1, .exchange_s = 4, .update_s = 3}));
}

TEST(MachinePace, AMachineAtAnotherPaceTakesThatMuchLonger) {
  const Topology topology = measured_machine();
  const MachinePace usual = *pace_of(topology, 2);
  MachinePace now = usual;
  now.product_s *= 2;
  now.exchange_s *= 3;
  now.update_s *= 4;
  const Topology changed = at_pace(topology, usual, now);
  const auto device = changed.device(changed.nodes_of(0, NodeKind::cpu).front());
  EXPECT_DOUBLE_EQ(device->op_overhead_s.value, 2e-6);
  EXPECT_DOUBLE_EQ(device->memory_bandwidth_bytes_per_s.value, 0.5e10);
  EXPECT_DOUBLE_EQ(device->in_use[1].memory_bytes_per_s, 6e9 / 4);
  EXPECT_DOUBLE_EQ(device->in_use[1].copy_many_bytes_per_s, 4e9 / 4);
  EXPECT_DOUBLE_EQ(changed.facts().collectives.at(0).time_s, 3e-3);
  now.update_s = now.exchange_s = 0;  // not measured
  EXPECT_DOUBLE_EQ(at_pace(topology, usual, now).facts().collectives.at(0).time_s, 1e-3);
}

TEST(MachinePace, ChangesAreSaidInWords) {
  EXPECT_EQ(change_text({.product_s = 100e-6, .exchange_s = 40e-6}, {.product_s = 115e-6, .exchange_s = 30e-6}),
            "products take 15 % longer, exchanges between cores take 25 % less");
  EXPECT_EQ(change_text({.product_s = 1, .update_s = 2}, {.product_s = 1, .update_s = 3}),
            "products take 0 % longer, updates take 50 % longer");
}

}  // namespace
}  // namespace tandem
