// A strategy of the user's own, by its name in a scenario. A program of its own, since names are registered for good.
#include <gtest/gtest.h>

#include "scenarios/runner.h"
#include "strategies/multi_worker_mirrored.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

Scenario digits(const std::string& more) {
  return parse_scenario(
      "schema_version: 1\nworkload: {kind: mlp, hidden: [32], batch: 64}\nsteps: 10\nwarmup_steps: 2\n" + more,
      TANDEM_SOURCE_DIR "/tests/scenarios/good/in_memory.yaml");
}

TEST(UserStrategy, RunsByNameInBothWorlds) {
  static int made = 0;
  register_strategy("of_the_user", [](Worker& worker, const StrategyOptions&) {
    if (worker.index() == 0) ++made;
    return std::make_unique<MultiWorkerMirroredStrategy>(worker);
  });
  const Report one = run_scenario(digits("strategy: {name: one_device}\n")).report;
  for (const char* world :
       {"", "engine: {name: sim, values: real}\ntopology: {cluster: {node: dgx-a100, workers: 2}}\n"}) {
    RunOptions options;
    options.measures_scaling = false;
    const Scenario scenario =
        digits(std::string("strategy: {name: of_the_user}\ndevices: {workers: 2, per_worker: 2, ps: 1}\n") + world);
    const Report report = run_scenario(scenario, options).report;
    EXPECT_EQ(report.strategy, "of_the_user");
    EXPECT_EQ(report.replicas, 4);
    ASSERT_EQ(report.loss.size(), one.loss.size());
    for (std::size_t i = 0; i < one.loss.size(); ++i) EXPECT_NEAR(report.loss[i] / one.loss[i], 1, 1e-5);
  }
  EXPECT_EQ(made, 2) << "once on the first worker of each run";
}

}  // namespace
}  // namespace tandem
