// A device fitted to a throughput has it.
#include "scenarios/calibration/device_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

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

TEST_F(DeviceFitTest, RefusesFilesThatSayNothing) {
  const auto refuses = [this](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { measured(text); }, ThrowsMessage<InputError>(HasSubstr(message)));
  };
  refuses("schema_version: 1\nthroughput:\n  - {workload: {kind: layers, model: resnet50, batch: 8}, per_second: 0}\n",
          "3:71: throughput[0].per_second: must be greater than 0, found 0");
  refuses("schema_version: 1\nthroughput:\n  - {per_second: 9}\n", "throughput[0]");
  refuses("schema_version: 1\nthroughput: 2375\n", "2:13: throughput: expected a list");
}

}  // namespace
}  // namespace tandem
