// Area "cross-device-ops": reductions by collectives, within a worker and over several.
#include <algorithm>

#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::collective_cases {
namespace {

constexpr auto kSum = ReduceOp::sum;
constexpr auto kMean = ReduceOp::mean;

using ValueOnDevice = std::function<Value(Device& device, int rank)>;

std::vector<Device*> devices_at(const Stage& stage) {
  return stage.strategy.extended().worker_devices();
}

std::unique_ptr<CrossDeviceOps> collective_of(const Stage& stage) {
  return make_cross_device_ops("collective", stage.worker, devices_at(stage), devices_in_sync(stage.worker), {});
}

Value on_each_device(const Stage& stage, const ValueOnDevice& make) {
  Value::Parts parts;
  for (Device* device : devices_at(stage)) {
    const int rank = stage.strategy.extended().first_replica_id() + static_cast<int>(parts.size());
    parts.push_back(make(*device, rank));
  }
  return Value::per_replica(std::move(parts));
}

Value dense_on_each(const Stage& stage, const std::vector<std::vector<double>>& by_rank) {
  return on_each_device(stage, [&](Device& device, int rank) -> Value {
    const std::vector<double>& values = by_rank.at(static_cast<std::size_t>(rank));
    return stage.tensor(device, values.size() == 1 ? Shape{} : Shape{static_cast<std::int64_t>(values.size())}, values);
  });
}

struct Rows {
  std::vector<double> values;
  std::vector<std::int64_t> indices;
};

IndexedSlices slices_on(const Stage& stage, Device& device, const Rows& rows, std::int64_t dense_rows = 10) {
  const auto count = static_cast<std::int64_t>(rows.indices.size());
  return stage.slices(device, rows.indices, {count, 1}, rows.values, {dense_rows, 1});
}

Value rows_on_each(const Stage& stage, const std::vector<Rows>& by_rank, std::int64_t dense_rows = 10) {
  return on_each_device(stage, [&](Device& device, int rank) -> Value {
    return slices_on(stage, device, by_rank.at(static_cast<std::size_t>(rank)), dense_rows);
  });
}

// Reduced on the devices themselves, alone and in a batch: a list with each device's.
Json reduced(const Stage& stage, ReduceOp op, const Value& value) {
  const auto ops = collective_of(stage);
  const Value alone = ops->reduce(op, value, value);
  const Value batched = ops->batch_reduce(op, {{value, value}, {value, value}}).back();
  const Json one = stage.json(alone), other = stage.json(batched);
  return one == other ? one : Json::array({one, other});
}

Json sums_and_means(const Stage& stage, const Value& value) {
  const Json sums = reduced(stage, kSum, value), means = reduced(stage, kMean, value);
  Json list = Json::array();
  for (std::size_t i = 0; i < sums.size(); ++i) list.push_back({{"SUM", sums[i]}, {"MEAN", means.at(i)}});
  return list;
}

Json on_every_device(const Json& list) {
  return {{"on_every_device", common(list)}};
}

CaseFunction dense_reduction(const std::vector<std::vector<double>>& by_rank) {
  return in_groups([by_rank](Stage& stage) { return sums_and_means(stage, dense_on_each(stage, by_rank)); },
                   on_every_device);
}

CaseFunction sparse_reduction(const std::vector<Rows>& by_rank, ReduceOp op = kSum) {
  return in_groups([by_rank, op](Stage& stage) { return reduced(stage, op, rows_on_each(stage, by_rank)); });
}

// What every replica's function gives, as a list with an element for each.
Json in_replicas(const Stage& stage, const std::function<Json(ReplicaContext& context)>& function) {
  Json list = Json::array();
  run_each(stage, [&] { list.push_back(function(replica())); });
  return list;
}

CaseFunction all_reduce_of_ones() {
  return in_groups([](Stage& stage) {
    return in_replicas(stage, [&](ReplicaContext& context) {
      Json result;
      for (const char* op : {"SUM", "MEAN"}) {
        const Value one = stage.tensor(context.device(), Shape{}, {1}),
                    two = stage.tensor(context.device(), Shape{}, {2});
        result[op] = {stage.json(context.all_reduce(op, one)),
                      stage.json(context.all_reduce(op, Value::tuple({one, two})))};
      }
      return result;
    });
  });
}

// A tensor's number, or {"row3": x, ...} of slices with one column.
Json dense_equivalent(const Stage& stage, const Value& value) {
  if (!value.is(ValueKind::sparse)) return stage.json(value);
  const Json column = stage.json(dense(value.slices()));
  Json rows = Json::object();
  for (std::size_t row = 0; row < column.size(); ++row) {
    if (column[row][0] != 0.0) rows["row" + std::to_string(row)] = column[row][0];
  }
  return rows;
}

Json mixed_all_reduce(const Stage& stage, ReplicaContext& context) {
  const auto slices = [&](double value, std::int64_t row) -> Value {
    return slices_on(stage, context.device(), {.values = {value}, .indices = {row}}, 5);
  };
  const auto number = [&](double value) -> Value { return stage.tensor(context.device(), Shape{}, {value}); };
  const Value sums = context.all_reduce(kSum, Value::tuple({slices(1, 0), number(1), slices(3, 2), number(2)}));
  Json equivalents = Json::array(), kinds = Json::array();
  for (const Value& part : sums.parts()) {
    equivalents.push_back(dense_equivalent(stage, part));
    kinds.push_back(name_of(part.kind()));
  }
  return {{"kinds", kinds}, {"dense_equivalents", equivalents}};
}

Json mixed_batch(Stage& stage) {
  const Rows a{.values = {1, 2}, .indices = {0, 1}}, b{.values = {3, 4}, .indices = {1, 2}};
  const Value one = dense_on_each(stage, {{1}, {3}}), two = dense_on_each(stage, {{2}, {4}});
  const Value sparse_a = rows_on_each(stage, {a, a}), sparse_b = rows_on_each(stage, {b, b}, 5);
  const std::vector<Value> results =
      collective_of(stage)->batch_reduce(kSum, {{one, one}, {two, two}, {sparse_a, sparse_a}, {sparse_b, sparse_b}});
  Json list = Json::array();
  for (std::size_t i = 0; i < devices_at(stage).size(); ++i) {
    Json in_order = Json::array();
    for (const Value& result : results) in_order.push_back(stage.json(result)[i]);
    list.push_back(in_order);
  }
  return list;
}

// Two tasks of one worker reduce batches on the same devices at the same time.
Json by_two_tasks(Stage& stage) {
  const auto ops = collective_of(stage);
  std::vector<Json> results(2);
  stage.worker.tasks().run_concurrently(2, [&](int task) {
    const double v = 1 + task;
    const Value value = dense_on_each(stage, {{v}, {v}});
    const std::vector<ReducePair> batch(5, ReducePair(value, value));
    std::vector<Value> reduced;
    for (int repeat = 0; repeat < 10; ++repeat) reduced = ops->batch_reduce(kSum, batch);
    Json all = Json::array();
    for (const Value& one : reduced) all.push_back(stage.json(one));
    results[static_cast<std::size_t>(task)] = common(all);
  });
  return {{"v0", results[0]}, {"v1", results[1]}, {"no_deadlock", true}};
}

const bool added = add_cases({
    {"xdo-col-ar-1", all_reduce_of_ones()},
    {"xdo-col-ar-2", all_reduce_of_ones()},
    {"xdo-col-ar-4", all_reduce_of_ones()},
    {"xdo-col-ar-mixed", in_groups([](Stage& stage) {
       return in_replicas(stage, [&](ReplicaContext& context) { return mixed_all_reduce(stage, context); });
     })},
    {"xdo-col-ar-sparse", in_groups([](Stage& stage) {
       return in_replicas(stage, [&](ReplicaContext& context) -> Json {
         const Value one = slices_on(stage, context.device(), {.values = {1}, .indices = {0}}, 5);
         return {{"SUM_dense_row0", dense_equivalent(stage, context.all_reduce(kSum, one))["row0"]},
                 {"MEAN_dense_row0", dense_equivalent(stage, context.all_reduce(kMean, one))["row0"]}};
       });
     })},
    {"xdo-col-batch-1", dense_reduction({{1, 2}})},
    {"xdo-col-dense-4", dense_reduction({{1}, {2}, {3}, {4}})},
    {"xdo-col-mixed", in_groups(mixed_batch,
                                [](const Json& list) {
                                  return Json{{"in_order", common(list)}};
                                })},
    {"xdo-col-sparse-2", sparse_reduction({{{1, 2}, {0, 1}}, {{3, 4}, {1, 2}}})},
    {"xdo-col-sparse-4", sparse_reduction({{{1, 2}, {0, 1}}, {{3, 4}, {1, 2}}, {{5, 6}, {7, 8}}, {{7, 8}, {3, 2}}})},
    {"xdo-col-sparse-var", sparse_reduction({{{1}, {0}}, {{2, 3, 4}, {0, 1, 2}}})},
    {"xdo-col-threads", staged(by_two_tasks)},
    {"xdo-col-x01", sparse_reduction({{{1}, {0}}, {{2, 3, 4}, {0, 1, 2}}, {{}, {}}, {{8}, {9}}}, kMean)},
    {"xdo-col-x02", dense_reduction({{1, 2}, {3, 4}, {5, 6}, {7, 8}})},
    {"xdo-col-x03", in_groups([](Stage& stage) {
       // The host and the devices in another order are destinations, too.
       const Value value = dense_on_each(stage, {{1}, {2}, {3}, {4}});
       const auto ops = collective_of(stage);
       std::vector<Device*> reversed = devices_at(stage);
       std::reverse(reversed.begin(), reversed.end());
       const Value host = ops->reduce(kMean, value, "/CPU:0"), others = ops->reduce(kSum, value, reversed);
       return std::vector<Json>(reversed.size(),
                                {{"host", stage.json(host)[0]}, {"reversed", common(stage.json(others))}});
     })},
});

}  // namespace
}  // namespace tandem::collective_cases
