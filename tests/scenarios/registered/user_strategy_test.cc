// A strategy of the user's own, by its name in a scenario. A program of its own, since names are registered for good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/runner.h"
#include "scenarios/scenario_schema.h"
#include "strategies/base/errors.h"
#include "strategies/multi_worker_mirrored.h"
#include "strategies/parallel/trainer.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Scenario digits(const std::string& more) {
  return parse_scenario(
      "schema_version: 1\nworkload: {kind: mlp, hidden: [32], batch: 64}\nsteps: 10\nwarmup_steps: 2\n" + more,
      TANDEM_SOURCE_DIR "/tests/scenarios/good/in_memory.yaml");
}

TEST(UserStrategy, RunsByNameInBothWorlds) {
  static int made = 0;
  register_strategy({.name = "of_the_user",
                     .several_workers = true,
                     .parameter_servers = ServerUse::optional,
                     .make = [](Worker& worker, const StrategyOptions&) {
                       if (worker.index() == 0) ++made;
                       return std::make_unique<MultiWorkerMirroredStrategy>(worker);
                     }});
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

std::string refusal_of(const std::string& text) {
  try {
    run_scenario(digits(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(UserStrategy, IsHeldToWhatItSaysOfItself) {
  register_strategy({.name = "modest", .one_device = true, .make = [](Worker& worker, const StrategyOptions&) {
                       return std::make_unique<MultiWorkerMirroredStrategy>(worker);
                     }});
  EXPECT_THAT(refusal_of("strategy: {name: modest}\ndevices: {workers: 2}\n"),
              HasSubstr("strategy 'modest' uses 1 worker, found 2"));
  EXPECT_THAT(refusal_of("strategy: {name: modest}\ndevices: {per_worker: 2}\n"),
              HasSubstr("strategy 'modest' uses 1 device, found 2"));
  EXPECT_THAT(refusal_of("strategy: {name: modest}\ndevices: {ps: 1}\n"),
              HasSubstr("strategy 'modest' uses no parameter servers, found 1"));
  EXPECT_THAT(refusal_of("strategy: {name: modest, placement: by_size}\n"),
              HasSubstr("strategy 'modest' keeps no variables on parameter servers"));
  EXPECT_THAT(refusal_of("strategy: {name: modest, cross_device_ops: nccl}\n"),
              HasSubstr("strategy 'modest' has its own; 'nccl' cannot be chosen"));
  EXPECT_THAT(refusal_of("strategy: {name: modest, micro_batches: 2}\n"),
              HasSubstr("strategy 'modest' does not use it"));
}

// A trainer of the program's own divides the model as those that come with Tandem do.
TEST(UserStrategy, MayDivideTheModel) {
  register_strategy({.name = "sharded_by_the_user",
                     .several_workers = true,
                     .division = ModelDivision{.make_trainer = make_fully_sharded, .axis = &ParallelOptions::data}});
  const Report own = run_scenario(digits("strategy: {name: sharded_by_the_user}\ndevices: {per_worker: 2}\n")).report;
  EXPECT_EQ(own.replicas, 2);
  EXPECT_EQ(own.loss, run_scenario(digits("strategy: {name: fully_sharded}\ndevices: {per_worker: 2}\n")).report.loss);
}

TEST(UserStrategy, TheSchemaKnowsIt) {
  register_strategy({.name = "in_the_schema", .make = [](Worker& worker, const StrategyOptions&) {
                       return std::make_unique<MultiWorkerMirroredStrategy>(worker);
                     }});
  EXPECT_THAT(scenario_schema(), HasSubstr("\"in_the_schema\""));
  EXPECT_THAT(std::string(scenario_schema_file()), testing::Not(HasSubstr("\"in_the_schema\"")));
}

TEST(UserStrategy, NeedsANameOfItsOwnAndOneFactory) {
  const StrategyFactory make = [](Worker& worker, const StrategyOptions&) {
    return std::make_unique<MultiWorkerMirroredStrategy>(worker);
  };
  EXPECT_THROW(register_strategy({.name = "", .make = make}), ValueError);
  EXPECT_THROW(register_strategy({.name = "mirrored", .make = make}), ValueError);
  EXPECT_THROW(register_strategy({.name = "mesh", .make = make}), ValueError);
  EXPECT_THROW(register_strategy({.name = "none"}), ValueError);
  EXPECT_THROW(register_strategy({.name = "no_trainer", .division = ModelDivision{}}), ValueError);
  EXPECT_THROW(register_strategy({.name = "both", .make = make, .division = ModelDivision{make_fully_sharded}}),
               ValueError);
}

}  // namespace
}  // namespace tandem
