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

// What an optimizer with a state of its own does beside the rule, once for all replicas, in the cross-replica context.
struct GradientHandling {
  bool aggregates = true;  // false: the gradients are the same on all replicas already and are taken as they are
  // The sums are left on this worker's devices, for `before` to work with, and sent from there.
  bool keeps_sums_here = false;
  // Called before the updates. May replace the gradients, which are in the order of the variables; the rule gets what
  // is there then.
  std::function<void(Strategy& strategy, const std::vector<std::shared_ptr<Variable>>& variables,
                     std::vector<Value>& gradients)>
      before{};
  std::function<void()> after{};  // called after the updates
};
void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables, const ValueRule& rule,
                     const GradientHandling& handling);

// Assigns the variable the value that its constraint returns for it, if it has a constraint. For user-defined rules, in
// an update context.
void apply_constraint(Variable& variable);

}  // namespace tandem
