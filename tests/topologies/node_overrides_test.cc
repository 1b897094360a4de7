// `overrides:` of single nodes and links, by their names.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Topology h100s(const std::string& overrides, const std::string& more = "workers: 3") {
  return parse_topology_yaml(
      "schema_version: 1\ncluster: {node: hgx-h100, " + more + ", overrides: {" + overrides + "}}\n", "c.yaml");
}

double peak(const Topology& topology, const std::string& gpu) {
  return topology.device(node_named(topology, gpu))->peak_flops_per_s.at(DType::bf16).value / 1e12;
}

double cable_gbs(const Topology& topology, const std::string& nic) {
  const NodeIndex node = node_named(topology, nic);
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    if ((link.from == node || link.to == node) && link.model->kind == LinkKind::network) {
      EXPECT_EQ(link.model->bandwidth_bytes_per_s.value, topology.node(node).port->bandwidth_bytes_per_s.value);
      return link.model->bandwidth_bytes_per_s.value / 1e9;
    }
  }
  return 0;
}

TEST(NodeOverrides, ChangeOneDevice) {
  const Topology topology = h100s("w1.gpu3: {slowdown: 2}");
  EXPECT_EQ(peak(topology, "w1.gpu3"), 989.0 / 2);
  EXPECT_EQ(peak(topology, "w1.gpu2"), 989);
  EXPECT_EQ(peak(topology, "w0.gpu3"), 989);
  const DeviceModel& slow = *topology.device(node_named(topology, "w1.gpu3"));
  const DeviceModel& usual = *topology.device(node_named(topology, "w0.gpu3"));
  EXPECT_EQ(slow.memory_bandwidth_bytes_per_s.value, usual.memory_bandwidth_bytes_per_s.value / 2);
  EXPECT_EQ(slow.boost_clock_hz.value, usual.boost_clock_hz.value / 2);
  EXPECT_EQ(slow.op_overhead_s.value, usual.op_overhead_s.value * 2);
  EXPECT_EQ(slow.launch_overhead_s.value, usual.launch_overhead_s.value) << "the host's time";
  EXPECT_THAT(slow.peak_flops_per_s.at(DType::bf16).source, HasSubstr("slowed down by 2 in c.yaml"));
  EXPECT_THAT(topology.facts().notes, ElementsAre("overridden: w1.gpu3: slowdown 2"));
}

TEST(NodeOverrides, ChangeWhatAPatternNames) {
  for (const char* key : {"gpu3", "\"*.gpu3\"", "\"w?.gpu3\""}) {
    const Topology topology = h100s(std::string(key) + ": {peak_flops: {bf16: 500TFLOPS}}");
    for (const char* gpu : {"w0.gpu3", "w1.gpu3", "w2.gpu3"}) EXPECT_EQ(peak(topology, gpu), 500) << key;
    EXPECT_EQ(peak(topology, "w2.gpu4"), 989) << key;
  }
  const Topology first = h100s("\"w0*\": {slowdown: 2}");
  EXPECT_EQ(peak(first, "w0.gpu3"), 989.0 / 2);
  EXPECT_EQ(peak(first, "w1.gpu3"), 989);
  EXPECT_EQ(peak(h100s("w2: {gpu0: {slowdown: 4}}"), "w2.gpu0"), 989.0 / 4) << "as a sweep writes it";
  EXPECT_EQ(peak(h100s("gpu1: {slowdown: 4}", "workers: 1"), "w0.gpu1"), 989.0 / 4);
  EXPECT_EQ(peak(h100s("w0.gpu1: {slowdown: 4}", "workers: 1"), "w0.gpu1"), 989.0 / 4);
}

TEST(NodeOverrides, ChangeNicsWithTheirCables) {
  const Topology topology = h100s("w1.nic5: {bandwidth: 25GB/s, latency: 9us}, \"*.nic0\": {slowdown: 5}");
  EXPECT_EQ(cable_gbs(topology, "w1.nic5"), 25);
  EXPECT_EQ(cable_gbs(topology, "w0.nic5"), 50);
  EXPECT_EQ(cable_gbs(topology, "w2.nic0"), 10);
  EXPECT_EQ(topology.node(node_named(topology, "w1.nic5")).port->latency_s.value, 9e-6);
}

// Not over another NIC of the same machine and its PCIe.
TEST(NodeOverrides, ASlowNicIsReachedOverItsOwnCable) {
  const Topology topology = h100s("w1.nic5: {slowdown: 50, latency: 1ms}");
  const auto route = Router(topology).route(node_named(topology, "w0.nic5"), node_named(topology, "w1.nic5"));
  EXPECT_EQ(names_along(topology, *route), (std::vector<std::string>{"w0.nic5", "fabric.switch0", "w1.nic5"}));
}

TEST(NodeOverrides, ChangeSwitchesAndLinks) {
  const Topology leaf = h100s("fabric.switch0: {bandwidth: 1GB/s}");
  EXPECT_EQ(Router(leaf).route(node_named(leaf, "w0.nic0"), node_named(leaf, "w1.nic0"))->bandwidth_bytes_per_s, 1e9);
  const Topology link = h100s("w1.gpu3 - w1.nvswitch0: {bandwidth: 100GB/s}");
  Router router(link);
  const auto rate = [&](const char* from, const char* to) {
    return router.route(node_named(link, from), node_named(link, to))->bandwidth_bytes_per_s / 1e9;
  };
  EXPECT_EQ(rate("w1.gpu3", "w1.gpu0"), 100);
  EXPECT_EQ(rate("w1.gpu2", "w1.gpu0"), 370.8);
  EXPECT_EQ(rate("w0.gpu3", "w0.gpu0"), 370.8);
}

TEST(NodeOverrides, AreAppliedToVariantsAndBehindFabricFiles) {
  const Topology variant = parse_topology_yaml(
      "schema_version: 1\nbased_on: hgx-h100\noverrides: {gpu3: {slowdown: 2}, nic1: {latency: 3us}}\n", "v.yaml");
  EXPECT_EQ(peak(variant, "gpu3"), 989.0 / 2);
  EXPECT_EQ(variant.node(node_named(variant, "nic1")).port->latency_s.value, 3e-6);
  const Topology behind = parse_topology_yaml(
      "schema_version: 1\ncluster: {node: hgx-h100, fabric: ./topology.conf, overrides: {nic1: {bandwidth: 20GB/s}, "
      "w1.gpu0: "
      "{slowdown: 2}}}\n",
      TANDEM_SOURCE_DIR "/tests/topologies/samples/made/c.yaml");
  EXPECT_EQ(cable_gbs(behind, "w1.nic1"), 20);
  EXPECT_EQ(cable_gbs(behind, "w1.nic0"), 50);
  EXPECT_EQ(peak(behind, "w1.gpu0"), 989.0 / 2);
}

std::string refusal_of_override(const std::string& overrides) {
  try {
    h100s(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(NodeOverrides, AreRefusedWhereTheyNameNothing) {
  EXPECT_THAT(refusal_of_override("w1.gpu9: {slowdown: 2}"),
              HasSubstr("unknown device or link model, or node 'w1.gpu9'; did you mean 'w1.gpu"));
  EXPECT_THAT(refusal_of_override("w9.gpu1: {slowdown: 2}"), HasSubstr("did you mean 'w0.gpu1'"));
  EXPECT_THAT(refusal_of_override("w1.gpu1 - w1.gpu2: {slowdown: 2}"),
              HasSubstr("c.yaml:2:70: cluster.overrides.w1.gpu1 - w1.gpu2: no link joins 'w1.gpu1' and 'w1.gpu2'"));
  EXPECT_THAT(refusal_of_override("w1.gpu1 - w1.nvswich0: {slowdown: 2}"),
              HasSubstr("unknown device or link model, or node 'w1.nvswich0'; did you mean 'w1.nvswitch0'?"));
  EXPECT_THAT(refusal_of_override("\"*.nic9\": {slowdown: 2}"), HasSubstr("'*.nic9'; did you mean '*.nic0'?"));
  EXPECT_THAT(refusal_of_override("w1.gpu1: {bandwidth: 1GB/s}"), HasSubstr("unknown key 'bandwidth'"));
  EXPECT_THAT(refusal_of_override("w1.nic1: {memory: 1GB}"), HasSubstr("unknown key 'memory'"));
  EXPECT_THAT(refusal_of_override("w1.gpu1: {slowdown: 0.5}"), HasSubstr("slowdown"));
  EXPECT_THAT(refusal_of_override("w1.gpu1: {slowdown: 2000}"), HasSubstr("must be from 1 to 1000, found 2000"));
}

TEST(NodeOverrides, TheLastKeyThatStatesAFigureCounts) {
  const auto memory = [](const std::string& overrides) {
    const Topology topology = h100s(overrides);
    return topology.device(node_named(topology, "w1.gpu3"))->memory_bytes.value / 1e9;
  };
  EXPECT_EQ(memory("\"*.gpu3\": {memory: 10GB}, w1.gpu3: {memory: 20GB}"), 20);
  EXPECT_EQ(memory("w1.gpu3: {memory: 20GB}, \"*.gpu3\": {memory: 10GB}"), 10);
  EXPECT_EQ(memory("w1.gpu3: {memory: 20GB}, gpu: {memory: 10GB}"), 10);
  EXPECT_EQ(memory("\"w1.*\": {slowdown: 2}, w1.gpu3: {memory: 20GB}, \"*.gpu3\": {slowdown: 3}"), 20)
      << "other figures stay";
  EXPECT_EQ(peak(h100s("\"*.gpu3\": {slowdown: 4}, w1.gpu3: {slowdown: 2}"), "w1.gpu3"), 989.0 / 2);
  EXPECT_EQ(peak(h100s("w1.gpu3: {slowdown: 2}, \"*.gpu3\": {slowdown: 4}"), "w1.gpu3"), 989.0 / 4);
  const Topology all_but_one = h100s("\"*.nic5\": {slowdown: 3}, w1.nic5: {slowdown: 1}");
  EXPECT_EQ(cable_gbs(all_but_one, "w1.nic5"), 50);
  EXPECT_DOUBLE_EQ(cable_gbs(all_but_one, "w2.nic5"), 50.0 / 3);
  EXPECT_EQ(peak(h100s("w1.gpu3: {slowdown: 2}, w1.gpu3 - w1.nvswitch0: {slowdown: 2}"), "w1.gpu3"), 989.0 / 2);
}

// One rail of a file that `topology convert` has written.
// The uplinks of a leaf are as wide as the ports below it.
TEST(NodeOverrides, OfAFabricChangeWhatThoseOfMachinesHaveMadeOfIt) {
  const auto uplink_gbs = [](const std::string& overrides) {
    const Topology topology =
        h100s(overrides, "workers: 4, fabric: {kind: leaf_spine, workers_per_leaf: 2, spines: 2}");
    const NodeIndex leaf = node_named(topology, "fabric.leaf0"), spine = node_named(topology, "fabric.spine0");
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link link = topology.link(index);
      const bool joins = (link.from == leaf && link.to == spine) || (link.from == spine && link.to == leaf);
      if (joins) return link.model->bandwidth_bytes_per_s.value / 1e9;
    }
    return 0.0;
  };
  const double usual = uplink_gbs("gpu3: {slowdown: 2}");
  EXPECT_GT(usual, 0);
  EXPECT_EQ(uplink_gbs("network: {bandwidth: 25GB/s}"), usual / 2);
  EXPECT_EQ(uplink_gbs("fabric.leaf0: {slowdown: 2}"), usual / 2);
  EXPECT_EQ(uplink_gbs("network: {bandwidth: 25GB/s}, fabric.leaf0: {slowdown: 2}"), usual / 4);
  EXPECT_EQ(uplink_gbs("fabric.leaf0: {slowdown: 2}, network: {bandwidth: 25GB/s}"), usual / 4);
}

TEST(NodeOverrides, AreTakenInFilesThatListNodesAndInVariantsOfClusters) {
  const Topology made = h100s("", "workers: 3, fabric: rail");
  std::ostringstream text;
  write_topology_yaml(made, text);
  const std::string overrides = "overrides: {\"*.nic5\": {slowdown: 4}, w1.gpu2: {slowdown: 2}}\n";
  const Topology listed = parse_topology_yaml(text.str() + overrides, "full.yaml");
  const auto folder = std::filesystem::path(testing::TempDir()) / "variant_of_cluster";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "full.yaml") << text.str();
  std::ofstream(folder / "cluster.yaml") << "schema_version: 1\ncluster: {node: hgx-h100, workers: 3, fabric: rail}\n";
  std::vector<Topology> all{listed};
  for (const char* file : {"full.yaml", "cluster.yaml"}) {
    all.push_back(parse_topology_yaml("schema_version: 1\nbased_on: ./" + std::string(file) + "\n" + overrides,
                                      (folder / "variant.yaml").string()));
  }
  for (const Topology& topology : all) {
    EXPECT_EQ(topology.worker_count(), 3);
    for (const char* nic : {"w0.nic5", "w2.nic5"}) EXPECT_EQ(cable_gbs(topology, nic), 12.5);
    EXPECT_EQ(cable_gbs(topology, "w2.nic4"), 50);
    EXPECT_EQ(peak(topology, "w1.gpu2"), 989.0 / 2);
    EXPECT_EQ(peak(topology, "w2.gpu2"), 989);
  }
  const Topology less = parse_topology_yaml(
      "schema_version: 1\nbased_on: ./cluster.yaml\nwithout: [\"*.nic5\", w2.gpu7]\n", (folder / "v.yaml").string());
  EXPECT_EQ(less.nodes_of(0, NodeKind::nic).size(), 7u);
  EXPECT_EQ(less.nodes_of(2, NodeKind::gpu).size(), 7u);
  std::filesystem::remove_all(folder);
}

// A run that does not depend on a key names it, to those who can change it.
TEST(NodeOverrides, AVariantDoesNotStateTheKeysOfTheOtherFile) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "variant_of_overrides";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "cluster.yaml")
      << "schema_version: 1\ncluster: {node: hgx-h100, workers: 2, overrides: {nvlink: {latency: 1us}}}\n";
  EXPECT_EQ(read_topology(folder / "cluster.yaml").facts().stated_keys.size(), 1u);
  const Topology variant =
      parse_topology_yaml("schema_version: 1\nbased_on: ./cluster.yaml\n", (folder / "variant.yaml").string());
  EXPECT_TRUE(variant.facts().stated_keys.empty());
  std::filesystem::remove_all(folder);
}

TEST(NodeOverrides, TwoFiguresOfModelsOfOneNameStayApart) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\nbased_on: hgx-h100\noverrides: {gpu3: {memory: 40GB}, gpu: {op_overhead: 9us}}\n", "v.yaml");
  const auto& third = topology.device(node_named(topology, "gpu3"));
  const auto& fourth = topology.device(node_named(topology, "gpu4"));
  EXPECT_EQ(third->memory_bytes.value, 40e9);
  EXPECT_EQ(fourth->memory_bytes.value, 80e9);
  for (const auto& device : {third, fourth}) EXPECT_EQ(device->op_overhead_s.value, 9e-6);
}

TEST(NodeOverrides, MachinesThatAreChangedInOneWayStayAlike) {
  const Topology topology = h100s("\"w1?.gpu2\": {slowdown: 2}", "workers: 20");
  EXPECT_EQ(&topology.machine(11), &topology.machine(19));
  EXPECT_NE(&topology.machine(11), &topology.machine(9));
}

TEST(Variants, HaveTheKeysOfAMachine) {
  const Topology rack = parse_topology_yaml("schema_version: 1\nbased_on: gb200-nvl72\nnvlink_domain: 9\n", "v.yaml");
  EXPECT_EQ(rack.facts().nvlink_domain, 9);
  const Topology kept = parse_topology_yaml("schema_version: 1\nbased_on: gb200-nvl72\n", "v.yaml");
  EXPECT_EQ(kept.facts().nvlink_domain, 18);
  const Topology tcp = parse_topology_yaml(
      "schema_version: 1\nbased_on: gb200-nvl72\nexchanges: in_turn\nshare_spread: 0.25\np2p: false\n", "v.yaml");
  EXPECT_TRUE(tcp.facts().exchanges_in_turn);
  EXPECT_EQ(tcp.facts().share_spread, 0.25);
  EXPECT_FALSE(tcp.facts().p2p);
  const Topology cluster = parse_topology_yaml(
      "schema_version: 1\ncluster: {node: hgx-h100, workers: 2}\nexchanges: in_turn\nshare_spread: 0.25\n", "c.yaml");
  EXPECT_TRUE(cluster.facts().exchanges_in_turn);
  EXPECT_EQ(cluster.facts().share_spread, 0.25);
}

TEST(Variants, ADomainIsOfOneMachine) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "domain_of_cluster";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "c.yaml") << "schema_version: 1\ncluster: {node: hgx-h100, workers: 2}\n";
  try {
    parse_topology_yaml("schema_version: 1\nbased_on: ./c.yaml\nnvlink_domain: 2\n", (folder / "v.yaml").string());
    ADD_FAILURE() << "not refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("v.yaml:3:16: nvlink_domain: is of one machine"));
  }
  std::filesystem::remove_all(folder);
}

TEST(NodeOverrides, DifferFromTheirTwins) {
  std::vector<std::string> texts;
  for (const TopologyFinding& finding : check_topology(h100s("w1.gpu3: {slowdown: 2}, w2.nic4: {slowdown: 2}"))) {
    if (finding.is_problem) texts.push_back(finding.text);
  }
  EXPECT_THAT(texts,
              ElementsAre("'w1.gpu3' (rank 11) has 494.5 TFLOPS as NVIDIA H100 SXM5 80 GB, its twin 'w0.gpu0' 989 (1 "
                          "GPU has less)",
                          "'w2.nic4' has 25 GB/s of network, its twin 'w0.nic4' 50 (1 NIC has less)"));
  EXPECT_THAT(check_topology(h100s("")), IsEmpty());
}

TEST(Changed, AKeyWithDotsIsInQuotes) {
  const auto base = std::make_shared<const YamlDocument>(YamlDocument::parse("overrides: {}\nother: 2\n", "s.yaml"));
  const YamlNode* value = base->root().entries.back().value;
  for (const std::string key : {"w1.gpu3 - w1.nvswitch0", "*.nic5", "plain"}) {
    for (const char quote : {'"', '\''}) {
      const std::string path = "overrides." + (quote + key + quote) + ".slowdown";
      const YamlDocument changed = YamlDocument::changed(base, {{path, value}});
      ASSERT_NE(node_at(changed.root(), path), nullptr) << path;
      EXPECT_EQ(node_at(changed.root(), path)->text, "2");
      EXPECT_EQ(changed.root().entries.front().value->entries.back().key, key);
    }
  }
}

TEST(Changed, AKeyMayHaveDots) {
  const auto base = std::make_shared<const YamlDocument>(
      YamlDocument::parse("overrides: {w1.gpu3: {slowdown: 1}}\nother: 2\n", "s.yaml"));
  const YamlNode* value = base->root().entries.back().value;
  const YamlDocument changed = YamlDocument::changed(base, {{"overrides.w1.gpu3.slowdown", value}});
  Diagnostics problems;
  const YamlReader root(changed, problems);
  EXPECT_EQ(root.optional("overrides").optional("w1.gpu3").optional("slowdown").number(), 2);
}

}  // namespace
}  // namespace tandem
