// 1.x: contexts and what may be called where.
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/variables/components.h"
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_context_cases {
namespace {

constexpr auto kSum = VariableAggregation::sum;

Value nothing(const Value::Parts&) {
  return {};
}

Json refused_outside(TowerStage& stage) {
  return error_of([&] { stage.towers.call_for_each_tower(nothing); });
}

Json context_here(const TowerStage& stage) {
  const bool is_own = tower::get_distribution_strategy() == stage.towers;
  return {{"tower_context", tower::get_tower_context() ? Json("non-null") : Json()},
          {"cross_tower_context", tower::get_cross_tower_context() ? Json("non-null") : Json()},
          {"has_strategy", tower::has_distribution_strategy()},
          {"strategy", is_own ? "S" : "another"}};
}

Json context_in_tower(TowerStage& stage) {
  Json inside;
  stage.each_tower([&] { inside = context_here(stage); });
  return {{"inside_fn", inside}};
}

Json contexts_of_one_call(TowerStage& stage) {
  Json result = {{"outside", context_here(stage)}};
  const Scope scope = stage.towers.scope();
  result["in_scope"] = context_here(stage);
  stage.each_tower([&] {
    current_tower().merge_call([&](const tower::DistributionStrategy& strategy, const Value::Parts&) {
      result["in_merge"] = context_here(stage);
      result["merge_strategy_is_S"] = strategy == stage.towers;
      return Value();
    });
  });
  const auto v = stage.var(1);
  stage.towers.update(v, [&](Variable&, const Value::Parts&) {
    result["in_update"] = context_here(stage);
    return Value();
  });
  return result;
}

Json reduced_in_tower(TowerStage& stage) {
  return error_of([&] { stage.each_tower([&] { stage.towers.reduce(kSum, Value(1.0), "/CPU:0"); }); });
}

// The calls that need the strategy's own cross-tower context.
Json each_cross_call(TowerStage& stage, const std::shared_ptr<Variable>& v) {
  const tower::DistributionStrategy& towers = stage.towers;
  const auto keep = [](Variable&, const Value::Parts&) { return Value(); };
  const auto map = [](const Value& element, Device&, const Value::Parts&) { return element; };
  tower::DistributionStrategy quiet = towers;
  auto iterator = quiet.distribute_dataset([] { return Dataset::range(8); }).make_one_shot_iterator();
  return {
      error_of([&] { towers.call_for_each_tower(nothing); }),
      error_of([&] { towers.reduce(kSum, Value(0.0), "/CPU:0"); }),
      error_of([&] { towers.reduce("sum", Value(0.0), "/CPU:0"); }),
      error_of([&] { towers.batch_reduce(kSum, {}); }),
      error_of([&] { towers.broadcast(Value(1.0)); }),
      error_of([&] { towers.update(v, keep); }),
      error_of([&] { towers.update_non_slot(towers.parameter_devices(), nothing); }),
      error_of([&] { towers.fetch(v); }),
      error_of([&] { towers.map({Value(1.0)}, map); }),
      error_of([&] { towers.worker_device_index(); }),
      error_of([&] { towers.run_steps_on_dataset([](tower::MultiStepContext&, const Value::Parts&) {}, iterator); })};
}

Json wrong_contexts(TowerStage& stage) {
  std::shared_ptr<Variable> v;
  {
    const Scope scope = stage.towers.scope();
    v = stage.var(1);
  }
  Json result = {{"outside", {{"each", each_cross_call(stage, v)}}}};
  {
    const auto other = mirrored_towers(stage.worker);
    const Scope scope = other->scope();
    result["in_another"] = {{"each", each_cross_call(stage, v)}};
    result["scope_in_another"] = error_of([&] { const Scope inner = stage.towers.scope(); });
    result["default_scope_in_another"] =
        error_of([&] { const Scope inner = tower::DistributionStrategy(default_strategy()).scope(); });
  }
  tower::get_tower_context()->merge_call([&](const tower::DistributionStrategy&, const Value::Parts&) {
    result["in_default_merge"] = {{"each", each_cross_call(stage, v)}};
    return Value();
  });
  result["anywhere"] = {{"num_towers", stage.towers.num_towers()},
                        {"unwrap", stage.unwrapped(Value(3.0))},
                        {"container_is_v", stage.towers.value_container(v->components()[1]).variable() == v},
                        {"read_var", stage.json(stage.towers.read_var(*v))}};
  return result;
}

Json default_merge(const CaseWorld& world) {
  return world.on_worker([](Worker&) -> Json {
    Json result;
    const auto context = tower::get_tower_context();
    const Value merged = context->merge_call(
        [&](const tower::DistributionStrategy& strategy, const Value::Parts& arguments) -> Value {
          result["cross_is_default"] = tower::get_cross_tower_context() == strategy;
          result["has_strategy"] = tower::has_distribution_strategy();
          return Value("foo_" + arguments.front().text());
        },
        {Value(std::string("bar"))});
    result["merged"] = merged.text();
    result["tower_id"] = context->tower_id();
    result["num_towers"] = context->num_towers();
    result["is_single_tower"] = context->is_single_tower();
    result["device"] = context->device().id().index;
    return result;
  });
}

// A tower's context is of use in that tower only.
Json kept_contexts(TowerStage& stage) {
  std::optional<tower::TowerContext> first;
  Json in_other_tower, in_cross;
  stage.each_tower([&] {
    if (tower_id() == 0) first = current_tower();
    if (tower_id() == 1) in_other_tower = error_of([&] { first->tower_id(); });
    current_tower().merge_call([&](const tower::DistributionStrategy&, const Value::Parts&) {
      in_cross = {{"each",
                   {error_of([&] { first->tower_id(); }), error_of([&] { first->device(); }),
                    error_of([&] { first->is_single_tower(); }), error_of([&] {
                      first->merge_call(
                          [](const tower::DistributionStrategy&, const Value::Parts&) { return Value(); });
                    })}}};
      return Value();
    });
  });
  return {{"in_other_tower", in_other_tower},
          {"in_cross", in_cross},
          {"num_towers", first->num_towers()},
          {"strategy_is_S", first->distribution_strategy() == stage.towers}};
}

Json marked_ids(TowerStage& stage) {
  Json slots(static_cast<std::size_t>(stage.towers.num_towers()), false);
  stage.each_tower([&] { slots[static_cast<std::size_t>(tower_id())] = true; });
  return {{"slots", slots}};
}

Json marked_indices(TowerStage& stage) {
  Json slots(static_cast<std::size_t>(stage.towers.num_towers()), false);
  const Value indices = stage.towers.worker_device_index();
  stage.towers.call_for_each_tower(
      [&](const Value::Parts& arguments) {
        slots[static_cast<std::size_t>(arguments.front().number())] = true;
        return Value();
      },
      {indices});
  return {{"slots", slots}, {"worker_device_index_values", stage.unwrapped(indices)}};
}

// 2 v1 + v2 + 1 where the variables are `more1` and `more2` above what they are.
Tensor formula(TowerStage& stage, Variable& v1, Variable& v2, double more1 = 0, double more2 = 0) {
  Device& device = current_tower().device();
  Tensor result = stage.tensor(device, {}, {1 + 2 * more1 + more2});
  device.compute_stream().launch(op::scale_add(result, v1.value(), 2, 1));
  device.compute_stream().launch(op::scale_add(result, v2.value(), 1, 1));
  return result;
}

Json two_variables(TowerStage& stage) {
  const auto v1 = stage.var(1.25), v2 = stage.var(2);
  return {{"per_device", stage.unwrapped(stage.in_towers([&]() -> Value { return formula(stage, *v1, *v2); }))}};
}

// Each tower moves its own components, and back.
Json gradients(TowerStage& stage) {
  const auto v1 = stage.var(1.25), v2 = stage.var(2);
  const Value each = stage.in_towers([&]() -> Value {
    const auto at = [&] { return host_number(stage.worker, formula(stage, *v1, *v2)); };
    const double here = at();
    Value::Parts slopes;
    for (const auto& v : {v1, v2}) {
      const Tensor component = v->handle();
      apply_change(Change::add, component, 1.0);
      slopes.emplace_back(at() - here);
      apply_change(Change::subtract, component, 1.0);
    }
    return Value::list(slopes);
  });
  Json per_device = Json::array();
  for (int i = 0; i < stage.towers.num_towers(); ++i) {
    per_device.push_back(stage.json(tower::select_device(name_of(stage.device(i)), each)));
  }
  return {{"per_device", per_device}};
}

const bool added = add_cases({
    {"ctx-003", outside_scopes(refused_outside)},
    {"ctx-004", in_scope(context_in_tower)},
    {"ctx-028", in_scope(reduced_in_tower)},
    {"run-003", in_scope(marked_ids)},
    {"run-004", in_scope(marked_indices)},
    {"run-027", in_scope(two_variables)},
    {"run-028", in_scope(gradients)},
    {"twr-x30", outside_scopes(wrong_contexts)},
    {"twr-x31", default_merge},
    {"twr-x32", in_scope(kept_contexts)},
    {"twr-x33", outside_scopes(contexts_of_one_call)},
});

}  // namespace
}  // namespace tandem::tower_context_cases
