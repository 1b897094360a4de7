// Area "training-loop": steps of gradient descent with derivatives written by hand, batch normalisation's moving mean,
// and run_steps.
#include <cmath>

#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/strategy/steps.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::training_loop_cases {
namespace {

constexpr double kLearningRate = 0.2;

// variable -= rate * the sum of the replicas' gradients.
void descend(const Stage& stage, const std::shared_ptr<Variable>& variable, const Value& gradients) {
  StrategyExtended& extended = stage.strategy.extended();
  const Value total = extended.reduce_to(ReduceOp::sum, gradients, variable);
  extended.update(variable,
                  [](Variable& component, const Value::Parts& gradient) -> Value {
                    return component.assign_sub(times(gradient.front().tensor(), kLearningRate));
                  },
                  {total});
}

// One step of linear regression on x = [2, 7], y = [6, 21] from w = 2: its loss is the sum of the squared errors times
// `loss_scale`.
Json regression_step(const Stage& stage, double loss_scale) {
  const auto w =
      stage.strategy.create_variable({.name = "w", .shape = {1, 1}, .initial_value = [](std::int64_t) { return 2.0; }});
  const Value gradients = stage.strategy.run([&](const Value::Parts&) -> Value {
    Device& device = replica().device();
    const Tensor x = stage.tensor(device, {2, 1}, {2, 7}), y = stage.tensor(device, {2, 1}, {6, 21});
    const Tensor prediction = device.allocate(DType::f32, {2, 1}), gradient = device.allocate(DType::f32, {1, 1});
    device.compute_stream().launch(op::gemm(prediction, x, w->value()));
    // d loss / dw = 2 x' (x w - y)
    device.compute_stream().launch(op::gemm(gradient, x, minus(prediction, y), true, false, 2 * loss_scale));
    return gradient;
  });
  descend(stage, w, gradients);
  return {{"w", stage.json(w->read())[0][0]}};
}

CaseFunction sum_loss() {
  return staged([](Stage& stage) { return regression_step(stage, 1); });
}

CaseFunction mean_loss() {
  return staged([](Stage& stage) { return regression_step(stage, 0.5 / stage.strategy.num_replicas_in_sync()); });
}

// Ten steps down (k - 1)^2 from k = 0.
Json minimised(Stage& stage) {
  const auto k = stage.var(0);
  bool decreases = true;
  double distance = 1;
  for (int step = 0; step < 10; ++step) {
    const Value gradients =
        stage.strategy.run([&](const Value::Parts&) -> Value { return times(plus(k->value(), -1), 2); });
    descend(stage, k, gradients);
    const double now = std::abs(stage.json(k->read()).get<double>() - 1);
    decreases = decreases && now < distance;
    distance = now;
  }
  return {{"abs(k-1)_decreases", decreases}, {"k_after_10", stage.json(k->read())}};
}

// 16 x 8, 8 j + i + 100 r at row j and column i on replica r.
Tensor batch_of(const Stage& stage, int replica_id, Device& device) {
  std::vector<double> values;
  for (int element = 0; element < 16 * 8; ++element) values.push_back(element + 100 * replica_id);
  return stage.tensor(device, {16, 8}, values);
}

// Every replica moves its own mean; they are combined when read.
Json moving_mean(Stage& stage, double momentum) {
  const auto mean = stage.var(std::vector<double>(8), Stage::Aggregation::mean, Stage::Synchronization::on_read);
  const int first = stage.strategy.extended().first_replica_id();
  const Value batches =
      per_local_replica(stage, [&](int id) -> Value { return batch_of(stage, id, stage.device(id - first)); });
  Json column0;
  for (int step = 1; step <= 10; ++step) {
    stage.strategy.run(
        [&](const Value::Parts& x) -> Value {
          const Tensor batch = x.front().tensor();
          const Tensor sum = batch.device().allocate(DType::f32, {8});
          batch.device().compute_stream().launch(op::sum_axis(sum, batch, 0));
          return mean->assign_sub(times(minus(mean->value(), times(sum, 1.0 / 16)), 1 - momentum));
        },
        {batches});
    if (step == 1 || step == 10) column0["after_" + std::to_string(step)] = stage.json(mean->read())[0];
  }
  return {{"moving_mean_column0", column0},
          {"column_means", stage.json(stage.strategy.reduce(ReduceOp::mean, batches, 0))}};
}

CaseFunction batch_norm(double momentum) {
  return staged([momentum](Stage& stage) { return moving_mean(stage, momentum); });
}

// Batches of two of first, first + 1, ...
DistributedIterator numbers(const Stage& stage, float first, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  const HostArray array{.row_shape = {}, .values = values};
  return stage.strategy.experimental_distribute_dataset(Dataset::from_tensor_slices({array}).batch(2)).iterator();
}

Value number_of(const Value& inputs) {
  return inputs.is_nest() ? inputs.parts().front() : inputs;
}

Json outputs_of_steps(Stage& stage) {
  DistributedIterator iterator = numbers(stage, 1, 8);
  const Value bar(std::string("bar"));
  const auto step = [&](MultiStepContext& context, const Value& inputs) {
    const Value loss = stage.strategy.run(
        [&](const Value::Parts& x) {
          context.set_last_step_output("a", number_of(x.front()), ReduceOp::mean);
          context.set_non_tensor_output("foo", bar);
          return number_of(x.front());
        },
        {inputs});
    context.set_last_step_output("b", loss, ReduceOp::mean);
    context.set_last_step_output("c", loss);
  };
  const MultiStepContext context = stage.strategy.extended().run_steps(step, iterator, 2);
  const auto& outputs = context.last_step_outputs();
  const Value& foo = context.non_tensor_outputs().at("foo");
  return {{"a", stage.json(outputs.at("a"))},
          {"b", stage.json(outputs.at("b"))},
          {"c_entries", outputs.at("c").parts().size()},
          {"non_tensor_outputs", {{"foo", {{"kind", name_of(foo.kind())}, {"value", stage.json(foo)}}}}}};
}

Json refused_steps(Stage& stage) {
  StrategyExtended& extended = stage.strategy.extended();
  const auto steps = [&](const StepFunction& step, const std::map<std::string, Value>& initial = {}) {
    return error_of([&] {
      DistributedIterator iterator = numbers(stage, 0, 4);
      extended.run_steps(step, iterator, 3, initial);
    });
  };
  const auto nothing = [](MultiStepContext&, const Value&) {};
  const auto in_replica = [&](MultiStepContext& context, const Value&) {
    run_each(stage, [&] { context.set_last_step_output("x", 1.0); });
  };
  const auto another = [](MultiStepContext& context, const Value& inputs) {
    context.set_last_step_output("y", inputs);
  };
  return {{"data_ended", steps(nothing)},
          {"replica_without_reduction", steps(in_replica)},
          {"other_outputs_than_initial", steps(another, {{"x", Value(0.0)}})}};
}

const bool added = add_cases({
    {"trn-bn-0.8-1", batch_norm(0.8)},
    {"trn-bn-0.9-1", batch_norm(0.9)},
    {"trn-bn-0.9-2", batch_norm(0.9)},
    {"trn-bn-0.99-1", batch_norm(0.99)},
    {"trn-mean-1", mean_loss()},
    {"trn-mean-2", mean_loss()},
    {"trn-min-1", staged(minimised)},
    {"trn-min-2", staged(minimised)},
    {"trn-steps-2", staged(outputs_of_steps)},
    {"trn-sum-1", sum_loss()},
    {"trn-sum-2", sum_loss()},
    {"trn-x01", in_groups([](Stage& stage) {
       const Json step = regression_step(stage, 1);
       return std::vector<Json>(stage.strategy.extended().worker_devices().size(), step);
     })},
    {"trn-x02", in_groups([](Stage& stage) {
       const Json means = moving_mean(stage, 0.9);
       return std::vector<Json>(stage.strategy.extended().worker_devices().size(), means);
     })},
    {"trn-x03", staged([](Stage& stage) -> Json {
       DistributedIterator iterator = numbers(stage, 0, 8);
       const auto step = [](MultiStepContext& context, const Value& inputs) {
         context.set_last_step_output("x", number_of(inputs), ReduceOp::sum);
       };
       const MultiStepContext context = stage.strategy.extended().run_steps(step, iterator, 3);
       return {{"x", common(stage.json(context.last_step_outputs().at("x")))}};
     })},
    {"trn-x04", staged(refused_steps)},
});

}  // namespace
}  // namespace tandem::training_loop_cases
