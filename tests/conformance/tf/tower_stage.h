// A stage of the 1.x API: the strategy of the setup as a tower::DistributionStrategy.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strategies/tower.h"
#include "tests/conformance/tf/outcome.h"
#include "tests/conformance/tf/stage.h"

namespace tandem {

class TowerStage : public Stage {
 public:
  TowerStage(Worker& at, tower::DistributionStrategy& under, const Case& of)
      : Stage(at, under.strategy(), of), towers(under) {}
  tower::DistributionStrategy& towers;

  // Calls call_for_each_tower with a function without arguments.
  Value in_towers(const std::function<Value()>& function) const;
  void each_tower(const std::function<void()>& function) const;
  // A variable that the towers create.
  std::shared_ptr<Variable> var_of_towers(double initial, Aggregation aggregation) const;
  Json unwrapped(const Value& value) const;
  // A value on each of the devices, mirrored.
  Value mirrored_on(const std::vector<Device*>& devices, double value) const;
};

inline std::string name_of(const Device& device) {
  return device.id().text();
}
std::vector<std::string> names_of(const std::vector<Device*>& devices);

// Towers on all of the worker's devices, or on its first `count`.
std::unique_ptr<tower::DistributionStrategy> mirrored_towers(Worker& worker,
                                                             tower::Release release = tower::Release::v1_12,
                                                             std::size_t count = 1000);

// A case function that performs `steps` on one worker, under Mirrored or the OneDevice that the setup names: inside the
// scope, or outside every one.
using TowerSteps = std::function<Json(TowerStage& stage)>;
CaseFunction in_scope(TowerSteps steps, tower::Release release = tower::Release::v1_12);
CaseFunction outside_scopes(TowerSteps steps);

// The current tower, and its id.
tower::TowerContext current_tower();
int tower_id();

// Returns the element that all elements of a list equal, or the list itself when they differ.
Json one_of_equal(const Json& list);

}  // namespace tandem
