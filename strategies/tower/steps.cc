#include "strategies/tower/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/tower/context.h"

namespace tandem::tower {
namespace {

Value reduced_to_cpu(const DistributionStrategy& strategy, VariableAggregation aggregation, const Value& value) {
  return strategy.unwrap(strategy.reduce(aggregation, value, strategy.strategy().extended().worker().cpu())).front();
}

void check_outputs(const Value::Fields& outputs, const std::map<std::string, Value>& initial) {
  if (initial.empty()) return;
  const bool is_same = std::equal(outputs.begin(), outputs.end(), initial.begin(), initial.end(),
                                  [](const auto& a, const auto& b) { return a.first == b.first; });
  if (!is_same) {
    throw ValueError(fmt::format("the steps set {} outputs that are not the {} initial loop values", outputs.size(),
                                 initial.size()));
  }
}

}  // namespace

void MultiStepContext::set_last_step_output(const std::string& name, const Value& output,
                                            VariableAggregation aggregation) {
  const std::optional<TowerContext> tower = get_tower_context();
  if (!tower) {
    const bool is_kept = aggregation == VariableAggregation::none;
    outputs_[name] = is_kept ? output : reduced_to_cpu(get_distribution_strategy(), aggregation, output);
    return;
  }
  if (aggregation == VariableAggregation::none) {
    throw AssertionError(fmt::format("output '{}' is set in a tower: it needs an aggregation", name));
  }
  tower->merge_call(
      [&](const DistributionStrategy& strategy, const Value::Parts& merged) {
        outputs_[name] = reduced_to_cpu(strategy, aggregation, merged.front());
        return Value();
      },
      {output});
}

void MultiStepContext::set_non_tensor_output(const std::string& name, const Value& output) {
  const std::optional<TowerContext> tower = get_tower_context();
  if (!tower) {
    non_tensor_outputs_[name] = output;
    return;
  }
  tower->merge_call(
      [&](const DistributionStrategy& strategy, const Value::Parts& merged) {
        non_tensor_outputs_[name] = Value::list(strategy.unwrap(merged.front()));
        return Value();
      },
      {output});
}

void MultiStepContext::set_last_step_outputs(const Value& outputs) {
  if (!outputs.is(ValueKind::map)) {
    throw ValueError(fmt::format("the outputs of a step are a map, not a {}", name_of(outputs.kind())));
  }
  outputs_ = outputs.fields();
}

MultiStepContext DistributionStrategy::run_steps_on_dataset(
    const StepFunction& function, DistributedIteratorV1& iterator, int iterations,
    const std::map<std::string, Value>& initial_loop_values) const {
  require_cross_tower_context(strategy(), "run_steps_on_dataset()");
  MultiStepContext context;
  for (int i = 0; i < iterations; ++i) {
    const Value element = iterator.get_next();
    function(context, element.is(ValueKind::tuple) ? element.parts() : Value::Parts{element});
    check_outputs(context.last_step_outputs(), initial_loop_values);
  }
  return context;
}

}  // namespace tandem::tower
