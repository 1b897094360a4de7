// What `topology check` and `topology show` say of parts that are slower than their twins.
#include <gmock/gmock.h>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_yaml.h"
#include "topologies/views/machine_groups.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Topology machines_of(const std::string& text) {
  return parse_topology_yaml("schema_version: 1\n" + text + "\n", "c.yaml");
}

Topology rails(const std::string& overrides, int workers = 32) {
  return machines_of("name: rails\ncluster: {node: hgx-h100, workers: " + std::to_string(workers) +
                     ", fabric: rail, overrides: {" + overrides + "}}");
}

std::vector<std::string> problems_of(const Topology& topology) {
  std::vector<std::string> texts;
  for (const TopologyFinding& finding : check_topology(topology)) {
    if (finding.is_problem) texts.push_back(finding.text);
  }
  return texts;
}

TEST(OddParts, ANicThatDiffersFromThoseOfOtherGpusIsNamed) {
  EXPECT_THAT(problems_of(machines_of("based_on: hgx-h100\noverrides: {nic5: {slowdown: 4}}")),
              ElementsAre("'nic5' has 12.5 GB/s of network, its twin 'nic0' 50"));
  EXPECT_THAT(problems_of(rails("\"*.nic5\": {slowdown: 4}")),
              ElementsAre("'w0.nic5' has 12.5 GB/s of network, its twin 'w0.nic0' 50",
                          "'fabric.rail5 - fabric.spine0' has 100 GB/s, its twin 'fabric.rail0 - fabric.spine0' 400, "
                          "and so 3 more"))
      << "on every machine, and so what is above it";
  EXPECT_THAT(problems_of(rails("w3.nic5: {slowdown: 4}")),
              ElementsAre("'w3.nic5' has 12.5 GB/s of network, its twin 'w0.nic5' 50 (1 NIC has less)"));
  EXPECT_THAT(problems_of(rails("w0.nic5: {slowdown: 4}")),
              ElementsAre("'w0.nic5' has 12.5 GB/s of network, its twin 'w1.nic5' 50 (1 NIC has less)"));
}

TEST(OddParts, NicsOfTwoKindsAreNotOdd) {
  EXPECT_THAT(problems_of(machines_of("based_on: hgx-h100\noverrides: {nic4: {slowdown: 2}, nic5: {slowdown: 2}, nic6: "
                                      "{slowdown: 2}, nic7: {slowdown: 2}}")),
              IsEmpty());
}

TEST(OddParts, LinksThatDifferFromTheirTwinsAreNamed) {
  EXPECT_THAT(problems_of(rails("\"*.pcie3 - *.cpu0\": {bandwidth: 46GB/s}")),
              ElementsAre(HasSubstr("46 GB/s, its twin ")));
  EXPECT_THAT(problems_of(rails("w2.pcie3 - w2.cpu0: {bandwidth: 46GB/s}")), ElementsAre(HasSubstr("w2.")));
  EXPECT_THAT(problems_of(rails("gpu3 - nvswitch0: {latency: 9us}")), ElementsAre(HasSubstr("9 us of latency")));
  EXPECT_THAT(problems_of(rails("w5.gpu3 - w5.nvswitch0: {latency: 9us}")),
              ElementsAre(testing::AllOf(HasSubstr("'w5."), HasSubstr("9 us of latency"))));
}

TEST(OddParts, ASlowLinkOfTheFabricIsNamed) {
  const Topology topology = rails("fabric.rail5 - fabric.spine1: {slowdown: 4}", 64);
  EXPECT_THAT(problems_of(topology), ElementsAre(testing::AllOf(HasSubstr("fabric.rail5 - fabric.spine1"),
                                                                HasSubstr("its twin 'fabric.rail"))));
}

TEST(OddParts, FiguresOfOneDeviceOfOneMachineAreNamed) {
  EXPECT_THAT(problems_of(rails("w7.gpu2: {memory_bandwidth: 1675GB/s}")),
              ElementsAre("'w7.gpu2' has 1675 GB/s of its memory, its twin 'w0.gpu2' 3350"));
  EXPECT_THAT(problems_of(rails("w7.cpu1: {launch_overhead: 50us}")), ElementsAre(HasSubstr("'w7.cpu1' has 50 us")));
}

TEST(OddParts, NoMachineOfTheCatalogHasAny) {
  for (const std::string& name : catalog_names()) {
    EXPECT_THAT(problems_of(load_catalog_node(name)), IsEmpty()) << name;
  }
}

TEST(MachineGroups, AreOneLineForAllEqualMachines) {
  const std::string text = topology_text(rails(""));
  EXPECT_THAT(text, HasSubstr("\nMachines\n  w0..w31: 8 GPUs, 8 NICs, 2 processors\n\n"));
}

TEST(MachineGroups, NameTheOddMachineAndWhatIsOddInIt) {
  const std::string text = topology_text(rails("w3.nic5: {slowdown: 4}, w7.gpu1: {slowdown: 2}"));
  EXPECT_THAT(text, HasSubstr("\n  w0..w2, w4..w6, w8..w31: 8 GPUs, 8 NICs, 2 processors\n"
                              "  w3: 8 GPUs, 8 NICs, 2 processors\n"
                              "    nic5: 12.5 GB/s (usual: 50)\n"
                              "  w7: 8 GPUs, 8 NICs, 2 processors\n"
                              "    gpu1: "));
  EXPECT_THAT(text, HasSubstr(" (usual: 67), and "));
}

TEST(MachineGroups, AreTheSameForMachinesThatAreWrittenOut) {
  for (const char* overrides : {"", "w3.nic5: {slowdown: 4}", "\"w1?.gpu2\": {slowdown: 2}"}) {
    const Topology cluster = rails(overrides);
    const auto groups = groups_of_machines(cluster), written = groups_of_machines(one_by_one(cluster));
    ASSERT_EQ(groups.size(), written.size()) << overrides;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(groups[i].workers, written[i].workers);
      EXPECT_EQ(texts_of(groups[i].differences), texts_of(written[i].differences));
    }
  }
}

TEST(MachineGroups, MachinesWithOtherNodesAreOfAnotherKind) {
  Topology cluster = one_by_one(rails("", 4));
  cluster.add_node({.name = "w4.cpu0", .kind = NodeKind::cpu, .worker = 4, .device = cluster.node(0).device});
  const auto groups = groups_of_machines(cluster);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[1].workers, std::vector<int>{4});
  EXPECT_TRUE(groups[1].is_other_kind);
  EXPECT_THAT(topology_text(cluster), HasSubstr("\n  w4: 0 GPUs, 0 NICs, 1 processor, with other links or products"));
}

}  // namespace
}  // namespace tandem
