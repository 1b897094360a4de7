#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/sim/collectives/nccl/link_unit.h"
#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/nccl/surveyor.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem::sim::nccl {
namespace {

// The first `gpus` GPUs of each worker.
std::vector<NodeIndex> first_gpus(const Topology& topology, std::size_t gpus) {
  std::vector<NodeIndex> found;
  for (int worker = 0; worker < topology.worker_count(); ++worker) {
    const auto all = topology.nodes_of(worker, NodeKind::gpu);
    found.insert(found.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(gpus, all.size())));
  }
  return found;
}

Survey surveyed(const Topology& topology, std::size_t gpus) {
  Router router(topology);
  return Surveyor(topology, router).survey(first_gpus(topology, gpus));
}

TEST(Survey, FindsASwitch) {
  const Machine machine = surveyed(make_cluster("dgx-a100", 1), 8).machine;
  EXPECT_EQ(machine.capability, 80);
  EXPECT_DOUBLE_EQ(machine.clock_ghz, 1.41);
  EXPECT_TRUE(machine.has_amd_host);
  EXPECT_EQ(machine.intra, Intra::nvswitch);
  EXPECT_DOUBLE_EQ(machine.gpu_gbs, 240);
  EXPECT_DOUBLE_EQ(machine.gpu_wire_gbs, 240);
  EXPECT_EQ(machine.gpus, 8);
  EXPECT_EQ(machine.domains, 1);
  EXPECT_EQ(machine.nics, 0) << "one node sends nothing through them";
}

TEST(Survey, FindsTheNetworkOfSeveralNodes) {
  const Survey found = surveyed(make_cluster("hgx-h100", 4), 8);
  EXPECT_EQ(found.machine.domains, 4);
  EXPECT_EQ(found.machine.total_gpus, 32);
  EXPECT_EQ(found.machine.nics, 8);
  EXPECT_DOUBLE_EQ(found.machine.nic_gbs, 50);
  EXPECT_TRUE(found.machine.nics_are_near);
  EXPECT_TRUE(found.hop_is_known);
  EXPECT_EQ(found.domains[1], (std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15}));
}

std::vector<std::string> ports_of(const Topology& topology, const std::vector<std::string>& gpus) {
  std::vector<NodeIndex> found;
  for (const std::string& name : gpus) found.push_back(topology.find(name).value());
  Router router(topology);
  const Survey survey = Surveyor(topology, router).survey(found);
  std::vector<std::string> ports;
  for (const std::vector<Port>& of_domain : survey.ports) {
    for (const Port& port : of_domain) ports.push_back(topology.node(port.nic).name);
  }
  EXPECT_EQ(survey.machine.nics * survey.machine.domains, static_cast<int>(ports.size()));
  return ports;
}

TEST(Survey, SomeGpusOfAMachineUseTheNicsNearThemAsFarAsTheirPcieLinksGo) {
  using Names = std::vector<std::string>;
  const Topology dgx = make_cluster("dgx-a100", 3);
  EXPECT_EQ(ports_of(dgx, {"w0.gpu0", "w2.gpu0"}), (Names{"w0.nic0", "w2.nic0"}));
  EXPECT_EQ(ports_of(dgx, {"w0.gpu1", "w2.gpu1"}), (Names{"w0.nic1", "w2.nic1"})) << "GPUs 0 and 1 share two";
  EXPECT_EQ(ports_of(dgx, {"w0.gpu7", "w1.gpu2"}), (Names{"w0.nic7", "w1.nic2"}));
  EXPECT_EQ(ports_of(dgx, {"w0.gpu0", "w0.gpu4", "w1.gpu0", "w1.gpu4"}),
            (Names{"w0.nic0", "w0.nic4", "w1.nic0", "w1.nic4"}));
  // Four NICs of 12 GB/s near each GPU, whose PCIe link has 48.
  EXPECT_EQ(ports_of(make_cluster("aws-p5", 2), {"w0.gpu0", "w1.gpu0"}).size(), 8U);
}

TEST(Survey, AGpuOfARackUsesNicsOfItsTrayThatItReachesWithTheirRate) {
  using Names = std::vector<std::string>;
  const Topology racks = make_cluster("gb200-nvl72", 36);
  // Two NICs near each GPU, the nearest first; those of the other socket are behind 6 GB/s.
  EXPECT_EQ(ports_of(racks, {"w0.gpu0", "w18.gpu0"}), (Names{"w0.nic0", "w0.nic1", "w18.nic0", "w18.nic1"}));
  EXPECT_EQ(ports_of(racks, {"w0.gpu1", "w18.gpu1"}), (Names{"w0.nic1", "w0.nic0", "w18.nic1", "w18.nic0"}));
  EXPECT_EQ(ports_of(racks, {"w17.gpu3", "w35.gpu2"}), (Names{"w17.nic3", "w17.nic2", "w35.nic2", "w35.nic3"}));
  Router router(racks);
  const std::vector<NodeIndex> ends{racks.find("w3.gpu3").value(), racks.find("w21.gpu3").value()};
  const Communicator pair(Surveyor(racks, router).survey(ends), {});
  const Plan plan = pair.plan({CollectiveKind::send_receive, 32 << 20});
  ASSERT_EQ(plan.flows.size(), 1U);
  EXPECT_EQ(racks.node(plan.flows[0].from_nic).name, "w3.nic3");
  EXPECT_EQ(racks.node(plan.flows[0].to_nic).name, "w21.nic3");
}

TEST(Survey, FindsTheLinksOfACubeMesh) {
  const Machine machine = surveyed(make_cluster("dgx1-v100", 1), 5).machine;
  EXPECT_EQ(machine.intra, Intra::nvlink_mesh);
  EXPECT_EQ(machine.gpus, 5);
  EXPECT_EQ(machine.mesh_size(), 8) << "rings may cross the other GPUs";
  EXPECT_DOUBLE_EQ(machine.mesh(0, 1), 20);
  EXPECT_DOUBLE_EQ(machine.mesh(0, 4), 40);
  EXPECT_DOUBLE_EQ(machine.mesh(3, 4), 0);
}

TEST(Survey, FindsPcieWithAndWithoutPeers) {
  const Machine peers = surveyed(make_cluster("pcie-8gpu", 1), 2).machine;
  EXPECT_EQ(peers.intra, Intra::pcie);
  EXPECT_DOUBLE_EQ(peers.gpu_gbs, 24);
  EXPECT_DOUBLE_EQ(peers.gpu_wire_gbs, 0.85 * 24);
  const Machine staged = surveyed(make_cluster("rtx2080ti-2gpu", 1), 2).machine;
  EXPECT_EQ(staged.intra, Intra::staged);
  EXPECT_DOUBLE_EQ(staged.gpu_wire_gbs, 3.6) << "a share of the link to the host's memory, which both take";
}

TEST(Survey, StagesThroughProcessorsThatAreLinked) {
  Topology topology = make_cluster("rtx2080ti-2gpu", 1);
  const NodeIndex linked = topology.nodes_of(0, NodeKind::cpu).front();
  topology.add_node({.name = "apart", .kind = NodeKind::cpu, .worker = 0, .device = topology.node(linked).device});
  EXPECT_DOUBLE_EQ(surveyed(topology, 2).machine.gpu_wire_gbs, 3.6);
}

TEST(Survey, LooksForGpusNearNicsThroughPcieSwitches) {
  EXPECT_TRUE(surveyed(make_cluster("oci-bm-gpu4-8", 2), 8).machine.nics_are_near) << "behind two of them";
  EXPECT_FALSE(surveyed(make_cluster("gcp-a2", 2), 8).machine.nics_are_near) << "behind the processor";
}

TEST(Survey, TakesARackThatSharesASwitchForOneDomain) {
  const Survey rack = surveyed(make_cluster("gb200-nvl72", 18), 4);
  EXPECT_EQ(rack.machine.domains, 1);
  EXPECT_EQ(rack.machine.gpus, 72);
  EXPECT_DOUBLE_EQ(rack.machine.gpu_gbs, 721.8);
  const Survey racks = surveyed(make_cluster("gb200-nvl72", 36), 4);
  EXPECT_EQ(racks.machine.domains, 2);
  EXPECT_EQ(racks.machine.nics, 72);
}

TEST(Survey, KnowsOnlyMachinesWithARankOfTheGroup) {
  using Names = std::vector<std::string>;
  const Topology racks = make_cluster("gb200-nvl72", 36);  // one C2C link takes what both NICs of the socket bring
  EXPECT_EQ(ports_of(racks, {"w5.gpu1", "w23.gpu1"}), (Names{"w5.nic1", "w5.nic0", "w23.nic1", "w23.nic0"}));
}

TEST(Survey, OnlyInfiniBandHasSharp) {
  EXPECT_FALSE(surveyed(make_cluster("hgx-h100", 2), 8).machine.lacks_sharp);
  for (const char* node : {"aws-p5", "gcp-a2", "oci-bm-gpu-h100-8"}) {
    const Survey found = surveyed(make_cluster(node, 2), 8);
    EXPECT_TRUE(found.machine.lacks_sharp) << node;
    EXPECT_FALSE(found.transport.empty()) << node;
  }
}

TEST(Survey, KnowsWhatSoftwareTheNetworkHas) {
  const Survey p4d = surveyed(make_cluster("aws-p4d", 2), 8);
  EXPECT_DOUBLE_EQ(p4d.machine.hop_us, 75);
  EXPECT_DOUBLE_EQ(p4d.machine.advertised_us, 75);
  EXPECT_TRUE(p4d.machine.lacks_ll128);
  EXPECT_TRUE(surveyed(make_cluster("gcp-a3-high", 2), 8).hop_is_known);
  EXPECT_TRUE(surveyed(make_cluster("hgx-h100", 2, {.transport = "socket"}), 8).machine.lacks_ll128);
  EXPECT_FALSE(surveyed(make_cluster("hgx-h100", 2), 8).machine.lacks_ll128);
}

TEST(Survey, RecognisesLinksByNcclsConstantAndByTheirDatasheet) {
  const LinkUnit a100 = unit_of("sm_80", 80);
  EXPECT_DOUBLE_EQ(a100.rate_of(240, 240).nccl_gbs, 240);
  EXPECT_DOUBLE_EQ(a100.rate_of(300, 300).nccl_gbs, 240);
  EXPECT_DOUBLE_EQ(a100.rate_of(300, 300).wire_gbs, 240);
  EXPECT_DOUBLE_EQ(a100.rate_of(100, 300).nccl_gbs, 80) << "four links of a mesh";
  const LinkUnit v100 = unit_of("sm_70", 70);
  EXPECT_DOUBLE_EQ(v100.rate_of(132, 132).nccl_gbs, 120);
  EXPECT_DOUBLE_EQ(v100.rate_of(132, 132).wire_gbs, 132);
  EXPECT_DOUBLE_EQ(v100.rate_of(20, 120).wire_gbs, 20) << "no faster than the file says";
  EXPECT_DOUBLE_EQ(unit_of("gfx942", 0).rate_of(64, 448).nccl_gbs, 48);
}

TEST(Survey, ReadsTheArchitecture) {
  EXPECT_EQ(capability_of("sm_90"), 90);
  EXPECT_EQ(capability_of("sm_120a"), 120);
  EXPECT_EQ(capability_of("gfx942"), 0);
  EXPECT_EQ(capability_of(""), 80);
}

}  // namespace
}  // namespace tandem::sim::nccl
