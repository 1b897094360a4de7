#include "strategies/variables/gradient_updates.h"

#include <algorithm>

#include "strategies/strategy/replica_context.h"
#include "strategies/variables/apply_gradients.h"

namespace tandem {

void GradientUpdates::begin(const Variables& variables, const std::vector<Tensor>& gradients) {
  get_replica_context()->merge_call(
      [&](Strategy& strategy, const Value::Parts& merged) {
        std::vector<ReducePair> pairs;
        for (std::size_t i = 0; i < variables.size(); ++i) pairs.emplace_back(merged.at(i), Destinations(variables[i]));
        batches_.push_back({variables, strategy.extended().begin_sum_for_updates(pairs)});
        return Value();
      },
      Value::Parts(gradients.begin(), gradients.end()), {"the reduction of gradients", pointers_to(variables)});
}

void GradientUpdates::apply(const GradientRule& rule) {
  const UpdateFunction change = [&rule](Variable& variable, const Value::Parts& arguments) {
    rule(variable, arguments.front().tensor());
    apply_constraint(variable);
    return Value();
  };
  are_mirrored() ? apply_on_own_device(change) : apply_where_stored(change);
}

bool GradientUpdates::are_mirrored() const {
  return std::all_of(batches_.begin(), batches_.end(), [](const Batch& batch) {
    return std::all_of(batch.variables.begin(), batch.variables.end(),
                       [](const auto& variable) { return variable->kind() == VariableKind::mirrored; });
  });
}

// Replicas come here one after another, so the last of them discards the sums.
void GradientUpdates::apply_on_own_device(const UpdateFunction& change) {
  const ReplicaContext& context = *get_replica_context();
  StrategyExtended& extended = context.strategy().extended();
  Stream& compute = context.device().compute_stream();
  for (const Batch& batch : batches_) {
    for (const auto& [stream, end] : batch.sums.ends) {
      if (stream == &compute) compute.wait(end);
    }
    for (std::size_t i = 0; i < batch.variables.size(); ++i) {
      extended.replica_update(batch.variables[i], change, {batch.sums.values[i]});
    }
  }
  if (context.local_replica_id() + 1 == static_cast<int>(extended.worker_devices().size())) batches_.clear();
}

void GradientUpdates::apply_where_stored(const UpdateFunction& change) {
  get_replica_context()->merge_call([&](Strategy& strategy, const Value::Parts&) {
    for (const Batch& batch : batches_) {
      const std::vector<Value>& sums = batch.sums.wait();
      for (std::size_t i = 0; i < sums.size(); ++i) strategy.extended().update(batch.variables[i], change, {sums[i]});
    }
    batches_.clear();
    return Value();
  });
}

}  // namespace tandem
