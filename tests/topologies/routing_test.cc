#include "topologies/routing.h"

#include <cmath>
#include <map>
#include <set>

#include "tests/topologies/testing.h"
#include "topologies/base/error.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

using Names = std::vector<std::string>;

TEST(Routing, NeighboursOnTheDgx1UseTheirNvlink) {
  const Topology topology = load_catalog_node("dgx1-v100");
  EXPECT_EQ(way(topology, "gpu0", "gpu3"), (Names{"gpu0", "gpu3"}));
}

TEST(Routing, OthersOnTheDgx1CrossOneGpuByTheWiderLinks) {
  const Topology topology = load_catalog_node("dgx1-v100");
  EXPECT_EQ(way(topology, "gpu0", "gpu7"), (Names{"gpu0", "gpu4", "gpu7"}));  // two double NVLinks
}

TEST(Routing, NeverCrossesTwoGpus) {
  Topology topology("chain");
  for (int i = 0; i < 4; ++i) add_test_node(topology, "g" + std::to_string(i), NodeKind::gpu);
  const NodeIndex cpu = add_test_node(topology, "cpu", NodeKind::cpu);
  const auto nvlink = test_link(LinkKind::nvlink, 100e9, 0);
  for (NodeIndex i = 0; i < 3; ++i) topology.add_link(i, i + 1, nvlink);
  for (NodeIndex i = 0; i < 4; ++i) topology.add_link(i, cpu, test_link(LinkKind::pcie, 1e9, 1e-3));
  EXPECT_EQ(way(topology, "g0", "g2"), (Names{"g0", "g1", "g2"}));
  EXPECT_EQ(way(topology, "g0", "g3"), (Names{"g0", "cpu", "g3"}));
}

TEST(Routing, DoesNotCrossAGpuOverPcie) {
  Topology topology("t");
  const NodeIndex a = add_test_node(topology, "a", NodeKind::gpu);
  const NodeIndex b = add_test_node(topology, "b", NodeKind::gpu);
  const NodeIndex nic = add_test_node(topology, "nic", NodeKind::nic);
  topology.add_link(a, b, test_link(LinkKind::nvlink, 1e9, 0));
  topology.add_link(b, nic, test_link(LinkKind::pcie, 1e9, 0));
  Router router(topology);
  EXPECT_THROW(router.route(a, nic), Error);
}

TEST(Routing, PcieTrafficBetweenSocketsGoesThroughBothCpus) {
  const Topology topology = load_catalog_node("pcie-8gpu");
  EXPECT_EQ(way(topology, "gpu0", "gpu1"), (Names{"gpu0", "cpu0", "gpu1"}));
  EXPECT_EQ(way(topology, "gpu0", "gpu7"), (Names{"gpu0", "cpu0", "cpu1", "gpu7"}));
}

// Out through the near NIC and back in through the other one would be the cheaper way.
TEST(Routing, StaysInsideAMachineWhereThereIsAWay) {
  const Topology topology = make_cluster("dgx-a100", 2);
  EXPECT_EQ(way(topology, "w1.gpu0", "w1.nic7"),
            (Names{"w1.gpu0", "w1.pcie0", "w1.cpu0", "w1.cpu1", "w1.pcie3", "w1.nic7"}));
  Topology split("split");
  const NodeIndex a = add_test_node(split, "a", NodeKind::nic);
  const NodeIndex b = add_test_node(split, "b", NodeKind::nic);
  const NodeIndex between = add_test_node(split, "switch", NodeKind::network_switch, kNoWorker);
  split.add_link(a, between, test_link(LinkKind::network, 1e9, 0));
  split.add_link(between, b, test_link(LinkKind::network, 1e9, 0));
  EXPECT_EQ(way(split, "a", "b"), (Names{"a", "switch", "b"})) << "where there is none";
}

TEST(Routing, AddsLatenciesAndFindsTheNarrowestHop) {
  const Topology topology = make_cluster("hgx-h100", 2);
  Router router(topology);
  const auto route = router.route(node_named(topology, "w0.gpu0"), node_named(topology, "w1.gpu0"));
  EXPECT_EQ(names_along(topology, *route),
            (Names{"w0.gpu0", "w0.pcie0", "w0.nic0", "fabric.switch0", "w1.nic0", "w1.pcie0", "w1.gpu0"}));
  EXPECT_DOUBLE_EQ(route->latency_s, 4 * 0.2e-6 + 2 * 0.6e-6);
  EXPECT_EQ(route->bandwidth_bytes_per_s, 48e9);
}

TEST(Routing, FromANodeToItselfIsEmpty) {
  const Topology topology = load_catalog_node("dgx-a100");
  Router router(topology);
  const auto route = router.route(3, 3);
  EXPECT_TRUE(route->hops.empty());
  EXPECT_TRUE(std::isinf(route->bandwidth_bytes_per_s));
}

TEST(Routing, NamesBothEndsWhenThereIsNoPath) {
  Topology topology("islands");
  add_test_node(topology, "left", NodeKind::cpu, 0);
  add_test_node(topology, "right", NodeKind::cpu, 1);
  Router router(topology);
  try {
    router.route(0, 1);
    FAIL() << "found a path";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "topology 'islands': no path from 'left' to 'right'");
  }
}

TEST(Routing, ObeysTheDirectionOfOneWayLinks) {
  Topology topology("t");
  add_test_node(topology, "a", NodeKind::cpu);
  add_test_node(topology, "b", NodeKind::cpu);
  topology.add_link(0, 1, test_link(LinkKind::pcie, 1e9, 0), Direction::one_way);
  Router router(topology);
  EXPECT_EQ(router.route(0, 1)->hops.size(), 1u);
  EXPECT_THROW(router.route(1, 0), Error);
}

TEST(Routing, NeverCrossesAThirdWorker) {
  Topology topology("triangle");
  for (int i = 0; i < 3; ++i) add_test_node(topology, "w" + std::to_string(i), NodeKind::nic, i);
  const auto fast = test_link(LinkKind::network, 100e9, 0);
  topology.add_link(0, 1, fast);
  topology.add_link(1, 2, fast);
  Router router(topology);
  EXPECT_EQ(router.route(0, 1)->hops.size(), 1u);
  EXPECT_THROW(router.route(0, 2), Error);
}

Topology fat_tree() {
  Fabric fabric;
  fabric.kind = FabricKind::leaf_spine;
  fabric.workers_per_leaf = 2;
  fabric.spines = 8;
  return make_cluster("dgx-a100", 8, fabric);
}

TEST(Routing, FlowsSpreadEvenlyOverEqualPaths) {
  const Topology topology = fat_tree();
  Router router(topology);
  std::map<std::string, int> spines;
  constexpr int kFlows = 4000;
  for (int flow = 0; flow < kFlows; ++flow) {
    const auto route = router.route(node_named(topology, "w0.gpu0"), node_named(topology, "w7.gpu0"),
                                    static_cast<std::uint64_t>(flow));
    for (const std::string& name : names_along(topology, *route)) {
      if (name.starts_with("fabric.spine")) ++spines[name];
    }
  }
  EXPECT_EQ(spines.size(), 8u);
  for (const auto& [name, count] : spines) EXPECT_NEAR(count, kFlows / 8.0, kFlows / 8.0 * 0.3) << name;
}

TEST(Routing, EqualInputsTakeEqualWays) {
  const Topology first = fat_tree();
  const Topology second = fat_tree();
  for (std::uint64_t flow = 0; flow < 50; ++flow) {
    EXPECT_EQ(way(first, "w0.gpu3", "w5.gpu1", flow), way(second, "w0.gpu3", "w5.gpu1", flow));
  }
}

TEST(Routing, ASmallCacheForgetsButAnswersTheSame) {
  const Topology topology = one_by_one(fat_tree());  // routes of machines that are alike are not forgotten
  const NodeIndex from = node_named(topology, "w0.gpu0");
  Router large(topology);
  Router small(topology, 2);
  for (int worker = 0; worker < 8; ++worker) {
    for (const NodeIndex to : topology.nodes_of(worker, NodeKind::gpu)) {
      EXPECT_EQ(names_along(topology, *small.route(from, to)), names_along(topology, *large.route(from, to)));
    }
  }
  const auto visited = small.visited_count();
  small.route(from, node_named(topology, "w7.gpu7"));
  EXPECT_EQ(small.visited_count(), visited);  // still known
  small.route(from, node_named(topology, "w1.gpu0"));
  EXPECT_GT(small.visited_count(), visited);  // forgotten
}

// Visited nodes of a ring over all GPUs, a route.
double visits_per_route(int workers) {
  const Topology topology = make_cluster("hgx-h100", workers);
  std::vector<NodeIndex> gpus;
  for (int worker = 0; worker < workers; ++worker) {
    for (const NodeIndex gpu : topology.nodes_of(worker, NodeKind::gpu)) gpus.push_back(gpu);
  }
  Router router(topology);
  for (std::size_t i = 0; i < gpus.size(); ++i) router.route(gpus[i], gpus[(i + 1) % gpus.size()]);
  return static_cast<double>(router.visited_count()) / static_cast<double>(gpus.size());
}

TEST(Routing, TheCostOfARouteDoesNotGrowWithTheCluster) {
  const double small = visits_per_route(4);
  const double large = visits_per_route(2048);  // 16,384 GPUs, one switch of 16,384 ports
  EXPECT_LT(large, 1.1 * small);
  EXPECT_LT(large, 20);
}

// Visited nodes of routes between NICs of different pods, a route.
double visits_across_pods(int pods) {
  Fabric fabric;
  fabric.kind = FabricKind::fat_tree;
  fabric.workers_per_leaf = 2;
  fabric.leaves_per_pod = 2;
  const Topology topology = make_cluster("hgx-h100", 4 * pods, fabric);
  Router router(topology);
  for (int pod = 0; pod < pods; ++pod) {
    const std::string from = "w" + std::to_string(4 * pod) + ".nic0";
    const std::string to = "w" + std::to_string((4 * pod + 4) % (4 * pods)) + ".nic3";
    EXPECT_EQ(router.route(node_named(topology, from), node_named(topology, to))->hops.size(), 6U);
  }
  return static_cast<double>(router.visited_count()) / pods;
}

TEST(Routing, ASearchAcrossPodsVisitsNoOtherPods) {
  const double small = visits_across_pods(4);
  const double large = visits_across_pods(64);
  EXPECT_LT(large, 1.2 * small);
}

TEST(Routing, EqualPathsAcrossPodsAreAllTaken) {
  Fabric fabric;
  fabric.kind = FabricKind::fat_tree;
  fabric.workers_per_leaf = 1;
  fabric.leaves_per_pod = 1;
  fabric.spines = 2;
  fabric.cores_per_spine = 2;
  const Topology topology = make_cluster("hgx-h100", 3, fabric);
  Router router(topology);
  std::set<std::string> cores;
  for (std::uint64_t flow = 0; flow < 64; ++flow) {
    const auto route = router.route(node_named(topology, "w0.nic0"), node_named(topology, "w2.nic0"), flow);
    ASSERT_EQ(route->hops.size(), 6U);
    cores.insert(names_along(topology, *route)[3]);
  }
  EXPECT_EQ(cores.size(), 4U);
}

}  // namespace
}  // namespace tandem
