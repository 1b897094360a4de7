#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/engine/sim_nccl_machines.h"
#include "topologies/base/error.h"

namespace tandem::sim::nccl {
namespace {

struct Group {
  Machine machine;
  Settings settings;
  Graphs graphs = find_graphs(machine);
  CostTable table{machine, graphs, settings};

  double cost(Algorithm algorithm, Protocol protocol, double bytes) const {
    const auto us = table.time_us({algorithm, protocol}, {CollectiveKind::all_reduce, bytes});
    return us ? std::round(*us * 10) / 10 : 0;
  }
  // "LL; LL128 from 2M; Simple from 8M"
  std::string switches(CollectiveKind kind) const {
    std::string text;
    std::string last;
    for (double bytes = 8; bytes <= 8 * 1024 * kMiB; bytes *= 2) {
      const Choice choice = table.choose({kind, bytes});
      const std::string name = std::string(name_of(choice.algorithm)) + " " + std::string(name_of(choice.protocol));
      if (name == last) continue;
      const int kib = static_cast<int>(bytes / kKiB);
      text += text.empty() ? name : "; " + name + " " + std::to_string(kib) + "K";
      last = name;
    }
    return text;
  }
};

Settings of_version(const std::string& version) {
  return settings_of({{"version", version}});
}

TEST(CostTable, IsNcclsOwnOnOneNode) {
  const Group a100{over_nodes(dgx_a100(), 8), of_version("2.27")};
  EXPECT_EQ(a100.cost(Algorithm::ring, Protocol::ll, kMiB), 35.9);
  EXPECT_EQ(a100.cost(Algorithm::ring, Protocol::ll128, kMiB), 48.9);
  EXPECT_EQ(a100.cost(Algorithm::ring, Protocol::simple, kMiB), 63.6);
  EXPECT_EQ(a100.cost(Algorithm::tree, Protocol::ll, kMiB), 87.4);
  EXPECT_EQ(a100.cost(Algorithm::tree, Protocol::ll128, kMiB), 51.9);
  EXPECT_EQ(a100.cost(Algorithm::tree, Protocol::simple, kMiB), 83.4);
  const Group h100{over_nodes(hgx_h100(), 8), of_version("2.27")};
  EXPECT_EQ(h100.cost(Algorithm::ring, Protocol::ll, 256 * kMiB), 3346.6);
  EXPECT_EQ(h100.cost(Algorithm::ring, Protocol::ll128, 256 * kMiB), 1459.0);
  EXPECT_EQ(h100.cost(Algorithm::ring, Protocol::simple, 256 * kMiB), 1360.9);
  EXPECT_EQ(h100.cost(Algorithm::nvls, Protocol::simple, 256 * kMiB), 1031.6);
}

TEST(CostTable, IsNcclsOwnOverTwoNodes) {
  const Group h100{over_nodes(hgx_h100(), 8, 2, 8, 50), of_version("2.27")};
  EXPECT_EQ(h100.cost(Algorithm::nvls_tree, Protocol::simple, 256 * kMiB), 1059.6);
  EXPECT_EQ(h100.cost(Algorithm::ring, Protocol::simple, 256 * kMiB), 1582.3);
}

TEST(CostTable, SwitchesWherePublishedTablesJump) {
  const auto all_reduce = [](const Machine& machine, const std::string& version) {
    return Group{machine, of_version(version)}.switches(CollectiveKind::all_reduce);
  };
  EXPECT_EQ(all_reduce(over_nodes(dgx_a100(), 2), "2.27"), "ring LL; ring Simple 1024K");
  EXPECT_EQ(all_reduce(over_nodes(dgx_a100(), 4), "2.27"), "ring LL; ring LL128 2048K; ring Simple 8192K");
  EXPECT_EQ(all_reduce(over_nodes(dgx_a100(), 8), "2.27"), "ring LL; ring LL128 4096K; ring Simple 32768K");
  EXPECT_EQ(all_reduce(over_nodes(hgx_h100(), 2), "2.27"), "ring LL; ring Simple 2048K");
  EXPECT_EQ(all_reduce(over_nodes(hgx_h100(), 4), "2.27"), "ring LL; ring LL128 4096K; ring Simple 16384K");
  EXPECT_EQ(all_reduce(over_nodes(hgx_h100(), 8), "2.27"), "ring LL; NVLS Simple 2048K");
  EXPECT_EQ(all_reduce(over_nodes(dgx1_v100(), 8), "2.8"), "ring LL; ring LL128 1024K; ring Simple 16384K");
  EXPECT_EQ(all_reduce(over_nodes(dgx_a100(), 8, 2, 8, 25), "2.27"),
            "tree LL; tree LL128 256K; ring LL128 16384K; ring Simple 131072K");
  EXPECT_EQ(all_reduce(over_nodes(hgx_h100(), 8, 2, 8, 50), "2.27"),
            "tree LL; tree LL128 256K; NVLS tree Simple 1024K");
  EXPECT_EQ(all_reduce(over_nodes(dgx1_v100(), 8, 2, 4, 12.5), "2.8"),
            "tree LL; tree LL128 128K; ring LL128 1024K; ring Simple 65536K");
}

TEST(CostTable, SwitchesForAllGather) {
  const auto all_gather = [](const Machine& machine) {
    return Group{machine, of_version("2.27")}.switches(CollectiveKind::all_gather);
  };
  EXPECT_EQ(all_gather(over_nodes(dgx_a100(), 8)), "ring LL; ring LL128 4096K; ring Simple 16384K");
  EXPECT_EQ(all_gather(over_nodes(hgx_h100(), 4)), "ring LL; ring Simple 4096K");
  EXPECT_EQ(all_gather(over_nodes(hgx_h100(), 8)), "ring LL; ring LL128 8192K; ring Simple 32768K");
  EXPECT_EQ(all_gather(over_nodes(dgx_a100(), 8, 2, 8, 25)), "ring LL; ring LL128 256K; ring Simple 65536K");
  EXPECT_EQ(all_gather(over_nodes(hgx_h100(), 8, 2, 8, 50)), "ring LL; ring LL128 1024K; ring Simple 65536K");
}

// a100x4_1node_nvlmesh_simllm_broadcast jumps at 2 and 8 MiB, as rings of a mesh differ; superbench's tables of eight
// GPUs on a switch at 1 MiB.
TEST(CostTable, CountsAllStepsOfABroadcastWhereRingsDiffer) {
  const Group mesh{over_nodes(a100_full_mesh(), 4), of_version("2.30")};
  EXPECT_EQ(mesh.switches(CollectiveKind::broadcast), "ring LL; ring LL128 2048K; ring Simple 8192K");
  const Group on_switch{over_nodes(dgx_a100(), 8), of_version("2.30")};
  EXPECT_EQ(on_switch.switches(CollectiveKind::broadcast), "ring LL; ring Simple 1024K");
}

TEST(CostTable, HasLl128OverC2cOnHopper) {
  Machine grace = over_nodes(hgx_h100(), 4, 2, 4, 50);
  grace.nics_are_near = false;
  const auto has_ll128 = [&](const std::string& version) {
    return Group{grace, of_version(version)}.cost(Algorithm::ring, Protocol::ll128, kMiB) > 0;
  };
  EXPECT_FALSE(has_ll128("2.30"));
  grace.nics_use_c2c = true;
  EXPECT_TRUE(has_ll128("2.30"));
  EXPECT_FALSE(has_ll128("2.26")) << "it took such a NIC for one behind a processor";
  grace.capability = 80;
  EXPECT_FALSE(has_ll128("2.30"));
}

TEST(CostTable, LeavesOutWhatHardwareAndElementTypesLack) {
  const Group pcie_box{over_nodes(pcie(89, 24), 4), {}};
  EXPECT_FALSE(pcie_box.table.time_us({Algorithm::ring, Protocol::ll128}, {CollectiveKind::all_reduce, 1e6}));
  const Group bridged{over_nodes(meshed(86, 2, {{0, 1, 48}}, 1.7), 2), {}};
  EXPECT_FALSE(bridged.table.time_us({Algorithm::ring, Protocol::ll128}, {CollectiveKind::all_reduce, 1e6}))
      << "NCCL enables it on some generations only";
  const Group h100{over_nodes(hgx_h100(), 8), {}};
  EXPECT_EQ(h100.table.choose({CollectiveKind::all_reduce, 256 * kMiB, false}).algorithm, Algorithm::ring);
  Machine efa = over_nodes(dgx_a100(), 8, 2, 4, 12.5);
  efa.lacks_ll128 = true;
  const Group p4d{efa, {}};
  EXPECT_FALSE(p4d.table.time_us({Algorithm::tree, Protocol::ll128}, {CollectiveKind::all_reduce, kMiB}));
}

TEST(Settings, RestrictTheChoice) {
  const Group ring{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_ALGO", "ring"}})};
  EXPECT_EQ(ring.table.choose({CollectiveKind::all_reduce, 256 * kMiB}), (Choice{Algorithm::ring, Protocol::simple}));
  const Group simple{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_PROTO", "^LL,LL128"}})};
  EXPECT_EQ(simple.table.choose({CollectiveKind::all_reduce, 8}).protocol, Protocol::simple);
  const Group forced{over_nodes(pcie(89, 24), 4), settings_of({{"NCCL_PROTO", "LL128"}})};
  EXPECT_EQ(forced.table.choose({CollectiveKind::all_gather, 8}).protocol, Protocol::ll128);
  const Group off{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_NVLS_ENABLE", "0"}})};
  EXPECT_EQ(off.table.choose({CollectiveKind::all_reduce, 256 * kMiB}).algorithm, Algorithm::ring);
  const Group sharp{over_nodes(dgx_a100(), 8, 4, 8, 25), settings_of({{"NCCL_COLLNET_ENABLE", "1"}})};
  EXPECT_EQ(sharp.table.choose({CollectiveKind::all_reduce, 256 * kMiB}).algorithm, Algorithm::collnet_direct);
}

// Only switches of InfiniBand reduce.
TEST(Settings, CollNetNeedsSharp) {
  Machine ethernet = over_nodes(dgx_a100(), 8, 4, 8, 25);
  ethernet.lacks_sharp = true;
  const Group plain{ethernet, {}};
  const Group enabled{ethernet, settings_of({{"NCCL_COLLNET_ENABLE", "1"}})};
  for (double bytes = 8; bytes < 1e10; bytes *= 4) {
    EXPECT_EQ(enabled.table.choose({CollectiveKind::all_reduce, bytes}),
              plain.table.choose({CollectiveKind::all_reduce, bytes}));
  }
}

TEST(Settings, ThatLeaveNothingAreRefusedByTheCall) {
  const Group nvls{over_nodes(dgx_a100(), 8), settings_of({{"NCCL_ALGO", "nvls"}})};
  EXPECT_THROW(nvls.table.choose({CollectiveKind::all_reduce, 8}), InputError);
  const Group chain{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_ALGO", "collnetchain"}})};
  EXPECT_THROW(chain.table.choose({CollectiveKind::all_reduce, 8}), InputError) << "one node has no network";
  const Group tree{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_ALGO", "tree"}})};
  EXPECT_THROW(tree.table.choose({CollectiveKind::all_gather, 8}), InputError);
}

// Before 2.24, NCCL passed over algorithms that it could not use.
TEST(Settings, ThatLeaveNothingWereIgnoredByOlderVersions) {
  const Group chain{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_ALGO", "collnetchain"}, {"version", "2.21"}})};
  EXPECT_EQ(chain.table.choose({CollectiveKind::all_reduce, 8}).algorithm, Algorithm::ring);
  const Group tree{over_nodes(hgx_h100(), 8), settings_of({{"NCCL_ALGO", "tree"}, {"version", "2.21"}})};
  EXPECT_EQ(tree.table.choose({CollectiveKind::all_gather, 8}).algorithm, Algorithm::ring);
  EXPECT_EQ(tree.table.choose({CollectiveKind::all_reduce, 8}).algorithm, Algorithm::tree);
}

TEST(Settings, RestrictSingleCollectives) {
  const Machine h100 = over_nodes(hgx_h100(), 8);
  const Group each{h100, settings_of({{"NCCL_ALGO", "allreduce:tree;allgather:ring"}})};
  EXPECT_EQ(each.table.choose({CollectiveKind::all_reduce, 256 * kMiB}).algorithm, Algorithm::tree);
  EXPECT_EQ(each.table.choose({CollectiveKind::all_gather, 256 * kMiB}).algorithm, Algorithm::ring);
  EXPECT_EQ(each.table.choose({CollectiveKind::broadcast, 8}).algorithm, Algorithm::ring);
  const Group others{h100, settings_of({{"NCCL_ALGO", "ring;AllReduce:^ring,tree"}})};
  EXPECT_EQ(others.table.choose({CollectiveKind::all_reduce, 8}).algorithm, Algorithm::nvls);
  EXPECT_EQ(others.table.choose({CollectiveKind::reduce_scatter, 8}).algorithm, Algorithm::ring);
  const Group protocol{h100, settings_of({{"NCCL_PROTO", "^LL128;allgather:LL128"}})};
  EXPECT_EQ(protocol.table.choose({CollectiveKind::all_gather, 8}).protocol, Protocol::ll128);
  EXPECT_EQ(protocol.table.choose({CollectiveKind::reduce_scatter, 8}).protocol, Protocol::ll);
  const Group pat{h100, settings_of({{"NCCL_ALGO", "^PAT"}})};
  EXPECT_EQ(pat.table.choose({CollectiveKind::all_reduce, 256 * kMiB}).algorithm, Algorithm::nvls);
}

std::string error_of(const std::string& name, const std::string& value) {
  try {
    settings_of({{name, value}});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Settings, NameWhatIsWrong) {
  EXPECT_EQ(error_of("NCCL_ALGO", "rings"),
            "NCCL: NCCL_ALGO=rings cannot be used; expected a list of tree, ring, collnetdirect, collnetchain, nvls, "
            "nvlstree, pat, or ^ and a list");
  EXPECT_EQ(error_of("NCCL_PROTO", ""),
            "NCCL: NCCL_PROTO= cannot be used; expected a list of ll, ll128, simple, or ^ and a list");
  EXPECT_EQ(error_of("NCCL_MAX_NCHANNELS", "0"),
            "NCCL: NCCL_MAX_NCHANNELS=0 cannot be used; expected a whole number from 1 to 64");
  EXPECT_EQ(
      error_of("NCCL_ALGO", "ring;tree"),
      "NCCL: NCCL_ALGO=ring;tree cannot be used; expected a collective and a colon before each list but the first");
  EXPECT_EQ(error_of("NCCL_ALGO", "alltoall:ring"),
            "NCCL: NCCL_ALGO=alltoall:ring cannot be used; expected one of allreduce, reduce, broadcast, allgather and "
            "reducescatter before the colon");
  EXPECT_EQ(error_of("NCCL_ALGO", "allgather:pat"),
            "NCCL: NCCL_ALGO=allgather:pat cannot be used; expected an algorithm besides PAT, which is not modelled");
  EXPECT_EQ(error_of("version", "1.3"),
            "NCCL: version=1.3 cannot be used; expected 2 as the first number: no other major version is modelled");
  EXPECT_EQ(error_of("version", "2.4"),
            "NCCL: version=2.4 cannot be used; expected 2.5 or later: older versions are not modelled");
  EXPECT_EQ(error_of("version", "2.27.x"),
            "NCCL: version=2.27.x cannot be used; expected two or three numbers, such as 2.27 or 2.27.5");
  EXPECT_EQ(error_of("version", "9"),
            "NCCL: version=9 cannot be used; expected two or three numbers, such as 2.27 or 2.27.5");
  try {
    settings_of({{"NCCL_ALGO", "allreduce:tree"}, {"version", "2.21"}});
    ADD_FAILURE() << "2.21 has no lists for single collectives";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "NCCL: version=2.21 cannot be used; expected 2.24 or later with lists for single collectives");
  }
  EXPECT_THAT(error_of("NCCL_BUFFSIZE", "1"), testing::HasSubstr("there is no variable NCCL_BUFFSIZE"));
}

}  // namespace
}  // namespace tandem::sim::nccl
