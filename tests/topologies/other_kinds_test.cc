// Descriptions of other programs, each read by its content.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"
#include "topologies/views/paths.h"
#include "topologies/views/writers.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kMade = TANDEM_SOURCE_DIR "/tests/topologies/samples/made";

ImportedTopology made(const std::string& name, const std::string& gpu = "", const std::string& complete_with = "") {
  ImportOptions options;
  options.gpu = gpu;
  options.complete_with = complete_with;
  return import_topology(kMade / name, options);
}

double rate_between(const Topology& topology, const std::string& from, const std::string& to) {
  Router router(topology);
  return router.route(node_named(topology, from), node_named(topology, to))->bandwidth_bytes_per_s;
}

// --- nvidia-smi topo -m ---

TEST(NvidiaSmi, LinksToAFabricAreOneSwitch) {
  const Topology topology = made("nvidia_smi.txt", "h100").topology;
  EXPECT_EQ(topology.nodes_of(0, NodeKind::gpu).size(), 4u);
  EXPECT_EQ(topology.nodes_of(0, NodeKind::cpu).size(), 2u);
  ASSERT_EQ(topology.nodes_of(0, NodeKind::nvswitch).size(), 1u);
  EXPECT_EQ(nvlink_rate_of(topology, node_named(topology, "w0.gpu2")), 370.8e9);
  EXPECT_EQ(topology.device(node_named(topology, "w0.gpu0"))->name, "NVIDIA H100 SXM5 80 GB");
  const PathMatrix matrix = paths_of(topology, 0);
  const auto type = [&](std::size_t from, std::size_t to) { return path_text(matrix.between(from, to), false); };
  EXPECT_EQ(type(0, 3), "NV18");
  EXPECT_EQ(type(0, 4), "PIX");
  EXPECT_EQ(type(1, 4), "PHB");
  EXPECT_EQ(type(1, 5), "SYS");
}

TEST(NvidiaSmi, FewLinksAreThePairsOwn) {
  const std::string text =
      "      GPU0 GPU1 GPU2 CPU Affinity\nGPU0   X   NV1  NV2  0-3\nGPU1  NV1   X   PHB  0-3\nGPU2  NV2  PHB   X   "
      "0-3\n";
  ImportOptions options;
  options.gpu = "v100-sxm2-16gb";
  const Topology topology = import_text(text, "smi.txt", options).topology;
  EXPECT_TRUE(topology.nodes_of(0, NodeKind::nvswitch).empty());
  EXPECT_EQ(rate_between(topology, "w0.gpu0", "w0.gpu1"), 20e9);
  EXPECT_EQ(rate_between(topology, "w0.gpu0", "w0.gpu2"), 40e9);
  EXPECT_EQ(rate_between(topology, "w0.gpu1", "w0.gpu2"), 20e9);  // over the GPU between them, as in NCCL
  EXPECT_EQ(topology.nodes_of(0, NodeKind::cpu).size(), 1u);
}

TEST(NvidiaSmi, BridgesAreSwitchesInEachOther) {
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\tmlx5_0\nGPU0\t X \tPIX\tPXB\tPXB\nGPU1\tPIX\t X \tPXB\tPXB\nGPU2\tPXB\tPXB\t X \tPIX\n"
      "mlx5_0\tPXB\tPXB\tPIX\t X \n";
  ImportOptions options;
  options.complete_with = "pcie-8gpu";
  const Topology topology = import_text(text, "smi.txt", options).topology;
  EXPECT_EQ(way(topology, "w0.gpu0", "w0.gpu1").size(), 3u);
  EXPECT_EQ(way(topology, "w0.gpu0", "w0.nic0").size(), 5u);
  EXPECT_EQ(topology.nodes_of(0, NodeKind::pcie_switch).size(), 3u);
}

// A single device below each of the switches in between.
TEST(NvidiaSmi, SeveralSwitchesAreBetweenTwoDevices) {
  const std::string text = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tSYS\tPXB\nGPU1\tSYS\t X \tSYS\nNIC0\tPXB\tSYS\t X \n";
  ImportOptions options;
  options.gpu = "h100";
  const PathMatrix matrix = paths_of(import_text(text, "smi.txt", options).topology, 0);
  EXPECT_EQ(matrix.between(0, 2).type, PathType::switches);
  EXPECT_EQ(matrix.between(1, 2).type, PathType::system);
}

// The catalog's machine of an A100 PCIe 40 GB is one whose GPUs cannot.
TEST(NvidiaSmi, GpusThatNvlinkJoinsReachEachOthersMemory) {
  const auto with = [](const std::string& path) {
    ImportOptions options;
    options.gpu = "a100-pcie-40gb";
    return import_text("\tGPU0\tGPU1\nGPU0\t X \t" + path + "\nGPU1\t" + path + "\t X \n", "smi.txt", options);
  };
  const ImportedTopology bridged = with("NV12");
  EXPECT_TRUE(bridged.topology.facts().p2p);
  EXPECT_EQ(rate_between(bridged.topology, "w0.gpu0", "w0.gpu1"), 240e9);
  EXPECT_THAT(bridged.notes, testing::Not(Contains(HasSubstr("memory"))));
  const ImportedTopology plain = with("SYS");
  EXPECT_FALSE(plain.topology.facts().p2p);
  EXPECT_THAT(plain.notes, Contains("smi.txt: assumed: GPUs do not reach each other's memory, as in "
                                    "a100-pcie-4gpu-nop2p"));
}

// --- Fabrics ---

TEST(Ibnetdiscover, HasEveryCableOnce) {
  const FabricDescription fabric = read_fabric_description((kMade / "ibnetdiscover.txt").string());
  EXPECT_THAT(fabric.switches, ElementsAre("leaf1", "spine", "leaf2"));
  EXPECT_THAT(fabric.hosts, ElementsAre("node1", "node2"));
  EXPECT_EQ(fabric.cables.size(), 2u);
  EXPECT_EQ(fabric.ports.size(), 4u);
  EXPECT_EQ(fabric.ports.front().bytes_per_s, 50e9);
}

TEST(Ibnetdiscover, AloneItHasPortsAndWithAMachineItIsACluster) {
  const ImportedTopology alone = made("ibnetdiscover.txt");
  EXPECT_EQ(alone.topology.worker_count(), 2);
  EXPECT_EQ(rate_between(alone.topology, "w0.nic1", "w1.nic0"), 50e9);
  EXPECT_THAT(alone.notes, ElementsAre(HasSubstr("hosts have no GPUs; --complete-with NAME")));
  const ImportedTopology cluster = made("ibnetdiscover.txt", "", "hgx-h100");
  EXPECT_EQ(cluster.topology.nodes_of(1, NodeKind::gpu).size(), 8u);
  EXPECT_THAT(way(cluster.topology, "w0.nic0", "w1.nic0"),
              ElementsAre("w0.nic0", "fabric.leaf1", "fabric.spine", "fabric.leaf2", "w1.nic0"));
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("hosts with 2 ports, but the machine has 8 NICs")));
}

TEST(SlurmConf, ListsOfHosts) {
  EXPECT_THAT(*hosts_of_list("a,n[08-10],x[1,3]-y[0-1]"),
              ElementsAre("a", "n08", "n09", "n10", "x1-y0", "x1-y1", "x3-y0", "x3-y1"));
  for (const char* wrong : {"", "n[", "n[1", "n]1[", "n[2-1]", "n[a]", "n[1-9999999]", "a,,b", "n[[1]]"}) {
    EXPECT_FALSE(hosts_of_list(wrong)) << wrong;
  }
}

TEST(SlurmConf, CablesUpAreAsWideAsThePortsBelow) {
  const ImportedTopology cluster = made("topology.conf", "", "hgx-h100");
  EXPECT_EQ(cluster.topology.worker_count(), 4);
  EXPECT_THAT(way(cluster.topology, "w0.nic3", "w3.nic3"),
              ElementsAre("w0.nic3", "fabric.s0", "fabric.s2", "fabric.s1", "w3.nic3"));
  EXPECT_EQ(rate_between(cluster.topology, "fabric.s0", "fabric.s2"), 2 * 8 * 50e9);
}

TEST(SlurmConf, BlocksAreJoinedByACore) {
  ImportOptions options;
  options.complete_with = "aws-g5";
  const Topology topology =
      import_text("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 \\\n  Nodes=n3\nBlockSizes=2\n", "topology.conf", options)
          .topology;
  EXPECT_THAT(way(topology, "w0.nic0", "w2.nic0"),
              ElementsAre("w0.nic0", "fabric.b1", "fabric.core", "fabric.b2", "w2.nic0"));
}

// The NVSwitches of a domain are named "fabric.nvswitch0" and so on.
TEST(SlurmConf, ASwitchMayHaveTheNameOfAnNvswitch) {
  ImportOptions options;
  options.complete_with = "gb200-nvl72";
  const Topology topology = import_text("SwitchName=nvswitch0 Nodes=n[1-2]\n", "topology.conf", options).topology;
  EXPECT_EQ(topology.kind(node_named(topology, "fabric.nvswitch0")), NodeKind::nvswitch);
  EXPECT_EQ(topology.kind(node_named(topology, "fabric.nvswitch0_2")), NodeKind::network_switch);
}

TEST(SlurmYaml, TheDefaultTopologyIsTheTreeOfTheConf) {
  const ImportedTopology conf = made("topology.conf", "", "hgx-h100"),
                         yaml = made("slurm_topology.yaml", "", "hgx-h100");
  EXPECT_EQ(yaml.topology.worker_count(), 4);
  EXPECT_EQ(yaml.topology.link_count(), conf.topology.link_count());
  EXPECT_EQ(way(yaml.topology, "w0.nic3", "w3.nic3"), way(conf.topology, "w0.nic3", "w3.nic3"));
  EXPECT_EQ(rate_between(yaml.topology, "fabric.s0", "fabric.s2"), 2 * 8 * 50e9);
}

TEST(SlurmYaml, BlocksAreReadWhereTheyComeFirst) {
  ImportOptions options;
  options.complete_with = "aws-g5";
  const Topology topology = import_text(
                                "---\n# site\n- topology: racks\n  block:\n    blocks:\n      - {block: b1, nodes: "
                                "\"n[1-2]\"}\n      - {block: b2, nodes: n3}\n",
                                "topology.yaml", options)
                                .topology;
  EXPECT_THAT(way(topology, "w0.nic0", "w2.nic0"),
              ElementsAre("w0.nic0", "fabric.b1", "fabric.core", "fabric.b2", "w2.nic0"));
}

TEST(ClusterOfFiles, JoinsANodeAFabricAndHosts) {
  const auto cluster = [](const std::string& inside) {
    return parse_topology_yaml("schema_version: 1\nname: mine\ncluster: {" + inside + "}\n",
                               (kMade / "x.yaml").string());
  };
  const Topology mine = cluster("node: ./nvidia_smi.txt, gpu: h100, fabric: ./ibnetdiscover.txt");
  EXPECT_EQ(mine.name(), "mine");
  EXPECT_EQ(mine.worker_count(), 2);
  EXPECT_EQ(rate_between(mine, "w0.gpu0", "w1.gpu0"), 48e9);
  EXPECT_EQ(cluster("node: hgx-h100, fabric: ./topology.conf, hosts: 'node[1,4]'").worker_count(), 2);
  EXPECT_EQ(cluster("node: hgx-h100, fabric: ./topology.conf, hosts: [node2]").worker_count(), 1);
  EXPECT_EQ(cluster("node: hgx-h100, fabric: ./topology.conf, hosts: ./topology.conf, workers: 4").worker_count(), 4);
}

// --- Graphs ---

// What is written for other programs reads back with the same paths.
TEST(GraphFiles, WhatIsWrittenReadsBack) {
  using Write = void (*)(const Topology&, std::ostream&);
  for (const char* name : {"hgx-h100", "dgx1-v100", "mi300x-8gpu", "gh200-4gpu", "aws-g5"}) {
    const Topology before = load_catalog_node(name);
    const PathMatrix paths = paths_of(before, 0);
    for (const Write write : {Write{write_dot}, Write{write_graphml}, Write{write_simgrid_xml}}) {
      std::ostringstream text;
      write(before, text);
      const Topology after = import_text(text.str(), "written", {}).topology;
      const PathMatrix read = paths_of(after, 0);
      ASSERT_EQ(read.paths.size(), paths.paths.size()) << text.str();
      for (std::size_t i = 0; i < paths.paths.size(); ++i) {
        EXPECT_EQ(read.paths[i].type, paths.paths[i].type) << name << " " << i;
        EXPECT_EQ(read.paths[i].bandwidth_bytes_per_s, paths.paths[i].bandwidth_bytes_per_s) << name << " " << i;
      }
      EXPECT_EQ(after.device(after.nodes_of(0, NodeKind::gpu).front())->name,
                before.device(before.nodes_of(0, NodeKind::gpu).front())->name);
    }
  }
}

TEST(GraphFiles, UndirectedDotAndSwitchesByTheirNeighbours) {
  ImportOptions options;
  options.gpu = "h200";
  const Topology topology =
      import_text(
          "// mine\nstrict graph t {\n  edge [bw=\"400GB/s\"];\n  a [kind=gpu]; b [kind=gpu]; s [kind=switch];\n"
          "  a -- s -- b [lat=\"1us\"];\n}\n",
          "t.dot", options)
          .topology;
  EXPECT_EQ(topology.kind(node_named(topology, "s")), NodeKind::nvswitch);
  EXPECT_EQ(topology.worker_count(), 1);
  EXPECT_EQ(rate_between(topology, "a", "b"), 400e9);
}

// As networkx writes a graph: edges without a direction, and one with its own; values with their types.
TEST(GraphFiles, UndirectedGraphmlWithNumbersAndTruths) {
  const ImportedTopology imported = made("networkx.graphml");
  const Topology& topology = imported.topology;
  EXPECT_EQ(topology.kind(node_named(topology, "s")), NodeKind::nvswitch);
  EXPECT_EQ(topology.link_count(), 4u);  // two of them to a processor that the file does not have
  EXPECT_EQ(rate_between(topology, "a", "b"), 50e9);
  EXPECT_EQ(Router(topology).route(node_named(topology, "a"), node_named(topology, "s"))->latency_s, 1e-6);
}

TEST(GraphFiles, MachinesAreWhatIsJoinedWithoutTheNetwork) {
  const Topology topology =
      import_text(
          "graph t { g0 [kind=gpu, device=\"A100 80GB PCIe\"]; n0 [kind=nic]; g1 [kind=gpu, device=\"A100 80GB "
          "PCIe\"]; n1 [kind=nic]; s [kind=switch]; g0 -- n0 [bw=\"24GB/s\"]; g1 -- n1 [bw=\"24GB/s\"]; n0 -- s "
          "[bw=\"200Gbps\"]; n1 -- s [bw=\"200Gbps\"]; }",
          "t.dot", {})
          .topology;
  EXPECT_EQ(topology.worker_count(), 2);
  EXPECT_EQ(topology.node(node_named(topology, "n0")).port->bandwidth_bytes_per_s.value, 25e9);
  EXPECT_EQ(rate_between(topology, "g0", "g1"), 24e9);
}

// Both latencies are 1 us, and only one is the file's.
TEST(GraphFiles, ACableHasTheUsualLatencyOfItsNicsTransport) {
  const Topology topology =
      import_text(
          "graph t { c0 [kind=cpu]; n0 [kind=nic, transport=tcp]; c1 [kind=cpu]; n1 [kind=nic, transport=tcp]; s "
          "[kind=switch]; n0 -- s [bw=\"10GB/s\"]; n1 -- s [bw=\"10GB/s\", lat=\"1us\"]; c0 -- n0 [bw=\"24GB/s\"]; c1 "
          "-- n1 [bw=\"24GB/s\"]; }",
          "t.dot", {})
          .topology;
  const Figure assumed = topology.link_model(0).latency_s, stated = topology.link_model(1).latency_s;
  EXPECT_EQ(assumed.value, 1e-6);
  EXPECT_EQ(assumed.provenance, Provenance::assumed);
  EXPECT_EQ(stated.value, 1e-6);
  EXPECT_EQ(stated.provenance, Provenance::vendor);
}

// --- hwloc ---

TEST(Hwloc, DevicesHangUnderTheirProcessor) {
  const Topology topology = made("hwloc.xml").topology;
  EXPECT_EQ(topology.nodes_of(0, NodeKind::cpu).size(), 2u);
  EXPECT_EQ(topology.nodes_of(0, NodeKind::gpu).size(), 2u);
  EXPECT_EQ(topology.nodes_of(0, NodeKind::nic).size(), 1u);  // eth0 manages the machine
  EXPECT_EQ(topology.device(node_named(topology, "w0.gpu0"))->name, "NVIDIA A100 SXM4 80 GB");
  EXPECT_EQ(topology.device(node_named(topology, "w0.cpu0"))->name, "AMD EPYC 9334 32-Core Processor");
  EXPECT_EQ(topology.device(node_named(topology, "w0.cpu0"))->cores, 2);
  EXPECT_THAT(way(topology, "w0.gpu0", "w0.nic0"), ElementsAre("w0.gpu0", "w0.pcie0", "w0.nic0"));
  EXPECT_EQ(rate_between(topology, "w0.gpu0", "w0.nic0"), 24e9);
  EXPECT_EQ(rate_between(topology, "w0.gpu1", "w0.cpu0"), 12e9);  // its slot is narrower
  EXPECT_EQ(rate_between(topology, "w0.gpu0", "w0.gpu1"), 300e9);
  EXPECT_EQ(topology.node(node_named(topology, "w0.nic0")).port->bandwidth_bytes_per_s.value, 25e9);
}

TEST(Hwloc, MemoryIsAssumedOnlyWhereTheFileTellsNone) {
  const Topology topology = made("hwloc.xml").topology;
  const Figure told = topology.device(node_named(topology, "w0.cpu0"))->memory_bytes;
  EXPECT_EQ(told.value, 405623468032.0);
  EXPECT_EQ(told.provenance, Provenance::vendor);
  EXPECT_THAT(told.source, HasSubstr("hwloc.xml"));
  const Figure assumed = topology.device(node_named(topology, "w0.cpu1"))->memory_bytes;
  EXPECT_EQ(assumed.value, 8e9);
  EXPECT_EQ(assumed.provenance, Provenance::assumed);
}

TEST(Hwloc, WhatOptionsAndFileTellDifferentlyIsNoted) {
  const ImportedTopology completed = made("hwloc.xml", "", "hgx-h100"), named = made("hwloc.xml", "h100");
  const auto gpu_of = [](const Topology& topology) { return topology.device(node_named(topology, "w0.gpu0"))->name; };
  EXPECT_EQ(gpu_of(completed.topology), "NVIDIA A100 SXM4 80 GB");
  EXPECT_THAT(completed.notes, Contains(HasSubstr("GPUs are NVIDIA A100 SXM4 80 GB, and those of hgx-h100 are NVIDIA "
                                                  "H100 SXM5 80 GB")));
  EXPECT_EQ(gpu_of(named.topology), "NVIDIA A100 SXM4 80 GB");
  EXPECT_THAT(named.notes, Contains(HasSubstr("GPUs are NVIDIA A100 SXM4 80 GB, as the file tells; --gpu h100 is left "
                                              "out")));
}

TEST(Hwloc, AMachineOfOtherGpusInTheFilesNameIsNotMeant) {
  const std::string text = read_input_file(kMade / "hwloc.xml");
  const ImportedTopology other = import_text(text, "hgx-h100.xml", {}), same = import_text(text, "dgx-a100.xml", {});
  EXPECT_THAT(other.notes, testing::Not(Contains(HasSubstr("hgx-h100:"))));
  EXPECT_THAT(other.notes, Contains(HasSubstr("cpu_interconnect of 16 GB/s, as in dgx-a100:")));
  EXPECT_EQ(other.notes.size(), same.notes.size());
}

TEST(Hwloc, PortsThatTheFileDoesNotTellAreAssumed) {
  const ImportedTopology imported = made("hwloc.xml");
  const Figure port = imported.topology.node(node_named(imported.topology, "w0.nic0")).port->bandwidth_bytes_per_s;
  EXPECT_EQ(port.provenance, Provenance::assumed);
  EXPECT_EQ(port.source, "ConnectX-6, PCI id 15b3:101b, its fastest port");
  EXPECT_THAT(imported.notes, Contains(HasSubstr("assumed: a port of 25 GB/s, the fastest of ConnectX-6")));
}

// A file that hwloc refuses must not be read as this machine.
TEST(Hwloc, ABrokenFileIsNotThisMachine) {
  for (const char* text : {"<topology/>", "<topology version=\"2.0\"><object type=\"Machine\"/></topology>",
                           "<topology version=\"2.0\"><object type=\"Cheese\"/></topology>"}) {
    EXPECT_THROW(import_text(text, "node.xml", {}), InputError) << text;
  }
}

// --- Simulators ---

TEST(AstraNetwork, TheFirstDimensionIsAMachines) {
  const ImportedTopology imported = made("astra_network.yml", "a100");
  const Topology& topology = imported.topology;
  constexpr double kGib = 1024.0 * 1024 * 1024;
  EXPECT_EQ(topology.worker_count(), 2);
  EXPECT_EQ(topology.nodes_of(1, NodeKind::gpu).size(), 4u);
  EXPECT_EQ(rate_between(topology, "w0.gpu0", "w0.gpu1"), 200 * kGib);
  EXPECT_EQ(rate_between(topology, "w0.gpu0", "w1.gpu0"), 50 * kGib);
  EXPECT_THAT(way(topology, "w0.gpu2", "w1.gpu2"),
              ElementsAre("w0.gpu2", "w0.nic2_1", "fabric.switch2_1", "w1.nic2_1", "w1.gpu2"));
  EXPECT_THAT(imported.notes, Contains(HasSubstr("bandwidth is in GiB/s")));
}

}  // namespace
}  // namespace tandem
