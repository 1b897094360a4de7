// Area "update-colocate": update(), update_non_slot() and colocate_vars_with().
#include <array>

#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/types/mirrored.h"
#include "strategies/variables/moving_average.h"
#include "tests/conformance/tf/stage.h"

namespace tandem::update_colocate_cases {
namespace {

using Aggregation = VariableAggregation;
using Synchronization = VariableSynchronization;
using VariablePtr = std::shared_ptr<Variable>;

Value assign(Variable& variable, const Value::Parts& arguments) {
  return variable.assign(arguments.front());
}
Value assign_add(Variable& variable, const Value::Parts& arguments) {
  return variable.assign_add(arguments.front());
}
Value assign_sub(Variable& variable, const Value::Parts& arguments) {
  return variable.assign_sub(arguments.front());
}

Json colocated(Stage& stage) {
  MirroredStrategy other(stage.worker, stage.strategy.extended().worker_devices());
  const VariableSpec spec{.name = "v", .shape = {}};
  const VariablePtr plain = default_strategy().create_variable(spec);
  const VariablePtr foreign = other.create_variable(spec), own = stage.var(1.0);
  const Scope scope = stage.strategy.scope();
  StrategyExtended& extended = stage.strategy.extended();
  const auto refusal = [&](const VariablePtr& variable) {
    return error_of([&] { const auto there = extended.colocate_vars_with(variable); });
  };
  const Json errors = {refusal(plain), refusal(foreign)};
  const auto here = extended.colocate_vars_with(own);
  const VariablePtr w = stage.var(2.0);
  const bool stands_there = w->kind() == VariableKind::mirrored && w->devices() == own->devices();
  return {{"plain", errors[0]},
          {"other_strategy", errors[1]},
          {"own", stands_there ? "w mirrored on the same devices" : "w elsewhere"}};
}

Json sync_on_read_update(Stage& stage) {
  const VariablePtr v =
      stage.strategy
          .run([&](const Value::Parts&) { return stage.var(1.0, Aggregation::sum, Synchronization::on_read); })
          .variable();
  const Json before = stage.json(v->read());
  stage.strategy.extended().update(v, assign, {5.0}, false);
  return {
      {"read_before", before}, {"component0_after", stage.components(*v)[0]}, {"read_after", stage.json(v->read())}};
}

Json updated_in_replicas(Stage& stage, const UpdateFunction& function) {
  const VariablePtr v = stage.var(5.0);
  StrategyExtended& extended = stage.strategy.extended();
  run_each(stage, [&] {
    extended.update(v, function, {stage.tensor(replica().device(), {}, {2})});
    extended.update(v, function, {Value::literal(1)});
  });
  return {{"components", stage.components(*v)}};
}

Json updated_per_replica(Stage& stage, const VariablePtr& v) {
  const std::array<UpdateFunction, 4> functions = {assign, assign_add, assign_sub,
                                                   [](Variable& variable, const Value::Parts&) -> Value {
                                                     const Value twice = Value(variable.value()) + variable.read();
                                                     return variable.assign_add(twice);
                                                   }};
  Json after = Json::array();
  for (const UpdateFunction& function : functions) {
    stage.strategy.extended().update(v, function, {stage.per_replica({1, 2})});
    after.push_back(stage.components(*v));
  }
  return {{"components_after_each", after}};
}

// The kinds of variable that a per-replica value may go to behave alike; a list where they do not.
Json every_kind_updated_per_replica(Stage& stage) {
  Json all = {updated_per_replica(stage, stage.var(0.0, Aggregation::none, Synchronization::on_write))};
  for (const Aggregation aggregation :
       {Aggregation::none, Aggregation::sum, Aggregation::mean, Aggregation::only_first_replica}) {
    all.push_back(updated_per_replica(stage, stage.var(0.0, aggregation, Synchronization::on_read)));
  }
  for (const Json& one : all) {
    if (one != all.front()) return all;
  }
  return all.front();
}

Json averaged_in_update(Stage& stage) {
  const VariablePtr var1 = stage.var({0, 0}), var2 = stage.var({0, 0}), var3 = stage.var({0, 0});
  const auto function = [&](Variable& v, const Value::Parts& arguments) -> Value {
    const Tensor target = stage.tensor(v.handle().device(), {2}, {2, 4});
    v.assign_add(arguments.front());
    assign_moving_average(var2, target, 0.25);
    return assign_moving_average(var3, target, 0.25, false);
  };
  const Tensor ones = stage.tensor(stage.worker.cpu(), {2}, {1, 1});
  stage.strategy.extended().update(var1, function, {ones});
  return {{"var1", stage.components(*var1)},
          {"var2", stage.json(var2->read())},
          {"var3", stage.json(var3->read())},
          {"all_components", {stage.components(*var2), stage.components(*var3)}}};
}

// What fn returns of each component: {"new": value, "pair": (value + 1, 7)}.
Value nested_result(Variable& variable, const Value::Parts& arguments) {
  const Value changed = variable.assign_add(arguments.front());
  return Value::map({{"new", changed}, {"pair", Value::list({changed + 1.0, Value::literal(7)})}});
}

Json non_slot_updates(Stage& stage) {
  StrategyExtended& extended = stage.strategy.extended();
  const std::vector<Device*> devices = extended.non_slot_devices({stage.var(1.0)});
  const auto function = [](const Value::Parts& arguments) { return arguments.front() * 10.0; };
  const Value x = stage.per_replica({1, 2, 3});
  return {{"devices", devices.size()},
          {"grouped", stage.json(extended.update_non_slot(devices, function, {x}))},
          {"ungrouped", stage.json(extended.update_non_slot(devices, function, {x}, false))},
          {"nowhere", error_of([&] { extended.update_non_slot({}, function, {x}); })}};
}

const bool added = add_cases({
    {"col-002", staged(colocated)},
    {"upd-001", staged(sync_on_read_update)},
    {"upd-003-assign_add", staged([](Stage& stage) { return updated_in_replicas(stage, assign_add); })},
    {"upd-003-assign_sub", staged([](Stage& stage) { return updated_in_replicas(stage, assign_sub); })},
    {"upd-004", staged(every_kind_updated_per_replica)},
    {"upd-011", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0);
       StrategyExtended& extended = stage.strategy.extended();
       extended.update(v, assign_add, {2.0});
       const Value seven = extended.update(
           v, [](Variable&, const Value::Parts&) { return 7.0; }, {}, false);
       return {{"v", stage.json(v->read())}, {"group_false", stage.json(seven)}};
     })},
    {"upd-012", staged(averaged_in_update)},
    {"col-x01", staged([](Stage& stage) {
       const VariablePtr v = stage.var(1.0);
       const auto here = stage.strategy.extended().colocate_vars_with(v);
       return Json();
     })},
    {"upd-x01", staged([](Stage& stage) {
       const VariablePtr v = stage.var(1.0);
       return stage.json(stage.strategy.extended().update(v, nested_result, {stage.per_replica({1, 2})}, false));
     })},
    {"upd-x02", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0);
       const Value grouped = stage.strategy.extended().update(v, nested_result, {stage.per_replica({1, 2})});
       return {{"result", stage.json(grouped)},
               {"pair_kind", name_of(grouped.fields().at("pair").parts()[0].kind())},
               {"new_is_v", grouped.fields().at("new").is_identical(v)}};
     })},
    {"upd-x03", staged([](Stage& stage) -> Json {
       MirroredStrategy other(stage.worker, stage.strategy.extended().worker_devices());
       const VariableSpec spec{.name = "v", .shape = {}};
       const VariablePtr plain = default_strategy().create_variable(spec), foreign = other.create_variable(spec);
       StrategyExtended& extended = stage.strategy.extended();
       return {{"each", {error_of([&] { extended.update(plain, assign, {1.0}); }), error_of([&] {
                           extended.update(foreign, assign, {1.0});
                         })}}};
     })},
    {"upd-x04", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(0.0), w = stage.var(3.0);
       w->assign(stage.per_replica({3, 4}));
       const auto captured = [&](Variable& variable, const Value::Parts&) -> Value {
         w->assign_add(Value::literal(10));
         return variable.assign(w);
       };
       stage.strategy.extended().update(v, captured);
       return {{"v", stage.components(*v)}, {"w", stage.components(*w)}};
     })},
    {"upd-x05", staged([](Stage& stage) {
       const VariablePtr v = stage.var(0.0);
       const auto uneven = [&](Variable& variable, const Value::Parts&) {
         const bool is_first = variable.handle().is_same(v->components()[0]);
         return Value::list(is_first ? Value::Parts{1.0} : Value::Parts{1.0, 2.0});
       };
       return stage.json(stage.strategy.extended().update(v, uneven, {}, false));
     })},
    {"upd-x06", staged(non_slot_updates)},
    {"upd-x07", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(5.0);
       const Value x = Value::mirrored(stage.per_replica({2, 2, 2}).parts());
       stage.strategy.extended().update(v, assign_sub, {x});
       return {{"components", stage.components(*v)}};
     })},
});

}  // namespace
}  // namespace tandem::update_colocate_cases
