// The context of DistributionStrategy::run_steps_on_dataset(): collects the outputs of the step functions.
#pragma once

#include <map>
#include <string>

#include "strategies/tower/distribution_strategy.h"

namespace tandem::tower {

class MultiStepContext {
 public:
  // In cross-tower context stores the value as it is (NONE) or reduced to one value on the CPU. In a tower, where all
  // towers must call it, NONE is an AssertionError.
  void set_last_step_output(const std::string& name, const Value& output,
                            VariableAggregation aggregation = VariableAggregation::none);
  // Stores any value as it is; in a tower stores the list of the towers' values, where identical ones count once.
  void set_non_tensor_output(const std::string& name, const Value& output);

  const Value::Fields& last_step_outputs() const { return outputs_; }
  void set_last_step_outputs(const Value& outputs);  // ValueError unless it is a map
  const Value::Fields& non_tensor_outputs() const { return non_tensor_outputs_; }

  // Returns what the step function returned last, as DistributionStrategy::group() does; nothing after 0 iterations.
  // In TensorFlow this is the op that runs the loop; here the loop has run when run_steps_on_dataset() returns.
  const Value& run_op() const { return run_op_; }

 private:
  friend class DistributionStrategy;
  Value::Fields outputs_, non_tensor_outputs_;
  Value run_op_;
};

}  // namespace tandem::tower
