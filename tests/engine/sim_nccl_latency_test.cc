// What the latencies of links add to NCCL's collectives: nothing where links are usual, as the model's constants have
// them, and the difference elsewhere, whatever NCCL chooses.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/nccl/surveyor.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiB = 1024 * kMiB;
const std::filesystem::path kMade = TANDEM_SOURCE_DIR "/tests/topologies/samples/made";

Survey survey_all(const Topology& topology) {
  std::vector<NodeIndex> gpus;
  for (int worker = 0; worker < topology.worker_count(); ++worker) {
    for (const NodeIndex gpu : topology.nodes_of(worker, NodeKind::gpu)) gpus.push_back(gpu);
  }
  Router router(topology);
  return Surveyor(topology, router).survey(gpus);
}

Topology cluster_of(const std::string& keys) {
  return parse_topology_yaml("schema_version: 1\ncluster: {" + keys + "}\n", (kMade / "cluster.yaml").string());
}

double seconds(const Topology& topology, CollectiveKind kind, double bytes,
               const std::map<std::string, std::string>& variables = {}) {
  const Communicator group(survey_all(topology), settings_of(variables));
  const Plan plan = group.plan({kind, bytes});
  return plan.fixed_s + plan.transfer_s;
}

TEST(Latency, OfUsualLinksIsInTheConstants) {
  for (const char* node : {"hgx-h100", "dgx-a100", "gb200-nvl72", "mi300x-8gpu", "aws-p5", "oci-bm-gpu4-8"}) {
    const Machine machine = survey_all(make_cluster(node, 2)).machine;
    EXPECT_EQ(machine.link_us, 0) << node;
    EXPECT_EQ(machine.wire_us, 0) << node;
  }
}

// NCCL plans with what the plug-in says, from the version on that asks it; messages take what they take.
TEST(Latency, OfThePlugInServesTheChoiceOnly) {
  const auto survey = [](const std::string& figures) {
    return survey_all(cluster_of("node: aws-p5, workers: 2, overrides: {network: {" + figures + "}}"));
  };
  const auto small_s = [&](const std::string& figures, const char* version = "2.27.7") {
    const Communicator group(survey(figures), settings_of({{"version", version}}));
    const Plan plan = group.plan({CollectiveKind::all_reduce, 1024});
    return std::pair{plan.algorithm, plan.fixed_s + plan.transfer_s};
  };
  EXPECT_EQ(survey("advertised_latency: 75us").machine.advertised_us, 75);
  EXPECT_EQ(survey("advertised_latency: 75us, hop_latency: 30us").machine.hop_us, 30);
  EXPECT_EQ(small_s("advertised_latency: 75us"), small_s("advertised_latency: 50us"));
  EXPECT_GT(small_s("hop_latency: 60us").second, small_s("hop_latency: 30us").second + 50e-6);
  const auto choice = [&](const std::string& figures, const char* version) {
    const Communicator group(survey(figures), settings_of({{"version", version}}));
    return group.plan({CollectiveKind::all_reduce, 32 * kMiB}).algorithm;
  };
  EXPECT_NE(choice("advertised_latency: 1000us", "2.27.7"), choice("advertised_latency: 0us", "2.27.7"));
  EXPECT_EQ(choice("advertised_latency: 1000us", "2.10.3"), choice("advertised_latency: 0us", "2.10.3"));
}

// Without P2P a ring goes through memory of the host: over links that the GPUs below a switch share, and slowly where
// they are at different processors. NCCL plans with the rate of PCIe all the same.
TEST(Staging, FollowsTheLinksToTheHost) {
  const auto machine_of = [](const char* node, std::size_t gpus) {
    const Topology topology = load_catalog_node(node);
    std::vector<NodeIndex> group = topology.nodes_of(0, NodeKind::gpu);
    group.resize(std::min(group.size(), gpus));
    Router router(topology);
    return Surveyor(topology, router).survey(group).machine;
  };
  const Machine below_switch = machine_of("rtx2080ti-2gpu", 2), gen4 = machine_of("rtx4090-8gpu", 4);
  const Machine gen5 = machine_of("rtx5090-8gpu", 4), sockets = machine_of("rtx5090-8gpu", 8);
  EXPECT_DOUBLE_EQ(below_switch.gpu_wire_gbs, kStagedShare * 12 / 2);
  EXPECT_DOUBLE_EQ(gen4.gpu_wire_gbs, kStagedShare * 24);
  EXPECT_DOUBLE_EQ(gen5.gpu_wire_gbs, kStagedShare * 48);
  EXPECT_DOUBLE_EQ(sockets.gpu_wire_gbs, kStagedAcrossGbs);
  EXPECT_DOUBLE_EQ(machine_of("a100-pcie-4gpu-nop2p", 4).gpu_wire_gbs, kStagedAcrossGbs);
  EXPECT_DOUBLE_EQ(below_switch.gpu_gbs, 12);
  EXPECT_DOUBLE_EQ(gen5.gpu_gbs, 48);
}

TEST(Latency, OfTheNetworkIsThatOfTheWholeRoute) {
  const auto wire_us = [](const std::string& keys) { return survey_all(cluster_of(keys)).machine.wire_us; };
  EXPECT_NEAR(wire_us("node: hgx-h100, workers: 2, overrides: {network: {latency: 500us}}"), 2 * 499.4, 1e-6);
  EXPECT_NEAR(wire_us("node: hgx-h100, workers: 2, fabric: {kind: switch, latency: 5us}"), 2 * 4.4, 1e-6);
  EXPECT_NEAR(wire_us("node: hgx-h100, workers: 2, fabric: {kind: leaf_spine, workers_per_leaf: 1, latency: 5us}"),
              4 * 4.4, 1e-6);
  EXPECT_NEAR(wire_us("node: hgx-h100, workers: 2, overrides: {network: {latency: 0us}}"), -1.2, 1e-6);
  EXPECT_NEAR(wire_us("node: hgx-h100, workers: 2, overrides: {pcie: {latency: 10us}}"), 4 * 9.8, 1e-6);
  EXPECT_NEAR(wire_us("node: hgx-h100, workers: 4, overrides: {w1.nic3: {latency: 100us}}"), 2 * 99.4 / 4, 1e-6)
      << "two of the four steps of a ring cross the slow cable";
}

// Every algorithm and protocol, and every kind of collective.
TEST(Latency, OfTheNetworkDelaysWhateverIsChosen) {
  const Topology usual = make_cluster("hgx-h100", 2);
  const Topology slow = cluster_of("node: hgx-h100, workers: 2, overrides: {network: {latency: 500us}}");
  for (const char* algorithm : {"ring", "tree", "nvlstree"}) {
    for (const char* protocol : {"LL", "LL128", "Simple"}) {
      const std::map<std::string, std::string> variables{{"NCCL_ALGO", algorithm}, {"NCCL_PROTO", protocol}};
      if (std::string(algorithm) == "nvlstree" && std::string(protocol) != "Simple") continue;
      for (const double bytes : {kKiB, kMiB, kGiB}) {
        const double before_s = seconds(usual, CollectiveKind::all_reduce, bytes, variables);
        const double after_s = seconds(slow, CollectiveKind::all_reduce, bytes, variables);
        EXPECT_GE(after_s, 1e-3) << algorithm << protocol << bytes;
        EXPECT_GE(after_s - before_s, 900 * kMicro) << algorithm << protocol << bytes;
      }
    }
  }
  const std::map<std::string, std::string> sharp{{"NCCL_COLLNET_ENABLE", "1"}, {"NCCL_ALGO", "collnetdirect"}};
  EXPECT_GE(seconds(slow, CollectiveKind::all_reduce, kMiB, sharp), 1e-3);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::all_to_all}) {
    EXPECT_GE(seconds(slow, kind, kMiB) - seconds(usual, kind, kMiB), 900 * kMicro) << static_cast<int>(kind);
  }
}

TEST(Latency, OfLinksInsideAMachineDelaysItsSteps) {
  const Topology usual = make_cluster("hgx-h100", 1), mesh = make_cluster("hgx-a100-4gpu", 1);
  const Topology slow = cluster_of("node: hgx-h100, workers: 1, overrides: {nvlink: {latency: 10us}}");
  const Topology slow_mesh = cluster_of("node: hgx-a100-4gpu, workers: 1, overrides: {nvlink: {latency: 10us}}");
  const Topology slow_pcie = cluster_of("node: pcie-8gpu, workers: 1, overrides: {pcie: {latency: 10us}}");
  EXPECT_NEAR(survey_all(slow).machine.link_us, 2 * 9.7, 1e-6);
  EXPECT_NEAR(survey_all(slow_mesh).machine.link_us, 9.4, 1e-6);
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast,
                                    CollectiveKind::reduce, CollectiveKind::all_to_all}) {
    for (const double bytes : {kKiB, kGiB}) {
      EXPECT_GE(seconds(slow, kind, bytes), seconds(usual, kind, bytes) + 9 * kMicro) << static_cast<int>(kind);
      EXPECT_GE(seconds(slow_mesh, kind, bytes), seconds(mesh, kind, bytes) + 9 * kMicro) << static_cast<int>(kind);
      EXPECT_GE(seconds(slow_pcie, kind, bytes), seconds(make_cluster("pcie-8gpu", 1), kind, bytes) + 9 * kMicro)
          << static_cast<int>(kind);
    }
  }
}

TEST(Latency, OfTheNetworksSoftwareCountsOnEveryMachine) {
  EXPECT_EQ(
      survey_all(cluster_of("node: hgx-h100, workers: 3, overrides: {w2.nic5: {hop_latency: 40us}}")).machine.hop_us,
      40);
}

// --- NVLink domains ---

double bus_gbs(const Topology& topology, double bytes) {
  const double ranks = survey_all(topology).machine.total_gpus;
  return bytes / seconds(topology, CollectiveKind::all_reduce, bytes) * 2 * (ranks - 1) / ranks / 1e9;
}

TEST(NvlinkDomains, AreTheBlocksOfSlurm) {
  const Topology blocks = cluster_of("node: gb200-nvl72, fabric: ./nvl_block.conf");
  const Survey survey = survey_all(blocks);
  EXPECT_EQ(survey.machine.domains, 2);
  EXPECT_EQ(survey.machine.gpus, 32);
  EXPECT_NEAR(bus_gbs(blocks, 8 * kGiB), 900, 30) << "a machine alone would have 190";
  EXPECT_EQ(
      survey_all(cluster_of("node: gb200-nvl72, fabric: ./nvl_block.conf, hosts: \"srv[101-104]\"")).machine.domains,
      1);
  EXPECT_EQ(survey_all(cluster_of("node: hgx-h100, fabric: ./nvl_block.conf")).machine.domains, 16)
      << "no domain of these machines leaves them";
}

TEST(NvlinkDomains, AreDividedInOrderWhereAFabricTellsNone) {
  EXPECT_EQ(survey_all(cluster_of("node: gb200-nvl72, fabric: ./topology.conf")).machine.domains, 1);
  EXPECT_EQ(survey_all(cluster_of("node: gb200-nvl72, workers: 36, fabric: fat_tree")).machine.domains, 2);
  EXPECT_EQ(survey_all(cluster_of("node: gb200-nvl72, workers: 36, fabric: rail")).machine.domains, 2);
}

TEST(NvlinkDomains, TraysOfOneDumpShareOne) {
  const Topology trays = import_topology(kMade / "gb300_two_trays.xml").topology;
  const Survey survey = survey_all(trays);
  EXPECT_EQ(survey.machine.domains, 1);
  EXPECT_EQ(survey.machine.gpus, 8);
  EXPECT_GT(bus_gbs(trays, kGiB), 600);
}

}  // namespace
}  // namespace tandem::sim::nccl
