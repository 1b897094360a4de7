// A simulated machine is calibrated like a real one, and its topology's own figures must come back: to a part in a
// thousand where nothing else is in the way, since simulated times are whole nanoseconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "engine/engine.h"
#include "scenarios/calibration/calibrate.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

constexpr double kPeak = 50e12, kHalfPeak = 400e12, kMemory = 4e12;
constexpr double kToGpu = 50e9, kToHost = 40e9, kBetween = 300e9;
constexpr double kHostLatency = 1.5e-6, kPeerLatency = 0.6e-6;

testing::Matcher<double> about(double value, double tolerance = 1e-3) {
  return AllOf(Ge(value * (1 - tolerance)), Le(value * (1 + tolerance)));
}

Figure figure(double value) {
  return {.value = value, .provenance = Provenance::vendor, .source = "a test's"};
}

DeviceModel gpu_model() {
  DeviceModel model;
  model.name = "test GPU";
  model.copy_engines = 2;
  model.peak_flops_per_s = {{DType::f32, figure(kPeak)}, {DType::bf16, figure(kHalfPeak)}};
  model.memory_bandwidth_bytes_per_s = figure(kMemory);
  model.memory_bytes = figure(64e9);
  model.launch_overhead_s = figure(1e-6);
  model.op_overhead_s = figure(3e-6);
  model.synchronize_s = figure(4e-6);
  return model;
}

DeviceModel cpu_model() {
  DeviceModel model = gpu_model();
  model.name = "test CPU";
  model.cores = 4;
  model.copy_engines = 0;
  model.peak_flops_per_s = {{DType::f32, figure(100e9)}};
  model.memory_bandwidth_bytes_per_s = figure(10e9);
  model.op_overhead_s = figure(0.2e-6);
  return model;
}

std::shared_ptr<const LinkModel> link(LinkKind kind, double bytes_per_s, double latency_s) {
  return std::make_shared<LinkModel>(LinkModel{kind, figure(bytes_per_s), figure(latency_s)});
}

// One host; GPUs each on a link of their own, slower to the host than from it; and all of them on one switch.
std::shared_ptr<const Topology> machine(int gpus, const DeviceModel& gpu = gpu_model()) {
  auto topology = std::make_shared<Topology>("test machine");
  const auto cpu = std::make_shared<const DeviceModel>(cpu_model());
  const auto device = std::make_shared<const DeviceModel>(gpu);
  const NodeIndex host = topology->add_node({.name = "cpu0", .kind = NodeKind::cpu, .worker = 0, .device = cpu});
  const NodeIndex middle = topology->add_node({.name = "nvswitch0", .kind = NodeKind::nvswitch, .worker = 0});
  for (int i = 0; i < gpus; ++i) {
    const NodeIndex node =
        topology->add_node({.name = "gpu" + std::to_string(i), .kind = NodeKind::gpu, .worker = 0, .device = device});
    topology->add_link(host, node, link(LinkKind::pcie, kToGpu, kHostLatency), Direction::one_way);
    topology->add_link(node, host, link(LinkKind::pcie, kToHost, kHostLatency), Direction::one_way);
    topology->add_link(node, middle, link(LinkKind::nvlink, kBetween, kPeerLatency / 2));
  }
  return topology;
}

Topology calibrated(std::shared_ptr<const Topology> topology, int devices, std::vector<DType> dtypes = {}) {
  CalibrateOptions options;
  options.max_devices = devices;
  options.quick = true;
  options.dtypes = std::move(dtypes);
  options.topology = std::move(topology);
  return calibrate("sim", options);
}

const DeviceModel& model_of(const Topology& topology, const std::string& node) {
  return *topology.node(topology.find(node).value()).device;
}

const DeviceRates& rates_of(const DeviceModel& model, int concurrency, DType dtype) {
  for (const DeviceRates& rates : model.rates) {
    if (rates.concurrency == concurrency && rates.dtype == dtype) return rates;
  }
  throw Error("no such rates");
}

const LinkModel& link_between(const Topology& topology, const std::string& from, const std::string& to) {
  for (LinkIndex i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(i);
    if (topology.node(link.from).name == from && topology.node(link.to).name == to) return *link.model;
  }
  throw Error("no link from " + from + " to " + to);
}

double largest_rate(const DeviceRates& rates) {
  return rates.gemm.back().flops_per_s;
}

TEST(SimulatedMachine, GivesBackTheFiguresOfItsGpu) {
  const Topology found = calibrated(machine(1), 1, {DType::f32, DType::bf16});
  const DeviceModel& gpu = model_of(found, "w0.gpu0");
  EXPECT_EQ(gpu.name, "test GPU");
  EXPECT_THAT(gpu.peak_flops_per_s.at(DType::f32).value, about(kPeak));
  EXPECT_THAT(gpu.peak_flops_per_s.at(DType::bf16).value, about(kHalfPeak));
  EXPECT_THAT(gpu.memory_bandwidth_bytes_per_s.value, about(kMemory));
  EXPECT_EQ(gpu.memory_bytes.value, 64e9);
  EXPECT_THAT(gpu.op_overhead_s.value, about(3e-6));
  EXPECT_THAT(gpu.launch_overhead_s.value, about(1e-6));
  EXPECT_THAT(gpu.synchronize_s.value, about(4e-6));
  EXPECT_GT(gpu.copy_engines, 0);
  const DeviceRates& rates = rates_of(gpu, 1, DType::f32);
  EXPECT_THAT(largest_rate(rates), about(kPeak));
  EXPECT_THAT(rates.memory.back().bytes_per_s, about(kMemory));
  EXPECT_THAT(rates.copy.back().bytes_per_s, about(kMemory / 2)) << "read once, written once";
  EXPECT_EQ(rates.kernels.size(), kMeasuredKernels.size());
  EXPECT_THAT(rates.kernels.at("gelu").back().bytes_per_s, about(kMemory));
  EXPECT_EQ(found.provenance(), Provenance::measured);
}

TEST(SimulatedMachine, GivesBackItsLinksWithTheHost) {
  const Topology found = calibrated(machine(1), 1);
  const LinkModel& there = link_between(found, "w0.cpu0", "w0.gpu0");
  const LinkModel& back = link_between(found, "w0.gpu0", "w0.cpu0");
  EXPECT_THAT(there.bandwidth_bytes_per_s.value, about(kToGpu));
  EXPECT_THAT(back.bandwidth_bytes_per_s.value, about(kToHost));
  EXPECT_THAT(there.latency_s.value, about(kHostLatency));
  EXPECT_THAT(back.latency_s.value, about(kHostLatency));
  EXPECT_THAT(model_of(found, "w0.cpu0").peak_flops_per_s.at(DType::f32).value, about(100e9));
}

TEST(SimulatedMachine, GivesBackTheLinksBetweenItsGpus) {
  const Topology two = calibrated(machine(2), 2);
  const LinkModel& direct = link_between(two, "w0.gpu0", "w0.gpu1");
  EXPECT_EQ(direct.kind, LinkKind::nvlink);
  EXPECT_THAT(direct.bandwidth_bytes_per_s.value, about(kBetween));
  EXPECT_THAT(direct.latency_s.value, about(kPeerLatency));
  const Topology four = calibrated(machine(4), 4);
  const LinkModel& port = link_between(four, "w0.nvswitch0", "w0.gpu3");
  EXPECT_THAT(port.bandwidth_bytes_per_s.value, about(kBetween));
  EXPECT_THAT(port.latency_s.value, about(kPeerLatency / 2));
}

TEST(SimulatedMachine, TellsHowMuchCollectivesSlowProductsDown) {
  DeviceModel disturbed = gpu_model();
  disturbed.collective_slowdown = figure(1.2);
  EXPECT_THAT(model_of(calibrated(machine(2, disturbed), 2), "w0.gpu0").collective_slowdown.value, about(1.2));
  EXPECT_THAT(model_of(calibrated(machine(2), 2), "w0.gpu0").collective_slowdown.value, about(1));
  EXPECT_EQ(model_of(calibrated(machine(1), 1), "w0.gpu0").collective_slowdown.value, 0) << "there is none to measure";
}

TEST(SimulatedMachine, TellsWhatOpsOfGraphsCost) {
  DeviceModel model = gpu_model();
  model.graph_launch_overhead_s = figure(0.25e-6);
  model.graph_op_overhead_s = figure(0.75e-6);
  const Topology found = calibrated(machine(1, model), 2);
  EXPECT_THAT(model_of(found, "w0.gpu0").graph_launch_overhead_s.value, about(0.25e-6));
  EXPECT_THAT(model_of(found, "w0.gpu0").graph_op_overhead_s.value, about(0.75e-6));
  EXPECT_THAT(model_of(found, "w0.gpu0").op_overhead_s.value, about(3e-6)) << "of one by itself";
  EXPECT_THAT(rates_of(model_of(found, "w0.gpu0"), 2, DType::f32).graph_op_overhead_s, about(0.75e-6));
}

TEST(SimulatedMachine, TellsWhatProductsAndRecordsCostTheHost) {
  DeviceModel model = gpu_model();
  model.op_overhead_s = figure(0.5e-6);
  model.rates = {{.concurrency = 1,
                  .dtype = DType::f32,
                  .gemm_launch_overhead_s = 12e-6,
                  .record_overhead_s = 2e-6,
                  .gemm = {{.m = 1, .n = 1, .k = 1, .flops_per_s = kPeak}},
                  .memory = {{.bytes = 1, .bytes_per_s = kMemory}},
                  .copy = {}}};
  const DeviceRates found = rates_of(model_of(calibrated(machine(1, model), 1), "w0.gpu0"), 1, DType::f32);
  EXPECT_THAT(found.gemm_launch_overhead_s, about(12e-6));
  EXPECT_THAT(found.record_overhead_s, about(2e-6, 1e-2));
  const DeviceRates none = rates_of(model_of(calibrated(machine(1), 1), "w0.gpu0"), 1, DType::f32);
  EXPECT_EQ(none.gemm_launch_overhead_s, 0) << "the GPU takes longer for such products than the host";
}

TEST(SimulatedMachine, GivesBackMemoryRatesOfEachType) {
  const Topology found = calibrated(machine(1), 1, {DType::f32, DType::bf16});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    EXPECT_THAT(rates_of(model_of(found, "w0.gpu0"), 1, dtype).memory.back().bytes_per_s, about(kMemory));
  }
}

// The host is what ops wait for: the device's share is seen behind other work only.
TEST(SimulatedMachine, TellsTheHostsOverheadFromTheDevices) {
  DeviceModel slowly_issued = gpu_model();
  slowly_issued.launch_overhead_s = figure(6e-6);
  const Topology found = calibrated(machine(1, slowly_issued), 1);
  EXPECT_THAT(model_of(found, "w0.gpu0").launch_overhead_s.value, about(6e-6));
  EXPECT_THAT(model_of(found, "w0.gpu0").op_overhead_s.value, about(3e-6));
}

TEST(SimulatedMachine, KnowsThatLogicalDevicesShareOneGpu) {
  const Topology found = calibrated(machine(1), 2);
  EXPECT_FALSE(found.find("w0.gpu1"));
  const DeviceRates& shared = rates_of(model_of(found, "w0.gpu0"), 2, DType::f32);
  EXPECT_THAT(largest_rate(shared), about(kPeak)) << "of the GPU, which the two divide";
  EXPECT_THAT(shared.memory.back().bytes_per_s, about(kMemory));
  EXPECT_THAT(shared.op_overhead_s, about(3e-6));
  ASSERT_FALSE(found.facts().collectives.empty());
  EXPECT_EQ(found.facts().collectives.front().devices, 2);
}

// A replica's work, large and small, of sizes between those that are measured.
void train(Device& device, Device& cpu) {
  Stream& stream = device.compute_stream();
  const Tensor a = device.allocate(DType::f32, {1500, 1500}), small = device.allocate(DType::f32, {300, 300});
  const Tensor host = cpu.allocate(DType::f32, {1'500'000});
  stream.copy(a.flat_slice(0, host.element_count()), host, Category::input);
  for (int i = 0; i < 10; ++i) {
    stream.launch(op::gemm(a, a, a));
    stream.launch(op::gemm(small, small, small));
    stream.launch(op::scale_add(a, a, -0.1, 1));
    stream.launch(op::scale_add(small, small, -0.1, 1));
  }
  stream.copy(host, a.flat_slice(0, host.element_count()), Category::other);
  device.synchronize();
}

void reduce(Worker& worker, Communicator& group, std::int64_t count) {
  std::vector<Tensor> gradients;
  std::vector<Stream*> streams;
  for (Device* device : worker.devices()) {
    gradients.push_back(device->allocate(DType::f32, {count}));
    streams.push_back(&device->stream(kCommunicationStream));
  }
  group.all_reduce(gradients, Reduction::sum, streams);
  for (Device* device : worker.devices()) device->synchronize();
}

double training_s(std::shared_ptr<const Topology> topology, int devices) {
  EngineOptions options;
  options.workers = {{.job = "localhost", .device_type = DeviceType::gpu, .device_count = devices}};
  options.topology = std::move(topology);
  Nanoseconds took_ns = 0;
  open_engine("sim", std::move(options))->run([&](Worker& worker) {
    std::vector<DeviceId> ids;
    for (Device* device : worker.devices()) ids.push_back(device->id());
    Communicator& group = worker.communicator(ids);
    const Nanoseconds begin = worker.now();
    for (int step = 0; step < 5; ++step) {
      worker.tasks().run_concurrently(
          devices, [&](int d) { train(*worker.devices()[static_cast<std::size_t>(d)], worker.cpu()); });
      reduce(worker, group, 3'000'000);
      reduce(worker, group, 3'000);
    }
    took_ns = worker.now() - begin;
  });
  return static_cast<double>(took_ns) * 1e-9;
}

// With one to three logical devices on a GPU, and on two GPUs; the error is that of interpolation between the sizes.
TEST(SimulatedMachine, PredictsTheSameFromWhatWasFound) {
  constexpr double kTolerance = 0.003;
  for (const auto& [gpus, devices] : {std::pair{1, 1}, {1, 2}, {2, 2}, {1, 3}, {2, 3}}) {
    const auto original = machine(gpus);
    const auto found = std::make_shared<const Topology>(calibrated(original, devices));
    EXPECT_THAT(training_s(found, devices), about(training_s(original, devices), kTolerance))
        << devices << " logical devices on " << gpus;
  }
}

TEST(SimulatedMachine, IsWrittenAndReadBack) {
  const auto written = [](const Topology& topology) {
    std::ostringstream text;
    write_topology_yaml(topology, text);
    return text.str();
  };
  const Topology found = calibrated(machine(2), 3);
  const Topology read = parse_topology_yaml(written(found), "found.yaml");
  EXPECT_EQ(written(read), written(found));
  EXPECT_EQ(read.facts().measured_with.at("engine"), "sim");
  EXPECT_EQ(read.facts().measured_with.at("logical_devices"), "3 on 2");
  EXPECT_EQ(read.facts().measured_with.at("processor"), "test CPU");
}

TEST(SimulatedMachine, OfProcessorsAloneGivesBackTheirs) {
  CalibrateOptions options;
  options.quick = true;
  options.max_devices = 2;
  options.device_type = DeviceType::cpu;
  options.topology = machine(1);
  const Topology found = calibrate("sim", options);
  EXPECT_EQ(found.link_count(), 0U);
  const DeviceModel& cpu = model_of(found, "w0.cpu0");
  EXPECT_EQ(cpu.cores, 4);
  EXPECT_EQ(cpu.copy_engines, 0);
  EXPECT_THAT(cpu.peak_flops_per_s.at(DType::f32).value, about(100e9));
  EXPECT_THAT(largest_rate(rates_of(cpu, 2, DType::f32)), about(100e9)) << "of one core: there are enough";
  EXPECT_THAT(rates_of(cpu, 2, DType::f32).memory.back().bytes_per_s, about(10e9));
}

// Calibrates a simulated machine with one processor of this model.
Topology calibrated(DeviceModel model, int most_devices) {
  auto topology = std::make_shared<Topology>("test machine");
  topology->add_node({.name = "cpu0",
                      .kind = NodeKind::cpu,
                      .worker = 0,
                      .device = std::make_shared<const DeviceModel>(std::move(model))});
  CalibrateOptions options;
  options.quick = true;
  options.max_devices = most_devices;
  options.topology = std::move(topology);
  return calibrate("sim", options);
}

// What threads and datasets cost is a host's own; its kernels are found where the model has rates for them.
TEST(SimulatedMachine, OfProcessorsTellsWhatTheirThreadsAndKernelsCost) {
  DeviceModel model = cpu_model();
  model.wake_up_s = figure(21e-6);
  model.input_element_s = figure(0.25e-6);
  DeviceRates rates{.dtype = DType::f32, .gemm = {{64, 64, 64, 100e9}}, .memory = {{1024, 10e9}}, .copy = {}};
  rates.kernels["softmax"] = {{1024, 0.5e9}};
  model.rates = {rates};
  const Topology found = calibrated(std::move(model), 1);
  const DeviceModel& cpu = model_of(found, "w0.cpu0");
  EXPECT_THAT(cpu.wake_up_s.value, about(21e-6));
  EXPECT_THAT(cpu.input_element_s.value, about(0.25e-6));
  EXPECT_THAT(cpu.launch_overhead_s.value, about(1e-6)) << "not that of threads that sleep";
  const auto& kernels = rates_of(cpu, 1, DType::f32).kernels;
  EXPECT_EQ(kernels.size(), kMeasuredKernels.size());
  EXPECT_THAT(kernels.at("softmax").back().bytes_per_s, about(0.5e9));
  EXPECT_THAT(kernels.at("sum_axis").back().bytes_per_s, about(10e9));
}

TEST(SimulatedMachine, OfProcessorsTellsTheirRatesByTheMemoryInUse) {
  DeviceModel model = cpu_model();
  for (const int devices : {1, 2}) {
    model.in_use.push_back({.devices = devices,
                            .in_use_bytes = 1e6,
                            .memory_bytes_per_s = 5e9 / devices,
                            .copy_many_bytes_per_s = 4e9 / devices});
  }
  const Topology found = calibrated(std::move(model), 2);
  const std::vector<InUseRates>& in_use = model_of(found, "w0.cpu0").in_use;
  ASSERT_GT(in_use.size(), 10U);
  for (const InUseRates& rates : in_use) {
    EXPECT_THAT(rates.memory_bytes_per_s, about(5e9 / rates.devices)) << rates.devices << ", " << rates.in_use_bytes;
    EXPECT_THAT(rates.copy_many_bytes_per_s, about(4e9 / rates.devices));
  }
  EXPECT_EQ(in_use.front().devices, 1);
  EXPECT_EQ(in_use.back().devices, 2);
}

}  // namespace
}  // namespace tandem
