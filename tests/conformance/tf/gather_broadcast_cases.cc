// Area "gather-broadcast": gather, all_gather, their errors and gradients, and broadcast_to.
#include "strategies/cross_device/host_values.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::gather_broadcast_cases {
namespace {

Device& device_of(const Stage& stage, int replica_id) {
  return stage.device(replica_id - stage.strategy.extended().first_replica_id());
}

Tensor ones(const Stage& stage, Device& device, const Shape& shape) {
  return stage.tensor(device, shape, std::vector<double>(static_cast<std::size_t>(shape.element_count()), 1));
}

// What gather() and, in a replica context, all_gather() make of one value per replica.
Json gathered(const Stage& stage, const Value& value, int axis) {
  const Value in_replicas =
      stage.strategy.run([axis](const Value::Parts& x) { return replica().all_gather(x.front(), axis); }, {value});
  return {{"gather", stage.json(stage.strategy.gather(value, axis))},
          {"all_gather_on_every_replica", common(stage.locals(in_replicas))}};
}

CaseFunction equal_parts(const Shape& shape, std::vector<double> values, int axis) {
  return staged([shape, values = std::move(values), axis](Stage& stage) {
    const Value value =
        per_local_replica(stage, [&](int id) -> Value { return stage.tensor(device_of(stage, id), shape, values); });
    return gathered(stage, value, axis);
  });
}

// Replica i holds ones of the shape given for it.
Value ones_of(const Stage& stage, const std::function<Shape(int replica_id)>& shape) {
  return per_local_replica(stage, [&](int id) -> Value { return ones(stage, device_of(stage, id), shape(id)); });
}

Json shape_json(const Tensor& tensor) {
  const auto dimensions = tensor.shape().dimensions();
  return std::vector<std::int64_t>(dimensions.begin(), dimensions.end());
}

Json gathered_ones(Stage& stage, const std::function<Shape(int)>& shape, int axis) {
  const Tensor whole = stage.strategy.gather(ones_of(stage, shape), axis).tensor();
  bool all_ones = true;
  for (const double value : host_values(stage.worker, whole)) all_ones = all_ones && value == 1;
  return {{"shape", shape_json(whole)}, {"all_ones", all_ones}};
}

Shape rows(int id) {
  return {id + 1, 1};
}
Shape columns(int id) {
  return {1, id + 1};
}

// x = [[3], [5]] on every replica, y = all_gather(x, axis 1) * (i + 1) on replica i: dy/dx.
CaseFunction gradient() {
  return staged([](Stage& stage) -> Json {
    const Value result = stage.strategy.run([&](const Value::Parts&) -> Value {
      const Tensor x = stage.tensor(replica().device(), {2, 1}, {3, 5});
      const Tensor all = replica().all_gather(x, 1).tensor();
      const Tensor dy = times(ones(stage, replica().device(), all.shape()), replica_id() + 1);
      return replica().all_gather_gradient(dy, 1, x.shape()[1]);
    });
    return {{"gradient_on_every_replica", common(stage.locals(result))}};
  });
}

// Replica i holds i + 1 columns of 10 * i + column, in each of two rows.
Value ragged(const Stage& stage) {
  return per_local_replica(stage, [&](int id) -> Value {
    std::vector<double> values;
    for (int i = 0; i < 2 * (id + 1); ++i) values.push_back(10 * id + i % (id + 1));
    return stage.tensor(device_of(stage, id), {2, id + 1}, values);
  });
}

Json as_list(const Json& one, const Stage& stage) {
  return std::vector<Json>(stage.strategy.extended().worker_devices().size(), one);
}

const bool added = add_cases({
    {"gat-1d0axis", equal_parts({3}, {1, 2, 3}, 0)},
    {"gat-2d0axis", equal_parts({1, 3}, {1, 2, 3}, 0)},
    {"gat-2d1axis", equal_parts({1, 3}, {1, 2, 3}, 1)},
    {"gat-3d0axis", equal_parts({1, 2, 2}, {1, 2, 1, 2}, 0)},
    {"gat-3d2axis", equal_parts({1, 2, 2}, {1, 2, 1, 2}, 2)},
    {"gat-ctx", staged([](Stage& stage) {
       return error_of(
           [&] { run_each(stage, [&] { stage.strategy.gather(ones(stage, replica().device(), {1}), 0); }); });
     })},
    {"gat-diff0", staged([](Stage& stage) { return gathered_ones(stage, rows, 0); })},
    {"gat-diff1", staged([](Stage& stage) { return gathered_ones(stage, columns, 1); })},
    {"gat-diff4", staged_together([](Stage& stage) { return gathered_ones(stage, rows, 0); })},
    {"gat-err1",
     staged([](Stage& stage) { return error_of([&] { stage.strategy.gather(ones_of(stage, columns), 0); }); })},
    {"gat-err2", staged([](Stage& stage) -> Json {
       const Value sparse = per_local_replica(stage, [&](int id) -> Value {
         return stage.slices(device_of(stage, id), {0}, {1, 1}, {1}, {5, 1});
       });
       const Json in_replicas = error_of([&] {
         stage.strategy.run([](const Value::Parts& x) { return replica().all_gather(x.front(), 0); }, {sparse});
       });
       return {{"each", {error_of([&] { stage.strategy.gather(sparse, 0); }), in_replicas}}};
     })},
    {"gat-grad-2", gradient()},
    {"gat-grad-4", gradient()},
    {"gat-x01",
     in_groups([](Stage& stage) { return as_list(stage.json(stage.strategy.gather(ragged(stage), 1)), stage); })},
    {"gat-x02", in_groups([](Stage& stage) {
       return stage.locals(stage.strategy.run([](const Value::Parts& x) { return replica().all_gather(x.front(), 1); },
                                              {ragged(stage)}));
     })},
    {"gat-x03", in_groups(
                    [](Stage& stage) {
                      // Replica i scales what it gathered by i + 1, and element e of it by e + 1.
                      return stage.locals(stage.strategy.run([&](const Value::Parts&) -> Value {
                        const std::int64_t mine = replica_id() + 1;
                        const Tensor all = replica().all_gather(ones(stage, replica().device(), {mine}), 0).tensor();
                        std::vector<double> dy;
                        for (int e = 0; e < all.shape()[0]; ++e) dy.push_back((replica_id() + 1) * (e + 1));
                        const Tensor gradient = stage.tensor(replica().device(), all.shape(), dy);
                        return replica().all_gather_gradient(gradient, 0, mine);
                      }));
                    },
                    [](const Json& all) {
                      return Json{{"per_replica", all}};
                    })},
    {"gat-x04", in_groups([](Stage& stage) {
       const Json other_shape = error_of([&] { stage.strategy.gather(ones_of(stage, columns), 0); });
       const Json other_rank = error_of([&] {
         stage.strategy.gather(ones_of(stage, [](int id) { return id == 0 ? Shape{1} : Shape{1, 1}; }), 0);
       });
       const Json no_axis = error_of([&] { stage.strategy.gather(ones_of(stage, rows), 2); });
       return as_list(
           {{"other_shape", other_shape["error"]}, {"other_rank", other_rank["error"]}, {"no_axis", no_axis["error"]}},
           stage);
     })},
    {"gat-x05", in_groups([](Stage& stage) {
       const auto shape = [](int id) { return Shape{id % 2 == 0 ? 0 : id, 2}; };
       return as_list(gathered_ones(stage, shape, 0), stage);
     })},
    {"gat-x06", staged([](Stage& stage) -> Json {
       const Value x = ones(stage, stage.device(0), {2});
       return {{"gather_is_x", stage.strategy.gather(x, 0).is_identical(x)},
               {"nested", stage.json(stage.strategy.run([&](const Value::Parts&) {
                  return replica().all_gather(Value::list({x, Value::tuple({x})}), 0);
                }))}};
     })},
    {"bro-x01", staged([](Stage& stage) -> Json {
       StrategyExtended& extended = stage.strategy.extended();
       const auto v = stage.var(0);
       const Value t = stage.tensor(stage.worker.cpu(), Shape{}, {7});
       const Value copies = extended.broadcast_to(t, v);
       const std::vector<std::string> list = {"/CPU:0"};
       return {{"number", stage.json(extended.broadcast_to(3.0, v))},
               {"kind", name_of(copies.kind())},
               {"copies", stage.json(copies)},
               {"no_destination", error_of([&] { extended.broadcast_to(t, {}); })},
               {"list", error_of([&] { extended.broadcast_to(t, list); })}};
     })},
});

}  // namespace
}  // namespace tandem::gather_broadcast_cases
