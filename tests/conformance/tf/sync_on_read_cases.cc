// Area "sync-on-read": variables whose components the replicas change on their own and that are combined when read.
#include <array>

#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/regroup.h"
#include "tests/conformance/tf/stage.h"

namespace tandem::sync_on_read_cases {
namespace {

using Aggregation = VariableAggregation;
using VariablePtr = std::shared_ptr<Variable>;
using Assign = Tensor (Variable::*)(const Value&);

constexpr auto kOnRead = VariableSynchronization::on_read;
constexpr std::array kCombining = {Aggregation::sum, Aggregation::mean, Aggregation::only_first_replica};

// The table says ONLY_FIRST.
std::string short_name(Aggregation aggregation) {
  return aggregation == Aggregation::only_first_replica ? "ONLY_FIRST" : std::string(name_of(aggregation));
}

Json state(const Stage& stage, const VariablePtr& v) {
  return {{"components", stage.components(*v)}, {"read", stage.json(v->read())}};
}

void assign_ids(const Stage& stage, const VariablePtr& v, double factor = 1) {
  run_each(stage, [&] { v->assign(factor * replica_id()); });
}

Json created_and_returned(Stage& stage) {
  VariablePtr s, m;
  const Value returned = stage.strategy.run([&](const Value::Parts&) -> Value {
    s = stage.var(1.0, Aggregation::sum, kOnRead);
    m = stage.var(4.0, Aggregation::mean, kOnRead);
    s->assign_add(2.0 + replica_id());
    m->assign(6.0 * replica_id());
    return Value::tuple({s, m, s->handle(), m->handle()});
  });
  const Scope scope = stage.strategy.scope();
  const auto is = [](const Value& value, const VariablePtr& v) {
    return value.is(ValueKind::variable) && value.variable() == v;
  };
  const Value again = regroup(Value::Parts(s->components().begin(), s->components().end()));
  const bool are_containers = is(returned.parts()[0], s) && is(returned.parts()[1], m);
  const bool are_regrouped = is(returned.parts()[2], s) && is(returned.parts()[3], m) && is(again, s);
  return {
      {"s_components", stage.components(*s)},
      {"s_read", stage.json(s->read())},
      {"m_components", stage.components(*m)},
      {"m_read", stage.json(m->read())},
      {"returned_s", are_containers ? "the same container in every replica" : "others"},
      {"regrouped_components", are_regrouped ? "regrouping the two components gives the container back" : "others"}};
}

// What read, value and an operator give, where they agree; else all three.
Json read_in_every_way(Stage& stage) {
  Json results = Json::object();
  for (const Aggregation aggregation : kCombining) {
    const VariablePtr v = stage.var(0.0, aggregation, kOnRead);
    assign_ids(stage, v);
    const Json all = {stage.json(v->read()), stage.json(v->value()), stage.json(Value(v) + 0.0)};
    const bool agree = all[0] == all[1] && all[1] == all[2];
    results[short_name(aggregation)] = agree ? all[0] : all;
  }
  return results;
}

Json changed_everywhere(Stage& stage) {
  struct Change {
    Assign assign;
    double number;
  };
  Json all = Json::array();
  for (const Change& change : {Change{&Variable::assign, 1}, {&Variable::assign_add, 1}, {&Variable::assign_sub, -1}}) {
    for (const Aggregation aggregation : {Aggregation::mean, Aggregation::only_first_replica}) {
      const VariablePtr v = stage.var(0.0, aggregation, kOnRead);
      ((*v).*change.assign)(change.number);
      all.push_back(stage.components(*v));
    }
    for (const Aggregation aggregation :
         {Aggregation::none, Aggregation::sum, Aggregation::mean, Aggregation::only_first_replica}) {
      const VariablePtr v = stage.var(0.0, aggregation, kOnRead);
      run_each(stage, [&] { ((*v).*change.assign)(Value::literal(change.number)); });
      all.push_back(stage.components(*v));
    }
  }
  for (const Json& components : all) {
    if (components != all.front()) return {{"components_in_every_case", all}};
  }
  return {{"components_in_every_case", all.front()}};
}

// The error of every aggregation, where they are of one kind.
CaseFunction scattered(kernel::Scatter operation) {
  return staged([operation](Stage& stage) {
    Json errors = Json::array();
    for (const Aggregation aggregation : kCombining) {
      const VariablePtr v = stage.var({1, 2, 3}, aggregation, kOnRead);
      errors.push_back(error_of([&] {
        run_each(stage, [&] { v->scatter(operation, stage.slices(replica().device(), {0}, {1}, {2.0}, {3})); });
      }));
      if (errors.back().is_null() || errors.back()["error"] != errors.front()["error"]) return errors;
    }
    return errors.front();
  });
}

// v assigned across the replicas; integers of the type given.
Json assigned_across(Stage& stage, Aggregation aggregation, const Value& value, DType dtype = DType::f32) {
  const VariablePtr v = stage.var(0, aggregation, kOnRead, dtype);
  v->assign(value);
  return state(stage, v);
}

const bool added = add_cases({
    {"sor-001", staged(created_and_returned)},
    {"sor-002", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0, Aggregation::sum, kOnRead);
       const Json first = stage.json(v->read());
       v->assign(6.0);
       return {{"read_first", first}, {"read_second", stage.json(v->read())}, {"components", stage.components(*v)}};
     })},
    {"sor-004", staged([](Stage& stage) {
       return assigned_across(stage, Aggregation::sum, 1.0 * stage.strategy.num_replicas_in_sync());
     })},
    {"sor-005", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(0.0, Aggregation::sum, kOnRead);
       return {{"each", {error_of([&] { v->assign_add(1.0); }), error_of([&] { v->assign_sub(1.0); })}}};
     })},
    {"sor-006", staged([](Stage& stage) { return stage.json(stage.var(0.0, Aggregation::none, kOnRead)->read()); })},
    {"sor-007-2", staged(read_in_every_way)},
    {"sor-008", staged(changed_everywhere)},
    {"sor-010", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(0.0, Aggregation::sum, kOnRead);
       const Value returned =
           stage.strategy.run([&](const Value::Parts&) { return v->assign(static_cast<double>(replica_id())); });
       return {{"returned", stage.locals(returned)}};
     })},
    {"sor-011", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(0.0, Aggregation::mean, kOnRead);
       assign_ids(stage, v);
       const Value in_replicas = stage.strategy.run([&](const Value::Parts&) { return v + 1.0; });
       return {{"cross", stage.json(v + 1.0)}, {"replica", stage.locals(in_replicas)}};
     })},
    {"sor-012", staged([](Stage& stage) -> Json {
       const VariablePtr v1 = stage.var(0.0, Aggregation::sum, kOnRead), v2 = stage.var(0.0, Aggregation::sum, kOnRead);
       run_each(stage, [&] {
         v1->assign_add(Value::literal(1));
         v2->assign_add(Value::literal(2));
       });
       return {{"value", stage.json(v1 + v2)}};
     })},
    {"sor-017", staged([](Stage& stage) {
       const VariablePtr v = stage.var(1.0, Aggregation::sum, kOnRead);
       stage.strategy.extended().update(v, [](Variable& var, const Value::Parts&) { return var.assign(6.0); });
       return state(stage, v);
     })},
    {"sor-scatter_add", scattered(kernel::Scatter::add)},
    {"sor-scatter_div", scattered(kernel::Scatter::divide)},
    {"sor-scatter_max", scattered(kernel::Scatter::maximum)},
    {"sor-scatter_min", scattered(kernel::Scatter::minimum)},
    {"sor-scatter_sub", scattered(kernel::Scatter::subtract)},
    {"sor-x01", staged([](Stage& stage) { return assigned_across(stage, Aggregation::sum, 5.0, DType::i32); })},
    {"sor-x02", staged([](Stage& stage) {
       return assigned_across(stage, Aggregation::sum, stage.tensor(stage.worker.cpu(), {}, {-7}, DType::i64),
                              DType::i64);
     })},
    {"sor-x03", staged([](Stage& stage) { return assigned_across(stage, Aggregation::mean, 6.0); })},
    {"sor-x04", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0, Aggregation::none, kOnRead);
       v->assign(5.0);
       const Value own = stage.strategy.run([&](const Value::Parts&) { return v->read(); });
       return {{"components", stage.components(*v)},
               {"replica", stage.locals(own)},
               {"cross", error_of([&] { v->read(); })}};
     })},
    {"sor-x05", staged([](Stage& stage) -> Json {
       Json errors = Json::array();
       const VariablePtr v = stage.var({1, 2, 3}, Aggregation::mean, kOnRead);
       for (const auto operation : {kernel::Scatter::add, kernel::Scatter::multiply, kernel::Scatter::replace}) {
         errors.push_back(
             error_of([&] { v->scatter(operation, stage.slices(stage.worker.cpu(), {0}, {1}, {2}, {3})); }));
       }
       return {{"each", errors}};
     })},
    {"sor-x06", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(0.0, Aggregation::mean, kOnRead);
       assign_ids(stage, v, 3);
       v->assign_sub(1.0);
       return state(stage, v);
     })},
    {"sor-x07", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(4.0, Aggregation::sum, kOnRead);
       const Tensor saved = v->saved_value();
       const VariablePtr w = stage.var(0.0, Aggregation::sum, kOnRead), m = stage.var(0.0, Aggregation::mean, kOnRead);
       w->restore(saved);
       m->restore(saved);
       return {{"saved", stage.json(saved)}, {"sum", stage.components(*w)}, {"mean", stage.components(*m)}};
     })},
});

}  // namespace
}  // namespace tandem::sync_on_read_cases
