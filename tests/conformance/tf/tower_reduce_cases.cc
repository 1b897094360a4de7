// 1.x: reductions, broadcasts and CrossTowerOps.
#include "strategies/strategy/default_strategy.h"
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_reduce_cases {
namespace {

constexpr auto kSum = VariableAggregation::sum;
constexpr auto kMean = VariableAggregation::mean;
const std::string kCpu = "/device:CPU:0";

Value identity(const Value::Parts& arguments) {
  return arguments.front();
}

Value indices_of_towers(TowerStage& stage) {
  return stage.towers.call_for_each_tower(identity, {stage.towers.worker_device_index()});
}

Json parts(TowerStage& stage, const Value& value) {
  const Json list = stage.unwrapped(value);
  return {{"length", list.size()}, {"value", list}};
}

Json old_methods(TowerStage& stage) {
  return {{"first", error_of([&] {
             stage.towers.reduce("max", stage.per_replica({1, 2}));
           })},
          {"second", error_of([&] { stage.towers.reduce("sum", Value(1.0), kCpu); })}};
}

// To CPU:0 and the last device, which are two; one tower.
Json several_destinations(const CaseWorld& world) {
  return world.on_workers(1, 2, [&](Worker& worker) -> Json {
    const auto towers = mirrored_towers(worker, tower::Release::v1_12, 1);
    TowerStage stage(worker, *towers, world.spec());
    const Scope scope = towers->scope();
    const std::vector<std::string> destinations = {kCpu, name_of(*worker.devices().back())};
    return parts(stage, towers->reduce(kSum, Value::literal(1), destinations));
  })[0];
}

Json zeros(const CaseWorld& world) {
  return world.on_worker([&](Worker& worker) -> Json {
    Json values = Json::array();
    for (const std::size_t count : {2, 1}) {
      const auto towers = mirrored_towers(worker, tower::Release::v1_12, count);
      const TowerStage stage(worker, *towers, world.spec());
      const Scope scope = towers->scope();
      values.push_back(stage.json(towers->reduce(kSum, Value::literal(0), kCpu)));
    }
    return {{"value", values}};
  });
}

Json of_shared(TowerStage& stage) {
  const Value seven = Value::literal(7);
  return {{"value",
           {stage.json(stage.towers.reduce(kMean, seven, kCpu)),
            stage.json(stage.towers.reduce(tower::kOnlyFirstTower, seven, kCpu))}}};
}

Json of_mirrored(TowerStage& stage) {
  const Value mirrored = stage.mirrored_on(stage.towers.worker_devices(), 2);
  const auto v = stage.var(2);
  Json errors = Json::array();
  for (const auto aggregation : {kSum, kMean, tower::kOnlyFirstTower}) {
    errors.push_back(error_of([&] { stage.towers.reduce(aggregation, mirrored, kCpu); }));
    errors.push_back(error_of([&] { stage.towers.reduce(aggregation, v, kCpu); }));
  }
  return {{"each", errors}};
}

Json of_first_tower(TowerStage& stage) {
  const Value tensors =
      stage.in_towers([&]() -> Value { return stage.tensor(current_tower().device(), {}, {3.0 + 5 * tower_id()}); });
  const Value numbers = stage.in_towers([] { return Value(3.0 + 5 * tower_id()); });
  const Value number = stage.towers.reduce(tower::kOnlyFirstTower, numbers, kCpu);
  return {{"tensor", stage.unwrapped(stage.towers.reduce(tower::kOnlyFirstTower, tensors, kCpu))},
          {"number", stage.json(number)},
          {"number_kind", name_of(number.kind())},
          {"to_towers", stage.unwrapped(stage.towers.reduce(tower::kOnlyFirstTower, tensors, tensors))}};
}

Json mapped(TowerStage& stage) {
  Value::Parts elements;
  for (int i = 0; i < 10; ++i) elements.emplace_back(static_cast<double>(i));
  Json devices = Json::array();
  const Value results =
      stage.towers.map(elements,
                       [&](const Value& element, Device& device, const Value::Parts& factor) -> Value {
                         if (devices.size() < 3) devices.push_back(device.id().index);
                         return stage.tensor(device, {}, {element.number() * factor.front().number()});
                       },
                       {2.0});
  return {{"sum", stage.unwrapped(stage.towers.reduce(kSum, results, kCpu))},
          {"mean", stage.unwrapped(stage.towers.reduce(kMean, results, kCpu))},
          {"devices", devices}};
}

Json broadcasts(TowerStage& stage) {
  const Value one = stage.tensor(stage.worker.cpu(), {}, {1});
  const Value everywhere = stage.towers.broadcast(one);
  Json result = {{"everywhere", stage.unwrapped(everywhere)},
                 {"number", stage.unwrapped(stage.towers.broadcast(Value(2.0)))},
                 {"to_one", stage.unwrapped(stage.towers.broadcast(one, kCpu))},
                 {"kind", name_of(stage.towers.broadcast(one, kCpu).kind())}};
  return result;
}

Json direct_broadcasts(TowerStage& stage) {
  const tower::OneDeviceStrategy one(stage.worker, name_of(stage.device(0)));
  const Value value(4.0);
  Json result;
  {
    const Scope scope = one.scope();
    result["one_device"] = one.broadcast(value, kCpu).is_identical(value);
    result["one_device_reduces"] = one.reduce(kSum, value, kCpu).is_identical(value);
  }
  tower::get_tower_context()->merge_call([&](const tower::DistributionStrategy& strategy, const Value::Parts&) {
    result["default"] = strategy.broadcast(value).is_identical(value);
    result["default_with_destinations"] = error_of([&] { strategy.broadcast(value, kCpu); });
    return Value();
  });
  return result;
}

Json batches(TowerStage& stage) {
  const Value a = stage.per_replica({1, 2}), b = stage.per_replica({10, 20});
  const std::vector<std::string> all = names_of(stage.towers.worker_devices());
  Json result;
  for (const auto aggregation : {kSum, kMean, tower::kOnlyFirstTower}) {
    Json list = Json::array();
    for (const Value& value : stage.towers.batch_reduce(aggregation, {{b, all}, {a, kCpu}, {b, kCpu}})) {
      list.push_back(stage.unwrapped(value));
    }
    result[std::string(name_of(aggregation))] = list;
  }
  result["none"] = error_of([&] { stage.towers.batch_reduce(VariableAggregation::none, {{a, kCpu}}); });
  return result;
}

// All kinds of destinations: mirrored on all devices and on the CPU, the CPU's name, a list of names.
std::vector<Destinations> every_kind(const TowerStage& stage) {
  const std::vector<Device*> devices(stage.worker.devices().begin(), stage.worker.devices().end());
  return {stage.mirrored_on(devices, 0), stage.mirrored_on({&stage.worker.cpu()}, 0), Destinations(kCpu),
          Destinations(names_of(devices))};
}

Json batches_by_text(TowerStage& stage) {
  const Value a = stage.per_replica({1, 2}), b = stage.per_replica({3, 4});
  const auto reduced = [&](const char* method) {
    Json results = Json::array();
    for (const Value& result : stage.towers.batch_reduce(method, {{a, kCpu}, {b, b}})) {
      results.push_back(stage.unwrapped(result));
    }
    return results;
  };
  return {{"sum", reduced("sum")}, {"mean", reduced("mean")}, {"max", error_of([&] { reduced("max"); })}};
}

Json integer_or_not(const Value& number) {
  return {number.number(), number.is_integer()};
}

// Python's integers stay integers in 1.x, and so does what becomes of them.
Json integers(TowerStage& stage) {
  const Value ids = stage.in_towers([] { return Value(tower_id()); });
  const Value halves = stage.in_towers([] { return Value(0.5 * tower_id()); });
  const auto of_all = [&](const Value& value) {
    Json all = Json::array();
    for (const Value& part : stage.towers.unwrap(value)) all.push_back(integer_or_not(part));
    return all;
  };
  const auto reduced = [&](VariableAggregation aggregation, const Value& value) {
    return integer_or_not(stage.towers.unwrap(stage.towers.reduce(aggregation, value, kCpu)).front());
  };
  return {{"ids", of_all(ids)},
          {"device_index", of_all(stage.towers.worker_device_index())},
          {"sum", reduced(kSum, ids)},
          {"mean", reduced(kMean, ids)},
          {"sum_of_halves", reduced(kSum, halves)}};
}

// Checks that the results for all destinations agree and that each is mirrored over exactly those.
class Results {
 public:
  explicit Results(const TowerStage& stage) : stage_(stage) {}
  Json operator()(const Value& value, const Destinations& destinations) {
    is_mirrored_ = is_mirrored_ && value.is(ValueKind::mirrored);
    std::vector<Device*> wanted = destinations.resolve(stage_.worker), found = devices_of(value);
    are_on_destinations_ =
        are_on_destinations_ && (value.is(ValueKind::mirrored) && value.parts().front().is(ValueKind::number)
                                     ? wanted.size() == value.parts().size()
                                     : std::is_permutation(wanted.begin(), wanted.end(), found.begin(), found.end()));
    return one_of_equal(stage_.json(value));
  }
  Json kind() const { return {{"mirrored", is_mirrored_}, {"over_exactly_the_destinations", are_on_destinations_}}; }

 private:
  const TowerStage& stage_;
  bool is_mirrored_ = true, are_on_destinations_ = true;
};

Json reduced_everywhere(const TowerStage& stage, tower::CrossTowerOps& ops, const Value& a, const Value& b) {
  Results result(stage);
  Json lists = {{"mean", Json::array()},
                {"sum", Json::array()},
                {"batch_mean", Json::array()},
                {"batch_sum", Json::array()},
                {"broadcast", Json::array()}};
  for (const Destinations& first : every_kind(stage)) {
    for (const auto& [name, op] : {std::pair{"mean", kMean}, std::pair{"sum", kSum}}) {
      lists[name].push_back({result(ops.reduce(op, a, first), first), result(ops.reduce(op, b, first), first)});
      for (const Destinations& second : every_kind(stage)) {
        const std::vector<Value> both = ops.batch_reduce(op, {{a, first}, {b, second}});
        lists[std::string("batch_") + name].push_back({result(both.at(0), first), result(both.at(1), second)});
      }
    }
    lists["broadcast"].push_back(result(ops.broadcast(Value(1.0), first), first));
  }
  Json outcome;
  for (const auto& [name, list] : lists.items()) outcome[name] = one_of_equal(list);
  outcome["result_kind"] = result.kind();
  return outcome;
}

CaseFunction reduction_and_broadcast(const std::function<std::unique_ptr<tower::CrossTowerOps>(Worker& worker)>& make) {
  return outside_scopes([make](TowerStage& stage) {
    return reduced_everywhere(stage, *make(stage.worker), stage.per_replica({0, 1}), stage.per_replica({1, 2}));
  });
}

std::unique_ptr<tower::CrossTowerOps> all_reduce(Worker& worker) {
  return std::make_unique<tower::AllReduceCrossTowerOps>(worker);
}
std::unique_ptr<tower::CrossTowerOps> hierarchical(Worker& worker) {
  return std::make_unique<tower::AllReduceCrossTowerOps>(worker, "hierarchical_copy", 0,
                                                         tower::SmallGradients{.max_bytes = 100, .max_group = 10});
}
std::unique_ptr<tower::CrossTowerOps> to_one_device(Worker& worker) {
  return std::make_unique<tower::ReductionToOneDeviceCrossTowerOps>(worker, name_of(*worker.devices().back()));
}
std::unique_ptr<tower::CrossTowerOps> multi_worker(Worker& worker) {
  return std::make_unique<tower::MultiWorkerAllReduce>(
      worker, std::vector<AllReduceSpec>{{.algorithm = "nccl", .limit = 0}, {.algorithm = "pscpu/pscpu", .shards = 2}});
}

Json over_workers(const CaseWorld& world) {
  Json outcome;
  for (const int count : {1, 2}) {
    const std::vector<Json> each = world.on_workers(world.workers(), count, [&](Worker& worker) -> Json {
      const auto towers = mirrored_towers(worker);
      const TowerStage stage(worker, *towers, world.spec());
      tower::CollectiveAllReduce ops(worker, world.workers(), count);
      const std::vector<double> a = {0, 1}, b = {1, 2};
      return reduced_everywhere(stage, ops, stage.per_replica({a.begin(), a.begin() + count}),
                                stage.per_replica({b.begin(), b.begin() + count}));
    });
    outcome["d=" + std::to_string(count)] = one_of_equal(each);
  }
  return outcome;
}

Json refused_operations(TowerStage& stage) {
  Worker& worker = stage.worker;
  const Value a = stage.per_replica({0, 1});
  const auto ops = all_reduce(worker);
  return {{"each",
           {error_of([&] { tower::AllReduceCrossTowerOps(worker, "nccl", -1); }),
            error_of([&] { tower::AllReduceCrossTowerOps(worker, "ring"); }),
            error_of([&] { tower::MultiWorkerAllReduce(worker, {{.algorithm = "other"}}); }),
            error_of([&] { tower::CollectiveAllReduce(worker, 5, 2); }), error_of([&] { ops->reduce(kSum, a, {}); }),
            error_of([&] { ops->reduce(VariableAggregation::none, a, kCpu); }),
            error_of([&] { ops->reduce(kSum, Value(3.0), kCpu); }),
            error_of([&] { ops->reduce(kSum, Value::per_replica({}), kCpu); })}}};
}

const bool added = add_cases({
    {"old-001", in_scope([](TowerStage& stage) {
       return parts(stage, stage.towers.reduce("sum", indices_of_towers(stage), kCpu));
     })},
    {"old-004", in_scope(old_methods)},
    {"red-002", in_scope([](TowerStage& stage) {
       return parts(stage, stage.towers.reduce(kSum, indices_of_towers(stage), kCpu));
     })},
    {"red-004", several_destinations},
    {"red-006", zeros},
    {"red-007", in_scope(of_shared)},
    {"red-010", in_scope([](TowerStage& stage) {
       return error_of([&] { stage.towers.reduce(VariableAggregation::none, stage.per_replica({1, 2}), kCpu); });
     })},
    {"xdo-005", reduction_and_broadcast(all_reduce)},
    {"xdo-006", reduction_and_broadcast(hierarchical)},
    {"xdo-col-v1-dist", over_workers},
    {"twr-x20", in_scope(of_mirrored)},
    {"twr-x21", in_scope(of_first_tower)},
    {"twr-x22", in_scope(mapped)},
    {"twr-x23", in_scope(broadcasts)},
    {"twr-x24", outside_scopes(direct_broadcasts)},
    {"twr-x25", in_scope(batches)},
    {"twr-x26", reduction_and_broadcast(to_one_device)},
    {"twr-x27", reduction_and_broadcast(multi_worker)},
    {"twr-x28", outside_scopes(refused_operations)},
    {"twr-x29", in_scope(batches_by_text)},
    {"twr-x60", in_scope(integers)},
});

}  // namespace
}  // namespace tandem::tower_reduce_cases
