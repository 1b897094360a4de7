// Area "variable-creation": which variables are made, what they are called and what is refused.
#include <random>

#include "strategies/strategy/default_strategy.h"
#include "tests/conformance/tf/agreed.h"

namespace tandem::variable_creation_cases {
namespace {

using Synchronization = VariableSynchronization;
using VariablePtr = std::shared_ptr<Variable>;

VariableSpec scalar(std::string name, double initial = 1) {
  return {.name = std::move(name), .shape = {}, .initial_value = [initial](std::int64_t) { return initial; }};
}

void merge_nothing() {
  replica().merge_call([](Strategy&, const Value::Parts&) { return Value(); });
}

// All replicas create variables of these names; what run() returns of them, and how many there are.
Json created(Stage& stage, const std::vector<std::string>& names) {
  const Value returned = stage.strategy.run([&](const Value::Parts&) {
    Value::Parts variables;
    for (const std::string& name : names) variables.emplace_back(stage.strategy.create_variable(scalar(name)));
    merge_nothing();
    return Value::list(std::move(variables));
  });
  Json found = Json::array();
  for (const Value& value : returned.parts()) found.push_back(value.variable()->name());
  const auto& all = stage.strategy.extended().variables();
  const auto alive = std::count_if(all.begin(), all.end(), [](const auto& weak) { return !weak.expired(); });
  return {{"names", found}, {"total_containers", alive}};
}

Json canonical_names(std::initializer_list<const char*> names) {
  Json canonical = Json::array();
  for (const char* name : names) canonical.push_back(canonical_name(name));
  return {{"result", canonical}};
}

Json handles(Stage& stage) {
  const VariablePtr v = stage.var(1.0);
  bool is_own = true, is_updated = true;
  run_each(stage,
           [&] { is_own = is_own && v->handle().is_same(v->components()[static_cast<std::size_t>(replica_id())]); });
  std::size_t updated = 0;
  stage.strategy.extended().update(v, [&](Variable& var, const Value::Parts&) {
    is_updated = is_updated && var.handle().is_same(v->components()[updated++]);
    return Value();
  });
  return {{"cross", error_of([&] { v->handle(); })},
          {"replica", is_own ? "handle of own component" : "another handle"},
          {"update", is_updated && updated == 2 ? "handle of the component being updated" : "another handle"}};
}

Json component_names(const Variable& variable) {
  Json names = Json::array();
  for (std::size_t i = 0; i < variable.components().size(); ++i) {
    names.push_back(variable.component_name(static_cast<int>(i)));
  }
  return names;
}

Json created_everywhere(Stage& stage) {
  Scope scope = stage.strategy.scope();
  const VariablePtr a = create_variable(scalar("main/a"));
  scope.reset();
  const Value returned = stage.strategy.run([&](const Value::Parts&) {
    const Value b = create_variable(scalar("main/b"));
    const Value c =
        replica().merge_call([](Strategy&, const Value::Parts&) { return create_variable(scalar("main/foo/c")); });
    return Value::list({b, c});
  });
  return {{"a", component_names(*a)},
          {"b", component_names(*returned.parts()[0].variable())},
          {"c", component_names(*returned.parts()[1].variable())}};
}

Json kinds_by_name(Stage& stage) {
  Json kinds = Json::object();
  for (const char* name : {"AUTO", "NONE", "ON_WRITE", "ON_READ"}) {
    const Json error = error_of([&] {
      VariableSpec spec = scalar("v");
      spec.synchronization = variable_synchronization_from_name(name);
      kinds[name] = name_of(stage.strategy.create_variable(spec)->kind());
    });
    if (!error.is_null()) kinds[name] = error;
  }
  kinds["invalid_aggregation"] = error_of([] { variable_aggregation_from_name("Invalid"); });
  return kinds;
}

// Replica 0 has a creator of its own open, also during its merge_call.
Json created_under_creators(Stage& stage) {
  Json asked_for = Json::array();
  const Scope scope = stage.strategy.scope();
  const VariableCreatorScope listening([&](const NextCreator& next, const VariableSpec& spec) {
    asked_for.push_back(spec.name);
    return next(spec);
  });
  const auto renaming = [](const NextCreator& next, const VariableSpec& spec) {
    VariableSpec renamed = spec;
    renamed.name += "_1";
    return next(renamed);
  };
  const Value returned = stage.strategy.run([&](const Value::Parts&) {
    const auto own = replica_id() == 0 ? std::make_unique<VariableCreatorScope>(renaming) : nullptr;
    const Value v = create_variable(scalar("v"));
    return Value::list(
        {v, replica().merge_call([](Strategy&, const Value::Parts&) { return create_variable(scalar("w")); })});
  });
  return {{"asked_for", asked_for},
          {"v", returned.parts()[0].variable()->name()},
          {"w", returned.parts()[1].variable()->name()}};
}

const bool added = add_cases({
    {"var-003", staged([](Stage& stage) {
       return created(stage, {"foo0", "foo1", "foo2", "foo3", "foo4"});
     })},
    {"var-004", staged([](Stage& stage) {
       return created(stage, {"foo/bar", "foo_1/bar", "foo_1/bar_1", "foo/bar_1"});
     })},
    {"var-005", staged([](Stage& stage) -> Json {
       const Value v = stage.strategy.run([&](const Value::Parts&) {
         VariablePtr made = stage.strategy.create_variable(scalar("foo_" + std::to_string(replica_id())));
         merge_nothing();
         return made;
       });
       return {{"kind", name_of(v.variable()->kind())}, {"name", v.variable()->name()}};
     })},
    {"var-009", staged([](Stage& stage) {
       return stage.json(stage.var(1.0, VariableAggregation::none, Synchronization::none)->read());
     })},
    {"var-010", staged([](Stage& stage) {
       VariableSpec spec = scalar("v");
       spec.synchronization = variable_synchronization_from_name("Invalid");
       return stage.json(stage.strategy.create_variable(spec)->read());
     })},
    {"var-012", staged([](Stage& stage) -> Json {
       const auto trainable = [&](Synchronization synchronization, std::optional<bool> given) {
         VariableSpec spec = scalar("v");
         spec.synchronization = synchronization;
         spec.trainable = given;
         return stage.strategy.create_variable(spec)->trainable();
       };
       return {{"trainable",
                {trainable(Synchronization::automatic, {}), trainable(Synchronization::on_read, {}),
                 trainable(Synchronization::on_read, true), trainable(Synchronization::on_read, false)}}};
     })},
    {"var-014", staged([](Stage& stage) -> Json {
       std::mt19937 generator(1);
       std::normal_distribution<double> normal;
       const Value v = stage.strategy.run([&](const Value::Parts&) {
         VariableSpec spec = scalar("v");
         spec.initial_value = [&](std::int64_t) { return normal(generator); };
         return stage.strategy.create_variable(spec);
       });
       const Json components = stage.components(*v.variable());
       return {{"component0_equals_component1", components[0] == components[1] && components[0] != 0.0}};
     })},
    {"var-019", staged([](Stage& stage) {
       return stage.json(stage.var(1, VariableAggregation::mean, Synchronization::automatic, DType::i32)->read());
     })},
    {"var-021", staged(handles)},
    {"var-025", staged([](Stage&) {
       return canonical_names({"", "foo_1/bar_1/baz", "foo_1", "foo_1:0", "foo1", "foo_a"});
     })},
    {"var-026",
     [](const CaseWorld& world) {
       return world.on_workers(1, 3, [&](Worker& worker) -> Json {
         const std::unique_ptr<Strategy> strategy = strategy_of(world.spec(), worker);
         std::vector<VariablePtr> made;
         strategy->run([&](const Value::Parts&) {
           made.push_back(strategy->create_variable(scalar("foo")));
           return Value();
         });
         const bool are_same = made.size() == 3 && made[0] == made[1] && made[0] == made[2];
         return {{"all_three", are_same ? "the same variable object" : "different variables"}};
       })[0];
     }},
    {"var-028", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(1.0), w = stage.var(1.0, VariableAggregation::none, Synchronization::on_read);
       const bool both = &v->strategy() == &stage.strategy && &w->strategy() == &stage.strategy;
       return {{"both", both ? "S" : "others"}};
     })},
    {"var-029", staged([](Stage& stage) {
       const Scope outer = default_strategy().scope();
       const Scope inner = stage.strategy.scope();
       return stage.json(create_variable(scalar("v"))->read());
     })},
    {"var-x01", staged(created_everywhere)},
    {"var-x02", staged([](Stage& stage) {
       run_each(stage, [&] {
         stage.strategy.create_variable(scalar("a"));
         if (replica_id() == 1) stage.strategy.create_variable(scalar("b"));
       });
       return Json();
     })},
    {"var-x03", staged([](Stage&) {
       return canonical_names({"a_1_2", "a_12", "a_12/b_3", "_1", "a_1/b_2/c_x"});
     })},
    {"var-x04", staged(kinds_by_name)},
    {"var-x05", staged([](Stage& stage) -> Json {
       const VariablePtr v = stage.var({1, 2, 3});
       bool is_own = true;
       run_each(stage, [&] { is_own = is_own && &v->handle().device() == &replica().device(); });
       return {{"components", stage.components(*v)}, {"on_own_devices", is_own}};
     })},
    {"var-x06", staged(created_under_creators)},
    {"var-x07", staged([](Stage& stage) -> Json {
       const Value v = stage.strategy.run(
           [&](const Value::Parts&) { return stage.strategy.create_variable(scalar("v", replica_id() + 1)); });
       return {{"components", stage.components(*v.variable())}};
     })},
    {"var-x08", agreed([](Stage& stage) -> Json {
       const VariablePtr v = stage.var(stage.worker.task() + 1.0);
       return {{"components", stage.components(*v)}};
     })},
});

}  // namespace
}  // namespace tandem::variable_creation_cases
