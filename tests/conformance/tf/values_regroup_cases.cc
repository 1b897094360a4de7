// Area "values-regroup": from one value per replica to one value, and back.
#include <fmt/format.h>

#include "strategies/cross_device/copies.h"
#include "strategies/input/input_context.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/regroup.h"
#include "tests/conformance/tf/agreed.h"

namespace tandem::values_regroup_cases {
namespace {

using VariablePtr = std::shared_ptr<Variable>;

Value text(const std::string& text) {
  return {text};
}

// ("a1", ["b1", {c: "d1", e: "f1"}, "g1"], "h1") with the replica's number.
Value nested(const std::string& number) {
  const auto with = [&](const char* letter) { return text(letter + number); };
  const Value map = Value::map({{"c", with("d")}, {"e", with("f")}});
  return Value::tuple({with("a"), Value::list({with("b"), map, with("g")}), with("h")});
}

Value number_per_replica(const ValueContext& context) {
  return {static_cast<double>(context.replica_id_in_sync_group())};
}

Value point(double x, double y) {
  return Value::map({{"x", x}, {"y", y}}, "Point");
}

// Whether regrouping a variable's components gives the variable, in its scope.
Json components_regrouped(Stage& stage) {
  const VariablePtr v = stage.var(1.0, VariableAggregation::sum);
  const Scope scope = stage.strategy.scope();
  const Value result = regroup(Value::Parts(v->components().begin(), v->components().end()));
  const bool is_v = result.is(ValueKind::variable) && result.variable() == v;
  return {{"result", is_v ? "v itself" : text_of(result)}};
}

Json shared_object(Stage&) {
  const Value k = text("K");
  const Value r = regroup({Value::tuple({text("a"), k}), Value::tuple({text("b"), k})});
  const Value first = select_replica(0, r), second = select_replica(1, r);
  const bool is_k =
      r.parts()[1].is_identical(k) && first.parts()[1].is_identical(k) && second.parts()[1].is_identical(k);
  return {{"r", text_of(r)}, {"select_0", text_of(first)}, {"select_1", text_of(second)}, {"is_K_itself", is_k}};
}

Json delegated_operators(Stage&) {
  const Value d = Value::mirrored({7.0, 8.0});
  const auto all = [&](const Value& a, const Value& b) {
    Json results = Json::array();
    for (const Operator operation :
         {Operator::add, Operator::subtract, Operator::multiply, Operator::divide, Operator::floor_divide,
          Operator::modulo, Operator::power, Operator::bitwise_and, Operator::bitwise_or, Operator::bitwise_xor,
          Operator::less, Operator::less_equal, Operator::greater, Operator::greater_equal}) {
      results.push_back(apply(operation, a, b).number());
    }
    return results;
  };
  return {{"d_2", all(d, 2.0)},
          {"2_d", all(2.0, d)},
          {"d_d", all(d, d)},
          {"negated", (-d).number()},
          {"absolute", absolute(-d).number()},
          {"d[2]", error_of([&] { element(d, 2); })}};
}

Json gathered(Stage& stage, const std::function<Value(const ValueContext&)>& function) {
  return {{"result", stage.json(stage.strategy.gather(
                         stage.strategy.experimental_distribute_values_from_function(function), 0))}};
}

Json densified(Stage& stage) {
  const Value d = stage.strategy.experimental_distribute_values_from_function([&](const ValueContext& context) {
    Device& device = stage.device(context.replica_id_in_sync_group());
    return stage.slices(device, {0, 1}, {2, 4}, {1, 0, 0, 0, 0, 0, 2, 0}, {3, 4});
  });
  Json each = Json::array();
  for (const Value& local : stage.strategy.experimental_local_results(d)) {
    each.push_back(stage.json(dense(local.slices())));
  }
  return {{"each", each}};
}

Json local_results(Stage& stage, const std::function<Value()>& function) {
  const Value r = stage.strategy.run([&](const Value::Parts&) { return function(); });
  return {{"entries", stage.strategy.experimental_local_results(r).size()}, {"value", stage.locals(r)}};
}

const bool added = add_cases({
    {"val-001", staged([](Stage&) -> Json {
       const Value r = regroup({nested("1"), nested("2")});
       return {{"r", text_of(r)},
               {"select_0", text_of(select_replica(0, r))},
               {"select_1", text_of(select_replica(1, r))},
               {"select_mirrored", error_of([&] { select_replica_mirrored(0, r); })}};
     })},
    {"val-002", staged([](Stage&) -> Json {
       const Value r = regroup_mirrored({nested("1"), nested("2")});
       return {{"r", text_of(r)},
               {"select_mirrored_0", text_of(select_replica_mirrored(0, r))},
               {"select_mirrored_1", text_of(select_replica_mirrored(1, r))}};
     })},
    {"val-003", staged([](Stage&) -> Json {
       return {{"r", text_of(regroup({Value::tuple({text("1"), text("2")}), Value::tuple({text("3"), text("4")})}))}};
     })},
    {"val-004", staged(shared_object)},
    {"val-005", staged([](Stage&) -> Json {
       return {{"r", text_of(regroup({nested("1")}))}};
     })},
    {"val-006", staged(components_regrouped)},
    {"val-007", staged(components_regrouped)},
    {"val-008", staged([](Stage& stage) -> Json {
       const Value r = regroup({point(0, 2), point(1, 3)});
       return {{"x", stage.json(r.fields().at("x"))}, {"y", stage.json(r.fields().at("y"))}, {"kind", r.type_name()}};
     })},
    {"val-010", staged([](Stage&) -> Json {
       return text_of(regroup({Value::list({Value::literal(1), Value::literal(2)}), Value::list({Value::literal(1)})}));
     })},
    {"val-012", staged([](Stage&) -> Json {
       const Value k = text("K");
       return {{"result", text_of(regroup({k, k}, true))}};
     })},
    {"val-013", staged([](Stage&) -> Json {
       const Value d = Value::mirrored({Value::map({{"x", 7.0}}, "Foo"), Value::map({{"x", 8.0}}, "Foo")});
       return {{"d.x", field(d, "x").number()}, {"d.y", error_of([&] { field(d, "y"); })}};
     })},
    {"val-018", staged([](Stage& stage) -> Json {
       const Value d = stage.strategy.experimental_distribute_values_from_function(number_per_replica);
       return stage.json(current_part(d));
     })},
    {"val-020", staged([](Stage& stage) {
       return gathered(stage, [](const ValueContext&) {
         return Value::tuple({Value::literal(1), Value::literal(2), Value::literal(3)});
       });
     })},
    {"val-021", staged([](Stage& stage) {
       return gathered(stage, [](const ValueContext& context) {
         const double id = context.replica_id_in_sync_group();
         return Value::tuple({1 * id, 2 * id, 3 * id});
       });
     })},
    {"val-022", agreed([](Stage& stage) { return gathered(stage, number_per_replica); })},
    {"val-023", staged([](Stage& stage) -> Json {
       const Value d = stage.strategy.experimental_distribute_values_from_function(number_per_replica);
       const auto square = [](const Value::Parts& arguments) { return arguments.front() * arguments.front(); };
       return {{"result", stage.json(stage.strategy.gather(stage.strategy.run(square, {d}), 0))}};
     })},
    {"val-024", staged(densified)},
    {"val-026", staged([](Stage& stage) -> Json {
       const Value m = Value::mirrored(stage.per_replica({3, 3}).parts());
       return {{"m+m", stage.json(m + m)}, {"m+1", stage.json(m + 1.0)}};
     })},
    {"val-030", staged([](Stage& stage) -> Json {
       const Value v = stage.var(1.0);
       return {{"result", select_replica(0, v).is_identical(v) ? "v itself" : "another value"}};
     })},
    {"val-loc-3", staged([](Stage& stage) {
       return local_results(stage, [] {
         return Value::tuple({Value::literal(1), Value::literal(2), Value::literal(3)});
       });
     })},
    {"val-loc-4", staged([](Stage& stage) {
       return local_results(stage, [&] {
         const auto tensor = [&](double x) { return stage.tensor(replica().device(), {}, {x}); };
         return Value::tuple(
             {Value::map({{"a", tensor(1)}, {"b", tensor(2)}}), Value::map({{"a", tensor(4)}, {"b", tensor(6)}})});
       });
     })},
    {"val-loc-6", staged([](Stage& stage) {
       return local_results(stage, [] { return static_cast<double>(replica().local_replica_id()); });
     })},
    {"val-x01", staged([](Stage&) -> Json {
       return text_of(regroup({Value::map({{"a", 1.0}}), Value::map({{"b", 1.0}})}));
     })},
    {"val-x02", staged([](Stage&) -> Json {
       return text_of(regroup({Value::list({1.0}), Value::tuple({1.0})}));
     })},
    {"val-x03", staged(delegated_operators)},
    {"val-x04", staged([](Stage& stage) -> Json {
       const Value own = stage.strategy.run([&](const Value::Parts&) { return 5.0 * replica_id(); });
       const Value literal = stage.strategy.run([&](const Value::Parts&) { return Value::literal(5); });
       const Value fresh = stage.strategy.run([&](const Value::Parts&) -> Value { return 5.0; });
       return {{"own", text_of(own)}, {"literal", text_of(literal)}, {"fresh", text_of(fresh)}};
     })},
    {"val-x05", staged([](Stage& stage) -> Json {
       const Value d = stage.strategy.experimental_distribute_values_from_function(number_per_replica);
       const Value doubled = stage.strategy.run([&](const Value::Parts&) { return d + d; });
       return {{"doubled", text_of(doubled)}, {"outside", error_of([&] { apply(Operator::add, d, 1.0); })}};
     })},
    {"val-x06", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var({1, 2});
       const Tensor whole = stage.tensor(stage.worker.cpu(), {2}, {6, 7}, DType::i32);
       return {{"v*2-1", stage.json(v * 2.0 - 1.0)},
               {"whole/4", stage.json(Value(whole) / 4.0)},
               {"v[1]", stage.json(element(v, 1))},
               {"whole+0.5", error_of([&] { Value(whole) + 0.5; })},
               {"v+whole", error_of([&] { v + whole; })}};
     })},
    {"val-x07", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0);
       const Scope scope = stage.strategy.scope();
       const Value component = v->components().front();
       return {{"is_component", regroup({component}).is_identical(component)}};
     })},
    {"val-x08", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0, VariableAggregation::sum, VariableSynchronization::on_read);
       const Scope scope = stage.strategy.scope();
       Value::Parts parts(v->components().begin(), v->components().end());
       const bool is_v = regroup(parts).is_identical(v);
       std::swap(parts[0], parts[1]);
       return {{"in_order", is_v ? "v itself" : "another value"}, {"swapped", name_of(regroup(parts).kind())}};
     })},
});

}  // namespace
}  // namespace tandem::values_regroup_cases
