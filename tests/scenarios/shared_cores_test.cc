// Whether the CPU devices of a job are more than the cores of their machines, and what depends on it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/run/report_text.h"
#include "scenarios/calibration/calibrate.h"
#include "scenarios/estimates/expected_error.h"
#include "scenarios/job/job.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Topology> machines(int count, int cores) {
  Topology topology("machines");
  const auto network = std::make_shared<const LinkModel>(
      LinkModel{.bandwidth_bytes_per_s = {.value = 1e9}, .latency_s = {.value = 1e-6}});
  for (int worker = 0; worker < count; ++worker) {
    auto device = std::make_shared<DeviceModel>();
    device->name = "core";
    device->cores = cores;
    device->peak_flops_per_s[DType::f32] = {.value = 1e9};
    device->memory_bandwidth_bytes_per_s = {.value = 1e9};
    const NodeIndex node = topology.add_node(
        {.name = fmt::format("w{}.cpu0", worker), .kind = NodeKind::cpu, .worker = worker, .device = device});
    if (worker > 0) topology.add_link(0, node, network);
  }
  return std::make_shared<const Topology>(std::move(topology));
}

Report run_on(std::shared_ptr<const Topology> topology, const std::string& devices, const std::string& strategy) {
  return run_unscaled(read_scenario(fmt::format("workload: {{kind: mlp, hidden: [8], batch: 16}}\n"
                                                "strategy: {{name: {}}}\nengine: {{name: sim}}\n"
                                                "devices: {}\nsteps: 2\n",
                                                strategy, devices)),
                      std::move(topology));
}

TEST(SharedCores, AreThoseOfAMachineWithAllItsTasks) {
  EXPECT_EQ(run_on(machines(1, 2), "{per_worker: 4}", "mirrored").cores, (SharedCores{.devices = 4, .cores = 2}));
  EXPECT_EQ(run_on(machines(1, 2), "{workers: 2, per_worker: 1, ps: 1}", "parameter_server").cores,
            (SharedCores{.devices = 3, .cores = 2}))
      << "a server computes, too";
}

TEST(SharedCores, AreOfTheMachineThatComesNearestToItsCores) {
  EXPECT_EQ(run_on(machines(2, 4), "{workers: 2, per_worker: 3}", "multi_worker_mirrored").cores,
            (SharedCores{.devices = 3, .cores = 4}));
}

TEST(SharedCores, OfThisMachineAreItsOwn) {
  const Report report = run_unscaled(
      read_scenario("workload: {kind: mlp, hidden: [8], batch: 16}\ndevices: {per_worker: 2}\nsteps: 2\n"));
  ASSERT_TRUE(report.cores);
  EXPECT_EQ(report.cores->devices, 2);
  EXPECT_GT(report.cores->cores, 0);
  EXPECT_EQ(report.devices, 2);
}

TEST(SharedCores, GpusHaveNone) {
  const Report report = run_unscaled(on_simulated_gpus(
      read_scenario("workload: {kind: mlp, hidden: [8], batch: 16}\ndevices: {per_worker: 2}\nsteps: 2\n")));
  EXPECT_FALSE(report.cores);
}

TEST(SharedCores, AReportSaysWhereTheyAreTooFew) {
  EXPECT_THAT(report_text(run_on(machines(1, 2), "{per_worker: 4}", "mirrored")), HasSubstr("4 devices on 2 cores"));
  EXPECT_THAT(report_text(run_on(machines(1, 4), "{per_worker: 4}", "mirrored")), testing::Not(HasSubstr(" cores")));
}

TEST(SharedCores, DecideTheUsualErrorOfACalibratedMachine) {
  CalibrateOptions options;
  options.quick = true;
  options.max_devices = 1;
  options.topology = machines(1, 2);
  const auto calibrated = std::make_shared<const Topology>(calibrate("sim", options));
  const Report enough = run_on(calibrated, "{per_worker: 2}", "mirrored");
  const Report too_few = run_on(calibrated, "{per_worker: 4}", "mirrored");
  ASSERT_EQ(enough.topology_provenance, "measured");
  EXPECT_THAT(enough.expected_error->basis, HasSubstr("with no more CPU devices than cores"));
  EXPECT_THAT(too_few.expected_error->basis, HasSubstr("with more CPU devices than cores"));
}

}  // namespace
}  // namespace tandem
