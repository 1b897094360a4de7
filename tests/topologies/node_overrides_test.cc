// `overrides:` of single nodes and links, by their names.
#include <gmock/gmock.h>

#include "tests/topologies/testing.h"
#include "topologies/base/strict_yaml.h"
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
  EXPECT_THAT(topology.notes(), ElementsAre("overridden: w1.gpu3: slowdown 2"));
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
              HasSubstr("unknown device or link model, or node"));
  EXPECT_THAT(refusal_of_override("w1.gpu1: {bandwidth: 1GB/s}"), HasSubstr("unknown key 'bandwidth'"));
  EXPECT_THAT(refusal_of_override("w1.nic1: {memory: 1GB}"), HasSubstr("unknown key 'memory'"));
  EXPECT_THAT(refusal_of_override("w1.gpu1: {slowdown: 0.5}"), HasSubstr("slowdown"));
  EXPECT_THAT(refusal_of_override("w1.gpu1: {slowdown: 2000}"), HasSubstr("must be from 1 to 1000, found 2000"));
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
