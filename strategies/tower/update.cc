// The updating half of DistributionStrategy.
#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/regroup.h"
#include "strategies/tower/distribution_strategy.h"
#include "strategies/tower/tower_strategy.h"
#include "strategies/tower/values.h"

namespace tandem::tower {
namespace {

// Opens an argument of a stored variable's update as 1.x does: there is one component, so there must be one part.
Value single_part(const Value& value) {
  return map_structure(value, [](const Value& leaf) {
    if (leaf.is(ValueKind::per_replica)) throw ValueError("update() of a stored variable with a value per device");
    if (leaf.is(ValueKind::mirrored) && leaf.parts().size() != 1) {
      throw ValueError(fmt::format("update() of a stored variable with a value of {} parts", leaf.parts().size()));
    }
    return leaf.is(ValueKind::mirrored) ? leaf.parts().front() : leaf;
  });
}

}  // namespace

Value DistributionStrategy::update(const Value& variable, const UpdateFunction& function, const Value::Parts& arguments,
                                   bool grouped) const {
  require_cross_tower_context(*strategy_, "update()");
  const bool is_variable = variable.is(ValueKind::variable);
  if (!is_variable && is_stored(*strategy_)) throw ValueError("update() takes a variable");
  if (!is_variable) throw AssertionError(fmt::format("update() of {}, not a variable", with_article(variable.kind())));
  const std::shared_ptr<Variable>& target = variable.variable();
  const bool is_distributed = target->kind() == VariableKind::mirrored || target->kind() == VariableKind::sync_on_read;
  if (!is_distributed && !is_direct() && !is_stored(*strategy_)) {
    throw AssertionError(fmt::format("update() of '{}', which is no distributed variable", target->name()));
  }
  if (settings_of(*strategy_).release == Release::v1_9 && target->kind() == VariableKind::sync_on_read) {
    throw AssertionError(
        fmt::format("update() of tower-local variable '{}': 1.9 updates mirrored ones", target->name()));
  }
  Value::Parts by_component;
  for (const Value& argument : arguments) {
    if (is_stored(*strategy_)) by_component.push_back(single_part(argument));
    if (is_distributed) by_component.push_back(in_device_order(target->devices(), argument, true));
    if (!is_stored(*strategy_) && !is_distributed) by_component.push_back(argument);
  }
  Value::Parts results;
  const auto recorded = [&](Variable& component, const Value::Parts& parts) {
    results.push_back(function(component, parts));
    return results.back();
  };
  const Value together = strategy_->extended().update(target, recorded, by_component);
  return grouped ? together : regroup_ungrouped(results, true);
}

Value DistributionStrategy::update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                                            const Value::Parts& arguments, bool grouped) const {
  require_cross_tower_context(*strategy_, "update_non_slot()");
  checked_devices(colocate_with, "update_non_slot()");
  Value::Parts by_device;
  for (const Value& argument : arguments) {
    by_device.push_back(is_direct() ? argument : in_device_order(colocate_with, argument, true));
  }
  Value::Parts results;
  const auto recorded = [&](const Value::Parts& parts) {
    results.push_back(function(parts));
    return results.back();
  };
  const Value together = strategy_->extended().update_non_slot(colocate_with, recorded, by_device);
  return grouped ? together : regroup_ungrouped(results, true);
}

std::vector<Device*> DistributionStrategy::non_slot_devices(
    const std::vector<std::shared_ptr<Variable>>& variables) const {
  return strategy_->extended().non_slot_devices(variables);
}

std::unique_ptr<VariableCreatorScope> DistributionStrategy::colocate_vars_with(
    const std::shared_ptr<Variable>& variable) const {
  require_scope(*strategy_, "colocate_vars_with()");
  return strategy_->extended().colocate_vars_with(variable);
}

std::unique_ptr<VariableCreatorScope> DistributionStrategy::colocate_vars_with(
    const std::vector<Device*>& devices) const {
  require_scope(*strategy_, "colocate_vars_with()");
  checked_devices(devices, "colocate_vars_with()");
  StrategyExtended& extended = strategy_->extended();
  const auto there = [&devices](const std::vector<Device*>& found) {
    return std::is_permutation(found.begin(), found.end(), devices.begin(), devices.end());
  };
  if (is_stored(*strategy_)) {
    for (const std::weak_ptr<Variable>& known : extended.variables()) {
      const std::shared_ptr<Variable> variable = known.lock();
      if (variable && there(variable->devices())) return extended.colocate_vars_with(variable);
    }
  } else {
    const bool is_default = strategy_ == &default_strategy();
    const std::vector<Device*> all = is_default ? std::vector<Device*>{&extended.worker().cpu()} : parameter_devices();
    if (there(all)) {
      return std::make_unique<VariableCreatorScope>(
          [](const NextCreator& next, const VariableSpec& spec) { return next(spec); });
    }
  }
  throw ValueError(
      fmt::format("no variable of strategy '{}' can be on these {} devices: pass what non_slot_devices() "
                  "returned for its variables",
                  strategy_->name(), devices.size()));
}

}  // namespace tandem::tower
