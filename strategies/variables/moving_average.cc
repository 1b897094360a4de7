#include "strategies/variables/moving_average.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/cross_device/copies.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"
#include "strategies/variables/components.h"

namespace tandem {
namespace {

constexpr const char* kBiased = "biased";
constexpr const char* kWeight = "weight";  // of the values seen so far, as opposed to the initial zero: 1 - decay^n

void move_towards(const Tensor& average, const Value& value, double decay) {
  const Tensor target = operand_beside(average, value);
  average.device().compute_stream().launch(as_update(op::scale_add(average, target, 1 - decay, decay)));
}

// Updates one component, in an update context.
void update_component(Variable& variable, const Value& value, double decay, bool zero_debias) {
  const Tensor& component = variable.handle();
  if (!zero_debias) {
    move_towards(component, value, decay);
    return;
  }
  const Tensor& biased = variable.slot(kBiased)->handle();
  const Tensor& weight = variable.slot(kWeight)->handle();
  move_towards(biased, value, decay);
  move_towards(weight, 1.0, decay);
  component.device().compute_stream().launch(
      as_update(op::elementwise(kernel::Binary::divide, component, biased, weight)));
}

// Updates every component, in a cross-replica context.
void update_all(const std::shared_ptr<Variable>& variable, const Value& value, double decay, bool zero_debias) {
  variable->strategy().extended().update(variable,
                                         [=](Variable& component, const Value::Parts& arguments) {
                                           update_component(component, arguments.front(), decay, zero_debias);
                                           return Value();
                                         },
                                         {value});
}

}  // namespace

Tensor assign_moving_average(const std::shared_ptr<Variable>& variable, const Value& value, double decay,
                             bool zero_debias) {
  const Mode* mode = current_mode();
  if (mode && mode->update_replica) {
    update_component(*variable, select_replica(*mode->update_replica, value), decay, zero_debias);
  } else if (mode && mode->replica) {
    mode->replica->merge_call(
        [&](Strategy& strategy, const Value::Parts& merged) {
          update_all(variable, strategy.extended().reduce_to(ReduceOp::mean, merged.front(), variable), decay,
                     zero_debias);
          return Value();
        },
        {value}, {"assign_moving_average()", {variable.get()}});
  } else {
    update_all(variable, value, decay, zero_debias);
  }
  return variable->value();
}

ExponentialMovingAverage::ExponentialMovingAverage(double decay, std::optional<double> num_updates, std::string name)
    : decay_(num_updates ? std::min(decay, (1 + *num_updates) / (10 + *num_updates)) : decay), name_(std::move(name)) {}

std::string ExponentialMovingAverage::average_name(const Variable& variable) const {
  return fmt::format("{}/{}", variable.name(), name_);
}

std::shared_ptr<Variable> ExponentialMovingAverage::average(const std::shared_ptr<Variable>& variable) const {
  const auto found = averages_.find(variable);
  return found == averages_.end() ? nullptr : found->second;
}

void ExponentialMovingAverage::apply(const std::shared_ptr<Variable>& variable) {
  std::shared_ptr<Variable>& average = averages_[variable];
  if (!average) {
    average = variable->strategy().create_variable({.name = average_name(*variable),
                                                    .dtype = variable->dtype(),
                                                    .shape = variable->shape(),
                                                    .trainable = false,
                                                    .aggregation = variable->aggregation()});
    for (const Tensor& component : average->components()) {
      Stream& stream = component.device().compute_stream();
      stream.copy(component, copy_on(component.device(), variable->components().front()), Category::update);
    }
  }
  assign_moving_average(average, variable->read(), decay_, false);
}

}  // namespace tandem
