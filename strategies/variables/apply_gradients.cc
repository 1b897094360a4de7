#include "strategies/variables/apply_gradients.h"

#include "strategies/base/context.h"
#include "strategies/base/errors.h"
#include "strategies/base/replica_context.h"
#include "strategies/base/strategy.h"

namespace tandem {

void apply_constraint(Variable& variable) {
  if (variable.constraint()) variable.assign(variable.constraint()(variable.value()));
}

void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables, const ValueRule& rule) {
  ReplicaContext* const replica = get_replica_context();
  if (!replica) {
    throw RuntimeError("apply_gradients() is called in a cross-replica context; call it in a replica context");
  }
  Value::Parts gradients;
  std::vector<std::shared_ptr<Variable>> variables;
  for (const auto& [gradient, variable] : gradients_and_variables) {
    if (gradient.is(ValueKind::none)) continue;
    gradients.push_back(gradient);
    variables.push_back(variable);
  }
  if (gradients.empty()) throw ValueError("apply_gradients() is given no gradient for any variable");
  const UpdateFunction change = [&rule](Variable& variable, const Value::Parts& arguments) {
    rule(variable, arguments.front());
    apply_constraint(variable);
    return Value();
  };
  replica->merge_call(
      [&](Strategy& strategy, const Value::Parts& merged) {
        StrategyExtended& extended = strategy.extended();
        std::vector<ReducePair> pairs;
        for (std::size_t i = 0; i < variables.size(); ++i) {
          pairs.emplace_back(merged[i], Destinations(variables[i]));
        }
        const std::vector<Value> sums = extended.batch_reduce_to(ReduceOp::sum, pairs);
        for (std::size_t i = 0; i < variables.size(); ++i) extended.update(variables[i], change, {sums[i]});
        return Value();
      },
      gradients);
}

}  // namespace tandem
