// A simulated cluster is calibrated like a real one, and its topology's own figures must come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scenarios/calibration/calibrate_cluster.h"
#include "scenarios/calibration/cluster_machine.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

testing::Matcher<double> near(double value, double tolerance) {
  return AllOf(Ge(value * (1 - tolerance)), Le(value * (1 + tolerance)));
}

Figure told(double value) {
  return {.value = value, .provenance = Provenance::vendor, .source = "a test's"};
}

constexpr double kRate = 100e6, kSlowRate = 40e6, kDelay = 200e-6, kSlowDelay = 700e-6;

// Machines of two cores behind one switch. The last one has a slower port and a longer way.
std::shared_ptr<Topology> star(int machines, Direction direction = Direction::duplex) {
  DeviceModel model;
  model.name = "test CPU";
  model.cores = 2;
  model.peak_flops_per_s = {{DType::f32, told(100e9)}};
  model.memory_bandwidth_bytes_per_s = told(20e9);
  model.memory_bytes = told(64e9);
  model.launch_overhead_s = told(0.2e-6);
  model.op_overhead_s = told(0.2e-6);
  model.synchronize_s = told(1e-6);
  const auto cpu = std::make_shared<const DeviceModel>(model);
  auto topology = std::make_shared<Topology>("test cluster");
  std::vector<NodeIndex> nodes;
  for (int i = 0; i < machines; ++i) {
    nodes.push_back(topology->add_node(
        {.name = "w" + std::to_string(i) + ".cpu0", .kind = NodeKind::cpu, .worker = i, .device = cpu}));
  }
  const NodeIndex middle = topology->add_node({.name = "switch"});
  for (int i = 0; i < machines; ++i) {
    const bool is_slow = i + 1 == machines;
    topology->add_link(nodes[static_cast<std::size_t>(i)], middle,
                       std::make_shared<LinkModel>(LinkModel{.kind = LinkKind::network,
                                                             .bandwidth_bytes_per_s = told(is_slow ? kSlowRate : kRate),
                                                             .latency_s = told(is_slow ? kSlowDelay : kDelay)}),
                       direction);
  }
  return topology;
}

ClusterCalibration calibrated_cluster(std::shared_ptr<const Topology> topology, int devices = 1) {
  CalibrateOptions options;
  options.max_devices = devices;
  options.quick = true;
  options.topology = std::move(topology);
  return calibrate_cluster("sim", options.topology->worker_count(), options);
}
ClusterCalibration calibrated(int machines, int devices = 1) {
  return calibrated_cluster(star(machines), devices);
}

const LinkModel& link_of(const Topology& topology, const std::string& id) {
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    if (topology.link_model(i).id == id) return topology.link_model(i);
  }
  throw Error("no link " + id);
}

double collective_s(const Topology& topology, const std::string& operation, int devices, int nodes) {
  double largest = 0, time_s = 0;
  for (const CollectiveSample& sample : topology.facts().collectives) {
    if (sample.operation != operation || sample.devices != devices || sample.nodes != nodes) continue;
    if (sample.bytes > largest) largest = sample.bytes, time_s = sample.time_s;
  }
  return time_s;
}

TEST(SimulatedCluster, GivesBackTheFiguresOfItsPorts) {
  const ClusterCalibration found = calibrated(4);
  ASSERT_EQ(found.topology.worker_count(), 4);
  for (const char* port : {"w0_sends", "w0_receives", "w1_sends", "w2_receives"}) {
    const LinkModel& link = link_of(found.topology, port);
    EXPECT_THAT(link.bandwidth_bytes_per_s.value, near(kRate, 0.01)) << port;
    EXPECT_THAT(link.latency_s.value, near(kDelay, 0.01)) << port;
    EXPECT_EQ(link.bandwidth_bytes_per_s.provenance, Provenance::measured);
  }
  for (const char* port : {"w3_sends", "w3_receives"}) {
    EXPECT_THAT(link_of(found.topology, port).bandwidth_bytes_per_s.value, near(kSlowRate, 0.01)) << port;
    EXPECT_THAT(link_of(found.topology, port).latency_s.value, near(kSlowDelay, 0.01)) << port;
  }
}

TEST(SimulatedCluster, GivesBackTheFiguresOfItsMachines) {
  const ClusterCalibration found = calibrated(2, 2);
  for (const char* name : {"w0.cpu0", "w1.cpu0"}) {
    const auto device = found.topology.node(found.topology.find(name).value()).device;
    EXPECT_EQ(device->name, "test CPU");
    EXPECT_THAT(device->peak_flops_per_s.at(DType::f32).value, near(100e9, 0.01));
    EXPECT_THAT(device->op_overhead_s.value, near(0.2e-6, 0.01));
    EXPECT_EQ(device->rates.size(), 2) << "one device, and two together";
  }
}

TEST(SimulatedCluster, HasCollectivesOnSomeAndOnAllMachines) {
  const ClusterCalibration found = calibrated(4, 2);
  EXPECT_GT(collective_s(found.topology, "all_reduce", 2, 1), 0) << "the devices of a machine";
  const double two = collective_s(found.topology, "all_reduce", 2, 2);
  const double four = collective_s(found.topology, "all_reduce", 4, 4);
  EXPECT_GT(two, 0);
  EXPECT_GT(four, two) << "the slow machine is among them";
  EXPECT_GT(collective_s(found.topology, "all_reduce", 8, 4), 0);
  EXPECT_GT(collective_s(found.topology, "all_to_all", 4, 4), 0);
}

// On the topology found, the simulator says of any traffic what it says on the one that was measured.
TEST(SimulatedCluster, CarriesTrafficAsTheMeasuredOneDoes) {
  const ClusterCalibration found = calibrated(4);
  ASSERT_EQ(found.traffic.size(), 4);
  EXPECT_EQ(found.traffic[0].what, "two workers to each other");
  EXPECT_EQ(found.traffic[1].what, "one to the second and from the third");
  EXPECT_EQ(found.traffic[2].what, "two pairs together");
  EXPECT_EQ(found.traffic[3].what, "3 workers to one");
  for (const TrafficCheck& check : found.traffic) {
    EXPECT_THAT(check.simulated_bytes_per_s, near(check.measured_bytes_per_s, 0.02)) << check.what;
  }
  EXPECT_FALSE(found.topology.facts().exchanges_in_turn);
  EXPECT_LT(found.traffic[3].measured_bytes_per_s, 0.5 * kRate) << "all share the port of one";
}

// The third machine is the slow one, whose copies leave the port of the first one free for others.
TEST(SimulatedCluster, FindsThatDirectionsShareTheirRate) {
  const ClusterCalibration found = calibrated_cluster(star(3, Direction::half_duplex));
  EXPECT_FALSE(found.topology.facts().exchanges_in_turn);
  EXPECT_THAT(link_of(found.topology, "w0_port").bandwidth_bytes_per_s.value, near(kRate, 0.01));
  for (const TrafficCheck& check : found.traffic) {
    EXPECT_THAT(check.simulated_bytes_per_s, near(check.measured_bytes_per_s, 0.02)) << check.what;
  }
  EXPECT_THAT(found.traffic.front().measured_bytes_per_s, near(kRate / 2, 0.02));
}

TEST(SimulatedCluster, FindsThatMachinesSendToEachOtherInTurn) {
  for (const int machines : {2, 3, 4}) {
    const auto topology = star(machines);
    topology->facts().exchanges_in_turn = true;
    const ClusterCalibration found = calibrated_cluster(topology);
    EXPECT_TRUE(found.topology.facts().exchanges_in_turn);
    EXPECT_THAT(link_of(found.topology, "w0_sends").bandwidth_bytes_per_s.value,
                near(machines == 2 ? kSlowRate : kRate, 0.01));
    for (const TrafficCheck& check : found.traffic) {
      EXPECT_THAT(check.simulated_bytes_per_s, near(check.measured_bytes_per_s, 0.02)) << check.what;
    }
    EXPECT_THAT(found.traffic.front().measured_bytes_per_s, near((machines == 2 ? kSlowRate : kRate) / 2, 0.02));
  }
}

TEST(SimulatedCluster, FindsHowUnevenlyCopiesShareAPort) {
  EXPECT_EQ(calibrated(4).topology.facts().share_spread, 0);
  const auto topology = star(5);  // each has a quarter of the port, less than the slow machine's rate
  topology->facts().share_spread = 0.4;
  const ClusterCalibration found = calibrated_cluster(topology);
  EXPECT_THAT(found.topology.facts().share_spread, near(0.4, 0.35)) << "from 45 copies";
  EXPECT_THAT(link_of(found.topology, "w0_sends").bandwidth_bytes_per_s.value, near(kRate, 0.01));
  EXPECT_FALSE(found.topology.facts().exchanges_in_turn);
}

TEST(SimulatedCluster, IsWrittenAndReadBack) {
  const ClusterCalibration found = calibrated(3);
  std::ostringstream text;
  write_topology_yaml(found.topology, text);
  const Topology read = parse_topology_yaml(text.str(), "cluster.yaml");
  std::ostringstream again;
  write_topology_yaml(read, again);
  EXPECT_EQ(again.str(), text.str());
}

TEST(SimulatedCluster, IsRefusedWhereThereIsNone) {
  EXPECT_THAT([] { calibrate_cluster("sim", 1, {.topology = star(2)}); },
              testing::ThrowsMessage<UsageError>(HasSubstr("fewer than two machines")));
}

TEST(ClusterPaths, AreAllPairsOrTwoRings) {
  EXPECT_EQ(calibration::paths_between(2).size(), 2);
  EXPECT_EQ(calibration::paths_between(8).size(), 56);
  const std::vector<calibration::Path> rings = calibration::paths_between(10);
  EXPECT_EQ(rings.size(), 20);
  for (const calibration::Path& path : rings) {
    EXPECT_THAT((path.to - path.from + 10) % 10, testing::AnyOf(1, 5));
  }
}

TEST(ClusterPaths, LatenciesOfPortsAddUpToThoseOfPairs) {
  const std::vector<double> own = {1e-6, 2e-6, 4e-6};
  std::vector<calibration::MeasuredPath> paths;
  for (const calibration::Path& path : calibration::paths_between(3)) {
    calibration::MeasuredPath measured;
    measured.path = path;
    measured.latency_s = own[static_cast<std::size_t>(path.from)] + own[static_cast<std::size_t>(path.to)];
    measured.bytes_per_s = 1e9;
    paths.push_back(measured);
  }
  const std::vector<calibration::Port> ports = calibration::ports_of(3, paths);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(ports[i].latency_s, own[i], 1e-12);
}

}  // namespace
}  // namespace tandem
