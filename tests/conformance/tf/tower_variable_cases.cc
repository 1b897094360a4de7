// 1.x: what variables do in towers and outside.
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/default_strategy.h"
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_variable_cases {
namespace {

using Aggregation = Stage::Aggregation;
constexpr auto kOnRead = Stage::Synchronization::on_read;

// Every tower changes a variable that the towers created.
Json changed(TowerStage& stage, double initial, Aggregation aggregation, Change change,
             const std::function<Value()>& value) {
  const auto v = stage.var_of_towers(initial, aggregation);
  stage.each_tower([&] {
    if (change == Change::assign) v->assign(value());
    if (change == Change::add) v->assign_add(value());
    if (change == Change::subtract) v->assign_sub(value());
  });
  return {{"v", stage.json(stage.towers.read_var(*v))}, {"components", stage.components(*v)}};
}

CaseFunction changed_in_towers(double initial, Aggregation aggregation, Change change,
                               const std::function<Value()>& value) {
  return in_scope([=](TowerStage& stage) { return changed(stage, initial, aggregation, change, value); });
}

Value id_of_tower() {
  return static_cast<double>(tower_id());
}

CaseFunction literal(double initial, Aggregation aggregation, Change change, double value) {
  return changed_in_towers(initial, aggregation, change, [value] { return Value::literal(value); });
}

Json changed_across(TowerStage& stage) {
  const auto v = stage.var_of_towers(1, Aggregation::none);
  const Json r = stage.json(v->assign_add(6.0));
  const Json first = stage.components(*v);
  v->assign_add(2.0);
  return {{"r", r}, {"components_after_first", first}, {"components_after_second", stage.components(*v)}};
}

Json tower_local(TowerStage& stage) {
  std::shared_ptr<Variable> s, m;
  stage.each_tower([&] {
    const auto make = [&](const char* method, double initial) {
      const auto local = current_tower().tower_local_var_scope(method);
      return stage.var(initial);
    };
    s = make("sum", 1);
    m = make("mean", 4);
    const int i = tower_id();
    s->assign_add(2.0 + i);
    m->assign(6.0 * i);
  });
  return {{"s", stage.json(stage.towers.fetch(s))}, {"m", stage.json(stage.towers.fetch(m))}};
}

VariableSpec trainable_on_read() {
  return {.name = "v", .trainable = true, .synchronization = kOnRead, .aggregation = Aggregation::sum};
}

// Under the strategy, and under the default one outside its scope.
Json trainable_refused(TowerStage& stage) {
  return error_of([&] { stage.towers.create_variable(trainable_on_read()); });
}

Json default_trainable(TowerStage& stage) {
  const auto under = [&](const tower::DistributionStrategy& strategy) {
    return error_of([&] { strategy.create_variable(trainable_on_read()); });
  };
  const tower::OneDeviceStrategy one(stage.worker, name_of(stage.device(0)));
  VariableSpec silent = trainable_on_read();
  silent.trainable.reset();
  const auto v = stage.towers.create_variable(silent);
  return {{"each", {under(stage.towers), under(one), under(tower::get_distribution_strategy())}},
          {"trainable_by_default", v->trainable()}};
}

// Each change in towers without an aggregation.
Json unaggregated(TowerStage& stage) {
  const auto v = stage.var(1);
  const auto in_tower = [&](const std::function<void()>& change) {
    return error_of([&] { stage.each_tower(change); });
  };
  return {{"each", {in_tower([&] { v->assign(2.0); }), in_tower([&] { v->assign_add(2.0); }), in_tower([&] {
                      v->assign_sub(2.0);
                    })}},
          {"components", stage.components(*v)}};
}

Json assigned_per_device(TowerStage& stage) {
  const auto v = stage.var(1);
  return error_of([&] { v->assign(stage.per_replica({1, 2})); });
}

Json local_across(TowerStage& stage) {
  Json result;
  for (const auto aggregation : {Aggregation::sum, Aggregation::mean, Aggregation::only_first_replica}) {
    const auto v = stage.var(1, aggregation, kOnRead);
    Json errors = Json::array();
    errors.push_back(error_of([&] { v->assign_add(1.0); }));
    errors.push_back(error_of([&] { v->assign_sub(1.0); }));
    v->assign(6.0);
    result[std::string(name_of(aggregation))] = {
        {"each", errors}, {"components", stage.components(*v)}, {"read", stage.json(stage.towers.read_var(*v))}};
  }
  return result;
}

Json local_without_aggregation(TowerStage& stage) {
  const auto v = stage.var(1, Aggregation::none, kOnRead);
  stage.each_tower([&] { v->assign_add(2.0 + tower_id()); });
  return {{"components", stage.components(*v)}, {"read", stage.json(stage.towers.read_var(*v))}};
}

// 1.9: mirrored variables change inside update() only, tower-local ones inside towers only.
Json only_inside(TowerStage& stage) {
  const auto v = stage.var(1, Aggregation::mean);
  const auto local = stage.var(1, Aggregation::sum, kOnRead);
  const Json across = error_of([&] { v->assign(2.0); });
  const Json in_tower = error_of([&] { stage.each_tower([&] { v->assign_add(2.0); }); });
  const Json local_across = error_of([&] { local->assign(2.0); });
  stage.towers.update(v, [](Variable& component, const Value::Parts&) -> Value { return component.assign_add(4.0); });
  stage.each_tower([&] { local->assign_add(2.0); });
  return {{"mirrored_across", across},
          {"mirrored_in_tower", in_tower},
          {"local_across", local_across},
          {"mirrored", stage.components(*v)},
          {"local", stage.components(*local)}};
}

const bool added = add_cases({
    {"mir-003-v1", literal(1, Aggregation::sum, Change::assign, 5)},
    {"mir-005-v1", changed_in_towers(1, Aggregation::mean, Change::assign, id_of_tower)},
    {"mir-006-v1", literal(1, Aggregation::mean, Change::assign, 5)},
    {"mir-007-v1", in_scope(changed_across)},
    {"mir-011-v1", changed_in_towers(5, Aggregation::mean, Change::subtract, id_of_tower)},
    {"mir-012-v1", literal(5, Aggregation::mean, Change::subtract, 1)},
    {"old-002", in_scope(tower_local, tower::Release::v1_9)},
    {"var-013", in_scope(trainable_refused)},
    {"twr-x01", in_scope(unaggregated)},
    {"twr-x02", in_scope(assigned_per_device)},
    {"twr-x03", in_scope(local_across)},
    {"twr-x04", in_scope(local_without_aggregation)},
    {"twr-x05", in_scope(only_inside, tower::Release::v1_9)},
    {"twr-x06", outside_scopes(default_trainable)},
});

}  // namespace
}  // namespace tandem::tower_variable_cases
