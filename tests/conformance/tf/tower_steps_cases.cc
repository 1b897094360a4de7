// 1.x: steps over a dataset, and metrics kept in tower-local variables.
#include "strategies/cross_device/host_values.h"
#include "tests/conformance/tf/input_values.h"
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_steps_cases {
namespace {

using tower::MultiStepContext;
constexpr auto kSum = VariableAggregation::sum;
constexpr auto kMean = VariableAggregation::mean;

// 0.0, 1.0, ... 9.0, dealt to the towers.
DistributedIteratorV1 numbers(TowerStage& stage) {
  return stage.towers
      .distribute_dataset([] {
        return Dataset::range(10).map(
            [](const Element& x) -> Element { return HostTensor::scalar(static_cast<float>(x.tensor().number())); });
      })
      .make_one_shot_iterator();
}

Json outputs_in_both_contexts(TowerStage& stage) {
  DistributedIteratorV1 iterator = numbers(stage);
  const Value bar(std::string("bar"));
  const MultiStepContext context = stage.towers.run_steps_on_dataset(
      [&](MultiStepContext& step, const Value::Parts& inputs) {
        const Value losses = stage.towers.call_for_each_tower(
            [&](const Value::Parts& arguments) {
              step.set_last_step_output("a", arguments.front(), kMean);
              step.set_non_tensor_output("foo", bar);
              return arguments.front();
            },
            {inputs.front()});
        step.set_last_step_output("b", losses, kMean);
        step.set_last_step_output("c", losses);
      },
      iterator, 2);
  Json counts, values;
  for (const auto& [name, output] : context.last_step_outputs()) {
    counts[name] = stage.towers.unwrap(output).size();
    values[name] = stage.json(output);
  }
  return {{"values_of_each", counts},
          {"last_step_outputs", values},
          {"non_tensor_outputs", {{"foo", stage.json(context.non_tensor_outputs().at("foo"))}}}};
}

Json last_iteration(TowerStage& stage) {
  DistributedIteratorV1 iterator = numbers(stage);
  const MultiStepContext context = stage.towers.run_steps_on_dataset(
      [](MultiStepContext& step, const Value::Parts& inputs) { step.set_last_step_output("x", inputs.front(), kSum); },
      iterator, 3);
  return {{"x", stage.json(context.last_step_outputs().at("x"))}};
}

Json wrong_outputs(TowerStage& stage) {
  DistributedIteratorV1 iterator = numbers(stage);
  const auto run = [&](const tower::StepFunction& function, const std::map<std::string, Value>& initial = {}) {
    return error_of([&] { stage.towers.run_steps_on_dataset(function, iterator, 1, initial); });
  };
  const auto sets_x = [](MultiStepContext& step, const Value::Parts&) { step.set_last_step_output("x", 1.0, kMean); };
  return {{"without_aggregation_in_tower", run([&](MultiStepContext& step, const Value::Parts&) {
             stage.each_tower([&] { step.set_last_step_output("x", 1.0); });
           })},
          {"no_map", run([](MultiStepContext& step, const Value::Parts&) {
             step.set_last_step_outputs(Value::list({Value(1.0)}));
           })},
          {"other_loop_values", run(sets_x, {{"y", Value(0.0)}})},
          {"same_loop_values", run(sets_x, {{"x", Value(0.0)}})},
          {"end_of_data", error_of([&] { stage.towers.run_steps_on_dataset(sets_x, iterator, 100); })}};
}

// A tuple element is opened, and the towers' different texts stay apart.
Json opened_tuples(TowerStage& stage) {
  auto iterator =
      stage.towers.distribute_dataset([] {
                    return Dataset::zip({Dataset::range(4), Dataset::range(10, 14)});
                  })
          .make_one_shot_iterator();
  Json inputs;
  const MultiStepContext context = stage.towers.run_steps_on_dataset(
      [&](MultiStepContext& step, const Value::Parts& given) {
        inputs = Json::array();
        for (const Value& input : given) inputs.push_back(stage.unwrapped(input));
        stage.each_tower([&] { step.set_non_tensor_output("who", Value("tower " + std::to_string(tower_id()))); });
        step.set_non_tensor_output("what", Value(std::string("kept")));
      },
      iterator, 2);
  return {{"inputs", inputs},
          {"who", stage.json(context.non_tensor_outputs().at("who"))},
          {"what", stage.json(context.non_tensor_outputs().at("what"))}};
}

// Loops that begin with values have outputs of the same structure, however often they run.
Json loop_values(TowerStage& stage) {
  const auto sets = [](MultiStepContext& step, const Value::Parts& inputs) {
    step.set_last_step_output("each", inputs.front());
    step.set_last_step_output("sum", inputs.front(), kSum);
    return inputs.front();
  };
  const auto run = [&](int iterations, const Value::Fields& initial) {
    DistributedIteratorV1 iterator = numbers(stage);
    return stage.towers.run_steps_on_dataset(sets, iterator, iterations, initial);
  };
  const Value::Fields initial = {{"each", Value::list({Value(7), Value(8)})}, {"sum", Value(9)}};
  const MultiStepContext none = run(0, initial), one = run(1, initial);
  const auto refused = [&](const Value& each, const Value& sum) {
    return error_of([&] { run(1, {{"each", each}, {"sum", sum}}); });
  };
  return {
      {"after_0", {stage.json(none.last_step_outputs().at("each")), stage.json(none.last_step_outputs().at("sum"))}},
      {"run_op_of_0", stage.json(none.run_op())},
      {"after_1", {stage.unwrapped(one.last_step_outputs().at("each")), stage.json(one.last_step_outputs().at("sum"))}},
      {"run_op_of_1", stage.json(one.run_op())},
      {"refused",
       {refused(Value::list({Value(7)}), Value(9)), refused(Value(7), Value(9)),
        refused(initial.at("each"), Value::list({Value(1), Value(2)})), error_of([&] {
          run(1, {{"sum", Value(9)}});
        }),
        error_of([&] { run(1, {}); })}}};
}

// Input that stays on the host reaches the towers all the same, in their order.
Json left_on_host(const CaseWorld& world) {
  return world.on_worker([&](Worker& worker) -> Json {
    tower::MirroredStrategy towers(
        worker, {.devices = names_of({worker.devices().begin(), worker.devices().end()}), .prefetch_on_device = false});
    TowerStage stage(worker, towers, world.spec());
    const Scope scope = towers.scope();
    const Value step = numbers(stage).get_next();
    bool are_on_host = true;
    for (const Value& part : towers.unwrap(step)) are_on_host = are_on_host && &part.tensor().device() == &worker.cpu();
    const Value seen = towers.call_for_each_tower(
        [&](const Value::Parts& arguments) -> Value {
          return host_number(worker, arguments.front().tensor()) + 10 * tower_id();
        },
        {step});
    return {{"on_host", are_on_host}, {"inputs", stage.unwrapped(step)}, {"seen", stage.unwrapped(seen)}};
  });
}

// Labels count modulo 5, predictions modulo 3, in batches of 4.
Dataset labelled() {
  return Dataset::range(1000)
      .map([](const Element& x) -> Element {
        const auto i = static_cast<std::int64_t>(x.tensor().number());
        return Element::tuple({HostTensor::scalar(i % 5), HostTensor::scalar(i % 3)});
      })
      .batch(4, true);
}

// A streaming accuracy: tower-local sums, divided in cross-tower context.
Json accuracies(TowerStage& stage, int updates) {
  const auto local = [&] { return stage.var(0, kSum, Stage::Synchronization::on_read); };
  const auto right = local(), count = local();
  DistributedIteratorV1 iterator = stage.towers.distribute_dataset([] { return labelled(); }).make_one_shot_iterator();
  Json values = Json::array();
  for (int i = 0; i < updates; ++i) {
    stage.towers.call_for_each_tower(
        [&](const Value::Parts& batch) -> Value {
          const Value::Parts& columns = batch.front().parts();
          const std::vector<double> labels = host_values(stage.worker, columns[0].tensor());
          const std::vector<double> predictions = host_values(stage.worker, columns[1].tensor());
          double matches = 0;
          for (std::size_t k = 0; k < labels.size(); ++k) matches += labels[k] == predictions[k] ? 1 : 0;
          right->assign_add(matches);
          count->assign_add(static_cast<double>(labels.size()));
          return {};
        },
        {iterator.get_next()});
    const auto total = [&](Variable& v) { return host_number(stage.worker, stage.towers.read_var(v)); };
    values.push_back(total(*right) / total(*count));
  }
  return values;
}

const bool added = add_cases({
    {"trn-steps-1", in_scope(outputs_in_both_contexts)},
    {"trn-steps-5", in_scope(last_iteration)},
    {"trn-metric-acc", in_scope([](TowerStage& stage) -> Json {
       return {{"value", accuracies(stage, 4)}};
     })},
    {"trn-metric-acc-2", in_scope([](TowerStage& stage) -> Json {
       return {{"value_after_update", accuracies(stage, 2)}};
     })},
    {"twr-x40", in_scope(wrong_outputs)},
    {"twr-x41", in_scope(opened_tuples)},
    {"twr-x42", left_on_host},
    {"twr-x43", in_scope(loop_values)},
});

}  // namespace
}  // namespace tandem::tower_steps_cases
