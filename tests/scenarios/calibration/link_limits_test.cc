// The bounds that links put on collectives, on machines of the catalog.
#include "scenarios/estimates/link_limits.h"

#include <gtest/gtest.h>

#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem::calibration {
namespace {

constexpr double kBytes = 1e9;

// Whether the links deny that a collective carries `carried` bytes/s of its buffer.
bool denies(const LinkLimits& limits, CollectiveKind kind, int devices, int nodes, double carried) {
  return limits.contradiction(kind, devices, nodes, kBytes, kBytes / carried).has_value();
}

// 12 NVLinks for each GPU: 240 GB/s as NCCL plans with them, 300 GB/s by the datasheet.
TEST(LinkLimits, AreTheLinksBetweenTheGpusOfAMachine) {
  const LinkLimits limits(load_catalog_node("dgx-a100"));
  EXPECT_FALSE(denies(limits, CollectiveKind::all_gather, 8, 1, 300e9 / 0.875));
  EXPECT_TRUE(denies(limits, CollectiveKind::all_gather, 8, 1, 1.06 * 300e9 / 0.875));
  EXPECT_FALSE(denies(limits, CollectiveKind::all_reduce, 8, 1, 300e9 / 1.75));
  EXPECT_TRUE(denies(limits, CollectiveKind::all_reduce, 8, 1, 1.06 * 300e9 / 1.75));
  EXPECT_TRUE(denies(limits, CollectiveKind::broadcast, 8, 1, 1.06 * 300e9));
  const auto found = limits.contradiction(CollectiveKind::broadcast, 8, 1, 500e6, 1e-3);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->carried, 500e9);
  EXPECT_DOUBLE_EQ(found->limit, 300e9);
  EXPECT_EQ(found->links, "the links of gpu0");
}

// 358 GB/s of bus bandwidth were measured on two machines: more than 7 x 48, less than 7 x 64.
TEST(LinkLimits, OfXgmiAndPcieAreThoseOfTheDatasheet) {
  const LinkLimits instinct(load_catalog_node("mi300x-8gpu"));
  EXPECT_FALSE(denies(instinct, CollectiveKind::broadcast, 8, 1, 7 * 64e9));
  EXPECT_TRUE(denies(instinct, CollectiveKind::broadcast, 8, 1, 1.06 * 7 * 64e9));
  EXPECT_DOUBLE_EQ(instinct.bus_bandwidth(CollectiveKind::all_gather, 8, 1)->bytes_per_s, 7 * 48e9) << "as stated";
  const LinkLimits pcie(load_catalog_node("pcie-8gpu"));
  EXPECT_FALSE(denies(pcie, CollectiveKind::broadcast, 8, 1, 31.5e9));
  EXPECT_TRUE(denies(pcie, CollectiveKind::broadcast, 8, 1, 1.06 * 31.5e9));
}

// Machines of one rack need no network between them.
TEST(LinkLimits, OfMachinesThatShareASwitchAreNotThoseOfTheNetwork) {
  const LinkLimits rack(make_cluster("gb200-nvl72", 18));
  EXPECT_FALSE(denies(rack, CollectiveKind::all_reduce, 72, 18, 400e9));
  const LinkLimits two(make_cluster("gb200-nvl72", 36));
  EXPECT_FALSE(denies(two, CollectiveKind::all_reduce, 144, 36, 400e9)) << "72 ports of 50 GB/s leave each rack";
  EXPECT_FALSE(denies(two, CollectiveKind::broadcast, 144, 36, 18 * 50e9)) << "the 18 links of a GPU";
  EXPECT_TRUE(denies(two, CollectiveKind::all_to_all, 144, 36, 1.06 * 72 * 50e9 / 36));
}

// Its switches add: a bus bandwidth above the links is no contradiction.
TEST(LinkLimits, LeaveRoomForSwitchesThatReduce) {
  const Topology node = load_catalog_node("hgx-h100");
  const LinkLimits limits(node);
  const double link = limits.contradiction(CollectiveKind::broadcast, 8, 1, 1e12, 1e-3)->limit;
  EXPECT_FALSE(denies(limits, CollectiveKind::all_reduce, 8, 1, link));
  EXPECT_TRUE(denies(limits, CollectiveKind::all_reduce, 8, 1, 1.06 * link));
  EXPECT_TRUE(denies(limits, CollectiveKind::all_gather, 8, 1, 1.06 * link / 0.875));
}

// 8 ports of 25 GB/s.
TEST(LinkLimits, AreThePortsOfAMachineAcrossMachines) {
  const LinkLimits limits(load_catalog_node("dgx-a100"));
  const double ports = 8 * 25e9;
  EXPECT_FALSE(denies(limits, CollectiveKind::all_reduce, 16, 2, 0.6 * ports));
  EXPECT_FALSE(denies(limits, CollectiveKind::all_gather, 16, 2, 1.2 * ports)) << "half of it is already there";
  EXPECT_TRUE(denies(limits, CollectiveKind::broadcast, 16, 2, 1.06 * ports));
  EXPECT_FALSE(denies(limits, CollectiveKind::all_to_all, 16, 2, ports / 4)) << "half of 8 buffers";
  EXPECT_TRUE(denies(limits, CollectiveKind::all_to_all, 16, 2, 1.06 * ports / 4));
}

TEST(LinkLimits, BoundTheBusBandwidth) {
  const LinkLimits limits(load_catalog_node("dgx-a100"));
  const auto inside = limits.bus_bandwidth(CollectiveKind::all_reduce, 8, 1);
  ASSERT_TRUE(inside);
  EXPECT_DOUBLE_EQ(inside->bytes_per_s, 240e9);
  EXPECT_EQ(inside->links, "the links of gpu0");
  const auto gathered = limits.bus_bandwidth(CollectiveKind::all_gather, 16, 2);
  EXPECT_DOUBLE_EQ(gathered->bytes_per_s, 240e9) << "half of it is already there: the ports could carry 375 GB/s";
  const auto across = limits.bus_bandwidth(CollectiveKind::broadcast, 16, 2);
  EXPECT_DOUBLE_EQ(across->bytes_per_s, 200e9);
  EXPECT_EQ(across->links, "the network ports of machine 0");
  const LinkLimits hopper(load_catalog_node("hgx-h100"));
  const auto plain = hopper.bus_bandwidth(CollectiveKind::all_gather, 8, 1);
  const auto reduced = hopper.bus_bandwidth(CollectiveKind::all_reduce, 8, 1);
  EXPECT_DOUBLE_EQ(reduced->bytes_per_s, 1.75 * plain->bytes_per_s);
  EXPECT_EQ(reduced->links, "the links of gpu0, whose switches reduce");
}

TEST(LinkLimits, AreNoneWithoutLinks) {
  const LinkLimits limits(make_host(4));
  EXPECT_FALSE(limits.bus_bandwidth(CollectiveKind::all_reduce, 4, 1));
  EXPECT_FALSE(denies(limits, CollectiveKind::all_reduce, 4, 1, 1e15));
}

}  // namespace
}  // namespace tandem::calibration
