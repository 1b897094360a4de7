// A device fitted to a throughput has it.
#include "scenarios/fitting/device_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "scenarios/fitting/device_limits.h"
#include "scenarios/run/runner.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class DeviceFitTest : public testing::Test {
 protected:
  std::vector<MeasuredThroughput> measured(const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "one-gpu.yaml";
    std::ofstream(path) << text;
    return read_throughputs(path);
  }
};

constexpr const char* kOne = R"(schema_version: 1
throughput:
  - {workload: {kind: layers, model: resnet50, dtype: f16, batch: 256}, per_second: 2375}
)";

TEST_F(DeviceFitTest, HasTheMeasuredThroughput) {
  const Topology node = load_catalog_node("dgx-a100");
  const DeviceFit fit = fit_device(node, measured(kOne));
  ASSERT_EQ(fit.throughputs.size(), 1U);
  EXPECT_EQ(fit.throughputs[0].measured, 2375);
  EXPECT_NEAR(fit.throughputs[0].after / 2375, 1, 2e-6);
  EXPECT_NE(fit.throughputs[0].before, fit.throughputs[0].after);
  const NodeIndex gpu = *fit.topology.find("gpu0");
  const Figure& before = node.node(gpu).device->memory_bandwidth_bytes_per_s;
  const Figure& after = fit.topology.node(gpu).device->memory_bandwidth_bytes_per_s;
  EXPECT_DOUBLE_EQ(after.value, before.value / fit.factor);
  EXPECT_EQ(after.provenance, Provenance::measured);
  EXPECT_EQ(after.source, "fitted to 2375/s (one-gpu.yaml)");
  EXPECT_EQ(fit.topology.node(*fit.topology.find("gpu7")).device, fit.topology.node(gpu).device) << "all of that kind";
  const NodeIndex cpu = *fit.topology.find("cpu0");
  EXPECT_EQ(fit.topology.node(cpu).device, node.node(cpu).device) << "not the host";
  EXPECT_EQ(fit.topology.link_count(), node.link_count());
}

TEST_F(DeviceFitTest, SeveralMeasurementsMeetInTheMiddle) {
  const Topology node = load_catalog_node("dgx-a100");
  const DeviceFit both = fit_device(node, measured(R"(schema_version: 1
throughput:
  - {workload: {kind: layers, model: resnet50, dtype: f16, batch: 256}, per_second: 2000}
  - {workload: {kind: layers, model: resnet50, dtype: f16, batch: 256}, per_second: 1000}
)"));
  const auto error = [](const DeviceFit::Throughput& each) { return std::log(each.after / each.measured); };
  EXPECT_LT(error(both.throughputs[0]), -0.3);
  EXPECT_GT(error(both.throughputs[1]), 0.3);
  EXPECT_NEAR(error(both.throughputs[0]) + error(both.throughputs[1]), 0, 0.1);
}

std::string throughput_of_resnet(const std::string& per_second, const std::string& dtype = "f16") {
  return "schema_version: 1\nthroughput:\n  - {workload: {kind: layers, model: resnet50, dtype: " + dtype +
         ", batch: 256}, per_second: " + per_second + "}\n";
}

// 20,000 images/s take 24.4 GFLOP each, 487 TFLOPS.
TEST_F(DeviceFitTest, SaysWhatContradictsThePeakRate) {
  const DeviceFit fit = fit_device(load_catalog_node("dgx-a100"), measured(throughput_of_resnet("20000")));
  ASSERT_EQ(fit.contradictions.size(), 1U);
  EXPECT_EQ(fit.contradictions[0],
            "one-gpu.yaml: 20.0 k per s would need 487.2 TFLOPS in f16, and the peak of 'NVIDIA A100 SXM4 80 GB' is "
            "312.0 TFLOPS");
  ASSERT_EQ(fit.notes.size(), 1U);
  EXPECT_THAT(fit.notes[0], HasSubstr("devices take 0.1295 times as long as their figures said"));
}

// Few of the passes over which gradients are accumulated are simulated; the work of all is that of a run of all.
TEST_F(DeviceFitTest, ManyPassesTakeTheWorkOfAll) {
  const Topology node = load_catalog_node("hgx-h100");
  const std::vector<MeasuredThroughput> impossible = measured(R"(schema_version: 1
throughput:
  - {workload: {kind: layers, model: bert_base, dtype: bf16, optimizer: adam, batch: 2400, gradient_accumulation_steps: 24}, per_second: 1.5e4}
)");
  Scenario scenario;
  scenario.workload = impossible[0].workload;
  scenario.engine = {.name = "sim", .values = {}, .collectives = {}};
  scenario.topology = std::make_shared<const Topology>(node);
  scenario.devices.type = DeviceType::gpu;
  scenario.steps = 1;
  const auto all = calibration::least_work_of(scenario.workload, run_scenario(scenario).timeline, 0);
  const DeviceModel& gpu = *node.node(*node.find("gpu0")).device;
  const DeviceFit fit = fit_device(node, impossible);
  ASSERT_EQ(fit.contradictions.size(), 1U);
  EXPECT_THAT(fit.contradictions[0], HasSubstr(calibration::contradiction_of(all, 1.5e4, gpu).value()));
}

// The published number; each simulation of all passes would take 13 GB.
TEST_F(DeviceFitTest, PassesTakeNoMemoryOfTheirOwn) {
  const DeviceFit fit = fit_device(load_catalog_node("hgx-h100"), measured(R"(schema_version: 1
throughput:
  - {workload: {kind: layers, model: bert_large, dtype: bf16, batch: 131072, gradient_accumulation_steps: 16384}, per_second: 400}
)"));
  EXPECT_NEAR(fit.throughputs[0].after / 400, 1, 2e-6);
}

// 110 of 125 TFLOPS, but more bytes than the memory of a V100 moves.
TEST_F(DeviceFitTest, SaysWhatContradictsTheMemory) {
  const DeviceFit fit = fit_device(load_catalog_node("dgx1-v100"), measured(throughput_of_resnet("4500")));
  ASSERT_EQ(fit.contradictions.size(), 1U);
  EXPECT_EQ(fit.contradictions[0],
            "one-gpu.yaml: 4500 per s would need 1.141 TB/s of memory, and that of 'NVIDIA Tesla V100 SXM2 32 GB' has "
            "900.0 GB/s");
}

TEST_F(DeviceFitTest, PossibleThroughputsContradictNothing) {
  const DeviceFit fit = fit_device(load_catalog_node("dgx-a100"), measured(kOne));
  EXPECT_TRUE(fit.contradictions.empty());
  EXPECT_TRUE(fit.notes.empty());
}

TEST_F(DeviceFitTest, NotesAFactorThatIsFarOff) {
  const DeviceFit slow = fit_device(load_catalog_node("dgx-a100"), measured(throughput_of_resnet("5")));
  EXPECT_TRUE(slow.contradictions.empty());
  ASSERT_EQ(slow.notes.size(), 1U);
  EXPECT_THAT(slow.notes[0],
              HasSubstr("check that the workload, its batch and its dtype are those of the measurement"));
}

TEST_F(DeviceFitTest, NotesThroughputsThatNoFactorFits) {
  const std::string both =
      throughput_of_resnet("2000") +
      "  - {workload: {kind: layers, model: resnet50, dtype: f16, batch: 256}, per_second: 3000}\n";
  const DeviceFit fit = fit_device(load_catalog_node("dgx-a100"), measured(both));
  ASSERT_EQ(fit.notes.size(), 2U);
  EXPECT_EQ(
      fit.notes[0],
      "one-gpu.yaml: measured 2000 per s, but 2450 per s with the factor that fits all throughputs best (+22.5 %)");
}

TEST_F(DeviceFitTest, RefusesAThroughputThatNoSpeedGives) {
  EXPECT_THAT([&] { fit_device(load_catalog_node("dgx-a100"), measured(throughput_of_resnet("2375000"))); },
              ThrowsMessage<InputError>(HasSubstr("one-gpu.yaml:3:5: no speed of the device gives 2375.0 k per s")));
}

TEST_F(DeviceFitTest, RefusesFilesThatSayNothing) {
  const auto refuses = [this](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { measured(text); }, ThrowsMessage<InputError>(HasSubstr(message)));
  };
  refuses("schema_version: 1\nthroughput:\n  - {workload: {kind: layers, model: resnet50, batch: 8}, per_second: 0}\n",
          "3:71: throughput[0].per_second: must be from 1e-09 to 1e+18, found 0");
  refuses("schema_version: 1\nthroughput:\n  - {per_second: 9}\n", "throughput[0]");
  refuses("schema_version: 1\nthroughput: 2375\n", "2:13: throughput: expected a list");
}

}  // namespace
}  // namespace tandem
