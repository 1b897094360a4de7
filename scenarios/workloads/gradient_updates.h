// Updates variables by gradients as tf.distribute does: sums the gradients over the replicas in sync while the backward
// pass goes on, then updates each variable on the devices that keep it. Works with every strategy.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategies/base/strategy.h"

namespace tandem {

// Each workload has one. All replicas make the same calls in the same order, each in its replica context.
class GradientUpdates {
 public:
  using Variables = std::vector<std::shared_ptr<Variable>>;
  // Changes one component of the variable, in an update context, by the summed gradient on the same device.
  using Update = std::function<void(Variable& variable, const Tensor& gradient)>;

  // Begins to sum these gradients, one for each variable, over the replicas. They must not be touched until apply().
  void begin(const Variables& variables, const std::vector<Tensor>& gradients);
  // Waits for the sums, in the order in which they were begun, and updates the variables.
  void apply(const Update& update);

 private:
  struct Batch {
    Variables variables;
    ReductionInFlight sums;
  };
  bool are_mirrored() const;
  void apply_on_own_device(const UpdateFunction& change);
  void apply_where_they_stand(const UpdateFunction& change);

  std::vector<Batch> batches_;
};

}  // namespace tandem
