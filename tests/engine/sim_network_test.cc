// Transfers at the instants at which others end.
#include "engine/sim/network.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

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

TEST_F(SimNetworkTest, EqualFlowsOverOneRouteHaveAShareEach) {
  std::vector<double> ends_s, single_s;
  const auto note = [](std::vector<double>& ends) {
    return [&ends] { ends.push_back(Simulation::now_s() / kSeconds); };
  };
  network_.transfer_together(std::vector<Network::Pair>(3, {gpu(0), gpu(1)}), kBytes, note(ends_s));
  network_.transfer(gpu(0), gpu(2), 2 * kBytes, false, note(single_s));
  simulation_.run();
  EXPECT_THAT(ends_s, testing::ElementsAre(4, 4, 4)) << "four flows on one link";
  EXPECT_THAT(single_s, testing::ElementsAre(5));
}

TEST_F(SimNetworkTest, BundlesOfEqualFlowsOverOneRouteAreDissolvedByATransfer) {
  std::vector<double> ends_s, single_s;
  const auto note = [](std::vector<double>& ends) {
    return [&ends] { ends.push_back(Simulation::now_s() / kSeconds); };
  };
  std::vector<Network::Pair> pairs(3, {gpu(0), gpu(1)});
  pairs.insert(pairs.end(), 3, {gpu(2), gpu(3)});
  network_.transfer_together(pairs, kBytes, note(ends_s));
  simulation_.at(1.5 * kSeconds, [&] { network_.transfer(gpu(0), gpu(3), kBytes, false, note(single_s)); });
  simulation_.run();
  EXPECT_THAT(ends_s, testing::Each(testing::DoubleNear(3.5, 1e-6))) << "half of the bytes at three quarters of a link";
  EXPECT_EQ(ends_s.size(), 6U);
  EXPECT_THAT(single_s, testing::ElementsAre(testing::DoubleNear(4, 1e-6)));
  EXPECT_FALSE(simulation_.is_busy());
}

TEST_F(SimNetworkTest, ManyEqualFlowsCostNoMoreThanOne) {
  constexpr std::size_t kFlows = 300'000;  // as flows of SimGrid, they would take minutes
  std::size_t ended = 0;
  network_.transfer_together(std::vector<Network::Pair>(kFlows, {gpu(0), gpu(1)}), kBytes, [&] { ++ended; });
  simulation_.run();
  EXPECT_EQ(ended, kFlows);
  EXPECT_DOUBLE_EQ(Simulation::now_s(), kFlows * kSeconds);
}

// Returns how long these transfers take together, where machines send to each other in turn, in times of one alone.
double times_of_one(const std::vector<Network::Pair>& pairs, bool together) {
  const std::shared_ptr<Topology> topology = make_star({.workers = 4, .latency_s = 0, .slow = {3}});
  topology->facts().exchanges_in_turn = true;
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

// Returns when the flows of each of some rounds end, in times of one alone: two from the same machine, one after the
// other, or one alone.
std::vector<std::pair<double, double>> ends_of(double share_spread, int flows, int rounds) {
  const std::shared_ptr<Topology> topology = make_star({.workers = 3, .latency_s = 0});
  topology->facts().share_spread = share_spread;
  Router router(*topology);
  const std::vector<HostSpec> hosts = {{2, 1}, {4, 1}, {6, 1}};
  Simulation simulation(*topology, router, hosts);
  Network network(simulation);
  std::vector<std::pair<double, double>> ends;
  std::function<void()> begin_round = [&] {
    const double begin_s = Simulation::now_s();
    ends.emplace_back(0, 0);
    for (int flow = 0; flow < flows; ++flow) {
      network.transfer(2, static_cast<NodeIndex>(4 + 2 * flow), kBytes, false, [&, begin_s] {
        double& first = ends.back().first;
        const double end = (Simulation::now_s() - begin_s) / kSeconds;
        const bool is_last = flows == 1 || first > 0;
        (is_last ? ends.back().second : first) = end;
        if (is_last && static_cast<int>(ends.size()) < rounds) begin_round();
      });
    }
  };
  begin_round();
  simulation.run();
  return ends;
}

TEST(SimShares, AreEvenUnlessTheTopologySaysOtherwise) {
  for (const auto& [first, last] : ends_of(0, 2, 3)) {
    EXPECT_NEAR(first, 2, 1e-6);
    EXPECT_NEAR(last, 2, 1e-6);
  }
}

TEST(SimShares, DifferFromFlowToFlowAndWasteNothing) {
  constexpr int kRounds = 200;
  const auto uneven = ends_of(0.4, 2, kRounds);
  ASSERT_EQ(uneven.size(), static_cast<std::size_t>(kRounds));
  double sum = 0;
  for (const auto& [first, last] : uneven) {
    EXPECT_NEAR(last, 2, 1e-6) << "the link is busy until both have ended";
    EXPECT_GE(first, 1);
    sum += first;
  }
  // The first has the share 1 / (1 + exp(-d)), where d > 0 is half of a normal distribution: the mean of exp(-d) is
  // exp(s^2 / 2) erfc(s / sqrt(2)).
  const double s = 0.4 * std::sqrt(2);
  EXPECT_NEAR(sum / kRounds, 1 + std::exp(s * s / 2) * std::erfc(s / std::sqrt(2)), 0.05);
  EXPECT_EQ(ends_of(0.4, 2, kRounds), uneven);
  for (const auto& [first, last] : ends_of(0.4, 1, 3)) EXPECT_NEAR(last, 1, 1e-6) << "alone";
}

}  // namespace
}  // namespace tandem::sim
