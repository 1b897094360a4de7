// Area "reduce": reduce_to and batch_reduce_to, over workers, and the replica context's all_reduce.
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::reduce_to_cases {
namespace {

constexpr auto kSum = ReduceOp::sum;
constexpr auto kMean = ReduceOp::mean;

IndexedSlices one_row(const Stage& stage, Device& device, std::int64_t row, double value) {
  return stage.slices(device, {row}, {1, 1}, {value}, {5, 1});
}

Json dense_json(const Stage& stage, const Value& value) {
  return stage.json(value.is(ValueKind::sparse) ? Value(dense(value.slices())) : value);
}

// What `function` gives on replica 0.
Value on_first(const Stage& stage, const std::function<Value()>& function) {
  const Value result = stage.strategy.run([&](const Value::Parts&) { return function(); });
  return stage.strategy.experimental_local_results(result).front();
}

CaseFunction nested_all_reduce(ReduceOp op) {
  return staged([op](Stage& stage) -> Json {
    const std::vector<std::vector<double>> lists = {{39, 2}, {3, 41}};
    const Value first = stage.per_replica({1, 3}),
                second = per_local_replica(stage, [&](int id) -> Value {
                  return stage.tensor(stage.device(id), {2}, lists.at(static_cast<std::size_t>(id)));
                });
    const Value result = stage.strategy.run([op](const Value::Parts& x) { return replica().all_reduce(op, x.front()); },
                                            {Value::tuple({first, second})});
    return {{"first", stage.locals(result.parts()[0])}, {"second", stage.locals(result.parts()[1])}};
  });
}

CaseFunction all_reduce_of_one(ReduceOp op, double number, std::vector<double> list) {
  return staged([op, number, list](Stage& stage) -> Json {
    return {{"value", stage.json(on_first(stage, [&] {
               const Value pair = Value::tuple(
                   {stage.tensor(replica().device(), Shape{}, {number}), stage.tensor(replica().device(), {2}, list)});
               return replica().all_reduce(op, pair);
             }))}};
  });
}

const bool added = add_cases({
    {"red-009", staged([](Stage& stage) -> Json {
       const auto v = stage.var(3);
       const Value mean = stage.strategy.extended().reduce_to(kMean, v, v);
       return {{"mean", {{"is_v", mean.is_identical(v)}, {"value", stage.json(mean)}}},
               {"sum", error_of([&] { stage.strategy.extended().reduce_to(kSum, v, v); })}};
     })},
    {"red-024", staged_together(
                    [](Stage& stage) {
                      const Tensor plain = stage.tensor(stage.worker.cpu(), Shape{}, {1});
                      return stage.json(stage.strategy.reduce(kSum, plain));
                    },
                    [](const Json& all) {
                      return Json{{"value_on_every_worker", common(all)}};
                    })},
    {"red-025", staged_together(
                    [](Stage& stage) {
                      const Value t = stage.tensor(stage.worker.cpu(), Shape{}, {1});
                      Json results = Json::array();
                      for (const Value& value : stage.strategy.extended().batch_reduce_to(kSum, {{t, t}, {t, t}})) {
                        results.push_back(stage.json(value));
                      }
                      return results;
                    },
                    [](const Json& all) {
                      return Json{{"value_on_every_worker", common(all)}};
                    })},
    {"red-026", staged_together([](Stage& stage) -> Json {
       const Value v = stage.strategy.run(
           [&](const Value::Parts&) -> Value { return stage.tensor(replica().device(), Shape{}, {1}); });
       return {{"reduce", stage.json(stage.strategy.reduce(kSum, v))},
               {"reduce_to", stage.json(stage.strategy.extended().reduce_to(kSum, v, v))}};
     })},
    {"red-027", staged([](Stage& stage) -> Json {
       const Value r = stage.strategy.run([](const Value::Parts&) { return Value(static_cast<double>(replica_id())); });
       return {{"value", stage.json(stage.strategy.reduce(kSum, r))}};
     })},
    {"red-030-mean", nested_all_reduce(kMean)},
    {"red-030-sum", nested_all_reduce(kSum)},
    {"red-031-sum", staged([](Stage& stage) -> Json {
       const Value gradients = stage.strategy.run(
           [](const Value::Parts& c) {
             // y = all_reduce(SUM, x) * c: what comes back to the all-reduce is c.
             return replica().all_reduce_gradient(kSum, c.front());
           },
           {stage.per_replica({1, 3})});
       return {{"gradients", stage.locals(gradients)}};
     })},
    {"red-032", all_reduce_of_one(kSum, 4, {42, 43})},
    {"red-033", all_reduce_of_one(kMean, 2, {21, 22})},
    {"red-035", staged([](Stage& stage) -> Json {
       const Value result = on_first(stage, [&] {
         Device& device = replica().device();
         return replica().all_reduce(kSum,
                                     Value::tuple({stage.tensor(device, Shape{}, {1}), one_row(stage, device, 0, 1),
                                                   stage.tensor(device, Shape{}, {2}), one_row(stage, device, 1, 2)}));
       });
       Json all = Json::array();
       for (const Value& part : result.parts()) all.push_back(dense_json(stage, part));
       return {{"structure", name_of(result.kind())}, {"dense", all}};
     })},
    {"red-036", staged([](Stage& stage) -> Json {
       const Value result = on_first(stage, [&] {
         Device& device = replica().device();
         return replica().all_reduce(kSum, Value::list({one_row(stage, device, 0, 1), one_row(stage, device, 0, 2)}));
       });
       Json row0 = Json::array();
       for (const Value& part : result.parts()) row0.push_back(dense_json(stage, part)[0][0]);
       return {{"dense_row0", row0}};
     })},
    {"red-038", staged([](Stage& stage) -> Json {
       const auto v = stage.var(2, Stage::Aggregation::mean, Stage::Synchronization::on_write);
       const Value result = stage.strategy.run(
           [&](const Value::Parts&) -> Value { return plus(replica().all_reduce("SUM", v).tensor(), replica_id()); });
       return {{"per_replica", stage.locals(result)}};
     })},
    {"red-040", staged([](Stage& stage) -> Json {
       const Value v = stage.per_replica({1, 2});
       const std::vector<std::string> list = {"/CPU:0"};
       return {{"list_destination", error_of([&] { stage.strategy.extended().reduce_to(kSum, v, list); })},
               {"aggregation_as_op", refused_by_the_compiler<ReduceOp, VariableAggregation>()}};
     })},
    {"red-x09", staged_together([](Stage& stage) {
       const double number = 1 + 2 * stage.worker.task();
       const Tensor plain = stage.tensor(stage.worker.cpu(), Shape{}, {number});
       const Value slices = one_row(stage, stage.worker.cpu(), stage.worker.task(), number);
       return Json{{"tensor", stage.json(stage.strategy.reduce(kMean, plain))},
                   {"number", stage.json(stage.strategy.reduce(kMean, number))},
                   {"slices", stage.json(stage.strategy.reduce(kMean, slices))},
                   {"argument_is_kept", host_number(stage.worker, plain) == number}};
     })},
    {"red-x10", in_groups([](Stage& stage) {
       const int first = stage.strategy.extended().first_replica_id();
       const Value small = per_local_replica(
           stage, [&](int id) -> Value { return stage.tensor(stage.device(id - first), Shape{}, {id + 1.0}); });
       const Value rows = per_local_replica(
           stage, [&](int id) -> Value { return one_row(stage, stage.device(id - first), id % 2, id + 1.0); });
       const std::vector<Value> results = stage.strategy.extended().batch_reduce_to(
           kMean,
           {{rows, "/CPU:0"}, {small, stage.strategy.extended().worker_devices()}, {rows, rows}, {small, "/CPU:0"}});
       Json list = Json::array();
       for (std::size_t i = 0; i < stage.strategy.extended().worker_devices().size(); ++i) {
         Json one = Json::array();
         for (const Value& result : results) {
           const Json locals = stage.locals(result);  // one of a value on the processor
           one.push_back(locals[locals.size() == 1 ? 0 : i]);
         }
         list.push_back(one);
       }
       return list;
     })},
    {"red-x11", in_groups(
                    [](Stage& stage) {
                      const Value result = stage.strategy.run([&](const Value::Parts&) {
                        const Value mine = stage.tensor(replica().device(), Shape{}, {replica_id() + 1.0});
                        const Value sum = replica().all_reduce("sum", mine);
                        return Value::tuple({sum, replica().all_reduce("Mean", mine), mine});
                      });
                      return stage.locals(result);
                    },
                    [](const Json& all) {
                      return Json{{"per_replica", all}};
                    })},
});

}  // namespace
}  // namespace tandem::reduce_to_cases
