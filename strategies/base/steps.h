// Several steps in one call: StrategyExtended::run_steps.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "strategies/base/options.h"
#include "strategies/values/value.h"

namespace tandem {

// What a step function of run_steps() leaves behind. Outputs of the last iteration stay.
class MultiStepContext {
 public:
  // In cross-replica context: without `op` the value is kept as it is, per replica; with one it is reduced. In a
  // replica context all replicas call it, and `op` is required (AssertionError); it is a merge_call.
  void set_last_step_output(const std::string& name, const Value& output, std::optional<ReduceOp> op = std::nullopt);
  // Any value, kept as it is; in a replica context a tuple of the replicas' values, where identical ones count once.
  void set_non_tensor_output(const std::string& name, const Value& output);

  const std::map<std::string, Value>& last_step_outputs() const { return outputs_; }
  const std::map<std::string, Value>& non_tensor_outputs() const { return non_tensor_outputs_; }

 private:
  friend class StrategyExtended;
  std::map<std::string, Value> outputs_, non_tensor_outputs_;
};

}  // namespace tandem
