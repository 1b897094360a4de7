#include "tests/conformance/tf/tower_stage.h"

#include <algorithm>

namespace tandem {

Value TowerStage::in_towers(const std::function<Value()>& function) const {
  return towers.call_for_each_tower([&](const Value::Parts&) { return function(); });
}

void TowerStage::each_tower(const std::function<void()>& function) const {
  in_towers([&] {
    function();
    return Value();
  });
}

std::shared_ptr<Variable> TowerStage::var_of_towers(double initial, Aggregation aggregation) const {
  return in_towers([&]() -> Value { return var(initial, aggregation); }).variable();
}

Json TowerStage::unwrapped(const Value& value) const {
  Json list = Json::array();
  for (const Value& part : towers.unwrap(value)) list.push_back(json(part));
  return list;
}

Value TowerStage::mirrored_on(const std::vector<Device*>& devices, double value) const {
  Value::Parts parts;
  for (Device* device : devices) parts.emplace_back(tensor(*device, {}, {value}));
  return Value::mirrored(std::move(parts));
}

std::vector<std::string> names_of(const std::vector<Device*>& devices) {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(name_of(*device));
  return names;
}

std::unique_ptr<tower::DistributionStrategy> mirrored_towers(Worker& worker, tower::Release release,
                                                             std::size_t count) {
  std::vector<Device*> devices(worker.devices().begin(), worker.devices().end());
  devices.resize(std::min(devices.size(), count));
  return std::make_unique<tower::MirroredStrategy>(
      worker, tower::MirroredOptions{.devices = names_of(devices), .release = release});
}

namespace {

CaseFunction staged_towers(TowerSteps steps, tower::Release release, bool is_in_scope) {
  return [steps = std::move(steps), release, is_in_scope](const CaseWorld& world) -> Json {
    return world.on_worker([&](Worker& worker) -> Json {
      std::unique_ptr<tower::DistributionStrategy> towers;
      if (world.spec().strategy == "OneDevice") {
        towers = std::make_unique<tower::OneDeviceStrategy>(worker, name_of(*worker.devices().front()));
      } else {
        towers = mirrored_towers(worker, release);
      }
      TowerStage stage(worker, *towers, world.spec());
      const Scope scope = is_in_scope ? towers->scope() : nullptr;
      return steps(stage);
    });
  };
}

}  // namespace

CaseFunction in_scope(TowerSteps steps, tower::Release release) {
  return staged_towers(std::move(steps), release, true);
}
CaseFunction outside_scopes(TowerSteps steps) {
  return staged_towers(std::move(steps), tower::Release::v1_12, false);
}

tower::TowerContext current_tower() {
  return tower::get_tower_context().value();
}
int tower_id() {
  return current_tower().tower_id();
}

Json one_of_equal(const Json& list) {
  const bool are_equal = std::all_of(list.begin(), list.end(), [&](const Json& element) { return element == list[0]; });
  return are_equal && !list.empty() ? list[0] : list;
}

}  // namespace tandem
