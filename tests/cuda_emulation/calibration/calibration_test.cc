// Calibrating emulated GPUs: everything a calibration issues is done by the engine, and the topology has what was
// there.
#include "scenarios/calibration/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "engine/engine.h"
#include "tests/cuda_emulation/emulation.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// GPUs with little memory are measured at small sizes only, which is quick.
Topology calibrated(int gpus, int devices, std::vector<DType> dtypes) {
  emulation::start({.gpus = gpus, .memory_bytes = std::size_t{64} << 20});
  CalibrateOptions options;
  options.max_devices = devices;
  options.quick = true;
  options.warm_up_s = 0.1;
  options.dtypes = std::move(dtypes);
  return calibrate("cuda", options);
}

std::set<std::string> names_of(const Topology& topology) {
  std::set<std::string> names;
  for (NodeIndex i = 0; i < topology.node_count(); ++i) names.insert(topology.node(i).name);
  return names;
}

TEST(EmulatedCalibration, MeasuresLogicalDevicesThatShareAGpu) {
  const Topology found = calibrated(1, 2, {DType::f32, DType::bf16});
  EXPECT_EQ(names_of(found), (std::set<std::string>{"w0.cpu0", "w0.gpu0"}));
  EXPECT_EQ(found.link_count(), 2U) << "from the host and back";
  const DeviceModel& gpu = *found.node(found.find("w0.gpu0").value()).device;
  std::set<std::pair<int, DType>> measured;
  for (const DeviceRates& rates : gpu.rates) {
    measured.insert({rates.concurrency, rates.dtype});
    EXPECT_FALSE(rates.gemm.empty());
  }
  EXPECT_EQ(measured.size(), 4U) << "two types, one device and two";
  EXPECT_EQ(gpu.memory_bytes.value, 64 << 20);
  EXPECT_EQ(found.facts().collectives.front().devices, 2);
  EXPECT_THAT(found.facts().measured_with.at("gpus"), HasSubstr("compute capability"));
  EXPECT_EQ(found.facts().measured_with.at("logical_devices"), "2 on 1");
  EXPECT_TRUE(found.facts().measured_with.contains("nccl"));
  EXPECT_TRUE(found.facts().measured_with.contains("cublas"));
  EXPECT_THAT(found.facts().measured_with.at("gpu_most_clocks"), HasSubstr("MHz"));
}

TEST(EmulatedCalibration, MeasuresGpusAndTheLinksBetweenThem) {
  const Topology found = calibrated(2, 2, {DType::f32});
  EXPECT_EQ(names_of(found), (std::set<std::string>{"w0.cpu0", "w0.gpu0", "w0.gpu1"}));
  EXPECT_EQ(found.link_count(), 6U) << "each GPU with the host, and the two, both ways";
  const DeviceModel& gpu = *found.node(found.find("w0.gpu0").value()).device;
  EXPECT_GE(gpu.collective_slowdown.value, 1);
  EXPECT_THAT(gpu.collective_slowdown.source, HasSubstr("products beside all-reduces"));
  EXPECT_GT(gpu.graph_launch_overhead_s.value, 0);
  EXPECT_THAT(gpu.graph_op_overhead_s.source, HasSubstr("ops of graphs"));
  EXPECT_THAT(gpu.op_overhead_s.source, HasSubstr("without records"));
  std::ostringstream yaml;
  write_topology_yaml(found, yaml);
  EXPECT_EQ(parse_topology_yaml(yaml.str(), "found.yaml").link_count(), 6U);
}

}  // namespace
}  // namespace tandem
