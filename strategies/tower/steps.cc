#include "strategies/tower/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/tower/context.h"
#include "strategies/tower/tower_strategy.h"

namespace tandem::tower {
namespace {

Value reduced_to_cpu(const DistributionStrategy& strategy, VariableAggregation aggregation, const Value& value) {
  return strategy.unwrap(strategy.reduce(aggregation, value, strategy.strategy().extended().worker().cpu())).front();
}

bool is_leaf(const Value& value) {
  return !value.is_nest() && !value.is_distributed();
}

// Returns whether two values have the same names, nesting and numbers of elements. A value per device counts as the
// list that unwrap() makes of it, and a list of one element as that element.
bool is_same_structure(const DistributionStrategy& strategy, const Value& a, const Value& b) {
  if (is_leaf(a) && is_leaf(b)) return true;
  if (a.is(ValueKind::map) || b.is(ValueKind::map)) {
    if (a.kind() != b.kind()) return false;
    return std::equal(a.fields().begin(), a.fields().end(), b.fields().begin(), b.fields().end(),
                      [&](const auto& x, const auto& y) {
                        return x.first == y.first && is_same_structure(strategy, x.second, y.second);
                      });
  }
  const auto elements = [&](const Value& value) { return value.is_nest() ? value.parts() : strategy.unwrap(value); };
  const Value::Parts of_a = elements(a), of_b = elements(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [&](const Value& x, const Value& y) { return is_same_structure(strategy, x, y); });
}

void check_outputs(const DistributionStrategy& strategy, const Value::Fields& outputs, const Value::Fields& initial) {
  for (const auto& [name, value] : initial) {
    const auto found = outputs.find(name);
    if (found != outputs.end() && is_same_structure(strategy, found->second, value)) continue;
    throw ValueError(fmt::format("initial loop value '{}' is a {}; the steps set {}", name, name_of(value.kind()),
                                 found == outputs.end() ? "no such output" : name_of(found->second.kind())));
  }
  if (outputs.size() == initial.size()) return;
  throw ValueError(
      fmt::format("the steps set {} outputs, but there are {} initial loop values", outputs.size(), initial.size()));
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
    const std::optional<Value::Fields>& initial_loop_values) const {
  require_cross_tower_context(strategy(), "run_steps_on_dataset()");
  MultiStepContext context;
  for (int i = 0; i < iterations; ++i) {
    const Value element = iterator.get_next();
    context.run_op_ = group(function(context, element.is(ValueKind::tuple) ? element.parts() : Value::Parts{element}));
    if (initial_loop_values) check_outputs(*this, context.last_step_outputs(), *initial_loop_values);
  }
  if (iterations <= 0 && initial_loop_values) context.outputs_ = *initial_loop_values;
  return context;
}

}  // namespace tandem::tower
