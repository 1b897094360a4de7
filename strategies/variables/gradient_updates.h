// Turns gradients into new values: sums them over the replicas in sync while the backward pass goes on, then applies
// them to the variables on the devices that store them. Works with every strategy. A program that has all gradients
// before it begins to sum them calls apply_gradients() instead.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategies/strategy/strategy.h"

namespace tandem {

// Applies the summed gradient to the component of the variable that is being updated. Both are on the same device.
using GradientRule = std::function<void(Variable& variable, const Tensor& gradient)>;

// Made once per program. All replicas use it, in the same order, each in its replica context.
class GradientUpdates {
 public:
  using Variables = std::vector<std::shared_ptr<Variable>>;

  // Begins to sum these gradients, one for each variable, over the replicas. They must not be touched until apply().
  void begin(const Variables& variables, const std::vector<Tensor>& gradients);
  // Waits for the sums, in the order in which they were begun, and updates the variables, each to the nearest value
  // that its constraint allows.
  void apply(const GradientRule& rule);

 private:
  struct Batch {
    Variables variables;
    ReductionInFlight sums;
  };
  bool are_mirrored() const;
  void apply_on_own_device(const UpdateFunction& change);
  void apply_where_stored(const UpdateFunction& change);

  std::vector<Batch> batches_;
};

}  // namespace tandem
