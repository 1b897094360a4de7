#include <random>

#include "tests/topologies/testing.h"
#include "topologies/base/error.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/routing.h"

namespace tandem {
namespace {

Fabric fat_tree(bool rails) {
  Fabric fabric;
  fabric.kind = FabricKind::fat_tree;
  fabric.workers_per_leaf = 2;
  fabric.leaves_per_pod = 2;
  fabric.spines = 2;
  fabric.cores_per_spine = 2;
  fabric.rails = rails;
  return fabric;
}

Fabric torus() {
  Fabric fabric;
  fabric.kind = FabricKind::torus;
  fabric.dimensions = {3, 4};
  return fabric;
}

Fabric of_kind(FabricKind kind) {
  Fabric fabric;
  fabric.kind = kind;
  fabric.workers_per_leaf = 3;
  return fabric;
}

// Half as fast as the others: a GPU of machine 2, a link inside machine 5, a cable of machine 7.
void add_faults(Topology& topology) {
  const auto slower = [](const LinkModel& model) {
    auto made = std::make_shared<LinkModel>(model);
    made->bandwidth_bytes_per_s.value /= 2;
    return made;
  };
  const NodeIndex gpu = node_named(topology, "w2.gpu1");
  auto device = std::make_shared<DeviceModel>(*topology.device(gpu));
  device->boost_clock_hz.value /= 2;
  topology.set_device(gpu, std::move(device));
  const LinkIndex inside = 5 * topology.links_of_machine() + 3;
  topology.set_link_model(inside, slower(topology.link_model(inside)));
  const NodeIndex nic = node_named(topology, "w7.nic0");
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    if (link.from == nic || link.to == nic) topology.set_link_model(index, slower(*link.model));
  }
}

std::shared_ptr<const Route> route_or_none(Router& router, NodeIndex from, NodeIndex to, std::uint64_t flow) {
  try {
    return router.route(from, to, flow);
  } catch (const Error&) {
    return nullptr;
  }
}

void expect_equal_routes(const Topology& topology, const Topology& other) {
  int found = 0;
  Router router(topology), other_router(other);
  std::mt19937 random(7);
  std::uniform_int_distribution<NodeIndex> node(0, static_cast<NodeIndex>(topology.node_count()) - 1);
  for (int i = 0; i < 20000; ++i) {
    const NodeIndex from = node(random);
    const NodeIndex to = node(random);
    const auto flow = static_cast<std::uint64_t>(i % 3);
    const auto mine = route_or_none(router, from, to, flow);
    const auto theirs = route_or_none(other_router, from, to, flow);
    ASSERT_EQ(mine == nullptr, theirs == nullptr);
    if (mine == nullptr) continue;
    ++found;
    ASSERT_EQ(names_along(topology, *mine), names_along(other, *theirs))
        << topology.node(from).name << " to " << topology.node(to).name;
    ASSERT_EQ(mine->latency_s, theirs->latency_s);
    ASSERT_EQ(mine->bandwidth_bytes_per_s, theirs->bandwidth_bytes_per_s);
    for (std::size_t hop = 0; hop < mine->hops.size(); ++hop) {
      ASSERT_EQ(mine->hops[hop].link, theirs->hops[hop].link);
      ASSERT_EQ(mine->hops[hop].forward, theirs->hops[hop].forward);
    }
  }
  EXPECT_GT(found, 5000);
}

TEST(Machines, HaveTheNodesAndLinksOfAClusterThatIsBuiltOneByOne) {
  const Topology topology = make_cluster("hgx-h100", 12, fat_tree(true));
  ASSERT_EQ(topology.machine_count(), 12);
  EXPECT_EQ(topology.worker_count(), 12);
  EXPECT_EQ(topology.machine_nodes(), 12 * topology.nodes_of_machine());
  const Topology other = one_by_one(topology);
  ASSERT_EQ(other.machine_count(), 0);
  ASSERT_EQ(other.node_count(), topology.node_count());
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const std::string name = topology.node(index).name;
    ASSERT_EQ(topology.find(name), index);
    ASSERT_EQ(other.find(name), index);
    ASSERT_EQ(topology.worker(index), other.worker(index));
    ASSERT_EQ(topology.kind(index), other.kind(index));
  }
  for (const NodeKind kind : {NodeKind::cpu, NodeKind::gpu, NodeKind::nic, NodeKind::pcie_switch}) {
    EXPECT_EQ(topology.nodes_of(11, kind), other.nodes_of(11, kind));
  }
  EXPECT_EQ(topology.provenance(), other.provenance());
}

TEST(Machines, AreFoundByTheirExactNamesOnly) {
  const Topology topology = make_cluster("hgx-h100", 12);
  EXPECT_EQ(topology.find("w11.gpu0"), 11 * topology.nodes_of_machine() + *topology.machine(0).find("gpu0"));
  for (const char* name : {"w12.gpu0", "w01.gpu0", "w.gpu0", "w1gpu0", "gpu0", "w-1.gpu0", "w1.gpu8", "w1x.gpu0", ""}) {
    EXPECT_FALSE(topology.find(name)) << name;
  }
}

TEST(Machines, AreChangedOneByOne) {
  Topology topology = make_cluster("hgx-h100", 12, fat_tree(true));
  const Topology before = topology;
  add_faults(topology);
  EXPECT_NE(&topology.machine(2), &topology.machine(0));
  EXPECT_NE(&topology.machine(5), &topology.machine(2));
  EXPECT_EQ(&topology.machine(7), &topology.machine(0));  // its cable is no part of it
  EXPECT_EQ(before.device(node_named(topology, "w2.gpu1")), before.device(node_named(topology, "w3.gpu1")));
  EXPECT_NE(topology.device(node_named(topology, "w2.gpu1")), topology.device(node_named(topology, "w3.gpu1")));
  EXPECT_EQ(topology.device(node_named(topology, "w2.gpu0")), topology.device(node_named(topology, "w3.gpu0")));
}

TEST(Machines, StayAlikeWhereAllTheirDevicesAreReplaced) {
  Topology topology = make_cluster("hgx-h100", 12, fat_tree(true));
  add_faults(topology);
  int calls = 0;
  topology.replace_devices([&](NodeKind kind, const DeviceModel& model) -> std::shared_ptr<const DeviceModel> {
    ++calls;
    if (kind != NodeKind::gpu) return nullptr;
    auto other = std::make_shared<DeviceModel>(model);
    other->name = "other " + model.name;
    return other;
  });
  EXPECT_EQ(calls, 3) << "CPUs, GPUs, and the slow GPU of machine 2";
  EXPECT_EQ(&topology.machine(3), &topology.machine(0));
  EXPECT_NE(&topology.machine(2), &topology.machine(0));
  const auto device = [&](const char* name) { return topology.device(node_named(topology, name)); };
  EXPECT_EQ(device("w3.gpu0")->name.rfind("other ", 0), 0U);
  EXPECT_EQ(device("w2.gpu0"), device("w3.gpu0"));
  EXPECT_NE(device("w2.gpu1"), device("w3.gpu1"));
  EXPECT_NE(device("w0.cpu0")->name.rfind("other ", 0), 0U);
}

TEST(Machines, StayAlikeWhereAllTheirLinksAreReplaced) {
  Topology topology = make_cluster("hgx-h100", 12, fat_tree(true));
  add_faults(topology);
  const Topology before = topology;
  topology.replace_links([](const LinkModel& model) -> std::shared_ptr<const LinkModel> {
    if (model.kind != LinkKind::network) return nullptr;
    auto other = std::make_shared<LinkModel>(model);
    other->latency_s.value = 1;
    return other;
  });
  EXPECT_EQ(&topology.machine(3), &topology.machine(0));
  EXPECT_NE(&topology.machine(2), &topology.machine(0));
  int networks = 0;
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const bool is_network = topology.link_model(i).kind == LinkKind::network;
    networks += is_network ? 1 : 0;
    EXPECT_EQ(topology.link_model(i).latency_s.value, is_network ? 1 : before.link_model(i).latency_s.value);
  }
  EXPECT_GT(networks, 12);
}

TEST(Machines, HaveTheRoutesOfAClusterThatIsBuiltOneByOne) {
  for (const Fabric& fabric : {Fabric{}, of_kind(FabricKind::leaf_spine), of_kind(FabricKind::rail), fat_tree(false),
                               fat_tree(true), torus()}) {
    for (const char* machine : {"hgx-h100", "aws-p4d", "dgx1-v100", "pcie-8gpu"}) {
      if (load_catalog_node(machine).nodes_of(0, NodeKind::nic).empty()) continue;
      SCOPED_TRACE(std::string(machine) + " " + std::string(name_of(fabric.kind)));
      Topology topology = make_cluster(machine, 12, fabric);
      expect_equal_routes(topology, one_by_one(topology));
      if (std::string(machine) != "hgx-h100") continue;
      add_faults(topology);
      expect_equal_routes(topology, one_by_one(topology));
    }
  }
}

TEST(Machines, AreRoutedByTheirClassesNotByTheirNumber) {
  const auto visited = [](int machines) {
    const Topology topology = make_cluster("hgx-h100", machines);
    Router router(topology);
    for (int i = 0; i < machines; ++i) {
      const NodeIndex first = static_cast<NodeIndex>(i) * topology.nodes_of_machine();
      const NodeIndex next = static_cast<NodeIndex>((i + 1) % machines) * topology.nodes_of_machine();
      Route route;
      router.append(first + *topology.machine(0).find("nic3"), next + *topology.machine(0).find("nic3"), route);
      router.append(first + *topology.machine(0).find("cpu0"), first + *topology.machine(0).find("gpu7"), route);
    }
    return router.visited_count();
  };
  EXPECT_EQ(visited(64), visited(4096));
}

}  // namespace
}  // namespace tandem
