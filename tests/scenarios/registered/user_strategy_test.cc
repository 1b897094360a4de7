// A strategy of the user's own, by its name in a scenario. A program of its own, since names are registered for good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/estimates/expected_error.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/plan_space.h"
#include "scenarios/reading/scenario_schema.h"
#include "scenarios/run/runner.h"
#include "scenarios/sweep/sweep_space.h"
#include "strategies/base/errors.h"
#include "strategies/parallel/sharded_division.h"
#include "strategies/strategies.h"
#include "strategies/types/multi_worker_mirrored.h"

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
  register_strategy(
      {.name = "sharded_by_the_user",
       .several_workers = true,
       .division = ModelDivision{.how = std::make_shared<const ShardedDivision>(), .axis = &ParallelOptions::data}});
  const Report own = run_scenario(digits("strategy: {name: sharded_by_the_user}\ndevices: {per_worker: 2}\n")).report;
  EXPECT_EQ(own.replicas, 2);
  EXPECT_EQ(own.loss, run_scenario(digits("strategy: {name: fully_sharded}\ndevices: {per_worker: 2}\n")).report.loss);
}

Scenario tables(const std::string& workload, const std::string& more) {
  return parse_scenario(
      "schema_version: 1\nworkload: {kind: layers, " + workload + "}\nsteps: 4\nwarmup_steps: 1\n" + more,
      TANDEM_SOURCE_DIR "/tests/scenarios/good/in_memory.yaml");
}

// docs/examples/gpipe.cc, which is linked in: it trains with values, predicts, and is refused where it does not divide.
TEST(UserStrategy, DividesTablesInAWayOfItsOwn) {
  const std::string gpt = "model: gpt_tiny, batch: 8, values: real";
  const Report one = run_scenario(tables(gpt, "strategy: {name: one_device}\n")).report;
  const Report own = run_scenario(tables(gpt,
                                         "strategy: {name: gpipe, data: 1, pipeline: 2, micro_batches: 4}\n"
                                         "devices: {per_worker: 2}\n"))
                         .report;
  ASSERT_EQ(own.loss.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(own.loss[i] / one.loss[i], 1, 1e-5);

  const std::string large = "model: gpt, batch: 16, dtype: bf16, sizes: {layers: 8}";
  const std::string gpus = "engine: {name: sim}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\n";
  const Report predicted =
      run_scenario(tables(large, "strategy: {name: gpipe, data: 1, pipeline: 8, micro_batches: 8}\n" + gpus)).report;
  const Report usual =
      run_scenario(tables(large, "strategy: {name: pipeline_parallel, micro_batches: 8}\n" + gpus)).report;
  ASSERT_TRUE(predicted.memory && usual.memory);
  EXPECT_GT(predicted.memory->activations, usual.memory->activations) << "every micro-batch is kept";
  EXPECT_NEAR(
      static_cast<double>(predicted.summary.step_time.median) / static_cast<double>(usual.summary.step_time.median), 1,
      0.05);
  ASSERT_TRUE(predicted.expected_error);
  EXPECT_TRUE(predicted.expected_error->intervals.empty()) << "no run of it was ever compared";

  const auto refusal = [&](const std::string& more) {
    try {
      tables(large, more + gpus);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal("strategy: {name: gpipe, data: 1, pipeline: 8, micro_batches: 8, virtual_stages: 2}\n"),
              HasSubstr("strategy.virtual_stages: one stage a device"));
  EXPECT_THAT(refusal("strategy: {name: gpipe, data: 1, pipeline: 8, micro_batches: 3}\n"),
              HasSubstr("3 micro-batches do not divide a replica's batch of 16"));
}

// Nobody says anything of it to the search: it divides the model, or says why not.
TEST(UserStrategy, TakesPartInPlans) {
  const std::string text =
      "schema_version: 1\nname: own\nworkload: {kind: layers, model: gpt, sizes: {layers: 8, hidden: 1024, heads: 16, "
      "tokens: 512}, dtype: bf16, batch: 32}\nstrategy: {name: gpipe, data: 8}\nengine: {name: sim}\n"
      "topology: {cluster: {node: hgx-h100, workers: 1}}\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\n"
      "warmup_steps: 1\n";
  const std::string file = TANDEM_SOURCE_DIR "/tests/scenarios/good/in_memory.yaml";
  const Scenario base = parse_scenario(text, file);
  EXPECT_THAT(usual_space(base, {}), HasSubstr("gpipe"));
  const Scenario scenario =
      parse_scenario(text, file, {{"the space", "sweep", usual_space(base, {.strategies = {"gpipe"}})}});
  const PlanOptions options{.processes = 2, .wanted = 1};
  PlanTable table = planned_points(scenario, options);
  run_plan(scenario, options, table);
  EXPECT_EQ(table.gap(), 0);
  EXPECT_LT(table.simulated(), table.sweep.points.size() / 4);
  double best = std::numeric_limits<double>::infinity();
  const SweepSpace space(scenario);
  SharedParts parts = space.parts();
  std::size_t place = 0;
  for (const SweepSpace::Point& point : space.points()) {
    const std::size_t at = place++;
    if (table.sweep.points[at].state == PointState::failed) continue;
    const Report report =
        run_scenario(space.scenario(point, parts), {.measures_scaling = false, .only_report = true}).report;
    EXPECT_LE(table.least(at), 1 / report.throughput() * (1 + 1e-6));
    best = std::min(best, 1 / report.throughput());
  }
  EXPECT_EQ(table.value(table.ranking().front()), best);
}

TEST(UserStrategy, TheSchemaKnowsIt) {
  register_strategy({.name = "in_the_schema", .make = [](Worker& worker, const StrategyOptions&) {
                       return std::make_unique<MultiWorkerMirroredStrategy>(worker);
                     }});
  EXPECT_THAT(scenario_schema(), HasSubstr("\"in_the_schema\""));
  EXPECT_THAT(std::string(scenario_schema_file()), testing::Not(HasSubstr("\"in_the_schema\"")));
}

StrategyFactory noting(StrategyValues& seen) {
  return [&seen](Worker& worker, const StrategyOptions& options) {
    seen = options.own;
    return std::make_unique<MultiWorkerMirroredStrategy>(worker);
  };
}

std::vector<StrategyKey> every_kind_of_key() {
  return {count_key("period", 8, 1, 100, "Steps between two averages."),
          number_key("decay", 0.5, 0, 1, "Of the averages."),
          quantity_key("bucket", Dimension::bytes, 25e6, 0, 1e9, "Bytes sent together."),
          switch_key("nesterov", false, "Whether the momentum looks ahead."),
          choice_key("rounding", "nearest", {"nearest", "stochastic"}, "Of what is sent."),
          text_key("label", "none", "For people.")};
}

TEST(UserStrategy, HasKeysOfItsOwn) {
  static StrategyValues seen;
  register_strategy({.name = "with_keys", .keys = every_kind_of_key(), .make = noting(seen)});
  run_scenario(digits("strategy: {name: with_keys}\n"));
  EXPECT_EQ(seen.count("period"), 8);
  EXPECT_EQ(seen.number("bucket"), 25e6);
  EXPECT_FALSE(seen.is_on("nesterov"));
  const Report report =
      run_scenario(digits("strategy: {name: with_keys, period: 3, decay: 0.25, bucket: 1MB, nesterov: "
                          "true, rounding: stochastic, label: mine}\n"))
          .report;
  EXPECT_EQ(seen.count("period"), 3);
  EXPECT_EQ(seen.number("decay"), 0.25);
  EXPECT_EQ(seen.number("bucket"), 1e6);
  EXPECT_TRUE(seen.is_on("nesterov"));
  EXPECT_EQ(seen.text("rounding"), "stochastic");
  EXPECT_EQ(seen.text("label"), "mine");
  EXPECT_EQ(report.settings.at("strategy.period"), "3");
  EXPECT_THROW(seen.count("perod"), ValueError);
  EXPECT_THROW(seen.count("decay"), ValueError);
  EXPECT_THAT(scenario_schema(), HasSubstr("Steps between two averages. (strategy with_keys)"));
}

TEST(UserStrategy, RefusesValuesThatItsKeysDoNotAllow) {
  static StrategyValues seen;
  register_strategy({.name = "strict", .keys = every_kind_of_key(), .make = noting(seen)});
  EXPECT_THAT(refusal_of("strategy: {name: strict, period: 0}\n"), HasSubstr(":5:34: strategy.period: must be"));
  EXPECT_THAT(refusal_of("strategy: {name: strict, decay: 2}\n"), HasSubstr("strategy.decay: must be"));
  EXPECT_THAT(refusal_of("strategy: {name: strict, bucket: 2GB}\n"), HasSubstr("strategy.bucket: "));
  EXPECT_THAT(refusal_of("strategy: {name: strict, rounding: stochastik}\n"), HasSubstr("did you mean 'stochastic'?"));
  EXPECT_THAT(refusal_of("strategy: {name: strict, perid: 3}\n"), HasSubstr("did you mean 'period'?"));
  EXPECT_THAT(refusal_of("strategy: {name: mirrored, period: 3}\n"), HasSubstr("strategy 'mirrored' does not use it"));
  EXPECT_EQ(refusal_of("strategy: {name: mirrored, period: 8}\n"), "") << "the usual value, in a sweep over strategies";
}

TEST(UserStrategy, DeclaresKeysThatMakeSense) {
  const auto refuses = [](std::vector<StrategyKey> keys) {
    try {
      static StrategyValues seen;
      register_strategy({.name = "senseless", .keys = std::move(keys), .make = noting(seen)});
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refuses({count_key("Period", 1, 1, 2, "")}), HasSubstr("lower-case letters"));
  EXPECT_THAT(refuses({count_key("num_packs", 1, 1, 2, "")}), HasSubstr("choose another name"));
  EXPECT_THAT(refuses({count_key("a", 3, 1, 2, "")}),
              HasSubstr("the usual value: key 'a' must be from 1 to 2, found 3"));
  EXPECT_THAT(refuses({choice_key("a", "b", {"c"}, "")}), HasSubstr("must be one of c, found 'b'"));
  EXPECT_THAT(refuses({switch_key("a", true, ""), switch_key("a", true, "")}), HasSubstr("declared twice"));
}

// Every key of the schema's strategy is one that no strategy may declare.
TEST(UserStrategy, TheCommonKeysAreThoseOfTheSchema) {
  const auto schema = nlohmann::ordered_json::parse(scenario_schema_file());
  std::set<std::string> keys;
  for (const auto& [key, value] : schema["properties"]["strategy"]["properties"].items()) keys.insert(key);
  EXPECT_EQ(keys, std::set<std::string>(common_strategy_keys().begin(), common_strategy_keys().end()));
}

TEST(UserStrategy, HasNoErrorBandOfAnother) {
  static StrategyValues seen;
  register_strategy({.name = "never_compared", .several_workers = true, .make = noting(seen)});
  const Report report =
      run_scenario(digits("strategy: {name: never_compared}\nengine: {name: sim}\ntopology: dgx-a100\n")).report;
  ASSERT_TRUE(report.expected_error);
  EXPECT_TRUE(report.expected_error->intervals.empty());
}

TEST(UserStrategy, HasTheErrorBandOfTheRunsThatItSaysItResembles) {
  static StrategyValues seen;
  register_strategy(
      {.name = "like_replicas", .several_workers = true, .compared_as = ComparedRuns::replicas, .make = noting(seen)});
  EXPECT_EQ(compared_as("like_replicas"), "replicas");
  EXPECT_EQ(compared_as("like_replicas"), compared_as("mirrored"));
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
  EXPECT_THROW(
      register_strategy(
          {.name = "both", .make = make, .division = ModelDivision{std::make_shared<const ShardedDivision>()}}),
      ValueError);
}

}  // namespace
}  // namespace tandem
