#include "topologies/readers/topology_yaml.h"
#include "topologies/network_software.h"

#include <fstream>
#include <sstream>

#include "tests/topologies/testing.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

std::string written(const Topology& topology) {
  std::ostringstream stream;
  write_topology_yaml(topology, stream);
  return stream.str();
}

constexpr const char* kEverything = R"(schema_version: 1
name: everything
provenance: vendor
source: the datasheet
p2p: false
exchanges: in_turn
share_spread: 0.25
nvlink_domain: 4
price: 98.5 $/h
measured_with: {gpus: 'two "GPUs"', gpu_clocks: SM 1755 of 1980 MHz}
device_models:
  gpu:
    name: a "GPU" \ with odd letters
    architecture: gfx90a
    multiprocessors: 104
    cores: 2
    copy_engines: 3
    peak_flops: {f32: 10TFLOPS, bf16: {value: 0.1TFLOPS, provenance: measured, source: here, date: 2026-11-20, spread: 0.02}}
    memory_bandwidth: 900GB/s
    memory: 16GiB
    boost_clock: 1.7GHz
    memory_latency: {value: 0.41us, provenance: measured, source: a paper}
    launch_overhead: {value: 1.3us, provenance: assumed}
    op_overhead: 0
    graph_launch_overhead: 0.1us
    graph_op_overhead: {value: 0.9us, provenance: measured, source: here}
    wake_up: {value: 21us, provenance: measured, source: here}
    wake_call: 11us
    hand_over: {value: 4us, provenance: measured, source: here}
    wake_ups: [{idle: 1ms, time: 30us}, {idle: 4ms, time: 50us}]
    in_use: [{devices: 1, bytes: 4MB, memory: 90GB/s, copy_many: 80GB/s}, {devices: 1, bytes: 40MB, memory: 30GB/s, copy_many: 20GB/s}]
    input_element: 0.2us
    collective_slowdown: {value: 1.12, provenance: measured, source: here, spread: 0.01}
    gemm_efficiency: 0.7
    rates:
      - {concurrency: 2, dtype: f32, op_overhead: 2.5us, launch_overhead: 3us, graph_op_overhead: 0.8us, graph_launch_overhead: 0.2us, gemm_launch_overhead: 7us, record_overhead: 1.5us, gemm: [{m: 64, n: 32, k: 16, rate: 1.23456789GFLOPS}], memory: [{bytes: 1MiB, rate: 3.3GB/s}, {bytes: 2MiB, rate: 3.1GB/s}], copy: [{bytes: 7, rate: 1.5}], kernels: {sum_axis: [{bytes: 1MiB, rate: 2GB/s}], relu: [{bytes: 1kB, rate: 9GB/s}, {bytes: 4kB, rate: 8GB/s}]}}
link_models:
  nv: {kind: nvlink, bandwidth: 25GB/s, latency: 0.7us}
  net: {kind: network, bandwidth: 200Gbps, latency: 1us, provenance: assumed, transport: efa, hop_latency: {value: 30us, low: 20us, high: 45us, source: a table}, advertised_latency: {value: 75us, source: plug-in}}
nodes:
  - {name: g0, kind: gpu, device: gpu}
  - {name: g1, kind: gpu, device: gpu}
  - {name: n0, kind: nic, port: net}
  - {name: far, kind: gpu, device: gpu, worker: 1}
  - {name: s, kind: network_switch}
links:
  - {from: g0, to: [g1, far], model: nv}
  - {from: g1, to: n0, model: nv, direction: half_duplex}
  - {from: n0, to: s, model: net, direction: one_way}
collectives:
  - {operation: all_reduce, devices: 2, bytes: 1MiB, time: 33.3us, spread: 0.011}
  - {operation: all_to_all, devices: 16, nodes: 2, bytes: 1MiB, time: 90us, algorithm: 'ring "LL"'}
)";

TEST(TopologyYaml, FiguresInheritTheirOriginUnlessTheyStateOne) {
  const Topology topology = parse_topology_yaml(kEverything, "t.yaml");
  const DeviceModel& gpu = *topology.node(0).device;
  EXPECT_EQ(gpu.memory_bandwidth_bytes_per_s.provenance, Provenance::vendor);
  EXPECT_EQ(gpu.memory_bandwidth_bytes_per_s.source, "the datasheet");
  EXPECT_EQ(gpu.launch_overhead_s.provenance, Provenance::assumed);
  EXPECT_EQ(gpu.launch_overhead_s.source, "");  // a source belongs to its provenance
  const Figure& measured = gpu.peak_flops_per_s.at(DType::bf16);
  EXPECT_EQ(measured.provenance, Provenance::measured);
  EXPECT_EQ(measured.date, "2026-11-20");
  EXPECT_EQ(measured.relative_spread, 0.02);
  EXPECT_EQ(topology.node(2).port->bandwidth_bytes_per_s.value, 25e9);
  EXPECT_EQ(topology.node(2).port->bandwidth_bytes_per_s.provenance, Provenance::assumed);
}

TEST(TopologyYaml, ReadsTheGraph) {
  const Topology topology = parse_topology_yaml(kEverything, "t.yaml");
  EXPECT_EQ(topology.name(), "everything");
  EXPECT_EQ(topology.worker_count(), 2);
  EXPECT_EQ(topology.node(node_named(topology, "s")).worker, kNoWorker);
  EXPECT_EQ(topology.link_count(), 4u);
  EXPECT_EQ(topology.link(2).direction, Direction::half_duplex);
  ASSERT_EQ(topology.facts().collectives.size(), 2u);
  EXPECT_EQ(topology.facts().collectives[0].nodes, 1);
  EXPECT_EQ(topology.facts().collectives[1].nodes, 2);
  EXPECT_EQ(topology.facts().collectives[1].algorithm, "ring \"LL\"");
  EXPECT_EQ(topology.facts().collectives[0].bytes, 1048576.0);
  ASSERT_EQ(topology.node(0).device->rates.size(), 1u);
  EXPECT_EQ(topology.node(0).device->rates[0].gemm[0].flops_per_s, 1.23456789e9);
}

TEST(TopologyYaml, ReadsWhatCollectiveAndKernelModelsNeed) {
  const Topology topology = parse_topology_yaml(kEverything, "t.yaml");
  EXPECT_FALSE(topology.facts().p2p);
  EXPECT_TRUE(topology.facts().exchanges_in_turn);
  EXPECT_EQ(topology.facts().share_spread, 0.25);
  EXPECT_EQ(topology.facts().nvlink_domain, 4);
  const DeviceModel& gpu = *topology.node(0).device;
  EXPECT_EQ(gpu.architecture, "gfx90a");
  EXPECT_EQ(gpu.multiprocessors, 104);
  EXPECT_EQ(gpu.boost_clock_hz.value, 1.7e9);
  EXPECT_EQ(gpu.boost_clock_hz.source, "the datasheet");
  EXPECT_EQ(gpu.memory_latency_s.value, 0.41e-6);
  const LinkModel& port = *topology.node(2).port;
  EXPECT_EQ(port.transport, "efa");
  EXPECT_EQ(port.hop_latency_s.value, 30e-6);
  EXPECT_TRUE(port.hop_latency_s.has_range());
  EXPECT_EQ(port.hop_latency_s.low, 20e-6);
  EXPECT_EQ(port.hop_latency_s.high, 45e-6);
  EXPECT_EQ(port.advertised_latency_s.value, 75e-6);
  EXPECT_FALSE(port.advertised_latency_s.has_range());
  EXPECT_EQ(topology.link(0).model->transport, "");
}

void expect_equal(const Figure& a, const Figure& b) {
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.provenance, b.provenance);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.date, b.date);
  EXPECT_EQ(a.relative_spread, b.relative_spread);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(TopologyYaml, WritingAndReadingGivesTheSame) {
  const Topology first = parse_topology_yaml(kEverything, "t.yaml");
  const Topology second = parse_topology_yaml(written(first), "u.yaml");
  EXPECT_EQ(written(first), written(second));
  EXPECT_EQ(second.name(), first.name());
  ASSERT_EQ(second.node_count(), first.node_count());
  ASSERT_EQ(second.link_count(), first.link_count());
  for (NodeIndex i = 0; i < first.node_count(); ++i) {
    EXPECT_EQ(second.node(i).name, first.node(i).name);
    EXPECT_EQ(second.node(i).kind, first.node(i).kind);
    EXPECT_EQ(second.node(i).worker, first.node(i).worker);
  }
  const DeviceModel& before = *first.node(0).device;
  const DeviceModel& after = *second.node(0).device;
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.copy_engines, before.copy_engines);
  expect_equal(after.peak_flops_per_s.at(DType::bf16), before.peak_flops_per_s.at(DType::bf16));
  expect_equal(after.launch_overhead_s, before.launch_overhead_s);
  expect_equal(after.op_overhead_s, before.op_overhead_s);
  expect_equal(after.synchronize_s, before.synchronize_s);
  expect_equal(after.boost_clock_hz, before.boost_clock_hz);
  expect_equal(after.memory_latency_s, before.memory_latency_s);
  EXPECT_EQ(after.architecture, before.architecture);
  EXPECT_EQ(after.multiprocessors, before.multiprocessors);
  EXPECT_EQ(second.node(2).port->transport, first.node(2).port->transport);
  expect_equal(second.node(2).port->hop_latency_s, first.node(2).port->hop_latency_s);
  expect_equal(second.node(2).port->advertised_latency_s, first.node(2).port->advertised_latency_s);
  EXPECT_EQ(second.facts().p2p, first.facts().p2p);
  EXPECT_EQ(second.facts().exchanges_in_turn, first.facts().exchanges_in_turn);
  EXPECT_EQ(second.facts().share_spread, first.facts().share_spread);
  expect_equal(after.graph_launch_overhead_s, before.graph_launch_overhead_s);
  expect_equal(after.graph_op_overhead_s, before.graph_op_overhead_s);
  expect_equal(after.collective_slowdown, before.collective_slowdown);
  EXPECT_EQ(after.collective_slowdown.value, 1.12);
  expect_equal(after.wake_up_s, before.wake_up_s);
  EXPECT_DOUBLE_EQ(after.wake_up_s.value, 21e-6);
  expect_equal(after.wake_call_s, before.wake_call_s);
  expect_equal(after.hand_over_s, before.hand_over_s);
  EXPECT_DOUBLE_EQ(after.hand_over_s.value, 4e-6);
  ASSERT_EQ(after.in_use.size(), 2U);
  EXPECT_EQ(after.in_use[1].devices, 1);
  EXPECT_DOUBLE_EQ(after.in_use[1].in_use_bytes, 40e6);
  EXPECT_DOUBLE_EQ(after.in_use[1].memory_bytes_per_s, 30e9);
  EXPECT_DOUBLE_EQ(after.in_use[1].copy_many_bytes_per_s, 20e9);
  ASSERT_EQ(after.wake_ups.size(), 2U);
  EXPECT_DOUBLE_EQ(after.wake_ups[1].idle_s, 4e-3);
  EXPECT_DOUBLE_EQ(after.wake_ups[1].time_s, 50e-6);
  expect_equal(after.input_element_s, before.input_element_s);
  EXPECT_DOUBLE_EQ(after.input_element_s.value, 0.2e-6);
  ASSERT_EQ(after.rates[0].kernels.size(), 2U);
  EXPECT_EQ(after.rates[0].kernels.at("relu")[1].bytes_per_s, 8e9);
  EXPECT_EQ(after.rates[0].kernels.at("sum_axis")[0].bytes, 1048576.0);
  EXPECT_DOUBLE_EQ(after.rates[0].graph_op_overhead_s, 0.8e-6);
  EXPECT_DOUBLE_EQ(after.rates[0].graph_launch_overhead_s, 0.2e-6);
  EXPECT_DOUBLE_EQ(after.rates[0].gemm_launch_overhead_s, 7e-6);
  EXPECT_DOUBLE_EQ(after.rates[0].record_overhead_s, 1.5e-6);
  expect_equal(after.gemm_efficiency, before.gemm_efficiency);
  EXPECT_EQ(after.rates[0].copy[0].bytes_per_s, before.rates[0].copy[0].bytes_per_s);
  EXPECT_EQ(after.rates[0].op_overhead_s, 2.5e-6);
  EXPECT_EQ(after.rates[0].launch_overhead_s, 3e-6);
  EXPECT_EQ(second.facts().measured_with, first.facts().measured_with);
  EXPECT_EQ(first.facts().measured_with.at("gpus"), "two \"GPUs\"");
  EXPECT_EQ(second.facts().collectives[0].time_s, first.facts().collectives[0].time_s);
}

TEST(TopologyYaml, WritesAwkwardNumbersExactly) {
  Topology topology("numbers");
  const NodeIndex a = add_test_node(topology, "a", NodeKind::nvswitch);
  const NodeIndex b = add_test_node(topology, "b", NodeKind::nvswitch);
  double value = 1e4 / 3;
  for (int i = 0; i < 16; ++i, value *= 7.77) topology.add_link(a, b, test_link(LinkKind::pcie, value, 1e3 / value));
  const Topology again = parse_topology_yaml(written(topology), "t.yaml");
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    EXPECT_EQ(again.link(i).model->bandwidth_bytes_per_s.value, topology.link(i).model->bandwidth_bytes_per_s.value);
    EXPECT_EQ(again.link(i).model->latency_s.value, topology.link(i).model->latency_s.value);
  }
}

TEST(TopologyYaml, RoundTripOfEveryMachineAndOfAFatTree) {
  for (const std::string& name : catalog_names()) {
    const Topology topology = load_catalog_node(name);
    EXPECT_EQ(written(parse_topology_yaml(written(topology), "t.yaml")), written(topology)) << name;
  }
  Fabric fabric;
  fabric.kind = FabricKind::rail;
  fabric.oversubscription = 3;
  fabric.workers_per_leaf = 2;
  const Topology tree = make_cluster("hgx-h200", 5, fabric);
  EXPECT_EQ(written(parse_topology_yaml(written(tree), "t.yaml")), written(tree));
}

TEST(TopologyYaml, ClusterFormBuildsWhatTheGeneratorBuilds) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\nname: what-if\n"
      "cluster: {node: hgx-h100, workers: 4, fabric: {kind: leaf_spine, workers_per_leaf: 2, spines: 2, latency: "
      "3us}}\n",
      "t.yaml");
  Fabric fabric;
  fabric.kind = FabricKind::leaf_spine;
  fabric.workers_per_leaf = 2;
  fabric.spines = 2;
  fabric.latency_s = Figure{3e-6, Provenance::assumed, "stated in t.yaml", "", 0};
  EXPECT_EQ(written(topology), written(make_cluster("hgx-h100", 4, fabric, "what-if")));
}

TEST(TopologyYaml, AFabricStatesItsTransportAndWhatItsSoftwareAdds) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\np2p: false\n"
      "cluster: {node: hgx-h100, workers: 2, fabric: {kind: switch, transport: tcpx, hop_latency: 300us}}\n",
      "t.yaml");
  EXPECT_FALSE(topology.facts().p2p);
  const LinkModel& port = *topology.node(node_named(topology, "w1.nic7")).port;
  EXPECT_EQ(port.transport, "tcpx");
  EXPECT_EQ(port.hop_latency_s.value, 300e-6);
  EXPECT_EQ(port.hop_latency_s.source, "stated in t.yaml");
  EXPECT_EQ(topology.link(static_cast<LinkIndex>(topology.link_count() - 1)).model->transport, "tcpx");
}

// A transport brings what is usual for it only where the file says nothing.
TEST(TopologyYaml, AStatedLatencyOfNothingIsKept) {
  const std::string text =
      "schema_version: 1\nnodes:\n  - {name: nic0, kind: nic, worker: 0}\n  - {name: nic1, kind: nic, worker: 1}\n"
      "link_models:\n  net: {kind: network, bandwidth: 50GB/s, latency: 1us, transport: efa, hop_latency: 0us}\n"
      "links:\n  - {from: nic0, to: nic1, model: net}\n";
  const Topology first = parse_topology_yaml(text, "t.yaml");
  EXPECT_EQ(first.link_model(0).hop_latency_s.value, 0);
  EXPECT_EQ(first.link_model(0).advertised_latency_s.value, 75e-6);
  const Topology second = parse_topology_yaml(written(first), "again.yaml");
  EXPECT_EQ(second.link_model(0).hop_latency_s.value, 0);
  LinkModel model = second.link_model(0);
  set_transport("efa", model);
  EXPECT_EQ(model.hop_latency_s.value, 0);
}

TEST(TopologyYaml, OverridesReplaceSingleFigures) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\n"
      "cluster:\n  node: hgx-h100\n  workers: 1\n"
      "  overrides: {nvlink: {bandwidth: 300GB/s}, gpu: {op_overhead: 2us, peak_flops: {bf16: 500TFLOPS}}}\n",
      "t.yaml");
  const Topology plain = make_cluster("hgx-h100", 1);
  const DeviceModel& gpu = *topology.node(node_named(topology, "w0.gpu0")).device;
  EXPECT_EQ(gpu.op_overhead_s.value, 2e-6);
  EXPECT_EQ(gpu.op_overhead_s.source, "overridden in t.yaml");
  EXPECT_EQ(gpu.peak_flops_per_s.at(DType::bf16).value, 500e12);
  EXPECT_EQ(gpu.peak_flops_per_s.at(DType::f32).value, 67e12);
  Router router(topology);
  const auto route = router.route(node_named(topology, "w0.gpu0"), node_named(topology, "w0.gpu1"));
  EXPECT_EQ(route->bandwidth_bytes_per_s, 300e9);
  EXPECT_DOUBLE_EQ(route->latency_s, 0.6e-6);
}

TEST(TopologyYaml, AVariantReplacesFiguresAndLeavesNodesOut) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\nname: half\nbased_on: hgx-h100\np2p: false\n"
      "overrides: {gpu: {name: Slow, memory: 40GB, provenance: vendor, source: sheet}, network: {transport: roce}}\n"
      "without: [gpu7, nic7]\n",
      "t.yaml");
  const Topology base = load_catalog_node("hgx-h100");
  EXPECT_EQ(topology.name(), "half");
  EXPECT_EQ(topology.node_count(), base.node_count() - 2);
  EXPECT_EQ(topology.link_count(), base.link_count() - 3);
  EXPECT_FALSE(topology.find("gpu7"));
  EXPECT_FALSE(topology.facts().p2p);
  const DeviceModel& gpu = *topology.node(node_named(topology, "gpu6")).device;
  EXPECT_EQ(gpu.name, "Slow");
  EXPECT_EQ(gpu.memory_bytes.value, 40e9);
  EXPECT_EQ(gpu.memory_bytes.source, "sheet");
  EXPECT_EQ(gpu.memory_bandwidth_bytes_per_s.value, 3.35e12);
  EXPECT_EQ(topology.node(node_named(topology, "nic0")).port->transport, "roce");
  EXPECT_EQ(way(topology, "gpu0", "gpu6"), (std::vector<std::string>{"gpu0", "nvswitch0", "gpu6"}));
}

// A device with a name of its own has no rates of the one it replaces.
TEST(TopologyYaml, AnotherDeviceHasItsOwnPeaks) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\nbased_on: pcie-8gpu\noverrides: {gpu: {name: Other, peak_flops: {f32: 1TFLOPS}}}\n",
      "t.yaml");
  const DeviceModel& gpu = *topology.node(node_named(topology, "gpu0")).device;
  EXPECT_EQ(gpu.peak_flops_per_s.size(), 1u);
  EXPECT_EQ(gpu.peak_flops_per_s.at(DType::f32).value, 1e12);
}

TEST(TopologyYaml, AVariantOfAVariantAndAClusterOfIt) {
  const auto folder = std::filesystem::path(testing::TempDir());
  std::ofstream(folder / "tandem_a.yaml") << "schema_version: 1\nbased_on: dgx1-v100\np2p: false\nwithout: [nic3]\n";
  std::ofstream(folder / "tandem_b.yaml") << "schema_version: 1\nbased_on: ./tandem_a.yaml\nwithout: [nic2]\n";
  const Topology topology = parse_topology_yaml("schema_version: 1\ncluster: {node: ./tandem_b.yaml, workers: 2}\n",
                                                (folder / "c.yaml").string());
  EXPECT_EQ(topology.nodes_of(1, NodeKind::nic).size(), 2u);
  EXPECT_FALSE(topology.facts().p2p);
  std::filesystem::remove(folder / "tandem_a.yaml");
  std::filesystem::remove(folder / "tandem_b.yaml");
}

TEST(TopologyYaml, AFabricMayConnectSomeNicsOnly) {
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\ncluster: {node: dgx1-v100, workers: 2, fabric: {kind: switch, nics: [nic0, nic2]}}\n",
      "t.yaml");
  const NodeIndex fabric = node_named(topology, "fabric.switch0");
  int cables = 0;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) cables += topology.link(index).to == fabric;
  EXPECT_EQ(cables, 4);
  EXPECT_TRUE(topology.node(node_named(topology, "w1.nic2")).port);
  EXPECT_FALSE(topology.node(node_named(topology, "w1.nic1")).port);
}

TEST(TopologyYaml, AMachineMayBeAFileOfYourOwn) {
  const auto folder = std::filesystem::path(testing::TempDir());
  std::ofstream(folder / "tandem_machine.yaml") << written(load_catalog_node("cpu-host"));
  const Topology topology = parse_topology_yaml(
      "schema_version: 1\ncluster: {node: ./tandem_machine.yaml, workers: 3}\n", (folder / "c.yaml").string());
  EXPECT_EQ(topology.worker_count(), 3);
  std::filesystem::remove(folder / "tandem_machine.yaml");
}

// The examples of docs/topology.md that are whole files.
TEST(TopologyYaml, TheDocumentedExamplesAreValid) {
  const std::string page = read_input_file(TANDEM_SOURCE_DIR "/docs/topology.md");
  const std::string fence = "```yaml\n";
  int examples = 0;
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    std::string example = page.substr(begin, page.find("```", begin) - begin);
    if (example.starts_with("cluster:")) example.insert(0, "schema_version: 1\n");
    if (!example.starts_with("schema_version:")) continue;
    EXPECT_NO_THROW(parse_topology_yaml(example, "docs/topology.md")) << example;
    ++examples;
  }
  EXPECT_EQ(examples, 5);
}

TEST(TopologyYaml, ContentTellsTheFormat) {
  EXPECT_FALSE(is_own_topology("<system version=\"1\"/>"));
  EXPECT_FALSE(is_own_topology("\xEF\xBB\xBF\n  <?xml version=\"1.0\"?>"));
  EXPECT_TRUE(is_own_topology("schema_version: 1"));
  EXPECT_TRUE(is_own_topology("{\"schema_version\": 1}"));
  EXPECT_TRUE(is_own_topology(""));
}

}  // namespace
}  // namespace tandem
