#include "strategies/strategy/steps.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"

namespace tandem {

void MultiStepContext::set_last_step_output(const std::string& name, const Value& output, std::optional<ReduceOp> op) {
  ReplicaContext* replica = get_replica_context();
  if (!replica) {
    outputs_[name] = op ? get_strategy().reduce(*op, output) : output;
    return;
  }
  if (!op) {
    throw AssertionError(
        fmt::format("output '{}' is set in a replica context: say how the replicas' values are combined", name));
  }
  replica->merge_call(
      [this, &name, op](Strategy& strategy, const Value::Parts& merged) {
        outputs_[name] = strategy.reduce(*op, merged.front());
        return Value();
      },
      {output});
}

void MultiStepContext::set_non_tensor_output(const std::string& name, const Value& output) {
  ReplicaContext* replica = get_replica_context();
  if (!replica) {
    non_tensor_outputs_[name] = output;
    return;
  }
  replica->merge_call(
      [this, &name](Strategy& strategy, const Value::Parts& merged) {
        const Value& value = merged.front();
        non_tensor_outputs_[name] =
            Value::tuple(value.is_distributed() ? strategy.experimental_local_results(value) : Value::Parts{value});
        return Value();
      },
      {output});
}

MultiStepContext StrategyExtended::run_steps(const StepFunction& function, DistributedIterator& iterator,
                                             int iterations, const std::map<std::string, Value>& initial_loop_values) {
  require_cross_replica(strategy(), "run_steps()");
  const Scope scope = strategy().scope();
  MultiStepContext context;
  context.outputs_ = initial_loop_values;
  for (int i = 0; i < iterations; ++i) {
    const std::optional<Value> inputs = iterator.next();
    if (!inputs) throw OutOfRangeError(fmt::format("the data ended in iteration {} of {}", i + 1, iterations));
    function(context, *inputs);
    for (const auto& [name, value] : initial_loop_values) {
      if (context.outputs_.size() == initial_loop_values.size() && context.outputs_.contains(name)) continue;
      throw ValueError(fmt::format("the steps set {} outputs; the initial loop values, with '{}', are {}",
                                   context.outputs_.size(), name, initial_loop_values.size()));
    }
  }
  return context;
}

}  // namespace tandem
