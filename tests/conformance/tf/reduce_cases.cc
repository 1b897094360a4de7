// Area "reduce": Strategy::reduce, with and without axes.
#include "strategies/input/input_context.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::reduce_cases {
namespace {

constexpr auto kSum = ReduceOp::sum;
constexpr auto kMean = ReduceOp::mean;

Tensor vector_on(const Stage& stage, Device& device, const std::vector<double>& values, DType dtype = DType::f32) {
  return stage.tensor(device, {static_cast<std::int64_t>(values.size())}, values, dtype);
}

Json reduced(const Stage& stage, ReduceOp op, const Value& value, const std::optional<Axes>& axes = std::nullopt) {
  return stage.json(stage.strategy.reduce(op, value, axes));
}

Json error_of_reduce(const Stage& stage, ReduceOp op, const Value& value, const std::optional<Axes>& axes) {
  return error_of([&] { stage.strategy.reduce(op, value, axes); });
}

// Replica i holds the i-th vector.
Value vectors(const Stage& stage, const std::vector<std::vector<double>>& of) {
  return stage.strategy.run([&](const Value::Parts&) -> Value {
    return vector_on(stage, replica().device(), of.at(static_cast<std::size_t>(replica_id())));
  });
}

// Replica i holds i + 1 times i.
Value as_many_as_the_id(const Stage& stage, DType dtype = DType::f32) {
  return stage.strategy.run([&](const Value::Parts&) -> Value {
    const std::vector<double> copies(static_cast<std::size_t>(replica_id() + 1), replica_id());
    return vector_on(stage, replica().device(), copies, dtype);
  });
}

Json sum_and_mean(const Stage& stage, const Value& value, const Axes& axes) {
  return {{"sum", reduced(stage, kSum, value, axes)}, {"mean", reduced(stage, kMean, value, axes)}};
}

// Replica i holds 1 + 4i .. 4 + 4i.
Value matrices(const Stage& stage) {
  return stage.strategy.run([&](const Value::Parts&) -> Value {
    const double first = 1 + 4 * replica_id();
    return stage.tensor(replica().device(), {2, 2}, {first, first + 1, first + 2, first + 3});
  });
}

CaseFunction unevenly_filled(DType dtype = DType::f32) {
  return staged([dtype](Stage& stage) { return sum_and_mean(stage, as_many_as_the_id(stage, dtype), 0); });
}

CaseFunction ones_in_and_outside_scope() {
  return staged([](Stage& stage) -> Json {
    const Value ones =
        stage.strategy.experimental_distribute_values_from_function([](const ValueContext&) { return Value(1.0); });
    const Json outside = reduced(stage, kSum, ones);
    const Scope scope = stage.strategy.scope();
    return {{"inside", reduced(stage, kSum, ones)}, {"outside", outside}};
  });
}

const bool added = add_cases({
    {"red-011", staged([](Stage& stage) -> Json {
       const Value r = stage.strategy.run(
           [](const Value::Parts& x) {
             return Value::tuple({x.front().number() + 1, x.front().number() - 1});
           },
           {Value(3.0)});
       return {{"value", stage.json(stage.strategy.reduce("SUM", r))}};
     })},
    {"red-012-float32", unevenly_filled()},
    {"red-013", unevenly_filled()},
    {"red-014", unevenly_filled()},
    {"red-015", staged([](Stage& stage) -> Json {
       const Tensor x = stage.tensor(stage.device(0), {2, 2}, {1, 2, 3, 4});
       return {{"none", reduced(stage, kMean, x)},
               {"axis0", reduced(stage, kMean, x, 0)},
               {"axis01", reduced(stage, kMean, x, Axes{0, 1})}};
     })},
    {"red-018", staged([](Stage& stage) -> Json {
       return {{"value", reduced(stage, kMean, vectors(stage, {{1, 2, 3, 4}, {5, 6}}), 0)}};
     })},
    {"red-019", staged([](Stage& stage) {
       return sum_and_mean(stage, vectors(stage, {{5, 7}, {}}), 0);
     })},
    {"red-020", staged([](Stage& stage) -> Json {
       const Value value = per_local_replica(stage, [&](int id) -> Value {
         return stage.tensor(stage.device(id), {2, 3}, {1, 2, 3, 4, 5, 6});
       });
       return {{"axis_2", error_of_reduce(stage, kMean, value, 2)},
               {"axis_minus_3", error_of_reduce(stage, kMean, value, -3)},
               {"axis_text", refused_by_the_compiler<Axes, const char*>()}};
     })},
    {"red-021", staged([](Stage& stage) -> Json {
       const Value value = matrices(stage);
       return {{"axis_minus_1", reduced(stage, kMean, value, -1)},
               {"axis_01", reduced(stage, kMean, value, Axes{0, 1})}};
     })},
    {"red-022-1", ones_in_and_outside_scope()},
    {"red-022-2", ones_in_and_outside_scope()},
    {"red-022-4", ones_in_and_outside_scope()},
    {"red-023-4", staged([](Stage& stage) {
       return sum_and_mean(stage, vectors(stage, {{1, 2}, {1, 2}, {1, 2}, {1, 2}}), 0);
     })},
    {"red-x01", in_groups([](Stage& stage) -> Json {
       const Value value = per_local_replica(stage, [&](int id) -> Value {
         Device& device = stage.device(id - stage.strategy.extended().first_replica_id());
         return vector_on(stage, device, std::vector<double>(static_cast<std::size_t>(id), id));
       });
       return Json::array({sum_and_mean(stage, value, 0)});
     })},
    {"red-x02", staged([](Stage& stage) -> Json {
       const Value value = stage.strategy.run([&](const Value::Parts&) {
         const Value tensor = vector_on(stage, replica().device(), {1.0 + replica_id(), 10});
         return Value::map({{"pair", Value::tuple({tensor, Value(2.0 * replica_id())})}, {"one", Value(5.0)}});
       });
       return reduced(stage, kSum, value);
     })},
    {"red-x03", staged([](Stage& stage) -> Json {
       const Value value = matrices(stage);
       return {{"minus_2", sum_and_mean(stage, value, -2)}, {"both", sum_and_mean(stage, value, Axes{-1, 0})}};
     })},
    {"red-x04", unevenly_filled(DType::i32)},
    {"red-x05", staged([](Stage& stage) -> Json {
       const Tensor shared = vector_on(stage, stage.worker.cpu(), {1, 2});
       return {{"axis_0", sum_and_mean(stage, shared, 0)},
               {"mean_without_axis", reduced(stage, kMean, shared)},
               {"sum_without_axis", error_of_reduce(stage, kSum, shared, std::nullopt)}};
     })},
    {"red-x06", staged([](Stage& stage) -> Json {
       const auto v = stage.var(std::vector<double>{1, 2, 6});
       return {{"axis_0", sum_and_mean(stage, v, 0)},
               {"mean_without_axis", reduced(stage, kMean, v)},
               {"sum_without_axis", error_of_reduce(stage, kSum, v, std::nullopt)}};
     })},
    {"red-x07", staged([](Stage& stage) -> Json {
       return {{"axis_twice", error_of_reduce(stage, kSum, matrices(stage), Axes{0, -2})},
               {"number_with_axis", error_of_reduce(stage, kMean, Value(1.0), 0)},
               {"literal_zero", reduced(stage, kSum, Value::literal(0))},
               {"literal_one", error_of_reduce(stage, kSum, Value::literal(1), std::nullopt)}};
     })},
    {"red-x08", staged([](Stage& stage) -> Json {
       const Value value = stage.strategy.run([&](const Value::Parts&) -> Value {
         return stage.slices(replica().device(), {1}, {1, 2}, {2.0, 4.0 + 4 * replica_id()}, {5, 2});
       });
       return {{"sum", reduced(stage, kSum, value)}, {"mean", reduced(stage, kMean, value)}};
     })},
});

}  // namespace
}  // namespace tandem::reduce_cases
