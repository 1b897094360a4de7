// Variables that follow TensorFlow 1's rules where these differ from TensorFlow 2's.
#pragma once

#include <memory>
#include <utility>

#include "strategies/strategy/strategy.h"
#include "strategies/variables/replicated_variables.h"

namespace tandem::tower {

// The release whose rules apply. In 1.9 only mirrored variables can be updated, and only inside update(), and
// tower-local variables change only inside towers. 1.10 to 1.12 have the same rules.
enum class Release : std::uint8_t { v1_9, v1_12 };

// Differs from the library's mirrored variable in that a change throws ValueError in a tower when the aggregation is
// NONE, and TypeError in cross-tower context when the value is per device.
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

// Differs from the library's sync-on-read variable in that, in cross-tower context, adding and subtracting always throw
// RuntimeError, and reading a variable without aggregation returns the sum.
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

// ValueError for a specification of a trainable sync-on-read variable.
void check_trainable(const VariableSpec& spec);

// Wraps the components in a variable of this API; returns plain and stored variables themselves. Calls check_trainable.
std::shared_ptr<Variable> with_tower_rules(const std::shared_ptr<Variable>& variable, Release release);

// The lower half of a strategy whose variables follow these rules.
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
