// The state of optimizers in every world: slices, slots and checkpoints, clipping, costs, and what is refused.
#include <gmock/gmock.h>

#include <unistd.h>
#include <filesystem>

#include "strategies/base/errors.h"
#include "strategies/variables/checkpoint.h"
#include "tests/conformance/optimizer_testing.h"

namespace tandem {
namespace {

using namespace optimizer_testing;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_P(Strategies, SlicesAddUpAndChangeTheRowsThatTensorFlowChanges) {
  run(2, [](Worker& worker) {
    under_each_strategy_of(worker, [&](Strategy& strategy) {
      for (const auto& [name, make] : every_optimizer()) {
        SCOPED_TRACE(name);
        const auto sparse = make(), dense = make();
        const auto w = weights(strategy, "sparse_" + name, {4, 2});
        const auto expected = weights(strategy, "dense_" + name, {4, 2});
        const auto slices_step = [&](double first, double second, double third) {
          strategy.run([&](const Value::Parts&) -> Value {
            sparse->apply_gradients({{slices(first, second, third), w}});
            return {};
          });
          strategy.run([&](const Value::Parts&) -> Value {
            const Numbers values = shared_out(whole(first, second, third));
            dense->apply_gradients({{constant(get_replica_context()->device(), values, Shape{4, 2}), expected}});
            return {};
          });
        };
        slices_step(1, 2, 4);
        EXPECT_EQ(component_numbers(worker, *w), component_numbers(worker, *expected));  // untouched rows had no state
        slices_step(4, 1, -2);
        EXPECT_EQ(component_numbers(worker, *w), component_numbers(worker, *expected));
        // Now row 1 gets a state that only what counts as dense moves on.
        for (const auto& [optimizer, variable] : {std::pair(sparse.get(), w), {dense.get(), expected}}) {
          strategy.run([&, optimizer = optimizer, variable = variable](const Value::Parts&) -> Value {
            const Numbers values = shared_out({0, 0, 8, 8, 0, 0, 0, 0});
            optimizer->apply_gradients({{constant(get_replica_context()->device(), values, Shape{4, 2}), variable}});
            return {};
          });
        }
        const Numbers before = component_numbers(worker, *w).front();
        slices_step(1, 1, 1);
        const Numbers after = component_numbers(worker, *w).front();
        const bool is_lazy = name == "sgd" || name == "momentum" || name == "nesterov" || name == "adagrad" ||
                             name == "rmsprop_momentum";
        const bool moves = name.starts_with("adam") || name == "amsgrad";
        EXPECT_EQ(before[2] != after[2], moves);
        if (is_lazy) {
          for (const std::string& slot : sparse->get_slot_names()) {
            const Numbers rows = component_numbers(worker, *sparse->get_slot(w, slot)).front();
            EXPECT_NE(rows[2], rows[0]);
          }
        } else {
          EXPECT_EQ(component_numbers(worker, *w), component_numbers(worker, *expected));
        }
      }
    });
  });
}

TEST_P(Strategies, SlotsAreBesideTheirVariablesAndInCheckpoints) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("tandem-slots-" + GetParam().name + "-" + std::to_string(::getppid())))
          .string();
  run(2, [&](Worker& worker) {
    under_each_strategy_of(worker, [&](Strategy& strategy) {
      const auto make = [] {
        return std::make_unique<optimizers::Adam>(optimizers::AdamOptions{
            .learning_rate = [](std::int64_t steps) { return 1.0 / static_cast<double>(1 + steps); }});
      };
      const auto w = weights(strategy, "w", {2});
      const auto adam = make();
      EXPECT_THAT(adam->get_slot_names(), ElementsAre("m", "v"));
      EXPECT_EQ(adam->get_slot(w, "m"), nullptr);
      EXPECT_EQ(message_of<KeyError>([&] { adam->get_slot(w, "momentum"); }),
                "optimizer 'Adam' has no slot 'momentum' (m, v)");
      step(strategy, *adam, w, {1, 2});
      EXPECT_DOUBLE_EQ(adam->learning_rate(), 0.5);
      const auto m = adam->get_slot(w, "m");
      EXPECT_EQ(m->name(), "w/Adam/m");
      EXPECT_EQ(m->devices(), w->devices());
      EXPECT_EQ(m->kind(), w->kind());
      EXPECT_FALSE(m->trainable());
      std::vector<std::string> names;
      for (const auto& variable : adam->variables()) names.push_back(variable->name());
      EXPECT_THAT(names, ElementsAre("Adam/iterations", "w/Adam/m", "w/Adam/v"));
      step(strategy, *adam, w, {3, 4});

      Checkpoint saved(worker);
      saved.add("w", w);
      adam->add_to(saved);
      saved.save(file);
      step(strategy, *adam, w, {1, 1});
      const auto expected = component_numbers(worker, *w);

      const auto again = make();
      again->build({w});
      Checkpoint restored(worker);
      restored.add("w", w);
      again->add_to(restored);
      restored.restore(file);
      EXPECT_DOUBLE_EQ(again->learning_rate(), 1.0 / 3);
      step(strategy, *again, w, {1, 1});
      EXPECT_EQ(component_numbers(worker, *w), expected);
      again->iterations()->assign(Value::integer(9));
      EXPECT_DOUBLE_EQ(again->learning_rate(), 0.1);
    });
  });
  std::filesystem::remove(file);
}

TEST_P(Strategies, GradientsAreClippedAfterTheyAreSummed) {
  run(2, [](Worker& worker) {
    under_each_strategy_of(worker, [&](Strategy& strategy) {
      const auto clipped = [&](const optimizers::Clipping& clipping, const Numbers& a, const Numbers& b) {
        optimizers::SGD sgd({.learning_rate = -1, .clipping = clipping});
        const auto v = strategy.create_variable({.name = "v", .shape = {2}});
        const auto w = strategy.create_variable({.name = "w", .shape = {2}});
        strategy.run([&](const Value::Parts&) -> Value {
          sgd.apply_gradients({{gradient_of(shared_out(a)), v}, {gradient_of(shared_out(b)), w}});
          return {};
        });
        Numbers result = component_numbers(worker, *v).back();
        const Numbers second = component_numbers(worker, *w).back();
        result.insert(result.end(), second.begin(), second.end());
        return result;
      };
      EXPECT_THAT(clipped({.clipvalue = 2}, {3, -4}, {1, -1}), ElementsAre(2, -2, 1, -1));
      EXPECT_THAT(clipped({.clipnorm = 2.5}, {3, 4}, {1, -1}), ElementsAre(1.5, 2, 1, -1));
      EXPECT_THAT(clipped({.global_clipnorm = 6.5}, {3, 4}, {12, 0}), ElementsAre(1.5, 2, 6, 0));
      EXPECT_THAT(clipped({.global_clipnorm = 13}, {3, 4}, {12, 0}), ElementsAre(3, 4, 12, 0));
      const auto rows = strategy.create_variable({.name = "rows", .shape = {4, 2}});
      optimizers::Adagrad adagrad(
          {.learning_rate = -1, .initial_accumulator_value = 0, .epsilon = 1, .clipping = {.clipvalue = 1}});
      strategy.run([&](const Value::Parts&) -> Value {
        adagrad.apply_gradients({{slices(10, 0.5, 1), rows}});
        return {};
      });
      // Each replica's rows are clipped before they are added up: 1 and its share of 1, then a / (a + 1).
      const double replicas = strategy.num_replicas_in_sync();
      const double sum = replicas * (1 + 1 / replicas);
      EXPECT_NEAR(component_numbers(worker, *rows).front()[4], sum / (sum + 1), 1e-6);
      EXPECT_NEAR(component_numbers(worker, *rows).front()[0], 0.5 / 1.5, 1e-6);
      EXPECT_EQ(component_numbers(worker, *rows).front()[2], 0);
    });
  });
}

TEST_P(Strategies, OptimizersTakeSumsAndRefuseWhatTensorFlowRefuses) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    MirroredStrategy other(worker, {worker.devices()[0]});
    optimizers::SGD sgd({.learning_rate = 1});
    const auto w = weights(strategy, "w", {1}, 0), foreign = weights(other, "foreign", {1});
    strategy.run([&](const Value::Parts&) -> Value {
      const Value sum = get_replica_context()->all_reduce(ReduceOp::sum, gradient_of({1.0 + replica_id()}));
      sgd.apply_gradients({{sum, w}}, true);
      return {};
    });
    EXPECT_THAT(component_numbers(worker, *w), Each(ElementsAre(-3)));
    const auto refused = [&](const std::shared_ptr<Variable>& variable) {
      return message_of<ValueError>([&] { step(strategy, sgd, variable, {1}); });
    };
    EXPECT_EQ(refused(foreign),
              "optimizer 'SGD' under strategy 'mirrored' is given variable 'foreign', which was created under strategy "
              "'mirrored'; create it in the scope of the strategy that trains it");
    EXPECT_THAT(refused(create_variable({.name = "outside", .shape = {1}})), HasSubstr("under strategy 'default'"));
    EXPECT_THAT(message_of<RuntimeError>([&] {
                  const Scope scope = strategy.scope();
                  sgd.apply_gradients({{Value(w->components()[0]), w}});
                }),
                HasSubstr("call it in a replica context"));
    EXPECT_THAT(message_of<InvalidArgumentError>([&] {
                  optimizers::Adagrad adagrad;
                  strategy.run([&](const Value::Parts&) -> Value {
                    Device& device = get_replica_context()->device();
                    adagrad.apply_gradients(
                        {{IndexedSlices{constant(device, {1}), constant(device, {3}, Shape{1}, DType::i64), {1}}, w}});
                    return {};
                  });
                }),
                HasSubstr("a gradient of variable 'w' has row 3; the variable's shape is [1]"));
    EXPECT_EQ(message_of<ValueError>([] { optimizers::SGD({.clipping = {.clipnorm = 1, .clipvalue = 1}}); }),
              "only one of clipnorm, clipvalue and global_clipnorm may be set");
    EXPECT_EQ(message_of<ValueError>([] { optimizers::SGD({.clipping = {.clipvalue = 0}}); }),
              "clipvalue is 0; it must be positive");
    EXPECT_EQ(message_of<ValueError>([] { optimizers::SGD({.momentum = 2}); }), "momentum is 2; it must be in [0, 1]");
    EXPECT_THAT(message_of<RuntimeError>([&] {
                  strategy.run([&](const Value::Parts&) -> Value {
                    sgd.build({w});
                    return {};
                  });
                }),
                HasSubstr("build() of optimizer 'SGD' is called inside run()"));
  });
}

// Where nothing is computed, only costs count: those of slices are of their rows where only these change.
TEST_P(Strategies, OptimizersCostTimeWithoutValues) {
  if (!GetParam().collectives) GTEST_SKIP() << "a real engine has values";
  const auto duration = [&](const MakeOptimizer& make, bool is_sparse) {
    EngineOptions options = world_options(GetParam(), 1, 2);
    options.values = ValueMode::none;
    Nanoseconds taken = 0;
    open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker));
      const auto w = strategy.create_variable({.name = "w", .shape = {1000000, 4}});
      const auto optimizer = make();
      const auto apply = [&] {
        strategy.run([&](const Value::Parts&) -> Value {
          Device& device = get_replica_context()->device();
          const IndexedSlices rows{device.allocate(DType::f32, {100, 4}), device.allocate(DType::i64, {100}),
                                   Shape{1000000, 4}};
          optimizer->apply_gradients({{is_sparse ? Value(rows) : Value(device.allocate(DType::f32, w->shape())), w}});
          return {};
        });
        for (Device* device : worker.devices()) device->synchronize();
      };
      apply();  // creates the slots
      const Nanoseconds start = worker.now();
      apply();
      taken = worker.now() - start;
    });
    return taken;
  };
  using namespace optimizers;
  EXPECT_GT(duration(making<SGD>(SGDOptions{.momentum = 0.5}), false), duration(making<SGD>(SGDOptions{}), false));
  EXPECT_GT(duration(making<Adam>(AdamOptions{}), false), duration(making<SGD>(SGDOptions{}), false));
  EXPECT_LT(10 * duration(making<Adagrad>(AdagradOptions{}), true), duration(making<Adagrad>(AdagradOptions{}), false));
  EXPECT_GT(duration(making<Adam>(AdamOptions{.clipping = {.global_clipnorm = 1}}), true), 0);
}

}  // namespace
}  // namespace tandem
