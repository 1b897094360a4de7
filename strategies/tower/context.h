// The current strategy and context, by the names of TensorFlow 1.
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

// The context of a tower function. This is a handle; calls that need the context to be current throw RuntimeError after
// the tower has ended and whenever another context is current.
class TowerContext {
 public:
  explicit TowerContext(ReplicaContext& context);
  bool operator==(const TowerContext& other) const { return context_ == other.context_; }

  DistributionStrategy distribution_strategy() const { return DistributionStrategy(*strategy_); }
  int num_towers() const;
  // The calls below need the context to be current.
  int tower_id() const;
  bool is_single_tower() const;
  Device& device() const;  // the tower's device; for the default strategy the calling worker's CPU
  // Waits for all towers, calls tower 0's function once in cross-tower context with the regrouped arguments, and
  // returns this tower's part of the result.
  Value merge_call(const MergeFunction& function, const Value::Parts& arguments = {}) const;
  // See DistributionStrategy::tower_local_var_scope. Needs only the strategy to be current.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> tower_local_var_scope(std::string_view method) const;

 private:
  ReplicaContext& current() const;  // the library's context; RuntimeError unless it is current
  ReplicaContext* context_;
  Strategy* strategy_;
};

std::optional<TowerContext> get_tower_context();                // nothing in a cross-tower context
std::optional<DistributionStrategy> get_cross_tower_context();  // nothing outside one
DistributionStrategy get_distribution_strategy();               // outside every scope the default strategy
bool has_distribution_strategy();  // whether get_distribution_strategy() is not the default one

}  // namespace tandem::tower
