#include "strategies/tower/context.h"

#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"

namespace tandem::tower {

TowerContext::TowerContext(ReplicaContext& context) : context_(&context), strategy_(&context.strategy()) {}

ReplicaContext& TowerContext::current() const {
  ReplicaContext* now = get_replica_context();
  if (now == context_) return *context_;
  if (!now) throw RuntimeError("need to be inside call_for_each_tower()");
  if (&now->strategy() == strategy_) throw RuntimeError("mismatching tower context: another tower's is current");
  throw RuntimeError("mismatching distribution strategies: another one's tower context is current");
}

int TowerContext::num_towers() const {
  return strategy_->num_replicas_in_sync();
}
int TowerContext::tower_id() const {
  return current().replica_id_in_sync_group();
}
bool TowerContext::is_single_tower() const {
  return current().num_replicas_in_sync() == 1;
}

Device& TowerContext::device() const {
  ReplicaContext& context = current();
  return strategy_ == &default_strategy() ? strategy_->extended().worker().cpu() : context.device();
}

Value TowerContext::merge_call(const MergeFunction& function, const Value::Parts& arguments) const {
  return current().merge_call(
      [&function](Strategy& strategy, const Value::Parts& merged) {
        return function(DistributionStrategy(strategy), merged);
      },
      arguments);
}

std::unique_ptr<VariableCreatorScope> TowerContext::tower_local_var_scope(std::string_view method) const {
  return distribution_strategy().tower_local_var_scope(method);
}

std::optional<TowerContext> get_tower_context() {
  ReplicaContext* context = get_replica_context();
  return context ? std::optional(TowerContext(*context)) : std::nullopt;
}

std::optional<DistributionStrategy> get_cross_tower_context() {
  Strategy* strategy = get_cross_replica_context();
  return strategy ? std::optional(DistributionStrategy(*strategy)) : std::nullopt;
}

DistributionStrategy get_distribution_strategy() {
  return DistributionStrategy(get_strategy());
}
bool has_distribution_strategy() {
  return has_strategy();
}

}  // namespace tandem::tower
