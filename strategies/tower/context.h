// Which strategy and context is current, in TensorFlow 1's words.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "strategies/tower/distribution_strategy.h"

namespace tandem {
class ReplicaContext;
}

namespace tandem::tower {

using MergeFunction = std::function<Value(const DistributionStrategy& strategy, const Value::Parts& arguments)>;

// What a tower function sees of its tower. A handle; the calls that say so are a RuntimeError once the tower has ended
// and wherever else another context is current.
class TowerContext {
 public:
  explicit TowerContext(ReplicaContext& context);
  bool operator==(const TowerContext& other) const { return context_ == other.context_; }

  DistributionStrategy distribution_strategy() const { return DistributionStrategy(*strategy_); }
  int num_towers() const;
  // While the context is current:
  int tower_id() const;
  bool is_single_tower() const;
  Device& device() const;  // of the default strategy: the task's CPU
  // Waits for all towers, then calls tower 0's function once, in cross-tower context, with the arguments regrouped, and
  // returns this tower's part of the result.
  Value merge_call(const MergeFunction& function, const Value::Parts& arguments = {}) const;
  // As DistributionStrategy::tower_local_var_scope.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> tower_local_var_scope(std::string_view method) const;

 private:
  ReplicaContext& current() const;  // itself, where it is current
  ReplicaContext* context_;
  Strategy* strategy_;
};

std::optional<TowerContext> get_tower_context();                // nothing in a cross-tower context
std::optional<DistributionStrategy> get_cross_tower_context();  // nothing outside one
DistributionStrategy get_distribution_strategy();               // the default one outside scopes
bool has_distribution_strategy();                               // another one than that

}  // namespace tandem::tower
