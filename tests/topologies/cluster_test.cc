#include "topologies/generators/cluster.h"

#include "tests/topologies/testing.h"
#include "topologies/base/error.h"
#include "topologies/joined_machines.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

double bandwidth_between(const Topology& topology, const std::string& from, const std::string& to) {
  Router router(topology);
  return router.route(node_named(topology, from), node_named(topology, to))->bandwidth_bytes_per_s;
}

// The sum over the cables from a switch to the spines.
double up_from(const Topology& topology, const std::string& leaf) {
  double sum = 0;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    const bool up = topology.node(link.to).name.starts_with("fabric.spine");
    if (up && topology.node(link.from).name == leaf) sum += link.model->bandwidth_bytes_per_s.value;
  }
  return sum;
}

TEST(Cluster, OneWorkerHasNoFabric) {
  const Topology topology = make_cluster("hgx-h100", 1);
  EXPECT_EQ(topology.node_count(), load_catalog_node("hgx-h100").node_count());
  EXPECT_TRUE(topology.find("w0.gpu7"));
  EXPECT_EQ(topology.name(), "1x hgx-h100");
}

TEST(Cluster, ASwitchNeverBlocks) {
  const Topology topology = make_cluster("dgx1-v100", 3);
  EXPECT_EQ(topology.worker_count(), 3);
  EXPECT_EQ(topology.nodes_of(2, NodeKind::gpu).size(), 8u);
  EXPECT_EQ(bandwidth_between(topology, "w0.nic0", "w2.nic3"), 12.5e9);
  EXPECT_EQ(way(topology, "w0.nic0", "w2.nic3"), (std::vector<std::string>{"w0.nic0", "fabric.switch0", "w2.nic3"}));
}

TEST(Cluster, OversubscriptionNarrowsTheWayUp) {
  Fabric fabric;
  fabric.kind = FabricKind::leaf_spine;
  fabric.workers_per_leaf = 2;
  fabric.spines = 4;
  fabric.oversubscription = 2;
  const Topology topology = make_cluster("dgx-a100", 6, fabric);
  EXPECT_TRUE(topology.find("fabric.leaf2"));
  EXPECT_FALSE(topology.find("fabric.leaf3"));
  EXPECT_TRUE(topology.find("fabric.spine3"));
  EXPECT_DOUBLE_EQ(up_from(topology, "fabric.leaf0"), 2 * 8 * 25e9 / 2);
  EXPECT_EQ(way(topology, "w0.nic0", "w1.nic0").size(), 3u);
  EXPECT_EQ(way(topology, "w0.nic0", "w2.nic0").size(), 5u);
}

TEST(Cluster, RailsKeepEqualNicsOnOneSwitch) {
  Fabric fabric;
  fabric.kind = FabricKind::rail;
  fabric.workers_per_leaf = 4;
  const Topology topology = make_cluster("hgx-h100", 8, fabric);
  EXPECT_TRUE(topology.find("fabric.rail15"));  // two groups of eight
  EXPECT_FALSE(topology.find("fabric.rail16"));
  EXPECT_EQ(way(topology, "w0.nic3", "w2.nic3"), (std::vector<std::string>{"w0.nic3", "fabric.rail3", "w2.nic3"}));
  EXPECT_EQ(way(topology, "w0.nic3", "w2.nic4").size(), 5u);  // over a spine
  EXPECT_DOUBLE_EQ(up_from(topology, "fabric.rail0"), 4 * 50e9);
}

TEST(Cluster, AFatTreeHasPodsBelowCores) {
  Fabric fabric;
  fabric.kind = FabricKind::fat_tree;
  fabric.workers_per_leaf = 2;
  fabric.leaves_per_pod = 2;
  fabric.spines = 3;
  fabric.cores_per_spine = 2;
  fabric.oversubscription = 2;
  fabric.core_oversubscription = 4;
  const Topology topology = make_cluster("dgx-a100", 12, fabric);  // 6 leaves in 3 pods
  EXPECT_TRUE(topology.find("fabric.leaf5"));
  EXPECT_FALSE(topology.find("fabric.leaf6"));
  EXPECT_TRUE(topology.find("fabric.spine8"));
  EXPECT_FALSE(topology.find("fabric.spine9"));
  EXPECT_TRUE(topology.find("fabric.core5"));
  EXPECT_FALSE(topology.find("fabric.core6"));
  EXPECT_EQ(way(topology, "w0.nic0", "w1.nic0").size(), 3U);  // a leaf
  EXPECT_EQ(way(topology, "w0.nic0", "w2.nic0").size(), 5U);  // a pod
  const std::vector<std::string> across = way(topology, "w0.nic0", "w11.nic0");
  ASSERT_EQ(across.size(), 7U);
  EXPECT_TRUE(across[3].starts_with("fabric.core"));
  const double into_leaf = 2 * 8 * 25e9;
  EXPECT_DOUBLE_EQ(up_from(topology, "fabric.leaf0"), into_leaf / 2);
  // A spine has a third of what two leaves send up, and four times less to the cores, of which the first spines of all
  // pods share two.
  Router router(topology);
  const auto up = router.route(node_named(topology, "fabric.spine0"), node_named(topology, "fabric.core1"));
  EXPECT_DOUBLE_EQ(up->bandwidth_bytes_per_s, 2 * (into_leaf / 2 / 3) / 4 / 2);
  EXPECT_EQ(way(topology, "fabric.spine3", "fabric.core0").size(), 2U);
  EXPECT_GT(way(topology, "fabric.spine1", "fabric.core0").size(), 2U);
}

TEST(Cluster, RailsOfAFatTreeKeepEqualNicsOnOneSwitch) {
  Fabric fabric;
  fabric.kind = FabricKind::fat_tree;
  fabric.workers_per_leaf = 2;
  fabric.leaves_per_pod = 1;
  fabric.rails = true;
  const Topology topology = make_cluster("hgx-h100", 4, fabric);
  EXPECT_EQ(way(topology, "w0.nic3", "w1.nic3"), (std::vector<std::string>{"w0.nic3", "fabric.rail3", "w1.nic3"}));
  EXPECT_EQ(way(topology, "w0.nic3", "w1.nic4").size(), 5U);  // over a spine of the pod
  EXPECT_EQ(way(topology, "w0.nic3", "w2.nic3").size(), 7U);  // over a core
}

TEST(Cluster, ATorusJoinsNeighboursAndWrapsAround) {
  Fabric fabric;
  fabric.kind = FabricKind::torus;
  fabric.dimensions = {2, 3, 4};
  const Topology topology = make_cluster("hgx-h100", 24, fabric);
  const auto hops = [&](int from, int to) {
    return static_cast<int>(
               way(topology, "w" + std::to_string(from) + ".nic0", "w" + std::to_string(to) + ".nic0").size()) -
           3;  // of the NICs, and one router
  };
  EXPECT_EQ(hops(0, 1), 1);  // the last dimension varies fastest
  EXPECT_EQ(hops(0, 3), 1);  // around
  EXPECT_EQ(hops(0, 2), 2);
  EXPECT_EQ(hops(0, 4), 1);   // the middle dimension
  EXPECT_EQ(hops(0, 8), 1);   // around
  EXPECT_EQ(hops(0, 12), 1);  // the first dimension, of two
  EXPECT_EQ(hops(0, 18), 1 + 1 + 2);
  std::size_t cables = 0;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    cables += topology.node(link.from).worker == kNoWorker && topology.node(link.to).worker == kNoWorker ? 1 : 0;
  }
  EXPECT_EQ(cables, 24U + 24U + 12U);
  fabric.dimensions = {5, 5};
  EXPECT_THROW(make_cluster("hgx-h100", 24, fabric), Error);
}

TEST(Cluster, ADragonflyCrossesOneCableBetweenPods) {
  Fabric fabric;
  fabric.kind = FabricKind::dragonfly;
  fabric.workers_per_leaf = 2;
  fabric.leaves_per_pod = 2;
  fabric.spines = 3;
  fabric.core_oversubscription = 2;
  const Topology topology = make_cluster("dgx-a100", 16, fabric);  // four pods
  for (int worker = 1; worker < 16; ++worker) {
    const std::vector<std::string> names = way(topology, "w0.nic0", "w" + std::to_string(worker) + ".nic0");
    EXPECT_EQ(names.size(), worker < 2 ? 3U : worker < 4 ? 5U : 6U) << worker;
  }
  Router router(topology);
  const auto across = router.route(node_named(topology, "fabric.spine1"), node_named(topology, "fabric.spine10"));
  EXPECT_EQ(across->hops.size(), 1U);  // spine 1 of pods 0 and 3
  const double up = up_from(topology, "fabric.leaf0");
  EXPECT_DOUBLE_EQ(across->bandwidth_bytes_per_s, 2 * (up / 3) / 2 / 3);  // two leaves, to three other pods
  EXPECT_EQ(way(topology, "fabric.spine1", "fabric.spine9").size(), 4U);  // down and up in a pod
}

TEST(Cluster, FabricFiguresReplaceThoseOfTheNic) {
  Fabric fabric;
  fabric.latency_s = Figure{5e-6, Provenance::assumed, "test", "", 0};
  fabric.nic_bandwidth_bytes_per_s = Figure{1e9, Provenance::assumed, "test", "", 0};
  const Topology topology = make_cluster("hgx-h100", 2, fabric);
  Router router(topology);
  const auto route = router.route(node_named(topology, "w0.nic0"), node_named(topology, "w1.nic0"));
  EXPECT_DOUBLE_EQ(route->latency_s, 10e-6);
  EXPECT_EQ(route->bandwidth_bytes_per_s, 1e9);
}

// Another network has other software; a figure that is stated counts.
TEST(Cluster, TheTransportBringsItsLatencies) {
  const auto port = [](const char* machine, const char* transport, std::optional<Figure> hop = {}) {
    Fabric fabric;
    fabric.transport = transport;
    fabric.hop_latency_s = std::move(hop);
    const Topology topology = make_cluster(machine, 2, fabric);
    return *topology.node(node_named(topology, "w0.nic0")).port;
  };
  const LinkModel tcpx = port("hgx-h100", "tcpx");
  EXPECT_GT(tcpx.hop_latency_s.value, 100e-6);
  EXPECT_TRUE(tcpx.hop_latency_s.has_range());
  EXPECT_EQ(port("hgx-h100", "efa").advertised_latency_s.value, 75e-6);
  EXPECT_EQ(port("aws-p5", "infiniband").advertised_latency_s.value, 0);
  EXPECT_EQ(port("aws-p5", "efa").hop_latency_s.source, port("aws-p5e", "efa").hop_latency_s.source)
      << "it was of this transport already";
  EXPECT_EQ(port("hgx-h100", "tcpx", Figure{.value = 3e-6}).hop_latency_s.value, 3e-6);
}

// The software's latency is charged once, not at every switch on the way.
TEST(Cluster, UplinksHaveNoHopLatency) {
  Fabric fabric;
  fabric.kind = FabricKind::rail;
  fabric.workers_per_leaf = 1;
  fabric.transport = "roce";
  fabric.hop_latency_s = Figure{2e-6, Provenance::assumed, "test", "", 0};
  const Topology topology = make_cluster("hgx-h100", 2, fabric);
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    if (link.model->kind != LinkKind::network) continue;
    const bool is_uplink = topology.node(link.to).name.starts_with("fabric.spine");
    EXPECT_EQ(link.model->hop_latency_s.value, is_uplink ? 0 : 2e-6);
    EXPECT_EQ(link.model->transport, "roce");
  }
  EXPECT_EQ(topology.node(node_named(topology, "w0.nic0")).port->hop_latency_s.value, 2e-6);
}

TEST(Cluster, MachinesOfAnNvlinkDomainShareItsSwitch) {
  const Topology topology = make_cluster("gb200-nvl72", 20);  // a rack of 18 and two of the next
  EXPECT_EQ(way(topology, "w0.gpu0", "w17.gpu3"),
            (std::vector<std::string>{"w0.gpu0", "fabric.nvswitch0", "w17.gpu3"}));
  EXPECT_EQ(way(topology, "w18.gpu0", "w19.gpu0"),
            (std::vector<std::string>{"w18.gpu0", "fabric.nvswitch1", "w19.gpu0"}));
  EXPECT_EQ(way(topology, "w17.gpu0", "w18.gpu0").size(), 7u);  // over both processors' NICs
  EXPECT_EQ(topology.node(node_named(topology, "fabric.nvswitch0")).worker, kNoWorker);
  EXPECT_EQ(topology.facts().nvlink_domain, 18) << "what links limit depends on it";
  EXPECT_TRUE(make_cluster("gb200-nvl72", 1).find("w0.nvswitch0"));
  EXPECT_EQ(joined_machines(topology), 18);
  EXPECT_EQ(joined_machines(make_cluster("gb200-nvl72", 2)), 2);
  EXPECT_EQ(joined_machines(make_cluster("gb200-nvl72", 1)), 1);
  EXPECT_EQ(joined_machines(make_cluster("hgx-h100", 4)), 1) << "a network joins them";
  const Topology parts = parse_topology_yaml(
      "schema_version: 1\nname: parts\ncluster: {node: gb200-nvl72, workers: 20, nvlink_domain: 8}\n", "parts.yaml");
  EXPECT_TRUE(parts.find("fabric.nvswitch2"));
  EXPECT_FALSE(parts.find("fabric.nvswitch3"));
}

TEST(Cluster, WorkersShareTheirModels) {
  const Topology topology = make_cluster("hgx-h100", 2);
  EXPECT_EQ(topology.node(node_named(topology, "w0.gpu0")).device,
            topology.node(node_named(topology, "w1.gpu5")).device);
}

TEST(Cluster, RefusesWhatCannotBeCopied) {
  EXPECT_THROW(make_cluster(make_host(4), 2), Error);  // no NIC
  EXPECT_THROW(make_cluster(make_cluster("cpu-host", 2), 2), Error);
  EXPECT_THROW(make_cluster("cpu-host", 0), Error);
  EXPECT_EQ(make_cluster(make_host(4), 1).node(0).name, "w0.cpu0");
}

TEST(Cluster, AHostIsOneCpuOfAssumedFigures) {
  const Topology topology = make_host(6);
  ASSERT_EQ(topology.node_count(), 1u);
  EXPECT_EQ(topology.node(0).device->cores, 6);
  EXPECT_EQ(topology.provenance(), Provenance::assumed);
  EXPECT_THROW(make_host(0), Error);
}

}  // namespace
}  // namespace tandem
