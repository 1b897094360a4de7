// What decides the stated error of a prediction, and the description of the system below a measurement.
#include "scenarios/estimates/expected_error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/run/system_text.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

PredictionKind prediction_kind_of(const Scenario& scenario) {
  return prediction_kind(job_of(scenario));
}

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLayers = "{kind: layers, model: resnet15, batch: 128, dtype: f32}";

Scenario on_gpus(const std::string& strategy, int workers, const std::string& workload = kLayers) {
  return read_scenario(
      fmt::format("workload: {}\nstrategy: {}\nengine: {{name: sim}}\n"
                  "topology: {{cluster: {{node: hgx-h100, workers: {}}}}}\n"
                  "devices: {{type: gpu, workers: {}, per_worker: 8}}\nsteps: 2\n",
                  workload, strategy, workers, workers));
}

TEST(PredictionKind, CountsDevicesAndNodesAndRestsOnTheCatalog) {
  const PredictionKind kind = prediction_kind_of(on_gpus("{name: multi_worker_mirrored}", 2));
  EXPECT_EQ(kind.figures, FigureBasis::stated);
  EXPECT_EQ(kind.strategy, "replicas");
  EXPECT_EQ(kind.devices, 16);
  EXPECT_EQ(kind.nodes, 2);
  EXPECT_TRUE(kind.on_gpus);
  EXPECT_TRUE(kind.is_layers);
}

TEST(PredictionKind, OfAPerceptronIsNoTableOfLayers) {
  EXPECT_FALSE(prediction_kind_of(on_gpus("{name: mirrored}", 1, "{kind: mlp, hidden: [8], batch: 64}")).is_layers);
}

TEST(PredictionKind, IsThatOfThePublishedRunsThatTheStrategyResembles) {
  EXPECT_EQ(compared_as("one_device"), "replicas");
  EXPECT_EQ(compared_as("mirrored"), "replicas");
  EXPECT_EQ(compared_as("central_storage"), "central");
  EXPECT_EQ(compared_as("parameter_server"), "servers");
  EXPECT_EQ(compared_as("mesh"), "mesh");
  EXPECT_EQ(compared_as("fully_sharded"), "sharded");
}

// The links of such a machine are still the catalog's.
TEST(PredictionKind, IsFittedOnceTheRatesOfItsDevicesAreMeasured) {
  Scenario scenario = on_gpus("{name: mirrored}", 1);
  auto measured = std::make_shared<Topology>(*scenario.topology);
  for (const NodeIndex node : measured->nodes_of(0, NodeKind::gpu)) {
    auto device = std::make_shared<DeviceModel>(*measured->device(node));
    device->memory_bandwidth_bytes_per_s.provenance = Provenance::measured;
    for (auto& [dtype, peak] : device->peak_flops_per_s) peak.provenance = Provenance::measured;
    measured->set_device(node, std::move(device));
  }
  scenario.topology = measured;
  EXPECT_EQ(prediction_kind_of(scenario).figures, FigureBasis::fitted);
}

TEST(SystemText, TellsMachinesWithEqualProcessorsApart) {
  const std::map<std::string, std::string> settings = {{"blas", "OpenBLAS 0.3.21 DYNAMIC_ARCH, core Zen, 1 thread"}};
  const std::string text = system_text(settings);
  EXPECT_THAT(text, testing::ContainsRegex("[1-9][0-9]* GiB"));
  EXPECT_THAT(text, HasSubstr(", Linux "));
  EXPECT_THAT(text, HasSubstr("OpenBLAS 0.3.21 Zen"));
  EXPECT_EQ(text, system_text(settings)) << "it is compared between launches";
  EXPECT_THAT(system_text({}), Not(HasSubstr("OpenBLAS")));
}

}  // namespace
}  // namespace tandem
