// Runs several steps in one call: StrategyExtended::run_steps.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "strategies/base/options.h"
#include "strategies/values/value.h"

namespace tandem {

// Collects what the step function of run_steps() sets; the last iteration's outputs remain.
class MultiStepContext {
 public:
  // Sets an output. In cross-replica context the value is reduced by `op`, or kept per replica without one. In a
  // replica context all replicas have to call it, as a merge_call, and `op` is required (AssertionError).
  void set_last_step_output(const std::string& name, const Value& output, std::optional<ReduceOp> op = std::nullopt);
  // Sets an output of any kind, which is kept as it is. In a replica context, keeps a tuple of the replicas' values,
  // which has a single element if all replicas set the same object.
  void set_non_tensor_output(const std::string& name, const Value& output);

  const std::map<std::string, Value>& last_step_outputs() const { return outputs_; }
  const std::map<std::string, Value>& non_tensor_outputs() const { return non_tensor_outputs_; }

 private:
  friend class StrategyExtended;
  std::map<std::string, Value> outputs_, non_tensor_outputs_;
};

}  // namespace tandem
