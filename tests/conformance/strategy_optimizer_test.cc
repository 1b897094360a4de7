// Optimizers in every world, under every kind of strategy: the first updates are those of the formulas, and replicas
// learn what one device learns from the whole batch.
#include <gmock/gmock.h>

#include <unistd.h>
#include <cmath>
#include <filesystem>

#include "strategies/base/context.h"
#include "strategies/base/errors.h"
#include "strategies/central_storage.h"
#include "strategies/mirrored.h"
#include "strategies/multi_worker_mirrored.h"
#include "strategies/one_device.h"
#include "strategies/parameter_server.h"
#include "strategies/training/optimizers.h"
#include "strategies/values/host_values.h"
#include "strategies/variables/checkpoint.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using optimizers::Optimizer;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Pointwise;

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>()>;
using Numbers = std::vector<double>;

template <typename Kind, typename Options>
MakeOptimizer making(Options options) {
  return [options] { return std::make_unique<Kind>(options); };
}

// Each kind of optimizer, with every part of its formula in use.
std::map<std::string, MakeOptimizer> every_optimizer() {
  using namespace optimizers;
  return {
      {"sgd", making<SGD>(SGDOptions{.learning_rate = 0.125})},
      {"momentum", making<SGD>(SGDOptions{.learning_rate = 0.125, .momentum = 0.5})},
      {"nesterov", making<SGD>(SGDOptions{.learning_rate = 0.125, .momentum = 0.5, .nesterov = true})},
      {"adagrad", making<Adagrad>(AdagradOptions{.learning_rate = 0.125})},
      {"rmsprop", making<RMSprop>(RMSpropOptions{.learning_rate = 0.125})},
      {"rmsprop_centered", making<RMSprop>(RMSpropOptions{.learning_rate = 0.125, .centered = true})},
      {"rmsprop_momentum", making<RMSprop>(RMSpropOptions{.learning_rate = 0.125, .momentum = 0.5, .centered = true})},
      {"adam", making<Adam>(AdamOptions{.learning_rate = 0.125})},
      {"amsgrad", making<Adam>(AdamOptions{.learning_rate = 0.125, .amsgrad = true})},
      {"adamw", making<AdamW>(AdamWOptions{.weight_decay = 0.25, .adam = {.learning_rate = 0.125}})}};
}

// Under each kind of strategy that keeps variables in its own way, with two devices.
void under_each_strategy_of(Worker& worker, const std::function<void(Strategy&)>& test) {
  OneDeviceStrategy one(worker, *worker.devices()[1]);
  MirroredStrategy mirrored(worker, devices_of(worker));
  CentralStorageStrategy central(worker, devices_of(worker));
  for (Strategy* strategy :
       {static_cast<Strategy*>(&one), static_cast<Strategy*>(&mirrored), static_cast<Strategy*>(&central)}) {
    SCOPED_TRACE(strategy->name());
    test(*strategy);
  }
}

std::shared_ptr<Variable> weights(Strategy& strategy, const std::string& name, Shape shape, double initial = 1) {
  return strategy.create_variable({.name = name, .shape = shape, .initial_value = [initial](std::int64_t i) {
                                     return initial + static_cast<double>(i);
                                   }});
}

Value gradient_of(Numbers values) {
  return constant(get_replica_context()->device(), std::move(values));
}

// Every replica's share of a gradient that is summed.
Numbers shared_out(Numbers values) {
  for (double& value : values) value /= get_replica_context()->num_replicas_in_sync();
  return values;
}

void step(Strategy& strategy, Optimizer& optimizer, const std::shared_ptr<Variable>& w, const Numbers& gradient) {
  strategy.run([&](const Value::Parts&) -> Value {
    optimizer.apply_gradients({{gradient_of(shared_out(gradient)), w}});
    return {};
  });
}

std::vector<Numbers> components_of(Worker& worker, const Variable& variable) {
  std::vector<Numbers> values;
  for (const Tensor& component : variable.components()) values.push_back(host_values(worker, component));
  return values;
}

struct FirstUpdates {
  MakeOptimizer make;
  Numbers gradients, values;  // from w = 1, a step each
};

// Computed by hand from the formulas of optimizers.h; the numbers are exact but for Adam's, where epsilon enters.
std::vector<FirstUpdates> first_updates() {
  using namespace optimizers;
  return {
      {making<SGD>(SGDOptions{.learning_rate = 0.5}), {1, -2}, {0.5, 1.5}},
      // m = -1/2, then -3/4
      {making<SGD>(SGDOptions{.learning_rate = 0.5, .momentum = 0.5}), {1, 1}, {0.5, -0.25}},
      // 1 - 1/4 - 1/2, then - 3/8 - 1/2
      {making<SGD>(SGDOptions{.learning_rate = 0.5, .momentum = 0.5, .nesterov = true}), {1, 1}, {0.25, -0.625}},
      // a = 16 + 9 = 25, then 25 + 144 = 169
      {making<Adagrad>(AdagradOptions{.learning_rate = 1, .initial_accumulator_value = 16, .epsilon = 0}),
       {3, 12},
       {1 - 3.0 / 5, 1 - 3.0 / 5 - 12.0 / 13}},
      // epsilon is added to the root: 2 / (2 + 2)
      {making<Adagrad>(AdagradOptions{.learning_rate = 1, .initial_accumulator_value = 0, .epsilon = 2}), {2}, {0.5}},
      // r = 4/4 = 1, then 3/4 + 13/4 = 4
      {making<RMSprop>(RMSpropOptions{.learning_rate = 0.25, .rho = 0.75, .epsilon = 0}),
       {2, std::sqrt(13.0)},
       {0.5, 0.5 - std::sqrt(13.0) / 8}},
      // r = 2, c = 1, d = 1
      {making<RMSprop>(RMSpropOptions{.learning_rate = 0.25, .rho = 0.5, .epsilon = 0, .centered = true}), {2}, {0.5}},
      // epsilon is under the root: d = 1 + 3; m = 2/2 / 4, then r = 1, c = 0.5, d = 0.75, m = 1/8 + 0
      {making<RMSprop>(
           RMSpropOptions{.learning_rate = 0.25, .rho = 0.5, .momentum = 0.5, .epsilon = 3, .centered = true}),
       {2, 0},
       {0.75, 0.625}},
      // Corrected for their bias, m and v of the first step are g and g^2.
      {making<Adam>(AdamOptions{.learning_rate = 0.25, .epsilon = 0}), {8}, {0.75}},
      // m = 2 (1/4) = 1/2, v = 4 (3/4) = 3; rate sqrt(1/4 + 3/4 ...): t = 1: 1/4 sqrt(3/4) / (1/4) = sqrt(3/4)
      {making<Adam>(AdamOptions{.learning_rate = 0.25, .beta_1 = 0.75, .beta_2 = 0.25, .epsilon = 0}),
       {2, 0},
       // t = 2: m = 3/8, v = 3/4; rate = 1/4 sqrt(15/16) / (7/16)
       {0.75, 0.75 - 0.25 * std::sqrt(15.0 / 16) / (7.0 / 16) * (3.0 / 8) / std::sqrt(0.75)}},
      // vhat stays 3
      {making<Adam>(AdamOptions{.learning_rate = 0.25, .beta_1 = 0.75, .beta_2 = 0.25, .epsilon = 0, .amsgrad = true}),
       {2, 0},
       {0.75, 0.75 - 0.25 * std::sqrt(15.0 / 16) / (7.0 / 16) * (3.0 / 8) / std::sqrt(3.0)}},
      // 1 - 1/4 * 2, and then Adam's step
      {making<AdamW>(AdamWOptions{.weight_decay = 2, .adam = {.learning_rate = 0.25, .epsilon = 0}}), {8}, {0.25}},
  };
}

TEST_P(Strategies, OptimizersBeginAsTheirFormulasSay) {
  run(2, [](Worker& worker) {
    under_each_strategy_of(worker, [&](Strategy& strategy) {
      std::size_t number = 0;
      for (const FirstUpdates& updates : first_updates()) {
        SCOPED_TRACE("optimizer " + std::to_string(number++));
        const auto optimizer = updates.make();
        const auto w = weights(strategy, "w" + std::to_string(number), {1});
        for (std::size_t i = 0; i < updates.gradients.size(); ++i) {
          step(strategy, *optimizer, w, {updates.gradients[i]});
          for (const Numbers& component : components_of(worker, *w)) {
            EXPECT_NEAR(component.front(), updates.values[i], 5e-7) << "step " << i + 1;  // a few units of f32
          }
        }
        EXPECT_EQ(host_number(worker, optimizer->iterations()->read()), static_cast<double>(updates.values.size()));
      }
    });
  });
}

// Eight examples of a linear model, in whole numbers.
constexpr int kExamples = 8, kSteps = 6;
double x_of(int example, int feature) {
  return (example * 3 + feature * 5) % 7 - 3;
}
double y_of(int example) {
  return 2 * x_of(example, 0) - x_of(example, 1) + 1;
}

// Half of the mean squared error's gradient over a replica's examples, and in `loss` their part of the error.
Numbers linear_gradient(const Numbers& w, int replica, int replicas, double& loss) {
  Numbers gradient(3);
  for (int example = replica; example < kExamples; example += replicas) {
    const double error = w[0] * x_of(example, 0) + w[1] * x_of(example, 1) + w[2] - y_of(example);
    loss += error * error / kExamples;
    for (int feature = 0; feature < 3; ++feature) {
      gradient[static_cast<std::size_t>(feature)] += error * (feature < 2 ? x_of(example, feature) : 1) / kExamples;
    }
  }
  return gradient;
}

// The losses before each step, and the weights in the end.
Numbers trained(Worker& worker, Strategy& strategy, Optimizer& optimizer, const std::string& name) {
  const auto w = strategy.create_variable({.name = name, .shape = {3}});
  Numbers result;
  for (int i = 0; i < kSteps; ++i) {
    double loss = 0;
    strategy.run([&](const Value::Parts&) -> Value {
      const Numbers now = host_values(worker, w->value());
      const int replicas = strategy.num_replicas_in_sync();
      optimizer.apply_gradients({{gradient_of(linear_gradient(now, replica_id(), replicas, loss)), w}});
      return {};
    });
    result.push_back(strategy.extended().implementation().reduce_number(ReduceOp::sum, Value(loss)).number());
  }
  const Numbers end = host_values(worker, w->read());
  result.insert(result.end(), end.begin(), end.end());
  return result;
}

// Gradients are sums of other parts, each rounded to f32: they differ by some units of 2^-24 in the largest summands,
// about 10. Adam's quotient of small gradients does not enlarge that here, where they stay above 0.01.
constexpr double kRounding = 2e-5;

MATCHER_P(IsNearTo, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance * std::max(1.0, std::abs(std::get<1>(arg)));
}

TEST_P(Strategies, ReplicasLearnWhatOneDeviceLearnsFromTheWholeBatch) {
  run(4, [](Worker& worker) {
    for (const auto& [name, make] : every_optimizer()) {
      SCOPED_TRACE(name);
      OneDeviceStrategy one(worker, *worker.devices()[0]);
      const Numbers expected = trained(worker, one, *make(), "w");
      EXPECT_LT(expected[kSteps - 1], expected[0]);
      for (const std::size_t replicas : {1, 2, 4}) {
        const std::vector<Device*> all = devices_of(worker);
        const std::vector<Device*> devices(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(replicas));
        MirroredStrategy mirrored(worker, devices);
        CentralStorageStrategy central(worker, devices);
        EXPECT_THAT(trained(worker, mirrored, *make(), "w"), Pointwise(IsNearTo(kRounding), expected)) << replicas;
        EXPECT_THAT(trained(worker, central, *make(), "w"), Pointwise(IsNearTo(kRounding), expected)) << replicas;
      }
    }
  });
}

TEST_P(Strategies, WorkersLearnWhatOneDeviceLearnsFromTheWholeBatch) {
  open_world(GetParam(), 2, 2)->run([](Worker& worker) {
    for (const auto& [name, make] : every_optimizer()) {
      SCOPED_TRACE(name);
      OneDeviceStrategy one(worker, *worker.devices()[0]);
      MultiWorkerMirroredStrategy both(worker);
      const Numbers expected = trained(worker, one, *make(), "w");
      EXPECT_THAT(trained(worker, both, *make(), "w"), Pointwise(IsNearTo(kRounding), expected));
    }
  });
}

// Slices of a variable of four rows of two: row 2 twice, and row 0. What one replica does not have, the other has.
IndexedSlices slices(double first, double second, double third) {
  Device& device = get_replica_context()->device();
  const double share = get_replica_context()->num_replicas_in_sync();
  return {constant(device, {first / share, first / share, second / share, second / share, third / share, third / share},
                   Shape{3, 2}),
          constant(device, {2, 0, 2}, Shape{3}, DType::i64), Shape{4, 2}};
}

// The same gradient as a tensor.
Numbers whole(double first, double second, double third) {
  return {second, second, 0, 0, first + third, first + third, 0, 0};
}

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
        EXPECT_EQ(components_of(worker, *w), components_of(worker, *expected));  // untouched rows had no state
        slices_step(4, 1, -2);
        EXPECT_EQ(components_of(worker, *w), components_of(worker, *expected));
        // Now row 1 gets a state that only what counts as dense moves on.
        for (const auto& [optimizer, variable] : {std::pair(sparse.get(), w), {dense.get(), expected}}) {
          strategy.run([&, optimizer = optimizer, variable = variable](const Value::Parts&) -> Value {
            const Numbers values = shared_out({0, 0, 8, 8, 0, 0, 0, 0});
            optimizer->apply_gradients({{constant(get_replica_context()->device(), values, Shape{4, 2}), variable}});
            return {};
          });
        }
        const Numbers before = components_of(worker, *w).front();
        slices_step(1, 1, 1);
        const Numbers after = components_of(worker, *w).front();
        const bool is_lazy = name == "sgd" || name == "momentum" || name == "nesterov" || name == "adagrad" ||
                             name == "rmsprop_momentum";
        const bool moves = name.starts_with("adam") || name == "amsgrad";
        EXPECT_EQ(before[2] != after[2], moves);
        if (is_lazy) {
          for (const std::string& slot : sparse->get_slot_names()) {
            const Numbers rows = components_of(worker, *sparse->get_slot(w, slot)).front();
            EXPECT_NE(rows[2], rows[0]);
          }
        } else {
          EXPECT_EQ(components_of(worker, *w), components_of(worker, *expected));
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
      const auto expected = components_of(worker, *w);

      const auto again = make();
      again->build({w});
      Checkpoint restored(worker);
      restored.add("w", w);
      again->add_to(restored);
      restored.restore(file);
      EXPECT_DOUBLE_EQ(again->learning_rate(), 1.0 / 3);
      step(strategy, *again, w, {1, 1});
      EXPECT_EQ(components_of(worker, *w), expected);
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
        Numbers result = components_of(worker, *v).back();
        const Numbers second = components_of(worker, *w).back();
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
      EXPECT_NEAR(components_of(worker, *rows).front()[4], sum / (sum + 1), 1e-6);
      EXPECT_NEAR(components_of(worker, *rows).front()[0], 0.5 / 1.5, 1e-6);
      EXPECT_EQ(components_of(worker, *rows).front()[2], 0);
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
    EXPECT_THAT(components_of(worker, *w), Each(ElementsAre(-3)));
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

class OptimizersOfServers : public ReachingOthers<InEveryWorld> {};
INSTANTIATE_TEST_SUITE_P(Worlds, OptimizersOfServers, testing::ValuesIn(built_worlds()), name_of_world);

// A worker and two servers: the slots are on the server of their variable, or of their shard.
TEST_P(OptimizersOfServers, KeepSlotsOnTheServerOfTheirVariable) {
  EngineOptions options = world_options(GetParam(), 3, 2);
  for (int server = 0; server < 2; ++server) {
    WorkerSpec& spec = options.workers[static_cast<std::size_t>(server) + 1];
    spec.job = "ps";
    spec.task = server;
    spec.device_count = 0;
  }
  open_engine(GetParam().engine, std::move(options))->run([](Worker& worker) {
    if (worker.job() == "ps") return;
    OneDeviceStrategy one(worker, *worker.devices()[0]);
    ParameterServerStrategy servers(worker, {}, {.partitioner = FixedShardsPartitioner(2)});
    for (const auto& [name, make] : every_optimizer()) {
      SCOPED_TRACE(name);
      const Numbers expected = trained(worker, one, *make(), "one_" + name);
      EXPECT_THAT(trained(worker, servers, *make(), "w_" + name), Pointwise(IsNearTo(kRounding), expected));

      const ShardedVariable table = servers.create_sharded_variable({.name = "table_" + name, .shape = {4, 2}});
      const auto reference = one.create_variable({.name = "table", .shape = {4, 2}});
      const auto sharded = make(), single = make();
      for (const double scale : {1.0, -2.0}) {
        servers.run([&](const Value::Parts&) -> Value {
          sharded->apply_gradients(optimizers::gradients_of_shards(slices(scale, 2, 4), table));
          return {};
        });
        one.run([&](const Value::Parts&) -> Value {
          single->apply_gradients({{slices(scale, 2, 4), reference}});
          return {};
        });
      }
      EXPECT_THAT(host_values(worker, table.concatenated_on(worker.cpu())),
                  ElementsAreArray(host_values(worker, reference->read())));
      for (const auto& shard : table.variables()) {
        for (const std::string& slot : sharded->get_slot_names()) {
          EXPECT_EQ(sharded->get_slot(shard, slot)->devices(), shard->devices());
        }
      }
      EXPECT_NE(table.variables()[0]->devices(), table.variables()[1]->devices());
    }
    optimizers::SGD clipping({.learning_rate = -1, .clipping = {.global_clipnorm = 6.5}});
    const auto a = servers.create_variable({.name = "a", .shape = {2}});
    const auto b = servers.create_variable({.name = "b", .shape = {1}});
    servers.run([&](const Value::Parts&) -> Value {
      clipping.apply_gradients({{gradient_of(shared_out({3, 4})), a}, {gradient_of(shared_out({12})), b}});
      return {};
    });
    EXPECT_THAT(host_values(worker, a->read()), ElementsAre(1.5, 2));
    EXPECT_THAT(host_values(worker, b->read()), ElementsAre(6));
  });
}

}  // namespace
}  // namespace tandem
