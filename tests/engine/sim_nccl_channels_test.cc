#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "tests/engine/sim_nccl_machines.h"

namespace tandem::sim::nccl {
namespace {

std::string text(const Graph& graph) {
  std::string speed = std::to_string(graph.intra_gbs);
  speed.erase(speed.find_last_not_of('0') + 1);
  if (speed.back() == '.') speed.pop_back();
  return std::to_string(graph.channels) + " x " + speed;
}

TEST(Channels, OfGpusOnASwitchDoNotDependOnTheirNumber) {
  for (int gpus = 2; gpus <= 8; ++gpus) {
    EXPECT_EQ(text(find_graphs(over_nodes(dgx_a100(), gpus)).ring), "12 x 20");
    EXPECT_EQ(text(find_graphs(over_nodes(hgx_h100(), gpus)).ring), "12 x 30");
  }
  EXPECT_EQ(find_graphs(over_nodes(hgx_h100(), 8)).thread_blocks, 24);
  EXPECT_EQ(text(find_graphs(over_nodes(hgx_b200(), 8)).ring), "16 x 45");
}

TEST(Channels, OfNvlsAreHeadsFasterTheFewerTheyAre) {
  EXPECT_EQ(text(find_graphs(over_nodes(hgx_h100(), 8)).nvls), "8 x 40");
  EXPECT_EQ(text(find_graphs(over_nodes(hgx_h100(), 4)).nvls), "4 x 60");
  EXPECT_EQ(text(find_graphs(over_nodes(hgx_b200(), 8)).nvls), "8 x 80");
  EXPECT_EQ(text(find_graphs(over_nodes(hgx_b200(), 72)).nvls), "32 x 20") << "at most 32 heads in a rack";
  EXPECT_EQ(find_graphs(over_nodes(hgx_h100(), 2)).nvls.channels, 0);
  EXPECT_EQ(find_graphs(over_nodes(dgx_a100(), 8)).nvls.channels, 0) << "Ampere's switches do not reduce";
}

TEST(Channels, OfAFullMeshFollowTheGroup) {
  const Graphs two = find_graphs(over_nodes(a100_full_mesh(), 2));
  EXPECT_EQ(text(two.ring), "4 x 20");
  EXPECT_EQ(two.thread_blocks, 8);
  EXPECT_DOUBLE_EQ(two.ring_wire_gbs, 80);
  const Graphs four = find_graphs(over_nodes(a100_full_mesh(), 4));
  EXPECT_EQ(text(four.ring), "12 x 20");
  EXPECT_EQ(four.thread_blocks, 24);
}

TEST(Channels, OfACubeMeshAreItsHamiltonianRings) {
  const std::vector<int> expected = {1, 2, 4, 2, 2, 4, 6};
  for (int gpus = 2; gpus <= 8; ++gpus) {
    const Graphs graphs = find_graphs(over_nodes(dgx1_v100(), gpus));
    EXPECT_EQ(graphs.ring.channels, expected[static_cast<std::size_t>(gpus - 2)]) << gpus << " GPUs";
    EXPECT_DOUBLE_EQ(graphs.ring.intra_gbs, 20);
    EXPECT_EQ(graphs.crosses_gpus, gpus == 5) << "GPU 4 has a link to GPU 0 alone";
  }
}

TEST(Channels, RingsOfAMeshShareNoMoreThanItsLinks) {
  const Machine machine = over_nodes(dgx1_v100(), 8);
  const Graphs graphs = find_graphs(machine);
  std::vector<double> used(machine.mesh_gbs.size(), 0);
  for (const Order& order : graphs.orders) {
    Order sorted = order;
    std::sort(sorted.begin(), sorted.end());
    Order all(8);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all) << "a ring passes every GPU once";
    for (std::size_t i = 0; i < order.size(); ++i) {
      used[static_cast<std::size_t>(order[i] * 8 + order[(i + 1) % order.size()])] += 20;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) EXPECT_LE(used[i], machine.mesh_gbs[i]);
}

TEST(Channels, OfPcieAreOneRing) {
  EXPECT_EQ(text(find_graphs(over_nodes(pcie(70, 12), 4)).ring), "1 x 12");
  EXPECT_EQ(text(find_graphs(over_nodes(pcie(89, 24), 2)).ring), "2 x 12");
  EXPECT_EQ(find_graphs(over_nodes(pcie(70, 12), 4)).thread_blocks, 2);
}

TEST(Channels, BetweenNodesFollowTheNics) {
  const Graphs hdr = find_graphs(over_nodes(dgx_a100(), 8, 2, 8, 25));
  EXPECT_EQ(text(hdr.ring), "8 x 24");
  EXPECT_EQ(text(hdr.tree), "8 x 30");
  EXPECT_EQ(hdr.thread_blocks, 16);
  const Graphs many = find_graphs(over_nodes(dgx_a100(), 8, 2, 16, 12.5));
  EXPECT_EQ(text(many.ring), "16 x 12");
  EXPECT_EQ(text(many.tree), "16 x 15");
  EXPECT_EQ(many.thread_blocks, 32);
  const Graphs few = find_graphs(over_nodes(dgx_a100(), 8, 2, 4, 12.5));
  EXPECT_EQ(text(few.ring), "4 x 12");
  EXPECT_EQ(text(few.tree), "4 x 24");
  const Graphs ndr = find_graphs(over_nodes(hgx_h100(), 8, 2, 8, 50));
  EXPECT_EQ(text(ndr.ring), "8 x 45");
  EXPECT_EQ(ndr.thread_blocks, 16);
  const Graphs dgx1 = find_graphs(over_nodes(dgx1_v100(), 8, 2, 4, 12.5));
  EXPECT_EQ(text(dgx1.ring), "4 x 12");
  EXPECT_EQ(text(dgx1.tree), "4 x 12");
  EXPECT_EQ(dgx1.orders.size(), 4U) << "chains through the mesh, from a NIC to a NIC";
}

TEST(Channels, OneNicGivesOneRing) {
  EXPECT_EQ(text(find_graphs(over_nodes(dgx1_v100(), 8, 4, 1, 12.5)).ring), "1 x 12");
}

// Chains have one link less than cycles, so that one more of them fits on a full mesh of an even number of GPUs.
TEST(Channels, OverNodesAFullMeshIsASetOfChains) {
  std::vector<Pair> pairs;
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) pairs.push_back({a, b, 48});
  }
  const Machine box = meshed(0, 8, pairs, 2.1);
  EXPECT_EQ(find_graphs(over_nodes(box, 8)).orders.size(), 7U);
  const Graphs two = find_graphs(over_nodes(box, 8, 2, 8, 50));
  ASSERT_EQ(two.orders.size(), 8U);
  std::set<std::pair<int, int>> links;
  for (const Order& order : two.orders) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) EXPECT_TRUE(links.insert({order[i], order[i + 1]}).second);
  }
  EXPECT_EQ(links.size(), 56U);
}

TEST(Channels, AreAllAlikeOnASwitchAndOverOneNic) {
  EXPECT_TRUE(find_graphs(over_nodes(dgx_a100(), 8)).has_same_channels);
  EXPECT_TRUE(find_graphs(over_nodes(pcie(80, 24), 8)).has_same_channels);
  EXPECT_TRUE(find_graphs(over_nodes(a100_full_mesh(), 2)).has_same_channels);
  EXPECT_FALSE(find_graphs(over_nodes(a100_full_mesh(), 4)).has_same_channels);
  EXPECT_FALSE(find_graphs(over_nodes(dgx1_v100(), 8)).has_same_channels);
  EXPECT_TRUE(find_graphs(over_nodes(dgx_a100(), 8, 2, 1, 25)).has_same_channels);
  EXPECT_FALSE(find_graphs(over_nodes(dgx_a100(), 8, 2, 8, 25)).has_same_channels) << "each begins at another NIC";
}

TEST(Channels, AreNeverNone) {
  EXPECT_EQ(text(find_graphs(over_nodes(pcie(120, 16), 8)).ring), "1 x 16") << "below every speed of Blackwell's list";
  EXPECT_EQ(text(find_graphs(over_nodes(pcie(80, 24), 8, 2, 4, 0.05)).ring), "4 x 0.05") << "and of all lists";
  const Graphs single = find_graphs(over_nodes(hgx_h100(), 1, 2, 1, 2));
  EXPECT_EQ(text(single.ring), "1 x 1.2");
  EXPECT_DOUBLE_EQ(single.ring_wire_gbs, 2) << "one GPU a node: the NIC";
}

TEST(Channels, CanBeRestricted) {
  const Machine machine = over_nodes(dgx_a100(), 8);
  const Graphs four = find_graphs(machine, 0, 4);
  EXPECT_EQ(four.thread_blocks, 4);
  EXPECT_DOUBLE_EQ(four.ring_wire_gbs, 240.0 * 4 / 24) << "a thread block carries what it did";
  EXPECT_EQ(find_graphs(machine, 32, 0).thread_blocks, 32);
}

}  // namespace
}  // namespace tandem::sim::nccl
