// Area "strategy-properties": what strategies tell about themselves, and what their constructors refuse.
#include "strategies/cluster/simple_resolver.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/tf/groups.h"

namespace tandem::strategy_properties_cases {
namespace {

Json count_of_replicas(const Stage& stage) {
  return {{"value", stage.strategy.num_replicas_in_sync()}};
}

Json error_of_devices(Worker& worker, const std::vector<std::string>& names) {
  return error_of([&] { MirroredStrategy(worker, mirrored_devices(worker, names)); });
}

Json kind_of(const Json& error) {
  return error.is_null() ? error : error["error"];
}

Json properties(const Stage& stage) {
  const StrategyExtended& extended = stage.strategy.extended();
  return {{"between_graph", extended.experimental_between_graph()},
          {"should_init", extended.experimental_should_init()},
          {"should_checkpoint", extended.should_checkpoint()},
          {"should_save_summary", extended.should_save_summary()},
          {"in_multi_worker_mode", extended.in_multi_worker_mode()},
          {"first_replica_id", extended.first_replica_id()}};
}

// CPUs are no accelerators.
bool accelerators_are_devices(const ClusterResolver& resolver, Worker& worker) {
  const AcceleratorCounts counts = resolver.num_accelerators();
  if (worker.devices().front()->id().type != DeviceType::gpu) return counts.empty();
  return counts == AcceleratorCounts{{"GPU", static_cast<int>(worker.devices().size())}};
}

Json resolvers(Stage& stage) {
  const MultiWorkerMirroredStrategy over_workers(stage.worker);
  const CentralStorageStrategy central(stage.worker);
  const OneDeviceStrategy one(stage.worker, stage.device(0));
  Json others = Json::array();
  for (const Strategy* other :
       std::initializer_list<const Strategy*>{&stage.strategy, &central, &one, &default_strategy()}) {
    others.push_back(other->cluster_resolver() ? Json("a resolver") : Json());
  }
  const ClusterResolver* resolver = over_workers.cluster_resolver();
  return {{"multi_worker",
           {{"jobs", resolver->cluster_spec().jobs()},
            {"has_master", !resolver->master("worker", 0).empty()},
            {"accelerators_are_devices", accelerators_are_devices(*resolver, stage.worker)},
            {"task_type", resolver->task_type().value()},
            {"task_id", resolver->task_id().value()}}},
          {"others", common(others)}};
}

const bool added = add_cases({
    {"prop-005", staged_together(count_of_replicas)},
    {"prop-007", staged([](Stage& stage) {
       const MultiWorkerOptions both{.cluster_resolver = std::make_shared<SimpleResolver>(ClusterSpec()),
                                     .devices = {&stage.device(0)}};
       return error_of([&] { MultiWorkerMirroredStrategy(stage.worker, both); });
     })},
    {"prop-012",
     [](const CaseWorld& world) {
       // Names of a cluster's devices, of which this worker is one.
       return world
           .on_cluster(
               {{.job = "worker", .task = 0}, {.job = "worker", .task = 1}},
               [](Worker& worker) -> Json {
                 const std::string first = "/job:worker/task:0/device:CPU:0",
                                   second = "/job:worker/task:1/device:CPU:0";
                 return {{"errors",
                          {kind_of(error_of_devices(worker, {"/device:CPU:0", first})),
                           kind_of(error_of_devices(worker, {"/job:worker/device:CPU:0"})),
                           kind_of(error_of_devices(worker, {first, "/job:worker/task:0/device:CPU:1", second})),
                           kind_of(error_of_devices(worker, {first, second}))}}};
               })
           .front();
     }},
    {"prop-013", staged(resolvers)},
    {"prop-016", staged(count_of_replicas)},
    {"prop-x01", staged_together(properties,
                                 [](const Json& all) {
                                   return Json{{"workers", all}};
                                 })},
    {"prop-x02", staged(properties)},
    {"prop-x03", staged([](Stage& stage) -> Json {
       Worker& worker = stage.worker;
       const auto made = [&](const std::vector<Device*>& devices, const char* ops) {
         return kind_of(error_of([&] { MirroredStrategy(worker, devices, ops); }));
       };
       Device* device = worker.devices().front();
       const std::string type = device->id().type == DeviceType::gpu ? "GPU" : "CPU";
       const std::vector<Device*> reversed = mirrored_devices(worker, {type + ":1", "/device:" + type + ":0"});
       return {{"no_devices", made({}, "auto")},
               {"one_twice", made({device, device}, "auto")},
               {"unknown_operations", made({device}, "nkcl")},
               {"unknown_device", kind_of(error_of([&] { mirrored_devices(worker, {"XPU:0"}); }))},
               {"another_workers", kind_of(error_of([&] { mirrored_devices(worker, {"/job:far/task:7/CPU:0"}); }))},
               {"named", {reversed[0]->id().index, reversed[1]->id().index}}};
     })},
    {"prop-x04",
     [](const CaseWorld& world) {
       Json ids = Json::array();
       const std::vector<WorkerSpec> cluster = {{.job = "worker", .task = 1, .device_count = 2},
                                                {.job = "worker", .task = 0, .device_count = 2},
                                                {.job = "chief", .task = 0, .device_count = 2}};
       const auto program = [&](Worker& worker) -> Json {
         MultiWorkerMirroredStrategy strategy(worker);
         const StrategyExtended& extended = strategy.extended();
         return {{"job", worker.job()},
                 {"first_replica_id", extended.first_replica_id()},
                 {"should_checkpoint", extended.should_checkpoint()}};
       };
       return Json{{"workers", world.on_cluster(cluster, program)}};
     }},
    {"prop-x05",
     [](const CaseWorld& world) {
       const std::vector<WorkerSpec> cluster = {{.task = 0, .device_count = 2}, {.task = 1, .device_count = 1}};
       const auto program = [&](Worker& worker) {
         return error_of([&] { const MultiWorkerMirroredStrategy strategy(worker); });
       };
       return Json{{"each", world.on_cluster(cluster, program)}};
     }},
});

}  // namespace
}  // namespace tandem::strategy_properties_cases
