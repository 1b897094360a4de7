// Area "parameter-server-v2": sharded variables by themselves.
#include "strategies/cross_device/host_values.h"
#include "tests/conformance/tf/shards.h"

namespace tandem::sharded_variable_cases {
namespace {

// [[0,0]], [[1,1],[2,2]], [[3,3]]
ShardedVariable three_shards(const Stage& stage) {
  return ShardedVariable(
      {shard(stage, {1, 2}, {0, 0}), shard(stage, {2, 2}, {1, 1, 2, 2}), shard(stage, {1, 2}, {3, 3})});
}

const bool added = add_cases({
    {"shd-004", staged([](Stage& stage) -> Json {
       ShardedVariable v = three_shards(stage);
       ShardedVariable& r = v.assign(stage.tensor(stage.worker.cpu(), {4, 2}, {4, 4, 5, 5, 6, 6, 7, 7}));
       return {{"shards", shards_of(stage, v)}, {"returns", &r == &v ? "the sharded variable itself" : "another"}};
     })},
    {"shd-005", staged([](Stage& stage) -> Json {
       ShardedVariable v = three_shards(stage);
       v.assign_add(stage.tensor(stage.worker.cpu(), {4, 2}, {1, 1, 1, 1, 2, 2, 2, 2}));
       return {{"shards", shards_of(stage, v)}};
     })},
    {"shd-007", staged([](Stage& stage) -> Json {
       return {{"value", stage.json(three_shards(stage).concatenated_on(stage.worker.cpu()))}};
     })},
    {"shd-008", staged([](Stage& stage) -> Json {
       const auto make = [](const std::vector<std::shared_ptr<Variable>>& shards) {
         return error_of([&] { const ShardedVariable variable(shards); });
       };
       const auto of = [&](const Shape& shape, DType dtype = DType::f32) {
         return shard(stage, shape, std::vector<double>(static_cast<std::size_t>(shape.element_count())), dtype);
       };
       const Json none = make({}), with_none = make({of({1}), nullptr});
       return {{"first_three", none == with_none || none["error"] == with_none["error"] ? none : Json()},
               {"dtypes", make({of({1}, DType::i64), of({1}, DType::i32)})},
               {"shapes", make({of({5, 10}), of({5, 20})})}};
     })},
    {"shd-009", staged([](Stage& stage) -> Json {
       const ShardedVariable v(
           {shard(stage, {2, 2}, {1, 2, 3, 4}), shard(stage, {2, 2}, {5, 6, 7, 8}), shard(stage, {1, 2}, {9, 10})});
       return {{"value", stage.json(v.lookup(stage.worker.cpu(), {0, 3, 4}))}};
     })},
    {"shd-010", staged([](Stage& stage) -> Json {
       const auto zeros = [&](std::int64_t rows) {
         return shard(stage, {rows, 1}, std::vector<double>(static_cast<std::size_t>(rows)));
       };
       ShardedVariable v({zeros(11), zeros(11), zeros(10)});
       v.scatter(stage.worker, kernel::Scatter::add,
                 stage.slices(stage.worker.cpu(), {0, 10, 11, 12, 30, 31}, {6, 1}, {0, 1, 2, 3, 4, 5}, {32, 1}));
       const std::vector<double> rows = host_values(stage.worker, v.concatenated_on(stage.worker.cpu()));
       Json nonzero = Json::object();
       for (std::size_t i = 0; i < rows.size(); ++i) {
         if (rows[i] != 0) nonzero[std::to_string(i)] = rows[i];
       }
       return {{"nonzero_rows", nonzero}};
     })},
});

}  // namespace
}  // namespace tandem::sharded_variable_cases
