// Variables with TensorFlow 1's rules where they differ from TensorFlow 2's.
#pragma once

#include <memory>
#include <utility>

#include "strategies/base/strategy.h"
#include "strategies/variables/replicated_variables.h"

namespace tandem::tower {

// Whose rules hold. In 1.9 only mirrored variables can be updated, they change inside update() only, and tower-local
// ones inside towers only; later releases are alike.
enum class Release : std::uint8_t { v1_9, v1_12 };

// As the library's mirrored variable, but in a tower aggregation NONE is a ValueError, and in cross-tower context a
// per-device value is a TypeError.
class MirroredVariable final : public tandem::MirroredVariable {
 public:
  MirroredVariable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components, Release release)
      : tandem::MirroredVariable(strategy, std::move(spec), std::move(components)), release_(release) {}
  Tensor scatter(kernel::Scatter operation, const IndexedSlices& slices) override;

 protected:
  Tensor change(Change change, const Value& value) override;

 private:
  void check_tower_change() const;
  Release release_;
};

// As the library's sync-on-read variable, but in cross-tower context adding and subtracting are RuntimeErrors whatever
// the aggregation, and reading one without aggregation gives the sum.
class TowerLocalVariable final : public SyncOnReadVariable {
 public:
  TowerLocalVariable(Strategy& strategy, VariableSpec spec, std::vector<Tensor> components, Release release)
      : SyncOnReadVariable(strategy, std::move(spec), std::move(components)), release_(release) {}
  Tensor value() override;
  Tensor read() override;

 protected:
  Tensor change(Change change, const Value& value) override;

 private:
  bool is_sum_by_default() const;
  Tensor sum();
  Release release_;
};

// ValueError for a sync-on-read variable that is to be trainable.
void check_trainable(const VariableSpec& spec);

// The same components as a variable of this API; plain and stored variables stay as they are. Checks as above.
std::shared_ptr<Variable> with_tower_rules(const std::shared_ptr<Variable>& variable, Release release);

// The lower half of a strategy whose variables have these rules.
template <typename Extended>
class TowerExtended final : public Extended {
 public:
  template <typename... Arguments>
  explicit TowerExtended(Release release, Arguments&&... arguments)
      : Extended(std::forward<Arguments>(arguments)...), release_(release) {}
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override {
    return with_tower_rules(Extended::make_variable(spec), release_);
  }

 private:
  Release release_;
};

}  // namespace tandem::tower
