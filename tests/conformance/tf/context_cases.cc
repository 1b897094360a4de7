// Area "context": which strategy and context is current, and what may be called where.
#include "strategies/default_strategy.h"
#include "strategies/input/input_context.h"
#include "strategies/mirrored.h"
#include "tests/conformance/tf/groups.h"

namespace tandem {
namespace {

constexpr auto kMean = ReduceOp::mean;

// What the module functions tell, in the words of the cases.
Json context_here(const Stage& stage) {
  const Strategy* current = &get_strategy();
  const char* name = current == &stage.strategy ? "S" : current == &default_strategy() ? "default" : "other";
  return {{"strategy", name},
          {"replica_context", get_replica_context() ? Json("non-null") : Json()},
          {"cross_replica_context", get_cross_replica_context() ? Json("non-null") : Json()},
          {"in_cross", in_cross_replica_context()},
          {"has_strategy", has_strategy()}};
}

bool is_default_state() {
  return !has_strategy() && get_replica_context() == &default_replica_context() && !in_cross_replica_context();
}

Value first_of(const Value::Parts& arguments) {
  return arguments.front();
}

// A second strategy on the same devices.
MirroredStrategy another(const Stage& stage) {
  return {stage.worker, {stage.worker.devices().begin(), stage.worker.devices().end()}};
}

// The same call in the default state, in S's scope, and in another strategy's.
struct Places {
  Json default_state{}, own_scope{}, other_scope{};
};
Places in_each_place(const Stage& stage, const std::function<Json()>& call) {
  const auto outcome = [&] {
    Json result;
    const Json error = error_of([&] { result = call(); });
    return error.is_null() ? result : error;
  };
  Places places;
  places.default_state = outcome();
  {
    const Scope scope = stage.strategy.scope();
    places.own_scope = outcome();
  }
  MirroredStrategy other = another(stage);
  const Scope scope = other.scope();
  places.other_scope = outcome();
  return places;
}

Json named(const Places& places) {
  return {
      {"default_state", places.default_state}, {"own_scope", places.own_scope}, {"other_scope", places.other_scope}};
}

Json asked_for(const VariableSpec& spec) {
  const char* synchronization = spec.synchronization == VariableSynchronization::on_write    ? "ON_WRITE"
                                : spec.synchronization == VariableSynchronization::automatic ? "AUTO"
                                                                                             : "other";
  return {{"name", spec.name}, {"sync", synchronization}, {"agg", std::string(name_of(spec.aggregation))}};
}

// Enters the same scope object's strategy again and again; what is current in each block.
Json nested_scopes(Stage& stage) {
  Json current = Json::array();
  const auto note = [&] { current.push_back(context_here(stage)["strategy"]); };
  Scope a = stage.strategy.scope();
  note();
  Scope b = stage.strategy.scope();
  note();
  {
    const Scope again = stage.strategy.scope();
    note();
  }
  b->leave();
  a->leave();
  const bool restored = is_default_state();
  b = stage.strategy.scope();
  note();
  b->leave();
  return {{"no_error", true},
          {"current_strategy_in_every_nested_block", common(current)},
          {"after_all", restored && is_default_state() ? "default state" : "another"}};
}

Json query_inside_default_scope(Stage& stage) {
  MirroredStrategy other = another(stage);
  const auto in_other = [&] {
    const Scope scope = other.scope();
    other.create_variable({.name = "v"});
  };
  Json result;
  {
    const Scope outer = stage.strategy.scope();
    result["inside_default_scope"] = is_default_state() ? "still the default state" : "another";
    result["variable_in_S_inside_default_scope"] = error_of(in_other);
    const Scope inner = stage.strategy.scope();
    result["nested_default_scope"] = is_default_state() && !error_of(in_other).is_null() ? "ok" : "another";
  }
  result["last_creation"] = error_of(in_other).is_null() ? "ok" : "refused";
  return result;
}

const bool added = add_cases({
    {"ctx-002", staged([](Stage& stage) -> Json {
       Json inside;
       const auto query = [&](const Value::Parts&) -> Value {
         inside.push_back(context_here(stage));
         return {};
       };
       stage.strategy.extended().call_for_each_replica(query);
       {
         const Scope scope = stage.strategy.scope();
         stage.strategy.extended().call_for_each_replica(query);
       }
       return {{"inside_fn", common(inside)},
               {"outside_scope_call", inside.size() == 2 ? "allowed" : "refused"},
               {"after", is_default_state() ? "default state restored" : "another"}};
     })},
    {"ctx-005", staged(nested_scopes)},
    {"ctx-009", staged([](Stage& stage) -> Json {
       const Scope scope = stage.strategy.scope();
       const VariableCreatorScope open([](const NextCreator& next, const VariableSpec& spec) { return next(spec); });
       return {{"leave", error_of([&] { scope->leave(); })}};
     })},
    {"ctx-010", staged([](Stage& stage) -> Json {
       MirroredStrategy second = another(stage);
       Json result;
       experimental_set_strategy(&stage.strategy);
       result["after_first"] = context_here(stage);
       experimental_set_strategy(&second);
       result["after_second"] = {{"strategy", &get_strategy() == &second ? "S2" : "another"}};
       experimental_set_strategy(nullptr);
       result["after_null"] = is_default_state() ? "default state" : "another";
       return result;
     })},
    {"ctx-012", staged([](Stage& stage) -> Json {
       const Places places =
           in_each_place(stage, [&] { return stage.json(stage.strategy.reduce(kMean, Value::literal(1))); });
       return {{"r1", places.default_state}, {"r2", places.own_scope}, {"r3", places.other_scope}};
     })},
    {"ctx-014", staged([](Stage& stage) {
       const ReducePair pair = {Value::literal(1), "/CPU:0"};
       return named(in_each_place(stage, [&] {
         return stage.json(Value::list(stage.strategy.extended().batch_reduce_to(kMean, {pair, pair})));
       }));
     })},
    {"ctx-015", staged([](Stage& stage) -> Json {
       const auto v = stage.var(1);
       const Value t = stage.tensor(stage.worker.cpu(), Shape{}, {2});
       bool same = true;
       Json result = named(in_each_place(stage, [&] {
         stage.strategy.extended().update(v,
                                          [&](Variable& variable, const Value::Parts& arguments) {
                                            same = same && &variable == v.get() && arguments.front().is_identical(t);
                                            return Value();
                                          },
                                          {t});
         return "ok";
       }));
       result["fn_receives"] = same ? "the same v object and the same t object" : "copies";
       return result;
     })},
    {"ctx-016", staged([](Stage& stage) -> Json {
       int calls = 0;
       Json result = named(in_each_place(stage, [&] {
         calls = 0;
         stage.strategy.extended().update_non_slot({&stage.device(0)}, [&](const Value::Parts&) -> Value {
           ++calls;
           return {};
         });
         return calls;
       }));
       result["fn_calls_per_invocation"] = common({result["default_state"], result["own_scope"]});
       return result;
     })},
    {"ctx-018", staged([](Stage& stage) -> Json {
       Json all = Json::array();
       StrategyExtended& extended = stage.strategy.extended();
       for (const char* op : {"mean", "MEAN", "sum", "SUM"}) {
         all.push_back(stage.json(stage.strategy.reduce(op, 1.0)));
         all.push_back(stage.json(extended.reduce_to(op, 1.0, "/CPU:0")));
         for (const Value& one : extended.batch_reduce_to(op, {{1.0, "/CPU:0"}, {1.0, "/CPU:0"}})) {
           all.push_back(stage.json(one));
         }
       }
       return {{"all_results", common(all)}};
     })},
    {"ctx-019", staged([](Stage& stage) -> Json {
       Json seen = Json::array();
       const Scope scope = stage.strategy.scope();
       const VariableCreatorScope hook([&](const NextCreator& next, const VariableSpec& spec) {
         seen.push_back(asked_for(spec));
         return next(spec);
       });
       create_variable({.name = "baz",
                        .synchronization = VariableSynchronization::on_write,
                        .aggregation = VariableAggregation::mean});
       create_variable({.name = "baz"});
       return {{"creator_hook_sees", seen}};
     })},
    {"ctx-020", staged([](Stage& stage) -> Json {
       Json inside;
       const Value r = get_replica_context()->merge_call(
           [&](Strategy& strategy, const Value::Parts& s) -> Value {
             inside = context_here(stage);
             inside["strategy"] = &strategy == &default_strategy() ? "default" : "another";
             return "foo_" + s.front().text();
           },
           {Value(std::string("bar"))});
       return {{"r", r.text()}, {"inside_fn", inside}, {"after", is_default_state() ? "default state" : "another"}};
     })},
    {"ctx-021", staged(query_inside_default_scope)},
    {"ctx-029", staged([](Stage& stage) {
       ReplicaContext* stale = nullptr;
       run_each(stage, [&] {
         if (replica_id() == 0) stale = &replica();
       });
       return error_of([&] { stale->merge_call([](Strategy&, const Value::Parts&) { return Value(); }); });
     })},
    {"ctx-031", staged([](Stage& stage) {
       MirroredStrategy other = another(stage);
       return error_of([&] {
         get_replica_context()->merge_call([&](Strategy&, const Value::Parts&) { return other.run(first_of, {1.0}); });
       });
     })},
    {"ctx-x01", staged([](Stage& stage) -> Json {
       Scope outer = stage.strategy.scope();
       Scope inner = stage.strategy.scope();
       const Json error = error_of([&] { outer->leave(); });
       const Json between = context_here(stage);
       inner->leave();
       outer->leave();
       return {{"outer_first", error},
               {"between", between["strategy"]},
               {"after", is_default_state() ? "default state" : "another"}};
     })},
    {"ctx-x02", staged([](Stage& stage) -> Json {
       MirroredStrategy second = another(stage);
       const Scope scope = stage.strategy.scope();
       Json each = Json::array();
       for (Strategy* strategy : {&stage.strategy, static_cast<Strategy*>(&second), static_cast<Strategy*>(nullptr)}) {
         each.push_back(error_of([&] { experimental_set_strategy(strategy); }));
       }
       return {{"each", each}};
     })},
    {"ctx-x03", staged([](Stage& stage) -> Json {
       const auto v = stage.var(1);
       const Value x = stage.per_replica({1, 2});
       Json each = Json::array();
       run_each(stage, [&] {
         if (replica_id() != 0) return;
         Strategy& s = stage.strategy;
         StrategyExtended& extended = s.extended();
         for (const std::function<void()>& call : std::vector<std::function<void()>>{
                  [&] { s.run(first_of, {1.0}); }, [&] { s.reduce(kMean, x); }, [&] { s.gather(x, 0); },
                  [&] { extended.reduce_to(kMean, x, v); },
                  [&] {
                    extended.batch_reduce_to(kMean, {{x, v}});
                  },
                  [&] { extended.broadcast_to(x, v); }, [&] { const Scope scope = s.scope(); },
                  [&] {
                    s.experimental_distribute_values_from_function([](const ValueContext&) { return Value(1.0); });
                  }}) {
           each.push_back(error_of(call));
         }
       });
       return {{"each", each}};
     })},
    {"ctx-x04", staged([](Stage& stage) -> Json {
       const auto v = stage.var(0);
       Json inside;
       stage.strategy.extended().update(v, [&](Variable&, const Value::Parts&) -> Value {
         inside.push_back(context_here(stage));
         return {};
       });
       run_each(stage, [&] {
         replica().merge_call([&](Strategy&, const Value::Parts&) -> Value {
           inside.push_back(context_here(stage));
           return {};
         });
       });
       return {{"inside", common(inside)}, {"calls", inside.size()}};
     })},
    {"ctx-x05", staged([](Stage& stage) -> Json {
       Json error;
       ReplicaContext* first = nullptr;
       run_each(stage, [&] {
         if (replica_id() == 0) first = &replica();
         if (replica_id() == 1) error = error_of([&] { first->all_reduce(kMean, 1.0); });
       });
       return error;
     })},
});

}  // namespace
}  // namespace tandem
