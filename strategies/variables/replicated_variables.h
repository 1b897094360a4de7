// The variables with a component on each device.
#pragma once

#include "strategies/variables/variable.h"

namespace tandem {

// Components equal by contract. In a replica context NONE changes this replica's component only, SUM and MEAN combine
// the replicas' values, ONLY_FIRST_REPLICA takes replica 0's; then all components change alike.
class MirroredVariable : public Variable {
 public:
  MirroredVariable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components)
      : Variable(strategy, std::move(spec), std::move(components)) {}
  VariableKind kind() const override { return VariableKind::mirrored; }
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;

 protected:
  Tensor change(Change change, const Value& value) override;
};

// Each replica changes its own component; a read in cross-replica context combines them. There, assigning x with SUM
// gives each component x / n (truncated for integers), and adding or subtracting with SUM is a ValueError.
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

// One tensor, one replica: every change is direct.
class PlainVariable final : public Variable {
 public:
  PlainVariable(Strategy& strategy, VariableSpec spec, Tensor component)
      : Variable(strategy, std::move(spec), {std::move(component)}) {}
  VariableKind kind() const override { return VariableKind::plain; }
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;

 protected:
  Tensor change(Change change, const Value& value) override;
};

}  // namespace tandem
