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

}  // namespace
}  // namespace tandem::sim
