// Transfers at the instants at which others end.
#include "engine/sim/network.h"

#include <gtest/gtest.h>

#include "tests/engine/sim_machines.h"

namespace tandem::sim {
namespace {

constexpr double kBytes = 10e6;
constexpr double kSeconds = kBytes / kLinkBytesPerS;

class SimNetworkTest : public testing::Test {
 protected:
  // The switch comes first, then the CPU and GPU of each worker.
  static NodeIndex gpu(int worker) { return static_cast<NodeIndex>(2 + 2 * worker); }

  static std::vector<HostSpec> hosts() {
    std::vector<HostSpec> specs;
    for (int worker = 0; worker < 4; ++worker) specs.push_back({gpu(worker), 1});
    return specs;
  }

  std::shared_ptr<const Topology> topology_ = make_star({.workers = 4, .latency_s = 0});
  Router router_{*topology_};
  std::vector<HostSpec> hosts_ = hosts();
  Simulation simulation_{*topology_, router_, hosts_};
  Network network_{simulation_};
};

TEST_F(SimNetworkTest, ATransferThatBeginsAsABundleEndsLeavesNoFlowOfItWithoutAnEnd) {
  int ended = 0;
  double last_s = 0;
  network_.transfer_together(std::vector<Network::Pair>{{gpu(0), gpu(1)}, {gpu(2), gpu(3)}}, kBytes, [&] { ++ended; });
  // Dates come before the ends of flows, so the bundle is dissolved when nothing of it is left to move.
  simulation_.at(kSeconds,
                 [&] { network_.transfer(gpu(0), gpu(3), kBytes, false, [&] { last_s = Simulation::now_s(); }); });
  simulation_.run();
  EXPECT_EQ(ended, 2);
  EXPECT_DOUBLE_EQ(last_s, 2 * kSeconds);
  EXPECT_FALSE(simulation_.is_busy());
}

// Returns how long these transfers take together, where machines send to each other in turn, in times of one alone.
double times_of_one(const std::vector<Network::Pair>& pairs, bool together) {
  const std::shared_ptr<Topology> topology = make_star({.workers = 4, .latency_s = 0, .slow = {3}});
  topology->set_exchanges_in_turn(true);
  Router router(*topology);
  std::vector<HostSpec> hosts;
  for (int worker = 0; worker < 4; ++worker) {
    hosts.push_back({static_cast<NodeIndex>(1 + 2 * worker), 4});
    hosts.push_back({static_cast<NodeIndex>(2 + 2 * worker), 1});
  }
  Simulation simulation(*topology, router, hosts);
  Network network(simulation);
  double last_s = 0;
  const auto end = [&last_s] { last_s = Simulation::now_s(); };
  if (together) {
    network.transfer_together(pairs, kBytes, end);
  } else {
    for (const auto& [from, to] : pairs) network.transfer(from, to, kBytes, false, end);
  }
  simulation.run();
  return last_s / kSeconds;
}

TEST(SimExchanges, InTurnHalveTheRateOfMachinesThatSendToEachOther) {
  constexpr NodeIndex kCpu0 = 1, kGpu0 = 2, kGpu1 = 4, kGpu2 = 6, kGpu3 = 8;
  for (const bool together : {false, true}) {
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kGpu1}}, together), 1);
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kGpu1}, {kGpu1, kGpu0}}, together), 2);
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kGpu1}, {kGpu1, kCpu0}}, together), 2) << "over other links of a machine";
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kGpu1}, {kGpu2, kGpu0}}, together), 1) << "to one and from another";
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kGpu1}, {kGpu1, kGpu2}, {kGpu2, kGpu0}}, together), 1) << "a ring";
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kGpu3}, {kGpu3, kGpu0}}, together), 20) << "a tenth of the rate";
    EXPECT_DOUBLE_EQ(times_of_one({{kGpu0, kCpu0}, {kCpu0, kGpu0}}, together), 1) << "inside a machine";
  }
}

}  // namespace
}  // namespace tandem::sim
