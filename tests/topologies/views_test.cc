#include <gmock/gmock.h>

#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/views/paths.h"
#include "topologies/views/topology_text.h"
#include "topologies/views/writers.h"

namespace tandem {
namespace {

using testing::HasSubstr;

std::string path_between(const Topology& topology, const std::string& from, const std::string& to) {
  const PathMatrix matrix = paths_of(topology, 0);
  const auto index = [&](const std::string& name) {
    const auto node = *topology.find(name);
    return static_cast<std::size_t>(std::find(matrix.devices.begin(), matrix.devices.end(), node) -
                                    matrix.devices.begin());
  };
  return path_text(matrix.between(index(from), index(to)), false);
}

TEST(Paths, AreNamedAsByNvidiaSmi) {
  const Topology h100 = load_catalog_node("hgx-h100");
  EXPECT_EQ(path_between(h100, "gpu0", "gpu7"), "NV18");
  EXPECT_EQ(path_between(h100, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(path_between(h100, "gpu0", "nic1"), "PHB");
  EXPECT_EQ(path_between(h100, "gpu0", "nic7"), "SYS");
  EXPECT_EQ(path_between(h100, "gpu0", "gpu0"), "X");
  EXPECT_EQ(path_between(load_catalog_node("dgx1-v100"), "gpu0", "gpu3"), "NV2");
  EXPECT_EQ(path_between(load_catalog_node("aws-g5"), "gpu0", "gpu1"), "PHB");
}

TEST(Paths, AreThoseOfTheFirst256Devices) {
  Topology topology("many");
  for (int i = 0; i < 300; ++i) add_test_node(topology, "gpu" + std::to_string(i), NodeKind::gpu);
  EXPECT_EQ(paths_of(topology, 0).devices.size(), 256u);
}

TEST(Paths, RingsOfADgx1UseAllLinksAtMostOnce) {
  const Topology topology = load_catalog_node("dgx1-v100");
  const auto rings = nvlink_rings(topology, 0);
  ASSERT_GE(rings.size(), 2u);
  for (const Ring& ring : rings) {
    EXPECT_EQ(ring.gpus.size(), 8u);
    EXPECT_EQ(ring.bandwidth_bytes_per_s, 22e9);
  }
  EXPECT_TRUE(nvlink_rings(load_catalog_node("hgx-h100"), 0).empty());  // a switch: any order
}

// Four links of 370.8 GB/s into the switch, and 22 GB/s between the processors.
TEST(Bisection, IsTheFlowBetweenHalves) {
  const Topology topology = load_catalog_node("hgx-h100");
  const Bisection bisection = bisection_of(topology, topology.nodes_of(0, NodeKind::gpu));
  EXPECT_TRUE(bisection.is_least);
  EXPECT_EQ(bisection.bandwidth_bytes_per_s, 4 * 370.8e9 + 22e9);
  EXPECT_EQ(bisection.half.size(), 4u);
}

// Two machines of one EDR port each: the port is all there is between them.
TEST(Bisection, OfAClusterIsThatOfItsNetwork) {
  const Topology topology = make_cluster("azure-nd-v2", 2);
  std::vector<NodeIndex> gpus = topology.nodes_of(0, NodeKind::gpu);
  for (const NodeIndex gpu : topology.nodes_of(1, NodeKind::gpu)) gpus.push_back(gpu);
  const Bisection bisection = bisection_of(topology, gpus);
  EXPECT_FALSE(bisection.is_least);
  EXPECT_EQ(bisection.bandwidth_bytes_per_s, 12e9);  // its PCIe link is narrower than its port of 12.5
}

TEST(TopologyText, ShowsTheMachine) {
  const std::string text = topology_text(load_catalog_node("hgx-h100"));
  EXPECT_THAT(text, HasSubstr("1 machine: 8 GPUs, 8 NICs, 2 processors"));
  EXPECT_THAT(text, HasSubstr("      gpu0  NVIDIA H100 SXM5 80 GB  [pcie 48 GB/s]\n"));
  EXPECT_THAT(text, HasSubstr("  gpu0    nic0  PIX 48\n"));
  EXPECT_THAT(text, HasSubstr("Bisection bandwidth 1505 GB/s"));
  EXPECT_THAT(text, HasSubstr("SM90, 18 links of 20.6 GB/s, NVIDIA/nccl 2.30.7"));
}

TEST(TopologyText, EveryMachineOfTheCatalogIsPlausible) {
  for (const std::string& name : catalog_names()) {
    for (const TopologyFinding& finding : check_topology(load_catalog_node(name))) {
      EXPECT_FALSE(finding.is_problem) << name << ": " << finding.text;
    }
  }
}

TEST(TopologyCheck, FindsWhatNoMachineIsLike) {
  Topology topology("odd");
  const auto cpu = add_test_node(topology, "cpu0", NodeKind::cpu);
  const auto bridge = add_test_node(topology, "pcie0", NodeKind::pcie_switch);
  std::vector<NodeIndex> gpus;
  for (int i = 0; i < 3; ++i) gpus.push_back(add_test_node(topology, "gpu" + std::to_string(i), NodeKind::gpu));
  Node nic;
  nic.name = "nic0";
  nic.kind = NodeKind::nic;
  nic.worker = 0;
  nic.port = test_link(LinkKind::network, 50e9, 1e-6);
  const auto near = topology.add_node(nic);
  nic.name = "nic1";
  topology.add_node(nic);
  const auto pcie = test_link(LinkKind::pcie, 24e9, 1e-6);
  topology.add_link(cpu, bridge, pcie);
  for (const NodeIndex gpu : gpus) topology.add_link(bridge, gpu, pcie);
  topology.add_link(bridge, near, pcie);
  topology.add_link(gpus[0], gpus[1], test_link(LinkKind::nvlink, 100e9, 1e-6));
  topology.add_link(gpus[0], gpus[2], test_link(LinkKind::nvlink, 50e9, 1e-6));
  std::vector<std::string> problems;
  for (const TopologyFinding& finding : check_topology(topology)) {
    if (finding.is_problem) problems.push_back(finding.text);
  }
  EXPECT_THAT(problems,
              testing::ElementsAre("'gpu0' reaches its NIC 'nic0' with 24 GB/s, less than the 50 GB/s of its port",
                                   "NIC 'nic1' is not connected to any GPU",
                                   "'gpu2' has 50 GB/s of NVLink, its twin 'gpu0' 150 (1 GPU has less)",
                                   "'gpu1' has 100 GB/s of NVLink, its twin 'gpu0' 150 (1 GPU has less)"));
}

std::vector<std::string> findings_in(const Topology& topology) {
  std::vector<std::string> texts;
  for (const TopologyFinding& finding : check_topology(topology)) {
    texts.push_back((finding.is_problem ? "implausible: " : "missing: ") + finding.text);
  }
  return texts;
}

// An older machine in a cluster is no slow one.
TEST(TopologyCheck, ComparesOneProductOnly) {
  Topology topology("mixed");
  const auto middle = add_test_node(topology, "switch", NodeKind::network_switch, kNoWorker);
  for (const int worker : {0, 1}) {
    const double speed = worker == 0 ? 1 : 2;
    const auto device = std::make_shared<DeviceModel>();
    device->name = worker == 0 ? "old" : "new";
    std::vector<NodeIndex> gpus;
    for (const char* name : {".gpu0", ".gpu1"}) {
      const std::string of_machine = "w" + std::to_string(worker) + name;
      gpus.push_back(
          topology.add_node({.name = of_machine, .kind = NodeKind::gpu, .worker = worker, .device = device}));
    }
    topology.add_link(gpus[0], gpus[1], test_link(LinkKind::nvlink, speed * 100e9, 1e-6));
    const auto nic = add_test_node(topology, "w" + std::to_string(worker) + ".nic0", NodeKind::nic, worker);
    for (const NodeIndex gpu : gpus) topology.add_link(gpu, nic, test_link(LinkKind::pcie, speed * 24e9, 1e-6));
    topology.add_link(nic, middle, test_link(LinkKind::network, speed * 25e9, 1e-6));
  }
  EXPECT_THAT(findings_in(topology), testing::Not(testing::Contains(HasSubstr("twin"))));
}

// Machines of two NICs, and a switch for each of `islands`, which has the names of the NICs at it.
Topology machines_at(int machines, const std::vector<std::vector<std::string>>& islands) {
  Topology topology("islands");
  const auto port = test_link(LinkKind::network, 50e9, 1e-6);
  for (int worker = 0; worker < machines; ++worker) {
    const std::string machine = "w" + std::to_string(worker);
    const auto cpu = add_test_node(topology, machine + ".cpu0", NodeKind::cpu, worker);
    for (const char* name : {".nic0", ".nic1"}) {
      const Node nic{.name = machine + name, .kind = NodeKind::nic, .worker = worker, .port = port};
      topology.add_link(cpu, topology.add_node(nic), test_link(LinkKind::pcie, 50e9, 1e-6));
    }
  }
  for (const auto& island : islands) {
    const auto middle = add_test_node(topology, "at " + island.front(), NodeKind::network_switch, kNoWorker);
    for (const std::string& nic : island) topology.add_link(node_named(topology, nic), middle, port);
  }
  return topology;
}

TEST(TopologyCheck, FindsNicsWithoutCables) {
  EXPECT_THAT(findings_in(machines_at(3, {{"w0.nic0", "w1.nic0", "w2.nic0"}, {"w1.nic1", "w2.nic1"}})),
              testing::ElementsAre("missing: the machine has no GPU",
                                   "implausible: no cable at NIC 'w0.nic1', though its twin 'w1.nic1' has one (1 NICs "
                                   "lack theirs)"));
  EXPECT_THAT(findings_in(machines_at(2, {{"w0.nic0", "w1.nic0"}})),
              testing::ElementsAre("missing: the machine has no GPU",
                                   "missing: no cable at NIC 'w0.nic1', nor at its twins (2 NICs)"));
}

// A machine between two others carries nothing from one to the other.
TEST(TopologyCheck, FindsMachinesWithoutAPath) {
  EXPECT_THAT(findings_in(machines_at(3, {{"w0.nic0", "w1.nic0"}, {"w1.nic1", "w2.nic1"}, {"w0.nic1"}, {"w2.nic0"}})),
              testing::ElementsAre("missing: the machine has no GPU",
                                   "implausible: no path between the machines of 'w0.cpu0' and 'w2.cpu0' (1 of 3 "
                                   "pairs of machines have none)"));
  EXPECT_THAT(findings_in(machines_at(4, {})),
              testing::Contains("implausible: no path between the machines of 'w0.cpu0' and 'w3.cpu0' (6 of 6 pairs "
                                "of machines have none)"));
  Topology cable = machines_at(2, {});
  for (const char* nic : {"nic0", "nic1"}) {
    cable.add_link(node_named(cable, "w0." + std::string(nic)), node_named(cable, "w1." + std::string(nic)),
                   test_link(LinkKind::network, 50e9, 1e-6));
  }
  EXPECT_THAT(findings_in(cable), testing::ElementsAre("missing: the machine has no GPU"));
}

TEST(TopologyCheck, EveryFabricIsWhole) {
  using enum FabricKind;
  for (const FabricKind kind : {single_switch, leaf_spine, rail, fat_tree, torus, dragonfly}) {
    Fabric fabric;
    fabric.kind = kind;
    fabric.workers_per_leaf = 2;
    fabric.leaves_per_pod = 2;
    if (kind == torus) fabric.dimensions = {2, 4};
    for (const char* node : {"hgx-h100", "gb200-nvl72"}) {
      EXPECT_THAT(findings_in(make_cluster(load_catalog_node(node), 8, fabric, "c")), testing::IsEmpty())
          << node << " " << name_of(kind);
    }
  }
}

TEST(TopologyCheck, ManyMachinesAreOneLine) {
  FabricDescription islands{.hosts = {}, .switches = {"east", "west"}, .ports = {}, .cables = {}};
  for (std::size_t host = 0; host < 10'000; ++host) {
    islands.hosts.push_back("n" + std::to_string(host));
    islands.ports.push_back({.host = host, .at = host % 2});
  }
  const Topology machine = load_catalog_node("hgx-h100");
  std::vector<std::string> notes;
  EXPECT_THAT(findings_in(compose_cluster(&machine, islands, {}, "large", "large.conf", notes)),
              testing::ElementsAre("implausible: no path between the machines of 'w0.gpu0' and 'w1.gpu0' (25000000 of "
                                   "49995000 pairs of machines have none)"));
}

TEST(TopologySvg, DrawsEveryNodeOfTheMachine) {
  const Topology topology = load_catalog_node("aws-p4d");
  const std::string svg = topology_svg(topology);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (NodeIndex node = 0; node < topology.node_count(); ++node) {
    EXPECT_THAT(svg, HasSubstr(">" + topology.node(node).name + "</text>"));
  }
}

TEST(TopologyWriters, WriteEveryNodeAndLink) {
  Topology topology("two \"quoted\"");
  const auto a = add_test_node(topology, "a&b", NodeKind::nic);
  const auto b = add_test_node(topology, "s<0>", NodeKind::network_switch, kNoWorker);
  topology.add_link(a, b, test_link(LinkKind::network, 25e9, 1e-6));
  std::ostringstream dot, graphml, simgrid;
  write_dot(topology, dot);
  write_graphml(topology, graphml);
  write_simgrid_xml(topology, simgrid);
  EXPECT_EQ(dot.str(),
            "digraph \"two \\\"quoted\\\"\" {\n  \"a&b\" [kind=nic, worker=0];\n  \"s<0>\" [kind=network_switch, "
            "worker=-1];\n  \"a&b\" -> \"s<0>\" [kind=network, bw=\"25000000000\", lat=\"1e-06\", duplex=full];\n}\n");
  EXPECT_THAT(graphml.str(), HasSubstr("<data key=\"n_name\">a&amp;b</data><data key=\"n_kind\">nic</data>"));
  EXPECT_THAT(graphml.str(), HasSubstr("<edge source=\"n0\" target=\"n1\">"));
  EXPECT_THAT(simgrid.str(), HasSubstr("<link id=\"l0\" bandwidth=\"25000000000Bps\" latency=\"1e-06s\" "
                                       "sharing_policy=\"SPLITDUPLEX\"><prop id=\"tandem.kind\" value=\"network\"/>"));
  EXPECT_THAT(simgrid.str(), HasSubstr("<route src=\"s&lt;0&gt;\" dst=\"a&amp;b\" symmetrical=\"NO\"><link_ctn "
                                       "id=\"l0\" direction=\"DOWN\"/></route>"));
}

}  // namespace
}  // namespace tandem
