// Area "cross-device-ops": the implementations within one worker, and the arithmetic they share.
#include <algorithm>

#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/cross_device/reduction_to_one_device.h"
#include "strategies/types/mirrored.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::cross_device_ops_cases {
namespace {

constexpr auto kSum = ReduceOp::sum;
constexpr auto kMean = ReduceOp::mean;

using MadeOps = std::unique_ptr<CrossDeviceOps>;

std::vector<Device*> devices_at(const Stage& stage) {
  return stage.strategy.extended().worker_devices();
}

// Every implementation, without packing, in one pack, in several and by size.
std::vector<MadeOps> all_ops(const Stage& stage) {
  std::vector<DeviceId> group;
  for (const Device* device : devices_at(stage)) group.push_back(device->id());
  std::vector<MadeOps> all;
  for (const char* name : {"nccl", "collective", "hierarchical_copy", "reduction_to_one_device"}) {
    for (const Packing& packing : {Packing{.num_packs = 0}, Packing{.num_packs = 1}, Packing{.num_packs = 3},
                                   Packing{.num_packs = 0, .bytes_per_pack = 8}}) {
      all.push_back(make_cross_device_ops(name, stage.worker, devices_at(stage), group, packing));
    }
  }
  return all;
}

Json of_all_ops(const Stage& stage, const std::function<Json(CrossDeviceOps& ops)>& steps) {
  Json all = Json::array();
  for (const MadeOps& ops : all_ops(stage)) all.push_back(steps(*ops));
  return common(all);
}

Json slices_json(const Stage& stage, const IndexedSlices& slices) {
  const Tensor whole = dense(slices);
  const Json rows = stage.json(whole);
  Json result = stage.json(slices);
  const auto dimensions = slices.dense_shape.dimensions();
  result["shape"] = std::vector<std::int64_t>(dimensions.begin(), dimensions.end());
  result["dense"] = rows;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const bool is_zero = std::all_of(rows[row].begin(), rows[row].end(), [](const Json& x) { return x == 0.0; });
    if (!is_zero) result["dense_rows"][std::to_string(row)] = rows[row];
  }
  return result;
}

Value two_slices(const Stage& stage) {
  return Value::per_replica({stage.slices(stage.device(0), {1}, {1, 2}, {1, 2}, {5, 2}),
                             stage.slices(stage.device(1), {1, 3}, {2, 2}, {3, 4, 5, 6}, {5, 2})});
}

// The kind of a mirrored result and its parts, which must all be the same.
Json mirrored_slices(const Stage& stage, const Value& result) {
  Json parts = Json::array();
  for (const Value& part : result.parts()) parts.push_back(slices_json(stage, part.slices()));
  Json one = common(parts);
  one["result_kind"] = name_of(result.kind());
  one["on_both_devices"] = devices_of(result) == devices_at(stage);
  return one;
}

// Reductions and broadcasts to every kind of destination, and what they all come to.
class ToEveryDestination {
 public:
  ToEveryDestination(const Stage& stage, CrossDeviceOps& ops) : stage_(stage), ops_(ops) {
    const Value zeros = stage.per_replica({0, 0});
    destinations_ = {Value::mirrored(zeros.parts()), Value::mirrored({stage.tensor(stage.worker.cpu(), Shape{}, {0})}),
                     "/device:CPU:0"};
  }

  Json outcome() {
    const Value a = stage_.per_replica({0, 1}), b = stage_.per_replica({1, 2});
    Json result = {{"mean", {reduced(kMean, a), reduced(kMean, b)}},
                   {"sum", {reduced(kSum, a), reduced(kSum, b)}},
                   {"batch_mean", batch(kMean, a, b)},
                   {"batch_sum", batch(kSum, a, b)},
                   {"broadcast", broadcast()}};
    result["mirrored_over_exactly_the_destinations"] = is_mirrored_;
    return result;
  }

 private:
  Json value_of(const Value& result, const Destinations& destinations) {
    is_mirrored_ =
        is_mirrored_ && result.is(ValueKind::mirrored) && devices_of(result) == destinations.resolve(stage_.worker);
    return common(stage_.json(result));
  }

  Json reduced(ReduceOp op, const Value& value) {
    Json all = Json::array();
    for (const Destinations& to : destinations_) all.push_back(value_of(ops_.reduce(op, value, to), to));
    return common(all);
  }

  Json batch(ReduceOp op, const Value& a, const Value& b) {
    Json all = Json::array();
    for (const Destinations& to_a : destinations_) {
      for (const Destinations& to_b : destinations_) {
        const std::vector<Value> results = ops_.batch_reduce(op, {{a, to_a}, {b, to_b}});
        all.push_back({value_of(results.at(0), to_a), value_of(results.at(1), to_b)});
      }
    }
    return common(all);
  }

  Json broadcast() {
    Json all = Json::array();
    const Value one = stage_.tensor(stage_.worker.cpu(), Shape{}, {1});
    for (const Destinations& to : destinations_) all.push_back(value_of(ops_.broadcast(one, to), to));
    return common(all);
  }

  const Stage& stage_;
  CrossDeviceOps& ops_;
  std::vector<Destinations> destinations_;
  bool is_mirrored_ = true;
};

Json kinds_of_parts(const Stage& stage, CrossDeviceOps& ops, const std::shared_ptr<Variable>& v) {
  Json kinds = Json::array(), values = Json::array();
  for (const Value& result : {ops.reduce(kMean, v, v), ops.batch_reduce(kMean, {{v, v}}).front()}) {
    for (const Value& part : result.parts()) kinds.push_back(name_of(part.kind()));
    values.push_back(stage.json(result));
  }
  return {{"component_kind", common(kinds)}, {"values", common(values)}};
}

// Two large and three small tensors of two element types, replica i's filled with i + 1 + their place.
std::vector<ReducePair> assorted(const Stage& stage) {
  std::vector<ReducePair> pairs;
  for (const std::int64_t size : {7, 1, 30, 2, 1}) {
    const DType dtype = pairs.size() == 1 ? DType::f64 : DType::f32;
    Value::Parts parts;
    for (Device* device : devices_at(stage)) {
      const double value = static_cast<double>(parts.size() + 1 + pairs.size());
      const std::vector<double> filled(static_cast<std::size_t>(size), value);
      parts.emplace_back(stage.tensor(*device, {size}, filled, dtype));
    }
    pairs.emplace_back(Value::per_replica(parts), devices_at(stage));
  }
  return pairs;
}

CaseFunction assorted_sums() {
  return staged([](Stage& stage) {
    return of_all_ops(stage, [&](CrossDeviceOps& ops) {
      Json firsts = Json::array();
      for (const Value& result : ops.batch_reduce(kSum, assorted(stage))) {
        firsts.push_back(common(common(stage.json(result))));
      }
      return firsts;
    });
  });
}

Json error_of_making(const Stage& stage, const char* name, int num_packs) {
  std::vector<DeviceId> group = {stage.device(0).id()};
  return error_of(
      [&] { make_cross_device_ops(name, stage.worker, {&stage.device(0)}, group, Packing{.num_packs = num_packs}); });
}

// Sums on the first device, and counts the calls.
class CountedOps final : public CrossDeviceOps {
 public:
  CountedOps(Worker& worker, std::vector<Device*> devices) : CrossDeviceOps(worker, std::move(devices)) {}
  std::string_view name() const override { return "nccl"; }
  int calls = 0;

 private:
  void sum_in_place(const std::vector<TensorGroup>& groups) override {
    ++calls;
    for (const TensorGroup& group : groups) {
      for (std::size_t d = 1; d < group.size(); ++d) {
        order_after(0, d);
        add_from_peer(0, group[0], group[d]);
      }
      for (std::size_t d = 1; d < group.size(); ++d) {
        copy_to_peer(d, group[d], 0, group[0]);
        order_after(0, d);
      }
    }
  }
};

// Which operations a Mirrored strategy uses for a variable of the type: those that it was given, or its own for others.
std::string ops_used_for(const Stage& stage, DType dtype) {
  const auto given = std::make_shared<CountedOps>(stage.worker, devices_at(stage));
  MirroredStrategy strategy(stage.worker, devices_at(stage), given);
  const Stage of_given(stage.worker, strategy, stage.spec);
  const auto v = of_given.var(1, VariableAggregation::sum, VariableSynchronization::automatic, dtype);
  run_each(of_given, [&] { v->assign_add(stage.tensor(replica().device(), Shape{}, {2.0 + replica_id()}, dtype)); });
  if (of_given.components(*v) != Json({6.0, 6.0})) return "ops that add wrongly";
  return given->calls > 0 ? "the given ones" : "ReductionToOneDevice";
}

// Reduces a pair of values of these types in one batch.
Json batch_of(const Stage& stage, DType first, DType second) {
  const auto value = [&](DType dtype) {
    return Value::per_replica(
        {stage.tensor(stage.device(0), {1}, {1}, dtype), stage.tensor(stage.device(1), {1}, {2}, dtype)});
  };
  return error_of([&] {
    stage.strategy.extended().batch_reduce_to(kSum,
                                              {{value(first), devices_at(stage)}, {value(second), devices_at(stage)}});
  });
}

const bool added = add_cases({
    {"xdo-002", staged([](Stage& stage) {
       ReductionToOneDevice ops(stage.worker, devices_at(stage), {}, &stage.worker.cpu());
       return ToEveryDestination(stage, ops).outcome();
     })},
    {"xdo-007", staged([](Stage& stage) {
       std::vector<IndexedSlices> both;
       const Value value = two_slices(stage);
       for (const Value& part : value.parts()) both.push_back(part.slices());
       return slices_json(stage, concatenated(stage.worker.cpu(), both));
     })},
    {"xdo-008-sum", staged([](Stage& stage) {
       return of_all_ops(stage, [&](CrossDeviceOps& ops) {
         return mirrored_slices(stage, ops.reduce(kSum, two_slices(stage), devices_at(stage)));
       });
     })},
    {"xdo-008-sum-batch", staged([](Stage& stage) {
       return of_all_ops(stage, [&](CrossDeviceOps& ops) {
         return mirrored_slices(stage, ops.batch_reduce(kSum, {{two_slices(stage), devices_at(stage)}}).front());
       });
     })},
    {"xdo-009", staged([](Stage& stage) {
       const auto v = stage.var(1);
       return of_all_ops(stage, [&](CrossDeviceOps& ops) { return kinds_of_parts(stage, ops, v); });
     })},
    {"xdo-util-002", staged([](Stage& stage) -> Json {
       Device& device = stage.device(0);
       const Value total = concatenated(device, {stage.slices(device, {0, 1, 2}, {3, 2}, {1, 2, 0, 0, 3, 4}, {3, 2}),
                                                 stage.slices(device, {0, 1, 2}, {3, 2}, {0, 0, 5, 6, 7, 8}, {3, 2})});
       return {{"kind", name_of(total.kind())}, {"dense", stage.json(dense(total.slices()))}};
     })},
    {"xdo-util-003", staged([](Stage& stage) -> Json {
       Device& device = stage.device(0);
       const Value t = stage.tensor(device, {3, 2}, {1, 2, 0, 0, 3, 4});
       const Value zeros = stage.tensor(device, {3, 2}, std::vector<double>(6));
       ReductionToOneDevice ops(stage.worker, {&device}, {});
       return {{"value", common(stage.json(ops.reduce(kMean, Value::per_replica({t, zeros}), device)))}};
     })},
    {"xdo-val-001", staged([](Stage& stage) -> Json {
       ReductionToOneDevice ops(stage.worker, devices_at(stage), {});
       const Value v = stage.per_replica({1, 2});
       return {{"each",
                {error_of([&] { ops.reduce(kSum, v, Value(5.0)); }), error_of([&] { ops.reduce(kSum, v, {}); }),
                 refused_by_the_compiler<std::vector<ReducePair>, Value>(),
                 refused_by_the_compiler<std::vector<ReducePair>, std::vector<Value>>()}}};
     })},
    {"xdo-val-003", staged([](Stage& stage) -> Json {
       const Json first = error_of_making(stage, "nccl", -1), second = error_of_making(stage, "hierarchical_copy", -1);
       return {{"first_two", common({first, second})},
               {"third", error_of_making(stage, "nccl", 0).is_null() ? "ok" : "refused"}};
     })},
    {"xdo-019", staged([](Stage& stage) -> Json {
       if (ops_used_for(stage, DType::f32) != "the given ones") return {{"ops", "not the given ones for f32"}};
       return {{"ops", ops_used_for(stage, DType::i32)}};
     })},
    {"xdo-val-004", staged([](Stage& stage) -> Json {
       for (const DType alone : {DType::i32, DType::f32}) {
         if (const Json error = batch_of(stage, alone, alone); !error.is_null()) return {{"alone", error}};
       }
       return batch_of(stage, DType::i32, DType::f32);
     })},
    {"xdo-ops-x01", staged([](Stage& stage) {
       return of_all_ops(stage, [&](CrossDeviceOps& ops) { return ToEveryDestination(stage, ops).outcome(); });
     })},
    {"xdo-ops-x02", assorted_sums()},
    {"xdo-ops-x05", assorted_sums()},
    {"xdo-ops-x06", assorted_sums()},
    {"xdo-ops-x03", staged([](Stage& stage) {
       return of_all_ops(stage, [&](CrossDeviceOps& ops) {
         return mirrored_slices(stage, ops.reduce(kMean, two_slices(stage), devices_at(stage)));
       });
     })},
    {"xdo-ops-x04", staged([](Stage& stage) -> Json {
       ReductionToOneDevice ops(stage.worker, devices_at(stage), {}, &stage.device(1));
       const Value wrong =
           Value::per_replica({stage.tensor(stage.device(0), {1}, {1}), stage.tensor(stage.device(1), {2}, {1, 2})});
       return {{"shapes", error_of([&] { ops.reduce(kSum, wrong, devices_at(stage)); })},
               {"text", error_of([&] { ops.reduce(kSum, Value(std::string("a")), "/CPU:0"); })},
               {"empty", error_of([&] { ops.reduce(kSum, Value::per_replica({}), "/CPU:0"); })},
               {"unknown_device", error_of([&] {
                  ops.reduce(kSum, stage.per_replica({1, 2}), "/CPU");
                })},
               {"afterwards", stage.json(ops.reduce(kSum, stage.per_replica({1, 2}), devices_at(stage)))}};
     })},
});

}  // namespace
}  // namespace tandem::cross_device_ops_cases
