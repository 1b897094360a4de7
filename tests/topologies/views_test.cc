#include <gmock/gmock.h>

#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
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
                                   "'gpu2' has 50 GB/s of NVLink, its twin 'gpu0' 150 GB/s (1 GPUs have less)",
                                   "'gpu1' has 100 GB/s of NVLink, its twin 'gpu0' 150 GB/s (1 GPUs have less)"));
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
