#include "topologies/readers/catalog.h"

#include <cstdlib>

#include "tests/topologies/testing.h"
#include "topologies/base/error.h"
#include "topologies/generators/cluster.h"

namespace tandem {
namespace {

class EveryMachine : public testing::TestWithParam<std::string> {};

TEST_P(EveryMachine, JoinsEveryPairOfItsDevices) {
  const Topology topology = load_catalog_node(GetParam());
  ASSERT_EQ(topology.worker_count(), 1);
  std::vector<NodeIndex> devices;
  for (const NodeKind kind : {NodeKind::cpu, NodeKind::gpu, NodeKind::nic}) {
    for (const NodeIndex index : topology.nodes_of(0, kind)) devices.push_back(index);
  }
  Router router(topology);
  for (const NodeIndex from : devices) {
    for (const NodeIndex to : devices) {
      const auto route = router.route(from, to);
      EXPECT_GT(route->bandwidth_bytes_per_s, 1e9) << topology.node(from).name << " " << topology.node(to).name;
    }
  }
}

void expect_source(const Figure& figure, const std::string& what) {
  EXPECT_FALSE(figure.source.empty()) << what << " does not say where it comes from";
  EXPECT_GE(figure.value, 0) << what;
}

TEST_P(EveryMachine, EveryFigureSaysWhereItComesFrom) {
  const Topology topology = load_catalog_node(GetParam());
  for (NodeIndex index = 0; index < topology.node_count(); ++index) {
    const auto& device = topology.node(index).device;
    if (!device) continue;
    EXPECT_FALSE(device->peak_flops_per_s.empty());
    for (const auto& [dtype, peak] : device->peak_flops_per_s) expect_source(peak, device->name + " peak");
    expect_source(device->memory_bandwidth_bytes_per_s, device->name + " memory bandwidth");
    expect_source(device->memory_bytes, device->name + " memory");
    expect_source(device->launch_overhead_s, device->name + " launch overhead");
    expect_source(device->op_overhead_s, device->name + " op overhead");
    expect_source(device->synchronize_s, device->name + " synchronize");
    expect_source(device->gemm_efficiency, device->name + " GEMM efficiency");
    if (topology.node(index).kind != NodeKind::gpu) continue;
    expect_source(device->boost_clock_hz, device->name + " boost clock");
    expect_source(device->memory_latency_s, device->name + " memory latency");
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    expect_source(topology.link(index).model->bandwidth_bytes_per_s, "bandwidth");
    expect_source(topology.link(index).model->latency_s, "latency");
  }
  for (const NodeIndex nic : topology.nodes_of(0, NodeKind::nic)) {
    EXPECT_FALSE(topology.node(nic).port->transport.empty()) << topology.node(nic).name;
  }
}

TEST_P(EveryMachine, ItsGpusSayWhatTheyAre) {
  const Topology topology = load_catalog_node(GetParam());
  for (const NodeIndex gpu : topology.nodes_of(0, NodeKind::gpu)) {
    const DeviceModel& model = *topology.node(gpu).device;
    EXPECT_FALSE(model.architecture.empty());
    EXPECT_GT(model.boost_clock_hz.value, 0.5e9);
    EXPECT_LT(model.boost_clock_hz.value, 3e9);
    EXPECT_GT(model.multiprocessors, 0);
    EXPECT_GT(model.memory_latency_s.value, 0);
  }
}

// f32 lanes of one multiprocessor or compute unit.
int lanes_of(const std::string& architecture) {
  if (architecture == "sm_37") return 192;
  for (const char* narrow : {"sm_60", "sm_70", "sm_75", "sm_80"}) {
    if (architecture == narrow) return 64;
  }
  return 128;
}

// A slip in one of them would show.
TEST_P(EveryMachine, PeakClockAndMultiprocessorsOfAGpuAgree) {
  const Topology topology = load_catalog_node(GetParam());
  for (const NodeIndex gpu : topology.nodes_of(0, NodeKind::gpu)) {
    const DeviceModel& model = *topology.node(gpu).device;
    const double computed = 2 * lanes_of(model.architecture) * model.multiprocessors * model.boost_clock_hz.value;
    EXPECT_NEAR(model.peak_flops_per_s.at(DType::f32).value / computed, 1, 0.02) << model.name;
  }
}

TEST_P(EveryMachine, HasANetworkPort) {
  const Topology topology = load_catalog_node(GetParam());
  for (const NodeIndex nic : topology.nodes_of(0, NodeKind::nic)) EXPECT_TRUE(topology.node(nic).port);
  EXPECT_FALSE(topology.nodes_of(0, NodeKind::nic).empty());
  EXPECT_FALSE(topology.nodes_of(0, NodeKind::cpu).empty());
}

// What messages take, and what NCCL believes, are two figures, and each says where it comes from.
TEST_P(EveryMachine, SaysWhatTheSoftwareOfItsNetworkAdds) {
  const Topology topology = load_catalog_node(GetParam());
  for (const NodeIndex nic : topology.nodes_of(0, NodeKind::nic)) {
    const LinkModel& port = *topology.node(nic).port;
    EXPECT_FALSE(port.transport.empty());
    EXPECT_TRUE(port.hop_latency_s.has_range()) << port.transport;
    EXPECT_LE(port.hop_latency_s.low, port.hop_latency_s.value);
    EXPECT_LE(port.hop_latency_s.value, port.hop_latency_s.high);
    EXPECT_FALSE(port.hop_latency_s.source.empty());
    EXPECT_FALSE(port.advertised_latency_s.source.empty());
  }
}

TEST_P(EveryMachine, TwoOfThemReachEachOther) {
  const Topology topology = make_cluster(GetParam(), 2);
  Router router(topology);
  for (const NodeKind kind : {NodeKind::cpu, NodeKind::gpu, NodeKind::nic}) {
    const auto near = topology.nodes_of(0, kind);
    const auto far = topology.nodes_of(1, kind);
    ASSERT_EQ(near.size(), far.size());
    if (near.empty()) continue;
    EXPECT_GT(router.route(near.front(), far.back())->bandwidth_bytes_per_s, 0.1e9);
    EXPECT_GT(router.route(far.front(), near.back())->latency_s, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, EveryMachine, testing::ValuesIn(catalog_names()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(Catalog, SuggestsAName) {
  try {
    load_catalog_node("hgx-h101");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown catalog node 'hgx-h101'; did you mean 'hgx-h100'?");
  }
}

// Every V100 has six NVLinks and every P100 four.
TEST(Catalog, TheHybridCubeMeshUsesEveryNvlink) {
  const std::pair<const char*, double> machines[] = {{"dgx1-v100", 6 * 22e9}, {"dgx1-p100", 4 * 18e9}};
  for (const auto& [name, expected] : machines) {
    const Topology topology = load_catalog_node(name);
    std::map<NodeIndex, double> rates;
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link& link = topology.link(index);
      if (link.model->kind != LinkKind::nvlink) continue;
      rates[link.from] += link.model->bandwidth_bytes_per_s.value;
      rates[link.to] += link.model->bandwidth_bytes_per_s.value;
    }
    EXPECT_EQ(rates.size(), 8u);
    for (const auto& [gpu, rate] : rates) EXPECT_EQ(rate, expected) << topology.node(gpu).name;
  }
}

TEST(Catalog, DataComesFromTheEnvironmentFirst) {
  ASSERT_EQ(setenv("TANDEM_DATA_DIR", TANDEM_SOURCE_DIR "/tests", 1), 0);
  EXPECT_EQ(find_data("topologies/broken"), std::filesystem::path(TANDEM_SOURCE_DIR "/tests/topologies/broken"));
  EXPECT_TRUE(find_data("topologies/catalog/dgx-a100.yaml").string().starts_with(TANDEM_SOURCE_DIR "/topologies"));
  unsetenv("TANDEM_DATA_DIR");
  EXPECT_THROW(find_data("topologies/no-such-folder"), Error);
}

}  // namespace
}  // namespace tandem
