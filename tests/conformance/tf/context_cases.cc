// Area "context": which strategy and context is current.
#include "strategies/strategy/default_strategy.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::context_cases {
namespace {

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
});

}  // namespace
}  // namespace tandem::context_cases
