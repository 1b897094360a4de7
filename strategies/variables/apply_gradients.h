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
// Changes the component of the variable that is being updated by the summed gradient.
using ValueRule = std::function<void(Variable& variable, const Value& gradient)>;

// Sums each gradient over the replicas in sync and calls `rule` for every component of its variable, in an update
// context; then the variable is assigned constraint(value), where it has a constraint. All replicas call it, with their
// own gradients of the same variables: RuntimeError in a cross-replica context. Pairs without a gradient are left out,
// and to have none with a gradient is a ValueError.
void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables, const ValueRule& rule);

// Assigns the variable the value that its constraint gives for it, if it has a constraint. For rules of one's own, in
// an update context.
void apply_constraint(Variable& variable);

}  // namespace tandem
