// Optimizer.apply_gradients: sums gradients over the replicas and updates the variables.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "strategies/variables/variable.h"

namespace tandem {

// A gradient, which is a tensor, IndexedSlices or none, and the variable it is for.
using GradientAndVariable = std::pair<Value, std::shared_ptr<Variable>>;
// Applies the summed gradient to the component of the variable that is being updated.
using ValueRule = std::function<void(Variable& variable, const Value& gradient)>;

// Sums each gradient over the replicas in sync and calls `rule` for every component of its variable, in an update
// context; then assigns the variable constraint(value), if it has a constraint. All replicas call it, with their own
// gradients of the same variables, in any order: RuntimeError, naming the variables, where a replica has gradients of
// others, and in a cross-replica context. Skips pairs without a gradient; ValueError if no pair has one.
void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables, const ValueRule& rule);

// Assigns the variable the value that its constraint returns for it, if it has a constraint. For user-defined rules, in
// an update context.
void apply_constraint(Variable& variable);

}  // namespace tandem
