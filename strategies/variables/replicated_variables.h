// The variables of strategies that keep whatever a replica needs on its own device.
#pragma once

#include "strategies/variables/variable.h"

namespace tandem {

// A variable whose components are equal by contract. A change in a replica context depends on the aggregation: NONE
// changes only this replica's component; SUM and MEAN combine the replicas' values, ONLY_FIRST_REPLICA takes replica
// 0's, and all components get the result.
class MirroredVariable : public Variable {
 public:
  MirroredVariable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components)
      : Variable(strategy, std::move(spec), std::move(components)) {}
  VariableKind kind() const override { return VariableKind::mirrored; }
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;

 protected:
  Tensor change(Change change, const Value& value) override;
};

// A variable whose components the replicas change separately, and a read in a cross-replica context combines. In that
// context, assigning x with aggregation SUM gives each of n components x / n (truncated for integers), and adding or
// subtracting with SUM is a ValueError.
class SyncOnReadVariable : public Variable {
 public:
  SyncOnReadVariable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components)
      : Variable(strategy, std::move(spec), std::move(components)) {}
  VariableKind kind() const override { return VariableKind::sync_on_read; }
  Tensor value() override;
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;
  Tensor saved_value() override;
  void restore(const Tensor& saved) override;

 protected:
  Tensor change(Change change, const Value& value) override;

 private:
  Tensor aggregate();
  Value share_of(const Value& value);
};

// A variable of one tensor and one replica; changes need no combining.
class PlainVariable final : public Variable {
 public:
  PlainVariable(Strategy& strategy, VariableSpec spec, Tensor component)
      : Variable(strategy, std::move(spec), {std::move(component)}) {}
  VariableKind kind() const override { return VariableKind::plain; }
  void restore(const Tensor& saved) override;  // also in another strategy's scope
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;

 protected:
  Tensor change(Change change, const Value& value) override;
};

}  // namespace tandem
