// 1.x: Mirrored over the devices of several workers, which one program drives.
#include "tests/conformance/tf/input_values.h"
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_workers_cases {
namespace {

constexpr auto kSum = VariableAggregation::sum;
constexpr auto kMean = VariableAggregation::mean;

tower::MirroredOptions one_device_each(Worker& worker) {
  const bool has_gpus = worker.devices().front()->id().type == DeviceType::gpu;
  return {.num_gpus_per_worker = has_gpus ? 1 : 0};
}

// Performs the steps on worker 0 in the scope of a strategy with a tower on each of two workers.
CaseFunction on_two_workers(TowerSteps steps, bool auto_shard = false) {
  return [steps = std::move(steps), auto_shard](const CaseWorld& world) -> Json {
    return world.on_workers(2, 1, [&](Worker& worker) -> Json {
      if (worker.index() > 0) return nullptr;
      tower::MirroredOptions options = one_device_each(worker);
      options.auto_shard_dataset = auto_shard;
      tower::MirroredStrategy towers(worker, options);
      towers.configure({{"worker", {"w0:1", "w1:1"}}});
      TowerStage stage(worker, towers, world.spec());
      const Scope scope = towers.scope();
      return steps(stage);
    })[0];
  };
}

// The steps up to the end of the data, each as the list of the towers' numbers.
Json steps_of(TowerStage& stage, DistributedIteratorV1& iterator) {
  Json steps = Json::array();
  try {
    for (;;) steps.push_back(stage.unwrapped(iterator.get_next()));
  } catch (const OutOfRangeError&) {
    return steps;
  }
}

// On which workers' devices the values of a step are.
Json tasks_of(const TowerStage& stage, const Value& step) {
  Json tasks = Json::array();
  for (const Value& part : stage.towers.unwrap(step)) tasks.push_back(part.tensor().device().id().task);
  return tasks;
}

Json a_copy_each(TowerStage& stage) {
  int calls = 0;
  DistributedIteratorV1 iterator = stage.towers
                                       .distribute_dataset([&calls] {
                                         ++calls;
                                         return Dataset::range(3);
                                       })
                                       .make_initializable_iterator();
  const Json tasks = tasks_of(stage, iterator.get_next());
  iterator.initialize();
  return {{"calls", calls}, {"tasks", tasks}, {"steps", steps_of(stage, iterator)}};
}

Json sharded_files(TowerStage& stage) {
  const auto read = [](const std::string& name) {
    return std::vector<Element>(2, HostTensor::scalar(std::int64_t{name == "a" ? 1 : 2}));
  };
  DistributedIteratorV1 iterator =
      stage.towers.distribute_dataset([&] {
                    return Dataset::read_files({"a", "b"}, read);
                  })
          .make_one_shot_iterator();
  return {{"steps", steps_of(stage, iterator)}};
}

Json input_functions(TowerStage& stage) {
  Json contexts = Json::array();
  DistributedIteratorV1 iterator = stage.towers.make_input_fn_iterator([&](const InputContext& context) {
    contexts.push_back(to_json(context));
    const std::int64_t first = std::int64_t{10} * context.input_pipeline_id();
    return Dataset::range(first, first + 3 + context.input_pipeline_id());
  });
  return {{"contexts", contexts}, {"steps", steps_of(stage, iterator)}};
}

Value one_and_two(TowerStage& stage) {
  return stage.in_towers([&]() -> Value { return stage.tensor(current_tower().device(), {}, {1.0 + tower_id()}); });
}

Json reductions(TowerStage& stage) {
  const auto batch = [&](const Value& a, const Value& b) {
    Json results = Json::array();
    for (const Value& value : stage.towers.batch_reduce(kMean, {{a, a}, {b, b}})) {
      results.push_back(stage.unwrapped(value));
    }
    return results;
  };
  const Value values = one_and_two(stage);
  return {{"on_all", stage.unwrapped(stage.towers.reduce(kSum, values))},
          {"on_cpu", stage.unwrapped(stage.towers.reduce(kSum, values, "/device:CPU:0"))},
          {"batch", batch(values, one_and_two(stage))},
          {"first", stage.unwrapped(stage.towers.reduce(tower::kOnlyFirstTower, values))},
          {"broadcast", stage.unwrapped(stage.towers.broadcast(values.parts()[1]))}};
}

// A variable that the towers change together, and one that each keeps for itself.
Json variables(TowerStage& stage) {
  const auto mirrored = stage.var(1, kSum);
  const auto local = stage.var(0, kSum, Stage::Synchronization::on_read);
  stage.each_tower([&] {
    mirrored->assign_add(stage.tensor(current_tower().device(), {}, {1.0 + tower_id()}));
    local->assign_add(10.0 * (1 + tower_id()));
  });
  stage.towers.update(mirrored, [](Variable& v, const Value::Parts& parts) { return Value(v.assign_add(parts[0])); },
                      {Value(0.5)});
  return {{"mirrored", stage.components(*mirrored)},
          {"local", stage.components(*local)},
          {"read", stage.json(stage.towers.read_var(*local))}};
}

Json refused(const CaseWorld& world) {
  return world.on_workers(2, 1, [&](Worker& worker) -> Json {
    if (worker.index() > 0) return nullptr;
    const auto configured = [&](const char* ops) {
      return error_of([&] {
        tower::MirroredOptions options = one_device_each(worker);
        options.cross_tower_ops = ops;
        tower::MirroredStrategy(worker, options).configure({{"worker", {"w0:1", "w1:1"}}});
      });
    };
    const DeviceId there{.job = "worker", .task = 1, .type = DeviceType::cpu, .index = 0};
    Device& other = worker.device(there);
    const Tensor mine = worker.cpu().allocate(DType::f32, {1}), theirs = other.allocate(DType::f32, {1});
    const Value both = Value::per_replica({mine, theirs});
    return {{"nccl", configured("nccl")},
            {"reduction_to_one_device", configured("reduction_to_one_device")},
            {"ops", error_of([&] { tower::AllReduceCrossTowerOps(worker).reduce(kSum, both, both); })},
            {"spec",
             error_of([&] { tower::MultiWorkerAllReduce(worker, {{.algorithm = "nccl"}}).reduce(kSum, both, both); })}};
  })[0];
}

const bool added = add_cases({
    {"twr-x50", on_two_workers(a_copy_each)},
    {"twr-x51", on_two_workers(sharded_files, true)},
    {"twr-x52", on_two_workers(input_functions)},
    {"twr-x53", on_two_workers(reductions)},
    {"twr-x54", on_two_workers(variables)},
    {"twr-x55", refused},
});

}  // namespace
}  // namespace tandem::tower_workers_cases
