// What the step functions of run_steps_on_dataset() leave behind.
#pragma once

#include <map>
#include <string>

#include "strategies/tower/distribution_strategy.h"

namespace tandem::tower {

class MultiStepContext {
 public:
  // In cross-tower context: NONE keeps the value as it is, per device; otherwise it is reduced to the CPU, as one
  // value. In a tower all towers call it, and NONE is an AssertionError.
  void set_last_step_output(const std::string& name, const Value& output,
                            VariableAggregation aggregation = VariableAggregation::none);
  // Any value, kept as it is; in a tower the list of the towers' values, where identical ones count once.
  void set_non_tensor_output(const std::string& name, const Value& output);

  const Value::Fields& last_step_outputs() const { return outputs_; }
  void set_last_step_outputs(const Value& outputs);  // a map (ValueError)
  const Value::Fields& non_tensor_outputs() const { return non_tensor_outputs_; }

 private:
  Value::Fields outputs_, non_tensor_outputs_;
};

}  // namespace tandem::tower
