// What a file has and no reader uses is named in a note, and notes reach whoever reads the topology.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/fabric_description.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::filesystem::path kMadeSamples = TANDEM_SOURCE_DIR "/tests/topologies/samples/made";

std::vector<std::string> notes_of(const std::string& text, const std::string& file = "f") {
  const ImportedTopology imported = import_text(text, file, {});
  EXPECT_EQ(imported.topology.facts().notes, imported.notes);
  return imported.notes;
}

// --- SimGrid ---

std::string simgrid(const std::string& link, const std::string& host = "", const std::string& more = "") {
  return "<platform version=\"4.1\">" + more + "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf,2Gf\" " +
         host + "/><host id=\"b\" speed=\"1Gf\"/><link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" " + link +
         "/><route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route></zone></platform>";
}

TEST(UnusedKeys, OfASimgridPlatformAreNoted) {
  for (const char* profile : {"bandwidth_file", "latency_file", "state_file"}) {
    EXPECT_THAT(notes_of(simgrid(std::string(profile) + "=\"p.txt\"")),
                Contains("f:1: '" + std::string(profile) +
                         "' of link has no effect here: rates and latencies do not change with time"));
  }
  EXPECT_THAT(notes_of(simgrid("", "availability_file=\"p\"")), Contains(HasSubstr("'availability_file' of host")));
  EXPECT_THAT(notes_of(simgrid("", "coordinates=\"1 2 3\"")), Contains(HasSubstr("'coordinates' of host")));
  EXPECT_THAT(notes_of(simgrid("sharing_policy=\"WIFI\"")), Contains(HasSubstr("WIFI has no effect here")));
  EXPECT_THAT(notes_of(simgrid("", "", "<config><prop id=\"network/model\" value=\"CM02\"/></config>")),
              Contains(HasSubstr("property 'network/model' has no effect here")));
  const std::string text = simgrid("");
  const std::string trace =
      "<trace id=\"t\" periodicity=\"1\">0 1</trace><trace_connect trace=\"t\" element=\"l\"/></zone>";
  const auto notes = notes_of(std::string(text).replace(text.find("</zone>"), 7, trace));
  EXPECT_THAT(notes, Contains(HasSubstr("'trace' has no effect here")));
  EXPECT_THAT(notes, Contains(HasSubstr("'trace_connect' has no effect here")));
  EXPECT_THAT(notes_of(text), Not(Contains(HasSubstr("no effect"))));
}

TEST(UnusedKeys, OfASimgridPlatformHaveALimit) {
  std::string zones;
  for (int i = 0; i < 300; ++i) zones += "<prop id=\"p" + std::to_string(i) + "\" value=\"1\"/>";
  const auto notes = notes_of(simgrid("", "", zones + zones));
  EXPECT_THAT(notes, Contains(HasSubstr("property 'p0' has no effect here")));
  EXPECT_EQ(
      std::count_if(notes.begin(), notes.end(), [](const auto& note) { return note.find("property") != note.npos; }),
      200);
}

TEST(UnusedKeys, TheStateOfASimgridHostIsItsSpeed) {
  const auto flops = [](const std::string& host) {
    const Topology topology = import_text(simgrid("", host), "f", {}).topology;
    return topology.device(node_named(topology, "a"))->peak_flops_per_s.at(DType::f32).value;
  };
  EXPECT_EQ(flops("pstate=\"1\""), 2 * flops(""));
  EXPECT_THROW(flops("pstate=\"2\""), InputError);
}

// --- GraphML and Graphviz ---

TEST(UnusedKeys, OfGraphsAreNotedButThoseOfDrawings) {
  const std::string dot =
      "graph g { a [kind=gpu, device=\"NVIDIA H100 SXM5 80 GB\", color=red]; b [kind=gpu, device=\"NVIDIA H100 SXM5 80 "
      "GB\"]; "
      "a -- b [bw=\"50GB/s\", loss=0.1, label=x]; }";
  const auto notes = notes_of(dot, "g.dot");
  EXPECT_THAT(notes, Contains("g.dot: attribute 'loss' has no effect here"));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("'color'"))));
  const std::string graphml =
      "<graphml><key id=\"k\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/><key id=\"r\" for=\"edge\" "
      "attr.name=\"bw\" attr.type=\"string\"/><key id=\"c\" for=\"edge\" attr.name=\"capacity\" attr.type=\"double\"/>"
      "<graph edgedefault=\"undirected\"><node id=\"a\"><data key=\"k\">cpu</data></node><node id=\"b\"><data "
      "key=\"k\">cpu</data></node><edge source=\"a\" target=\"b\"><data key=\"r\">1GB/s</data><data "
      "key=\"c\">3</data></edge></graph></graphml>";
  EXPECT_THAT(notes_of(graphml, "g.graphml"), Contains("g.graphml: attribute 'capacity' has no effect here"));
}

// yEd draws by keys without a name, and indents its values.
TEST(UnusedKeys, OfDrawingsHaveNoNote) {
  const std::string dot =
      "graph g { a [kind=cpu, peripheries=2, group=x]; b [kind=cpu]; a -- b [bw=\"50GB/s\", headlabel=x, taillabel=x, "
      "minlen=2, constraint=false, labelfontsize=8, lhead=x, ltail=x]; }";
  EXPECT_THAT(notes_of(dot, "g.dot"), Not(Contains(HasSubstr("no effect"))));
  const std::string graphml =
      "<graphml><key id=\"d0\" for=\"node\" yfiles.type=\"nodegraphics\"/><key id=\"k\" for=\"node\" "
      "attr.name=\"kind\"><default>\n  cpu\n</default></key><key id=\"r\" for=\"edge\" attr.name=\"bw\"/><graph "
      "edgedefault=\"undirected\"><node id=\"a\"><data key=\"d0\"><shape/></data></node><node id=\"b\"><data "
      "key=\"k\">\n  gpu\n</data></node><edge source=\"a\" target=\"b\"><data key=\"r\">\t1GB/s "
      "</data></edge></graph></graphml>";
  const ImportedTopology read = import_text(graphml, "g.graphml", {.gpu = "h100"});
  EXPECT_THAT(read.notes, Not(Contains(HasSubstr("no effect"))));
  EXPECT_EQ(read.topology.kind(node_named(read.topology, "a")), NodeKind::cpu);
  EXPECT_EQ(read.topology.kind(node_named(read.topology, "b")), NodeKind::gpu);
  EXPECT_EQ(read.topology.link_model(0).bandwidth_bytes_per_s.value, 1e9);
}

TEST(UnusedKeys, ALatencyWithoutABandwidthIsUsed) {
  const Topology topology =
      import_text("graph g { a [kind=gpu]; c [kind=cpu]; a -- c [lat=\"7us\", kind=pcie]; }", "g.dot", {.gpu = "h100"})
          .topology;
  EXPECT_EQ(topology.link_model(0).latency_s.value, 7e-6);
}

// --- Fabrics ---

TEST(UnusedKeys, OfSlurmAreNoted) {
  const auto notes = [](const std::string& text) { return parse_slurm_conf(text, "t.conf").notes; };
  EXPECT_THAT(notes("BlockName=b Nodes=n[1-4]\nBlockSizes=4\n"),
              ElementsAre(HasSubstr("BlockSizes has no effect here")));
  EXPECT_THAT(notes("SwitchName=s Nodes=n[1-4] LinkSpeed=100\n"),
              ElementsAre(HasSubstr("LinkSpeed has no effect here")));
  EXPECT_THAT(notes("SwitchName=s Nodes=n[1-4]\n"), IsEmpty());
  const std::string yaml =
      "- topology: a\n  cluster_default: true\n  block:\n    block_sizes: [4]\n    blocks:\n      - {block: b, nodes: "
      "\"n[1-4]\"}\n- topology: c\n  tree:\n    switches:\n      - {switch: s, nodes: \"n[1-4]\"}\n";
  EXPECT_THAT(parse_slurm_yaml(yaml, "t.yaml").notes,
              ElementsAre(HasSubstr("block_sizes has no effect here"), HasSubstr("only 'a' is read")));
  EXPECT_THROW(parse_slurm_yaml("- topology: a\n  cluster_defaults: true\n  tree:\n    switches:\n      - {switch: s, "
                                "nodes: \"n[1-4]\"}\n",
                                "t.yaml"),
               InputError);
}

TEST(UnusedKeys, CablesThatAnIbnetdiscoverListsAtOneEndAreKept) {
  const std::string text =
      "switchguid=0xa1(a1)\nSwitch\t40 \"S-a1\"\t\t# \"leaf1\" base port 0\n[1]\t\"H-b1\"[1](b1)\t# \"node1 mlx5_0\" "
      "lid 1 "
      "4xNDR\n[9]\t\"S-ff\"[9]\t# \"gone\" lid 1 4xNDR\n\nswitchguid=0xa2(a2)\nSwitch\t40 \"S-a2\"\t\t# \"leaf2\" base "
      "port "
      "0\n[3]\t\"S-a1\"[3]\t# \"leaf1\" lid 2 4xNDR\n[8]\t\"H-c1\"[1](c1)\t# \"Mellanox Technologies Aggregation "
      "Node\" lid "
      "3 4xNDR\n\ncaguid=0xb1\nCa\t1 \"H-b1\"\t\t# \"node1 mlx5_0\"\n[1](b1) \t\"S-a1\"[1]\t# lid 1 lmc 0 \"leaf1\" "
      "lid 1 "
      "4xNDR\n\ncaguid=0xc1\nCa\t1 \"H-c1\"\t\t# \"Mellanox Technologies Aggregation Node\"\n[1](c1) \t\"S-a2\"[8]\t# "
      "lid 3 "
      "lmc 0 \"leaf2\" lid 2 4xNDR\n";
  const FabricDescription fabric = parse_ibnetdiscover(text, "ib.txt");
  EXPECT_EQ(fabric.hosts, std::vector<std::string>{"node1"});
  EXPECT_EQ(fabric.cables.size(), 1U) << "which leaf2 alone lists";
  EXPECT_THAT(fabric.notes, ElementsAre("left out: ends of cables to nodes that the file does not list (1)",
                                        "left out: ports of aggregation nodes, with which switches reduce (1)"));
}

TEST(UnusedKeys, AnIbnetdiscoverMayBeGroupedAndHaveRouters) {
  const std::string text =
      "ibwarn: [1] sim_connect: attached\n\nChassis 0 (guid 0xa0)\nNon-Chassis Nodes\nswitchguid=0xa1(a1)\nSwitch\t40 "
      "\"S-a1\"\t\t# \"leaf1\" base port 0\n[1]\t\"H-b1\"[1](b1)\t# \"node1 mlx5_0\" lid 1 "
      "2xNDR\n[2]\t\"R-c1\"[1](c1)\t# "
      "\"router\" lid 3 4xHDR\n\ncaguid=0xb1\nCa\t1 \"H-b1\"\t\t# \"node1 mlx5_0\"\n[1](b1) \t\"S-a1\"[1]\t# lid 1 lmc "
      "0 "
      "\"leaf1\" lid 1 2xNDR\n\nrtguid=0xc1\nRt\t1 \"R-c1\"\t\t# \"router\"\n[1](c1) \t\"S-a1\"[2]\t# lid 3 lmc 0 "
      "\"leaf1\" "
      "lid 2 4xHDR\n";
  const FabricDescription fabric = parse_ibnetdiscover(text, "ib.txt");
  EXPECT_EQ(fabric.hosts, std::vector<std::string>{"node1"});
  EXPECT_EQ(fabric.ports.front().bytes_per_s, 25e9);
  EXPECT_THAT(fabric.notes, ElementsAre("left out: ports of routers to other subnets (1)"));
}

TEST(UnusedKeys, NotesOfAMachineAndOfAFabricReachTheirCluster) {
  const std::string text = "schema_version: 1\ncluster: {node: gb200-nvl72, fabric: ./topology.conf}\n";
  const Topology cluster = parse_topology_yaml(text, (kMadeSamples / "c.yaml").string());
  EXPECT_THAT(cluster.facts().notes, Contains(HasSubstr("hosts, in their order, share an NVLink domain")));
  const Topology machines =
      parse_topology_yaml("schema_version: 1\ncluster: {node: ./nvidia_smi.txt, gpu: h100, workers: 2}\n",
                          (kMadeSamples / "c.yaml").string());
  EXPECT_EQ(machines.facts().notes, import_topology(kMadeSamples / "nvidia_smi.txt", {.gpu = "h100"}).notes);
  EXPECT_THAT(machines.facts().notes, Not(IsEmpty()));
}

// --- Machines ---

TEST(UnusedKeys, AnHwlocFileMayHaveCaches) {
  const Topology topology = import_topology(kMadeSamples / "hwloc_l3_cache.xml").topology;
  ASSERT_EQ(topology.nodes_of(0, NodeKind::gpu).size(), 1U);
  ASSERT_EQ(topology.nodes_of(0, NodeKind::nic).size(), 1U);
  EXPECT_THAT(topology.device(node_named(topology, "w0.gpu0"))->name, HasSubstr("A100"));
  EXPECT_EQ(topology.node(node_named(topology, "w0.nic0")).port->bandwidth_bytes_per_s.value, 25e9);
  EXPECT_THAT(way(topology, "w0.gpu0", "w0.nic0"), ElementsAre("w0.gpu0", "w0.pcie0", "w0.nic0"));
  EXPECT_EQ(topology.device(node_named(topology, "w0.cpu0"))->cores, 2);
}

// Form 3 of hwloc, and GPUs with NVLinks to their processor, in a matrix of objects of several types.
TEST(UnusedKeys, AnHwlocFileMayBeNewAndOfPower) {
  const std::string set = R"( cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1")";
  const std::string text =
      R"(<topology version="3.0"><object type="Machine")" + set + R"( gp_index="1"><object type="Package")" + set +
      R"( gp_index="2"><object type="NUMANode" os_index="0")" + set + R"( gp_index="3" local_memory="1000000"/>)" +
      R"(<object type="PU" os_index="0")" + set + R"( gp_index="4"/>)" +
      R"(<object type="Bridge" gp_index="5" id="o5" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">)" +
      R"(<object type="PCIDev" gp_index="6" pci_busid="10000:01:00.0" pci_type="0108 [8086:0a54] [0000:0000] 00 02"/>)" +
      R"(<object type="PCIDev" gp_index="7" pci_busid="0000:02:00.0" pci_type="0302 [10de:15f9] [10de:0000] a1 00">)" +
      R"(<object type="OSDev" gp_index="8" name="nvml0" osdev_type="12"/></object>)" +
      R"(<object type="PCIDev" gp_index="9" pci_busid="0000:03:00.0" pci_type="0207 [15b3:101b] [15b3:0007] 00 00">)" +
      R"(<object type="OSDev" gp_index="10" name="mlx5_0" osdev_type="32"/></object>)" +
      R"(</object></object></object><distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth"><indexes length="17">)" +
      R"(OSDev:8 Package:2 </indexes><u64values length="12">0 40000 40000 0 </u64values></distances2hetero></topology>)";
  const Topology topology = import_text(text, "p.xml", {.gpu = "p100-sxm2-16gb"}).topology;
  const NodeIndex gpu = node_named(topology, "w0.gpu0"), cpu = node_named(topology, "w0.cpu0");
  EXPECT_EQ(topology.nodes_of(0, NodeKind::nic).size(), 1U);
  EXPECT_EQ(Router(topology).route(gpu, cpu)->bandwidth_bytes_per_s, 40e9);
  EXPECT_THAT(topology_text(topology), HasSubstr("[nvlink 40 GB/s, pcie"));
}

TEST(UnusedKeys, PartsOfAGpuHaveOneNumber) {
  const std::string gpu = R"(<gpu dev="0" sm="121" rank="0" gdr="0" mlopart=")";
  const ImportedTopology parts = import_text(
      R"(<system version="1"><cpu numaid="0" affinity="ff" arch="arm64"><pci busid="000f:01:00.0" class="0x030200" )"
      R"(vendor="0x10de" device="0x2e12" link_speed="2.5 GT/s PCIe" link_width="16">)" +
          gpu + R"(0"><c2c bw="43125" count="8"/></gpu>)" + gpu + R"(1"><c2c bw="43125" count="8"/></gpu></pci>)" +
          R"(<pci busid="0000:01:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="4"><nic><net )" +
          R"(name="rocep1s0f0" dev="0" speed="200000" gdr="0" coll="1" net="1" gin="1"/></nic></pci></cpu></system>)",
      "spark.xml", {});
  EXPECT_EQ(parts.topology.nodes_of(0, NodeKind::gpu).size(), 2U);
  EXPECT_THAT(parts.notes, Contains(HasSubstr("gdr=0 has no effect here")));
  EXPECT_THAT(parts.notes, Contains(HasSubstr("coll has no effect here")));
  EXPECT_THAT(parts.notes, Not(Contains(HasSubstr("unknown attribute"))));
}

std::string without_line_of_rank_5() {
  std::string text = read_input_file(kMadeSamples / "gb300_two_trays.xml");
  const std::size_t gpu = text.find("rank=\"5\""), link = text.find("<nvlink", gpu);
  return text.erase(link, text.find('\n', link) - link);
}

// However a machine of a rack is described, its NVLink domain is not lost.
TEST(NvlinkDomain, OfADescribedMachineIsThatOfItsRack) {
  std::string tray = read_input_file(kMadeSamples / "gb300_two_trays.xml");
  tray = tray.substr(0, tray.find("  <cpu host_hash=\"0x2222")) + "</system>";
  const ImportedTopology dump = import_text(tray, "tray.xml", {});
  EXPECT_EQ(dump.topology.facts().nvlink_domain, 18);
  EXPECT_THAT(dump.notes, Contains(HasSubstr("18 of which share one NVLink domain")));
  const std::string smi = "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV18 0-71 0\nGPU1 NV18 X 0-71 0\n";
  EXPECT_EQ(import_text(smi, "smi.txt", {.complete_with = "gb200-nvl72"}).topology.facts().nvlink_domain, 1)
      << "two GPUs may have direct links";
  const std::string more =
      "GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\nGPU0 X NV18 NV18 0-71 0\nGPU1 NV18 X NV18 0-71 0\nGPU2 NV18 NV18 X "
      "0-71 "
      "0\n";
  EXPECT_EQ(import_text(more, "smi.txt", {.complete_with = "gb200-nvl72"}).topology.facts().nvlink_domain, 18);
}

TEST(UnusedKeys, AGpuWithoutNvlinkIsNamedOnWhicheverMachineItIs) {
  const Topology faulty = import_text(without_line_of_rank_5(), "trays.xml", {}).topology;
  std::vector<std::string> problems;
  for (const TopologyFinding& finding : check_topology(faulty)) {
    if (finding.is_problem) problems.push_back(finding.text);
  }
  EXPECT_THAT(problems,
              ElementsAre("'w1.gpu1' (rank 5) has 0 GB/s of NVLink, its twin 'w0.gpu0' 721.8 (1 GPU has less)"));
  const Topology whole = import_topology(kMadeSamples / "gb300_two_trays.xml").topology;
  for (const TopologyFinding& finding : check_topology(whole)) EXPECT_FALSE(finding.is_problem) << finding.text;
  EXPECT_THAT(topology_text(whole), HasSubstr("1 NVLink domain of 8 GPUs in 2 machines"));
  EXPECT_THAT(topology_text(whole), HasSubstr("[c2c 223.6 GB/s, pcie 3 GB/s]"));
}

}  // namespace
}  // namespace tandem
