// Area "parameter-server-v2": the coordinator's variables and functions scheduled on workers.
#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <optional>

#include "strategies/servers/cluster_coordinator.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/variables/checkpoint.h"
#include "tests/conformance/tf/shards.h"

namespace tandem::parameter_server_v2_cases {
namespace {

struct ClusterSize {
  int ps = 2, workers = 1, replicas = 1;
};

// Calls `steps` as the chief of a cluster; workers and parameter servers just return.
Json as_chief(const CaseWorld& world, const Partitioner& partitioner,
              const std::function<Json(Stage&, ParameterServerStrategyV2&)>& steps, ClusterSize shape = {}) {
  std::vector<WorkerSpec> cluster = {{.job = "chief", .task = 0, .device_count = 1}};
  const int workers = world.spec().setting("workers", shape.workers);
  for (int task = 0; task < workers; ++task) {
    cluster.push_back({.job = "worker", .task = task, .device_count = shape.replicas});
  }
  const int ps = world.spec().setting("ps", shape.ps);
  for (int task = 0; task < ps; ++task) cluster.push_back({.job = "ps", .task = task, .device_count = 0});
  return world
      .on_cluster(cluster,
                  [&](Worker& worker) -> Json {
                    if (worker.job() != "chief") return nullptr;
                    ParameterServerStrategyV2 strategy(worker, partitioner);
                    Stage stage(worker, strategy, world.spec());
                    return steps(stage, strategy);
                  })
      .front();
}

Partitioner fixed(int shards) {
  return [shards](const Shape& shape, DType dtype) { return FixedShardsPartitioner(shards)(shape, dtype); };
}

std::string place_of(const Variable& variable) {
  const DeviceId& id = variable.devices().front()->id();
  return id.job == "ps" ? fmt::format("ps {}", id.task) : fmt::format("{} {}", id.job, id.task);
}

Json places_of(const ShardedVariable& variable) {
  Json places = Json::array();
  for (const auto& shard : variable.variables()) places.push_back(place_of(*shard));
  return places;
}

VariableSpec counting(const Shape& shape, DType dtype = DType::f32) {
  return {.name = "v", .dtype = dtype, .shape = shape, .initial_value = [](std::int64_t i) {
            return static_cast<double>(i);
          }};
}

// v = zeros(8) SUM; every replica of a worker assigns [id + 10, 1, ..., 7].
Json assigned_by_replicas(const CaseWorld& world, int replicas) {
  return as_chief(world, {},
                  [](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
                    const auto v = strategy.create_variable(
                        {.name = "v", .shape = {8}, .initial_value = {}, .aggregation = VariableAggregation::sum});
                    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
                      coordinator.schedule([&]() -> Value {
                        return strategy.run([&](const Value::Parts&) {
                          v->assign(stage.tensor(replica().device(), {8}, {replica_id() + 10.0, 1, 2, 3, 4, 5, 6, 7}));
                          return Value();
                        });
                      });
                    });
                    return stage.json(v->read());
                  },
                  {.ps = 2, .workers = 1, .replicas = replicas});
}

Json cluster_error(const CaseWorld& world, const std::vector<std::string>& jobs) {
  std::vector<WorkerSpec> cluster;
  std::map<std::string, int> tasks;
  for (const std::string& job : jobs) cluster.push_back({.job = job, .task = tasks[job]++, .device_count = 1});
  return world.on_cluster(cluster, [](Worker& worker) -> Json {
    if (worker.index() != 0) return nullptr;
    return error_of([&] { ParameterServerStrategyV2 strategy(worker); });
  })[0];
}

// Holds tasks back until open() is called, on any engine.
class Gate {
 public:
  explicit Gate(Worker& worker) : monitor_(worker.tasks().make_monitor()) {}
  void open() {
    const std::lock_guard lock(*monitor_);
    is_open_ = true;
    monitor_->notify_all();
  }
  void pass() {
    const std::lock_guard lock(*monitor_);
    while (!is_open_) monitor_->wait("the gate of a test");
  }

 private:
  std::unique_ptr<Monitor> monitor_;
  bool is_open_ = false;
};

// Uses the results of a coordinator after coordinate() has returned and after the whole run has ended.
Json values_after_the_end(const CaseWorld& world) {
  std::vector<RemoteValue> values;
  Json found = as_chief(world, {}, [&](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
    Json inside;
    std::optional<PerWorkerValues<DistributedIterator>> iterators;
    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
      Gate all_scheduled(stage.worker);
      values.push_back(coordinator.schedule([&all_scheduled]() -> Value {
        all_scheduled.pass();
        return Value(7.0);
      }));
      values.push_back(coordinator.schedule([]() -> Value { throw ValueError("wrong"); }));
      values.push_back(coordinator.schedule([] { return Value(8.0); }));
      iterators.emplace(coordinator.create_per_worker_dataset([](const InputContext&) { return Dataset::range(3); }));
      all_scheduled.open();
      inside["join"] = error_of([&] { coordinator.join(); });
    });
    inside["iterator_outside"] = error_of([&] { iterators->current(); });
    for (const RemoteValue& value : values) inside["ready"].push_back(value.is_ready());
    inside["value"] = values[0].fetch().number();
    return inside;
  });
  if (values.empty()) return found;  // the chief is in another process
  found["after_the_run"] = {values[0].fetch().number(), error_of([&] { values[1].fetch(); }),
                            error_of([&] { values[2].fetch(); })};
  return found;
}

const bool added = add_cases({
    {"ps2-x04", values_after_the_end},
    {"ps2-x05",
     [](const CaseWorld& world) {
       return as_chief(world, {}, [](Stage& stage, ParameterServerStrategyV2&) -> Json {
         const auto first = stage.var(1), second = stage.var(2);
         return {stage.json(first->read()), stage.json(second->read())};
       });
     }},
    {"ps2-001",
     [](const CaseWorld& world) {
       return as_chief(world, {}, [](Stage& stage, ParameterServerStrategyV2&) -> Json {
         const auto outside = default_strategy().create_variable({.name = "v1", .shape = {}});
         Json inside = Json::array();
         for (int i = 0; i < 4; ++i) inside.push_back(place_of(*stage.var(i)));
         return {{"v1", outside->devices().front() == &stage.worker.cpu() ? "on the coordinator (chief)" : "elsewhere"},
                 {"v2..v5", inside}};
       });
     }},
    {"ps2-004",
     [](const CaseWorld& world) {
       return as_chief(world, fixed(4), [](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
         const ShardedVariable v = strategy.create_sharded_variable(counting({10}));
         return {{"shards", shards_of(stage, v)}, {"devices", places_of(v)}};
       });
     }},
    {"ps2-006",
     [](const CaseWorld& world) {
       const Partitioner partitioner = [](const Shape& shape, DType dtype) {
         return MinSizePartitioner(64 << 20, 2)(shape, dtype);
       };
       return as_chief(world, partitioner, [](Stage&, ParameterServerStrategyV2& strategy) -> Json {
         const ShardedVariable a = strategy.create_sharded_variable(counting({10}, DType::i64));
         const ShardedVariable b = strategy.create_sharded_variable(counting({10}, DType::i64));
         return {{"sharded", {a.is_sharded(), b.is_sharded()}}, {"devices", {places_of(a)[0], places_of(b)[0]}}};
       });
     }},
    {"ps2-007",
     [](const CaseWorld& world) {
       return as_chief(world, fixed(2), [](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
         const ShardedVariable identity = strategy.create_sharded_variable(
             {.name = "identity", .shape = {4, 4}, .initial_value = [](std::int64_t i) { return i % 5 == 0 ? 1 : 0; }});
         return {{"shards", shards_of(stage, identity)}};
       });
     }},
    {"ps2-009",
     [](const CaseWorld& world) -> Json {
       return {{"1 replica", assigned_by_replicas(world, 1)}, {"2 replicas", assigned_by_replicas(world, 2)}};
     }},
    {"ps2-011",
     [](const CaseWorld& world) -> Json {
       const std::string path = testing::TempDir() + "ps2-011-" + std::to_string(::getpid()) + ".ckpt";
       as_chief(world, fixed(2), [&](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
         ShardedVariable w = strategy.create_sharded_variable(counting({4}));
         w.assign_add(1.0);
         Checkpoint checkpoint(stage.worker);
         checkpoint.add("w", w);
         checkpoint.save(path);
         return nullptr;
       });
       Json found;
       for (const int shards : {2, 4}) {
         found[std::to_string(shards)] =
             as_chief(world, fixed(shards), [&](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
               const ShardedVariable now = strategy.create_sharded_variable(counting({4}));
               Checkpoint checkpoint(stage.worker);
               checkpoint.add("w", now);
               checkpoint.restore(path);
               const CheckpointReader reader(path);
               const ShardedVariable delayed = strategy.create_sharded_variable(
                   {.name = "later", .shape = {4}, .initial_value = reader.initial_value("w")});
               const Json restored = shards_of(stage, now);
               return shards_of(stage, delayed) == restored ? restored : Json("immediate and delayed differ");
             });
       }
       std::remove(path.c_str());
       return found;
     }},
    {"ps2-013",
     [](const CaseWorld& world) {
       return cluster_error(world, {"chief", "worker", "ps", "some_arbitrary_name"});
     }},
    {"ps2-015",
     [](const CaseWorld& world) {
       return cluster_error(world, {"chief", "chief", "chief", "worker", "ps"});
     }},
    {"ps2-017",
     [](const CaseWorld& world) {
       return cluster_error(world, {"chief", "worker"});
     }},
    {"col-003",
     [](const CaseWorld& world) {
       return as_chief(world, fixed(2), [](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
         const ShardedVariable v1 = strategy.create_sharded_variable(counting({4}));
         const Scope scope = strategy.scope();
         const auto colocated = strategy.extended().colocate_vars_with(v1.variables()[0]);
         const auto v2 = shard(stage, {2}, {4, 5});
         const bool there = v2->devices() == v1.variables()[0]->devices();
         return {{"v1_shards", v1.variables().size()},
                 {"v2_sharded", false},
                 {"v2_device", there ? "device of v1 shard 0" : place_of(*v2)},
                 {"v2", stage.json(v2->read())}};
       });
     }},
    {"ps2-x01",
     [](const CaseWorld& world) {
       return as_chief(world, {}, [](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
         const auto total = stage.var(0, VariableAggregation::sum);
         Json found;
         ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
           std::vector<RemoteValue> values;
           for (int i = 0; i < 20; ++i) {
             values.push_back(coordinator.schedule([&, i]() -> Value {
               run_each(stage, [&] { total->assign_add(Value(1.0)); });
               return Value(static_cast<double>(i));
             }));
           }
           coordinator.join();
           found["done"] = coordinator.done();
           found["last"] = values.back().fetch().number();
         });
         found["total"] = stage.json(total->read());
         return found;
       });
     }},
    {"ps2-x02",
     [](const CaseWorld& world) {
       return as_chief(world, {}, [](Stage&, ParameterServerStrategyV2& strategy) -> Json {
         Json found;
         ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
           const RemoteValue failing = coordinator.schedule([]() -> Value { throw ValueError("wrong"); });
           found["join"] = error_of([&] { coordinator.join(); });
           found["fetch"] = error_of([&] { failing.fetch(); });
           found["join_again"] = error_of([&] { coordinator.join(); });
           found["next"] = coordinator.schedule([] { return Value(5.0); }).fetch().number();
         });
         return found;
       });
     }},
    {"ps2-x03",
     [](const CaseWorld& world) {
       return as_chief(world, {}, [](Stage& stage, ParameterServerStrategyV2& strategy) -> Json {
         Json found;
         found["on_the_coordinator"] = error_of([&] {
           strategy.distribute_datasets_from_function([](const InputContext&) { return Dataset::range(4); });
         });
         ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
           const auto iterators = coordinator.create_per_worker_dataset([](const InputContext& context) {
             return Dataset::range(10).shard(context.num_input_pipelines(), context.input_pipeline_id());
           });
           std::vector<Json> firsts(2);
           for (int i = 0; i < 2; ++i) {
             coordinator.schedule([&]() -> Value {
               const auto worker = static_cast<std::size_t>(coordinator.worker_index());
               const Value element = iterators.current().next().value();
               firsts[worker] = stage.json(element);
               return {};
             });
             coordinator.join();
           }
           found["of_worker_0"] = stage.json(iterators.of_worker(0).next().value());
         });
         return found;
       });
     }},
});

}  // namespace
}  // namespace tandem::parameter_server_v2_cases
