// Area "run-merge": run() and merge_call().
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::run_merge_cases {
namespace {

// What a user's own replica function may throw.
class UserError : public std::exception {
 public:
  const char* what() const noexcept override { return "the user's own"; }
};

Value fresh(double number) {
  return number;
}

Value nothing(const Value::Parts& /*arguments*/) {
  return {};
}

// The first of several runs, with numbers; the others take what it returns apart and together again.
Json chained(const Stage& stage, const ReplicaFunction& first) {
  const Value o1 = stage.strategy.run(first);
  const Value o2 = stage.strategy.run(
      [](const Value::Parts& x) {
        const double n = x.front().number();
        return Value::map({{"a", fresh(2 * n)}, {"b", fresh(n * n)}});
      },
      {o1});
  const Value o3 = stage.strategy.run(
      [](const Value::Parts& x) {
        return fresh(x.front().fields().at("a").number() + 2 * x.front().fields().at("b").number() + 2);
      },
      {o2});
  const Json a = stage.locals(o2.fields().at("a")), b = stage.locals(o2.fields().at("b"));
  return {{"o1", stage.locals(o1)}, {"o2", {{"a", a}, {"b", b}}}, {"o3", stage.locals(o3)}};
}

// The exception that `function` of all replicas causes, and whether the strategy works afterwards.
CaseFunction user_error(const std::function<void(Stage& stage)>& function) {
  return staged([function](Stage& stage) -> Json {
    const Scope scope = stage.strategy.scope();
    std::string error = "none";
    try {
      run_each(stage, [&] { function(stage); });
    } catch (const UserError& thrown) {
      error = thrown.what();
    }
    const Value again = stage.strategy.run([](const Value::Parts&) {
      return replica().merge_call([](Strategy&, const Value::Parts& ids) { return ids.front(); },
                                  {fresh(replica_id())});
    });
    return {{"raised", error}, {"ids_after", stage.locals(again)}, {"in_cross_after", in_cross_replica_context()}};
  });
}

[[noreturn]] Value raise(Strategy& /*strategy*/, const Value::Parts& /*arguments*/) {
  throw UserError();
}

// Replica i returns ids[i] from one all_gather of all ids: {"replica_id_in_sync_group": ..., "local_replica_id": ...}.
Json gathered_ids(Stage& stage) {
  const Value ids = stage.strategy.run([](const Value::Parts&) -> Value {
    return Value::tuple(
        {replica().all_gather(fresh(replica_id()), 0), replica().all_gather(fresh(replica().local_replica_id()), 0)});
  });
  const Value first = stage.strategy.experimental_local_results(ids).front();
  return {{"replica_id_in_sync_group", stage.json(first.parts()[0])},
          {"local_replica_id", stage.json(first.parts()[1])}};
}

const bool added = add_cases({
    {"run-005", staged([](Stage& stage) -> Json {
       return error_of([&] {
         stage.strategy.run([](const Value::Parts&) {
           return Value::list(Value::Parts(static_cast<std::size_t>(replica_id()), fresh(1)));
         });
       });
     })},
    {"run-006",
     staged([](Stage& stage) { return chained(stage, [](const Value::Parts&) { return fresh(replica_id() + 1); }); })},
    {"run-007",
     staged([](Stage& stage) { return chained(stage, [](const Value::Parts&) { return Value::literal(4); }); })},
    {"run-011", staged([](Stage& stage) -> Json {
       const Value result = stage.strategy.run([](const Value::Parts&) {
         replica().merge_call([](Strategy&, const Value::Parts& x) { return nothing(x); });
         return Value::literal(0);
       });
       return {{"result", stage.json(result)}};
     })},
    {"run-014", staged([](Stage& stage) -> Json {
       const Value result = stage.strategy.run([](const Value::Parts&) {
         const Value y = replica().merge_call([](Strategy&, const Value::Parts&) { return Value::literal(11); });
         return fresh(y.number() + 1);
       });
       return {{"local_results", stage.locals(result)}};
     })},
    {"run-015", staged([](Stage& stage) {
       return error_of([&] {
         run_each(stage, [] {
           if (replica_id() == 0) replica().merge_call([](Strategy&, const Value::Parts& x) { return nothing(x); });
         });
       });
     })},
    {"run-017", staged([](Stage& stage) -> Json {
       const Value k(std::string("K"));
       Json received = Json::array();
       run_each(stage, [&] {
         const auto g = [&](Strategy& strategy, const Value::Parts& arguments) {
           received = {&strategy == &stage.strategy, std::string(name_of(arguments[0].kind())),
                       stage.json(arguments[0]), arguments[1].is_identical(k)};
           return Value();
         };
         replica().merge_call(g, {fresh(1.0 * replica_id()), k});
       });
       return {{"g_receives", received}};
     })},
    {"run-018", staged([](Stage& stage) -> Json {
       Json log = Json::array();
       run_each(stage, [&] {
         log.push_back("a" + std::to_string(replica_id()));
         replica().merge_call([&](Strategy&, const Value::Parts& x) {
           log.push_back("m");
           return nothing(x);
         });
         log.push_back("b" + std::to_string(replica_id()));
       });
       return {{"log", log}};
     })},
    {"run-025", staged([](Stage& stage) -> Json {
       const HostArray numbers{.row_shape = {}, .values = std::vector<float>{5, 6, 7, 8}};
       DistributedIterator iterator =
           stage.strategy.experimental_distribute_dataset(Dataset::from_tensor_slices({numbers}).batch(2)).iterator();
       Json steps = Json::array();
       while (const std::optional<Value> batch = iterator.next()) {
         const Value gradients = stage.strategy.run(
             [](const Value::Parts& x) -> Value { return times(x.front().parts().front().tensor(), 2); }, {*batch});
         Json flat = Json::array();
         for (const Json& local : stage.locals(gradients)) flat.insert(flat.end(), local.begin(), local.end());
         steps.push_back(flat);
       }
       return {{"steps", steps}};
     })},
    {"run-030", [](const CaseWorld&) { return refused_by_the_compiler<Value::Parts, int>(); }},
    {"run-031", staged_together(gathered_ids)},
    {"run-exc-2", user_error([](Stage&) { replica().merge_call(raise); })},
    {"run-exc-3", user_error([](Stage&) {
       replica().merge_call([](Strategy& strategy, const Value::Parts&) {
         return strategy.run([](const Value::Parts&) -> Value { throw UserError(); });
       });
     })},
    {"run-rid-mirrored-2", staged([](Stage& stage) -> Json {
       Json slots = Json::array({false, false});
       run_each(stage, [&] {
         const auto id = static_cast<std::size_t>(replica_id());
         if (slots.at(id).get<bool>()) throw RuntimeError("a replica id came twice");
         slots[id] = true;
       });
       return {{"slots", slots}};
     })},
    {"run-x01", staged([](Stage& stage) -> Json {
       const Json error = error_of([&] {
         run_each(stage, [] {
           const Value::Parts arguments(static_cast<std::size_t>(1 + replica_id()), fresh(1));
           replica().merge_call([](Strategy&, const Value::Parts& x) { return nothing(x); }, arguments);
         });
       });
       const Value again = stage.strategy.run([](const Value::Parts&) { return fresh(replica_id()); });
       return {{"merge_call", error}, {"ids_after", stage.locals(again)}};
     })},
    {"run-x02", staged([](Stage& stage) -> Json {
       // run > merge > run > merge > run, each adding its replica id at its own digit.
       const auto innermost = [](Strategy& strategy, const Value::Parts& x) {
         return strategy.run([](const Value::Parts& y) { return fresh(y.front().number() + 100 * replica_id()); }, x);
       };
       const auto inner = [&](Strategy& strategy, const Value::Parts& x) {
         return strategy.run(
             [&](const Value::Parts& y) {
               return replica().merge_call(innermost, {fresh(y.front().number() + 10 * replica_id())});
             },
             x);
       };
       const Value result = stage.strategy.run(
           [&](const Value::Parts&) { return replica().merge_call(inner, {fresh(1000.0 + replica_id())}); });
       return {{"per_replica", stage.locals(result)}};
     })},
    {"run-x03", staged([](Stage& stage) -> Json {
       const Value result = stage.strategy.run([](const Value::Parts&) { return fresh(replica_id()); });
       return {{"local_results", stage.locals(result)}};
     })},
    {"run-x04", user_error([](Stage&) {
       replica().merge_call([](Strategy& strategy, const Value::Parts&) {
         return strategy.run([](const Value::Parts&) { return replica().merge_call(raise); });
       });
     })},
    {"run-x05", user_error([](Stage&) {
       if (replica_id() == 1) throw UserError();
       replica().merge_call([](Strategy&, const Value::Parts& x) { return nothing(x); });
     })},
    {"run-x06", staged([](Stage& stage) -> Json {
       Json executed = Json::array();
       const Value result = stage.strategy.run([&](const Value::Parts&) {
         const int id = replica_id();
         const auto mine = [&executed, id](Strategy&, const Value::Parts& x) {
           executed.push_back(id);
           return Value::tuple({x.front(), Value::literal(7), Value::mirrored({fresh(1), fresh(2)})});
         };
         return replica().merge_call(mine, {fresh(10.0 * id)});
       });
       return {{"merge_functions_executed", executed}, {"per_replica", stage.locals(result)}};
     })},
});

}  // namespace
}  // namespace tandem::run_merge_cases
