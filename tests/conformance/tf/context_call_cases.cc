// Area "context": what may be called where, and with which outcome.
#include "strategies/input/input_context.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::context_call_cases {
namespace {

constexpr auto kMean = ReduceOp::mean;

Value first_of(const Value::Parts& arguments) {
  return arguments.front();
}

// The outcomes of the same call in the default state, in S's scope, and in another strategy's.
Json in_each_place(const Stage& stage, const std::function<Json()>& call) {
  const auto outcome = [&] {
    Json result;
    const Json error = error_of([&] { result = call(); });
    return error.is_null() ? result : error;
  };
  Json places;
  places["default_state"] = outcome();
  {
    const Scope scope = stage.strategy.scope();
    places["own_scope"] = outcome();
  }
  MirroredStrategy other = another(stage);
  const Scope scope = other.scope();
  places["other_scope"] = outcome();
  return places;
}

const bool added = add_cases({
    {"ctx-012", staged([](Stage& stage) -> Json {
       const Json places =
           in_each_place(stage, [&] { return stage.json(stage.strategy.reduce(kMean, Value::literal(1))); });
       return {{"r1", places["default_state"]}, {"r2", places["own_scope"]}, {"r3", places["other_scope"]}};
     })},
    {"ctx-014", staged([](Stage& stage) {
       const ReducePair pair = {Value::literal(1), "/CPU:0"};
       return in_each_place(stage, [&] {
         return stage.json(Value::list(stage.strategy.extended().batch_reduce_to(kMean, {pair, pair})));
       });
     })},
    {"ctx-015", staged([](Stage& stage) -> Json {
       const auto v = stage.var(1);
       const Value t = stage.tensor(stage.worker.cpu(), Shape{}, {2});
       bool same = true;
       Json result = in_each_place(stage, [&] {
         stage.strategy.extended().update(v,
                                          [&](Variable& variable, const Value::Parts& arguments) {
                                            same = same && &variable == v.get() && arguments.front().is_identical(t);
                                            return Value();
                                          },
                                          {t});
         return "ok";
       });
       result["fn_receives"] = same ? "the same v object and the same t object" : "copies";
       return result;
     })},
    {"ctx-016", staged([](Stage& stage) -> Json {
       int calls = 0;
       Json result = in_each_place(stage, [&] {
         calls = 0;
         stage.strategy.extended().update_non_slot({&stage.device(0)}, [&](const Value::Parts&) -> Value {
           ++calls;
           return {};
         });
         return calls;
       });
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
    {"ctx-031", staged([](Stage& stage) {
       MirroredStrategy other = another(stage);
       return error_of([&] {
         get_replica_context()->merge_call([&](Strategy&, const Value::Parts&) { return other.run(first_of, {1.0}); });
       });
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
}  // namespace tandem::context_call_cases
