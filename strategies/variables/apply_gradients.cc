#include "strategies/variables/apply_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"

namespace tandem {

void apply_constraint(Variable& variable) {
  if (variable.constraint()) variable.assign(variable.constraint()(variable.value()));
}

namespace {

struct Given {
  Value::Fields gradients{};  // by the address of the variable, and a number where it occurs again
  std::vector<std::string> names{};
  std::vector<std::shared_ptr<Variable>> variables{};
};

Given given(const std::vector<GradientAndVariable>& gradients_and_variables) {
  Given result;
  for (const auto& [gradient, variable] : gradients_and_variables) {
    if (gradient.is(ValueKind::none)) continue;
    const auto before = std::ranges::count(result.variables, variable);
    result.names.push_back(fmt::format("{} {}", fmt::ptr(variable.get()), before));
    result.gradients.emplace(result.names.back(), gradient);
    result.variables.push_back(variable);
  }
  if (result.variables.empty()) throw ValueError("apply_gradients() is given no gradient for any variable");
  return result;
}

// Puts the variables into the order in which they were created, which is the same on all workers; on one worker, leaves
// them as they are.
Given ordered(const StrategyExtended& extended, const Given& given) {
  const int replicas = extended.num_replicas_in_sync();
  if (replicas == 1 || replicas == static_cast<int>(extended.worker_devices().size())) return given;
  std::map<const Variable*, std::size_t> created;
  for (const std::weak_ptr<Variable>& variable : extended.variables()) {
    created.emplace(variable.lock().get(), created.size());
  }
  std::vector<std::size_t> places(given.variables.size());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::stable_sort(places, {}, [&](std::size_t place) { return created[given.variables[place].get()]; });
  Given result{.gradients = given.gradients};
  for (const std::size_t place : places) {
    result.names.push_back(given.names[place]);
    result.variables.push_back(given.variables[place]);
  }
  return result;
}

// A gradient is dense in all replicas or sparse in all of them.
void check_kinds(const Variable& variable, const Value& gradient) {
  if (!gradient.is(ValueKind::per_replica)) return;
  const Value::Parts& parts = gradient.parts();
  const auto other = std::ranges::find_if(parts, [&](const Value& part) { return part.kind() != parts[0].kind(); });
  if (other == parts.end()) return;
  throw TypeError(
      fmt::format("the gradient of variable '{}' is {} on replica 0 of this worker and {} on replica {}: all replicas "
                  "give the same kind, dense or IndexedSlices",
                  variable.name(), with_article(parts[0].kind()), with_article(other->kind()), other - parts.begin()));
}

// Whether some component is on a device of another worker than the gradient.
bool is_elsewhere(const Variable& variable, const Value& gradient) {
  const Value& first = gradient.is_distributed() ? gradient.parts().front() : gradient;
  if (!first.is(ValueKind::tensor)) return false;
  return std::ranges::any_of(
      variable.devices(), [&](const Device* device) { return device->worker() != first.tensor().device().worker(); });
}

std::vector<Value> summed(StrategyExtended& extended, const Given& given, const Value::Fields& gradients,
                          const GradientHandling& handling) {
  std::vector<Value> sums(given.variables.size());
  std::vector<ReducePair> pairs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Value& gradient = gradients.at(given.names[i]);
    check_kinds(*given.variables[i], gradient);
    if (!handling.aggregates) {
      sums[i] = gradient;
    } else if (handling.keeps_sums_here && is_elsewhere(*given.variables[i], gradient)) {
      sums[i] = extended.implementation().all_reduce(ReduceOp::sum, gradient);
    } else {
      pairs.emplace_back(gradient, Destinations(given.variables[i]));
      places.push_back(i);
    }
  }
  if (pairs.empty()) return sums;
  const std::vector<Value> reduced =
      handling.before ? extended.batch_reduce_to(ReduceOp::sum, pairs) : extended.sum_for_updates(pairs);
  for (std::size_t i = 0; i < reduced.size(); ++i) sums[places[i]] = reduced[i];
  return sums;
}

}  // namespace

void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables, const ValueRule& rule) {
  apply_gradients(gradients_and_variables, rule, {});
}

// The replicas' gradients meet by their variables: on one worker in the order of the first replica.
void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables, const ValueRule& rule,
                     const GradientHandling& handling) {
  ReplicaContext* const replica = get_replica_context();
  if (!replica) {
    throw RuntimeError("apply_gradients() is called in a cross-replica context; call it in a replica context");
  }
  const Given mine = given(gradients_and_variables);
  const UpdateFunction change = [&rule](Variable& variable, const Value::Parts& arguments) {
    rule(variable, arguments.front());
    apply_constraint(variable);
    return Value();
  };
  MergePurpose purpose{"apply_gradients()", pointers_to(mine.variables)};
  std::ranges::sort(purpose.variables, {}, [](const Variable* one) { return std::pair(one->name(), one); });
  replica->merge_call(
      [&](Strategy& strategy, const Value::Parts& merged) {
        StrategyExtended& extended = strategy.extended();
        const Given together = ordered(extended, mine);
        std::vector<Value> sums = summed(extended, together, merged.front().fields(), handling);
        if (handling.before) handling.before(strategy, together.variables, sums);
        for (std::size_t i = 0; i < sums.size(); ++i) extended.update(together.variables[i], change, {sums[i]});
        if (handling.after) handling.after();
        return Value();
      },
      {Value::map(mine.gradients)}, purpose);
}

}  // namespace tandem
