#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>

#include "tests/engine/sim_nccl_machines.h"

namespace tandem::sim::nccl {
namespace {

Survey survey_of(const Machine& machine) {
  Survey survey{.machine = machine};
  for (int domain = 0; domain < machine.domains; ++domain) {
    survey.domains.emplace_back(static_cast<std::size_t>(machine.gpus));
    std::iota(survey.domains.back().begin(), survey.domains.back().end(), domain * machine.gpus);
    if (machine.domains == 1) continue;
    survey.ports.emplace_back();
    for (int nic = 0; nic < machine.nics; ++nic) {
      survey.ports.back().push_back({static_cast<NodeIndex>(nic), domain * machine.gpus + nic % machine.gpus});
    }
  }
  return survey;
}

double sum_of_bytes(const Plan& plan) {
  double bytes = 0;
  for (const Flow& flow : plan.flows) bytes += flow.bytes;
  return bytes;
}

TEST(Plan, OfARingMovesItsBytesOnceOverEveryEdge) {
  const Communicator group(survey_of(over_nodes(dgx_a100(), 8)), {});
  const Plan plan = group.plan({CollectiveKind::all_reduce, 1024 * kMiB});
  EXPECT_EQ(plan.algorithm, "ring Simple, 24 channels");
  ASSERT_EQ(plan.flows.size(), 8U);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const Flow& flow = plan.flows[static_cast<std::size_t>(gpu)];
    EXPECT_EQ(flow.from, gpu);
    EXPECT_EQ(flow.to, (gpu + 1) % 8);
    EXPECT_DOUBLE_EQ(flow.bytes, 1024 * kMiB * 14 / 8);
  }
  EXPECT_DOUBLE_EQ(plan.transfer_s, 1024 * kMiB * 14 / 8 / 240e9);
  EXPECT_GT(plan.fixed_s, 0);
}

TEST(Plan, OfAMeshFollowsItsRings) {
  const Communicator group(survey_of(over_nodes(dgx1_v100(), 8)), settings_of({{"version", "2.8"}}));
  const Plan plan = group.plan({CollectiveKind::all_gather, 1024 * kMiB});
  EXPECT_EQ(plan.algorithm, "ring Simple, 12 channels");
  EXPECT_NEAR(sum_of_bytes(plan), 8 * 1024 * kMiB * 7 / 8, 1);
  const Machine machine = dgx1_v100();
  for (const Flow& flow : plan.flows) {
    EXPECT_LE(flow.bytes / plan.transfer_s, machine.mesh(flow.from, flow.to) * 1e9 * 1.000001);
  }
}

TEST(Plan, OfABroadcastLeavesOutTheEdgeToTheRoot) {
  const Communicator group(survey_of(over_nodes(dgx_a100(), 4)), {});
  const Plan broadcast = group.plan({CollectiveKind::broadcast, 64 * kMiB}, 1);
  ASSERT_EQ(broadcast.flows.size(), 3U);
  for (const Flow& flow : broadcast.flows) {
    EXPECT_NE(flow.to, 1);
    EXPECT_DOUBLE_EQ(flow.bytes, 64 * kMiB);
  }
  for (const Flow& flow : group.plan({CollectiveKind::reduce, 64 * kMiB}, 1).flows) EXPECT_NE(flow.from, 1);
}

TEST(Plan, OverNodesLoadsEveryNicEqually) {
  const Communicator group(survey_of(over_nodes(hgx_h100(), 8, 2, 8, 50)), {});
  const Plan plan = group.plan({CollectiveKind::all_gather, 1024 * kMiB});
  std::map<int, double> out;  // of a GPU to the other domain
  for (const Flow& flow : plan.flows) {
    if (flow.from / 8 != flow.to / 8) out[flow.from] += flow.bytes;
  }
  ASSERT_EQ(out.size(), 16U);
  for (const auto& [gpu, bytes] : out) EXPECT_DOUBLE_EQ(bytes, 1024 * kMiB * 15 / 16 / 8);
}

// A GPU of PCIe reaches its neighbours and the NIC over one link: a chain comes from the NIC at its first GPU, and goes
// to the NIC from its last, so that no link carries it twice in one direction.
TEST(Plan, OverNodesLoadsPcieLinksOnceInEachDirection) {
  for (const int nics : {1, 2, 8}) {
    const Communicator group(survey_of(over_nodes(pcie(90, 48), 8, 2, nics, 50)), {});
    const Plan plan = group.plan({CollectiveKind::all_gather, 1024 * kMiB});
    std::map<int, double> out, in;
    for (const Flow& flow : plan.flows) {
      out[flow.from] += flow.bytes;
      in[flow.to] += flow.bytes;
    }
    const double once = 1024 * kMiB * 15 / 16;
    ASSERT_EQ(out.size(), 16U);
    for (const auto& [gpu, bytes] : out) EXPECT_NEAR(bytes, once, 1e-6 * once) << gpu << ", " << nics << " NICs";
    for (const auto& [gpu, bytes] : in) EXPECT_NEAR(bytes, once, 1e-6 * once) << gpu << ", " << nics << " NICs";
  }
}

TEST(Plan, OfNvlsSendsTheBufferAndTheReducedPart) {
  const Communicator group(survey_of(over_nodes(hgx_h100(), 8)), {});
  const Plan plan = group.plan({CollectiveKind::all_reduce, 1024 * kMiB});
  EXPECT_EQ(plan.algorithm, "NVLS Simple, 16 channels");
  EXPECT_DOUBLE_EQ(plan.flows.front().bytes, 1024 * kMiB * 9 / 8);
  EXPECT_LT(plan.flows.front().bytes / plan.transfer_s, 370.8e9);
}

TEST(Plan, OfASendIsOneFlowAtTheRateOfTheLink) {
  const Communicator pair(survey_of(over_nodes(dgx_a100(), 2)), {});
  const Plan plan = pair.plan({CollectiveKind::send_receive, 32 * kMiB});
  EXPECT_EQ(plan.algorithm, "send and receive");
  ASSERT_EQ(plan.flows.size(), 1U);
  EXPECT_DOUBLE_EQ(plan.transfer_s, 32 * kMiB / 240e9);
  const Communicator mesh(survey_of(over_nodes(dgx1_v100(), 2)), {});
  EXPECT_DOUBLE_EQ(mesh.plan({CollectiveKind::send_receive, 32 * kMiB}).transfer_s, 32 * kMiB / 20e9);
  const Communicator nodes(survey_of(over_nodes(hgx_h100(), 1, 2, 8, 50)), {});
  EXPECT_DOUBLE_EQ(nodes.plan({CollectiveKind::send_receive, 32 * kMiB}).transfer_s, 32 * kMiB / (0.95 * 50e9));
}

TEST(Plan, OfAllToAllCountsWhatLeavesTheDomain) {
  const Communicator one(survey_of(over_nodes(dgx_a100(), 8)), {});
  EXPECT_DOUBLE_EQ(one.plan({CollectiveKind::all_to_all, 64 * kMiB}).flows.front().bytes, 56 * kMiB);
  const Communicator mesh(survey_of(over_nodes(a100_full_mesh(), 4)), {});
  EXPECT_EQ(mesh.plan({CollectiveKind::all_to_all, 64 * kMiB}).flows.size(), 12U);
  const Communicator two(survey_of(over_nodes(hgx_h100(), 8, 2, 8, 50)), {});
  double between = 0;
  for (const Flow& flow : two.plan({CollectiveKind::all_to_all, 64 * kMiB}).flows) {
    if (flow.from / 8 != flow.to / 8) between += flow.bytes;
  }
  EXPECT_DOUBLE_EQ(between, 16 * 64 * kMiB / 2);
}

// Each GPU sends by its own NIC, although the rings of a large domain use few of them.
TEST(Plan, OfAllToAllBetweenDomainsUsesEveryNic) {
  Machine racks = over_nodes(hgx_b200(), 72, 2, 72, 50);
  const Communicator group(survey_of(racks), {});
  std::set<int> senders;
  for (const Flow& flow : group.plan({CollectiveKind::all_to_all, 448 * kMiB}).flows) {
    if (flow.from / 72 != flow.to / 72) senders.insert(flow.from);
  }
  EXPECT_EQ(senders.size(), 144U);
}

// How the mechanism answers to what decides it.
double us(const Machine& machine, const Call& call, const Settings& settings = {}) {
  const Communicator group(survey_of(machine), settings);
  const Plan plan = group.plan(call);
  return (plan.fixed_s + plan.transfer_s) * 1e6;
}

TEST(Mechanism, MeetsPublishedTables) {  // microseconds of aic_a100_sxm_nccl_2_27_3, aic_h100_sxm_nccl_2_29_2 (half)
  const Settings settings = settings_of({{"version", "2.27"}});
  const auto expect = [&](const Machine& machine, CollectiveKind kind, double bytes, double published_us) {
    EXPECT_NEAR(us(machine, {kind, bytes}, settings) / published_us, 1, 0.12) << bytes;
  };
  expect(over_nodes(dgx_a100(), 8), CollectiveKind::all_reduce, 512, 22.57);
  expect(over_nodes(dgx_a100(), 8), CollectiveKind::all_reduce, 64 * kMiB, 595.3);
  expect(over_nodes(dgx_a100(), 4), CollectiveKind::all_gather, 512 * kMiB, 2102);
  expect(over_nodes(dgx_a100(), 8), CollectiveKind::all_to_all, 512 * kMiB, 2313.5);
  expect(over_nodes(hgx_h100(), 8), CollectiveKind::all_reduce, 512, 15.59);
  expect(over_nodes(hgx_h100(), 8), CollectiveKind::all_reduce, 256 * kMiB, 1092.1);
  expect(over_nodes(hgx_h100(), 8), CollectiveKind::reduce_scatter, 64 * kMiB, 200.75);
}

TEST(Mechanism, OfTwoNodesMeetsPublishedTables) {
  // dgx1_x16_2node_4xedr, h100x16_2node_ndr_dell and a100_40_x16_2node_oci_roce.
  const auto expect = [](const Machine& machine, const char* version, double bytes, double published_us) {
    const Call call{CollectiveKind::all_reduce, bytes};
    EXPECT_NEAR(us(machine, call, settings_of({{"version", version}})) / published_us, 1, 0.12) << bytes;
  };
  expect(over_nodes(dgx1_v100(), 8, 2, 4, 12.5), "2.8", 256 * kMiB, 10540);
  expect(over_nodes(hgx_h100(), 8, 2, 8, 50), "2.26", 256 * kMiB, 1282.8);
  expect(over_nodes(hgx_h100(), 8, 2, 8, 50), "2.26", 32 * kKiB, 34.1);
  expect(over_nodes(dgx_a100(), 8, 2, 16, 12.5), "2.26", 4 * kMiB, 127);
  expect(over_nodes(dgx_a100(), 8, 2, 16, 12.5), "2.26", 8192 * kMiB, 67689);
}

// a100x4_1node_nvlmesh_simllm_broadcast: a GPU stores up to 512 KiB of each channel before it sends them. Rings on a
// switch are alike, and calls one after the other overlap: rtx2080ti_x2_1node_pcie_reduce.
TEST(Mechanism, OfABroadcastMeetsPublishedTables) {
  const auto expect = [](const Machine& machine, double bytes, double published_us) {
    EXPECT_NEAR(us(machine, {CollectiveKind::broadcast, bytes}) / published_us, 1, 0.14) << bytes;
  };
  expect(over_nodes(a100_full_mesh(), 4), kMiB, 23.40);
  expect(over_nodes(a100_full_mesh(), 4), 4 * kMiB, 45.52);
  expect(over_nodes(a100_full_mesh(), 4), 8 * kMiB, 117.56);
  expect(over_nodes(a100_full_mesh(), 4), 16 * kMiB, 182.48);
  expect(over_nodes(a100_full_mesh(), 4), 64 * kMiB, 409.96);
  expect(over_nodes(a100_full_mesh(), 4), 1024 * kMiB, 4693.61);
}

TEST(Mechanism, OfBlackwellDoesNotFollowTheClock) {
  const Call small{CollectiveKind::all_reduce, 1024};
  Machine blackwell = over_nodes(hgx_b200(), 8);
  const double at_boost_us = us(blackwell, small);
  blackwell.clock_ghz = 1.0;
  EXPECT_DOUBLE_EQ(us(blackwell, small), at_boost_us);
  Machine hopper = over_nodes(hgx_h100(), 8);
  const double fast_us = us(hopper, small);
  hopper.clock_ghz = 1.0;
  EXPECT_GT(us(hopper, small), fast_us);
}

// Up to 4 KiB for each thread block, bytes pass through with LL; a tree does not wait for more.
TEST(Mechanism, OfATreeStoresWhatABlockReadsTogether) {
  const Settings tree = settings_of({{"NCCL_ALGO", "tree"}, {"NCCL_PROTO", "LL"}});
  const Machine box = over_nodes(pcie(80, 24), 8, 2, 2, 25);
  const double step_us =
      us(box, {CollectiveKind::all_reduce, 64 * kKiB}, tree) - us(box, {CollectiveKind::all_reduce, 32 * kKiB}, tree);
  EXPECT_LT(step_us, 14 * 16 * kKiB / 6e3) << "less than storing 16 KiB more on each of 14 ways";
}

TEST(Mechanism, NeverEndsBeforeItsBytes) {
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast}) {
    for (double bytes = 8; bytes < 1e10; bytes *= 4) {
      const Communicator group(survey_of(over_nodes(dgx_a100(), 8, 2, 8, 25)), {});
      const Plan plan = group.plan({kind, bytes});
      EXPECT_GE(plan.fixed_s, 0) << bytes;
      EXPECT_GT(plan.transfer_s, 0) << bytes;
    }
  }
}

TEST(Mechanism, WaitsForOneProcessThatLaunchesOnManyGpus) {
  const Call small{CollectiveKind::all_reduce, 8};
  EXPECT_NEAR(us(over_nodes(dgx_a100(), 8), small, settings_of({{"devices_per_process", "8"}})), 33.6, 0.01);
  EXPECT_LT(us(over_nodes(dgx_a100(), 8), small), 25);
  const Call large{CollectiveKind::all_reduce, 4 * kMiB};
  EXPECT_GT(us(over_nodes(dgx_a100(), 8), large, settings_of({{"devices_per_process", "8"}})),
            33.6 + 4 * kMiB * 14 / 8 / 240e3)
      << "bytes move after the last launch";
}

TEST(Mechanism, AddsTheLatencyOfTheNetworksSoftware) {
  Machine efa = over_nodes(dgx_a100(), 8, 2, 4, 12.5);
  const Call small{CollectiveKind::all_reduce, 8};
  const double fast_us = us(efa, small);
  efa.hop_us = 75;
  EXPECT_NEAR(us(efa, small) - fast_us, 2 * (5 + 75 - 7), 1e-6) << "up and down the tree, LL";
}

}  // namespace
}  // namespace tandem::sim::nccl
