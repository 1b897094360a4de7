// 1.x: what strategies tell of themselves, the clusters they are configured for, and what they refuse.
#include "strategies/strategy/default_strategy.h"
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_properties_cases {
namespace {

Json roles(const tower::DistributionStrategy& towers) {
  return {towers.between_graph(), towers.should_init(), towers.should_checkpoint(), towers.should_save_summary(),
          towers.is_single_tower()};
}

Json mirrored_roles(TowerStage& stage) {
  return {{"value", roles(stage.towers)}};
}

Json no_roles(TowerStage& stage) {
  const tower::OneDeviceStrategy one(stage.worker, "/device:CPU:0");
  Json errors = Json::array();
  for (const tower::DistributionStrategy& towers :
       {tower::DistributionStrategy(one), tower::DistributionStrategy(default_strategy())}) {
    errors.push_back(error_of([&] { towers.between_graph(); }));
    errors.push_back(error_of([&] { towers.should_init(); }));
    errors.push_back(error_of([&] { towers.should_checkpoint(); }));
    errors.push_back(error_of([&] { towers.should_save_summary(); }));
  }
  return {{"each", errors}, {"num_towers", one.num_towers()}, {"is_single_tower", one.is_single_tower()}};
}

Json collective_refusals(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    const ClusterSpec cluster = {{"worker", {"w0:1"}}, {"ps", {"p0:1"}}};
    const auto configured = [&](const ClusterSpec& with, const tower::ClusterTask& task) {
      return error_of([&] { tower::CollectiveAllReduceStrategy(worker).configure(with, task); });
    };
    return {{"each",
             {configured(cluster, {}), configured(cluster, {.type = "ps", .id = 0}),
              configured({{"ps", {"p0:1"}}}, {.type = "worker", .id = 0})}}};
  });
}

Json mirrored_refusals(const CaseWorld& world) {
  return world.on_worker([](Worker& worker) -> Json {
    const auto made = [&](const tower::MirroredOptions& options) {
      return error_of([&] { tower::MirroredStrategy(worker, options); });
    };
    const std::vector<std::string> none, twice = {"CPU:0", "CPU:0"};
    Json devices = Json::array();
    const tower::MirroredStrategy on_cpu(worker, {.num_gpus = 0});
    for (const Device* device : on_cpu.worker_devices()) {
      devices.push_back(std::string(name_of(device->id().type)) + ":" + std::to_string(device->id().index));
    }
    return {{"errors",
             {made({.num_gpus = 1, .num_gpus_per_worker = 1}),
              made({.devices = std::vector<std::string>{"CPU:0"}, .num_gpus = 1}), made({.devices = none}),
              made({.devices = twice}), made({.num_gpus = 0})}},
            {"num_gpus_0_devices", devices}};
  });
}

ClusterSpec two_workers() {
  return {{"worker", {"w0:1", "w1:1"}}};
}

// Every worker runs the program; ids are the workers' one after the other.
Json collective_towers(const CaseWorld& world) {
  return world.on_workers(world.workers(), 2, [&](Worker& worker) -> Json {
    tower::CollectiveAllReduceStrategy towers(worker, std::nullopt);
    const int alone = towers.num_towers();
    towers.configure(two_workers(), {.type = "worker", .id = worker.task()});
    const TowerStage stage(worker, towers, world.spec());
    const Scope scope = towers.scope();
    const Value ids = stage.in_towers(
        [&]() -> Value { return stage.tensor(current_tower().device(), {}, {static_cast<double>(tower_id())}); });
    const auto v = stage.var(1, Stage::Aggregation::sum);
    stage.each_tower([&] { v->assign_add(static_cast<double>(tower_id())); });
    return {{"num_towers", {alone, towers.num_towers()}},
            {"ids", stage.unwrapped(ids)},
            {"sum", stage.unwrapped(towers.reduce(VariableAggregation::sum, ids, "/device:CPU:0"))},
            {"variable", stage.components(*v)},
            {"roles", roles(towers)}};
  });
}

// One program for the devices of both workers; the second worker has none of its own.
Json driven_by_one(const CaseWorld& world) {
  return world.on_workers(world.workers(), 1, [&](Worker& worker) -> Json {
    if (worker.index() > 0) return nullptr;
    const bool has_gpus = worker.devices().front()->id().type == DeviceType::gpu;
    tower::MirroredStrategy towers(worker, {.num_gpus_per_worker = has_gpus ? 1 : 0});
    tower::MirroredStrategy without_number(worker, {.devices = names_of({&worker.cpu()})});
    const Json refused = error_of([&] { without_number.configure(two_workers()); });
    const Json no_workers = error_of([&] { towers.configure({{"ps", {"p0:1"}}}); });
    towers.configure(two_workers());
    Json tasks = Json::array();
    for (const Device* device : towers.worker_devices()) tasks.push_back(device->id().task);
    return {{"without_number", refused}, {"no_workers", no_workers}, {"tasks", tasks}, {"roles", roles(towers)}};
  })[0];
}

// Without a number of GPUs there are none: everything is on each worker's CPU:0.
Json without_gpus(const CaseWorld& world) {
  return world.on_workers(world.workers(), 2, [&](Worker& worker) -> Json {
    const auto is_cpu = [&](const std::vector<Device*>& devices) {
      return devices == std::vector<Device*>{&worker.cpu()};
    };
    tower::CollectiveAllReduceStrategy towers(worker);
    const bool before = is_cpu(towers.worker_devices());
    towers.configure(two_workers(), {.type = "worker", .id = worker.task()});
    const TowerStage stage(worker, towers, world.spec());
    const Scope scope = towers.scope();
    const auto v = stage.var(1, Stage::Aggregation::sum);
    stage.each_tower([&] { v->assign_add(10.0 * (1 + tower_id())); });
    return {{"collective", {before, is_cpu(towers.worker_devices()), is_cpu(v->devices())}},
            {"num_towers", towers.num_towers()},
            {"variable", stage.components(*v)}};
  });
}

Json parameter_server_without_gpus(const CaseWorld& world) {
  return world.on_workers(1, 2, [&](Worker& worker) -> Json {
    tower::ParameterServerStrategy towers(worker);
    const TowerStage stage(worker, towers, world.spec());
    const Scope scope = towers.scope();
    const std::vector<Device*> cpu = {&worker.cpu()};
    return {{"computes_on_cpu", towers.worker_devices() == cpu}, {"variable_on_cpu", stage.var(1)->devices() == cpu}};
  })[0];
}

Json parameter_server(const CaseWorld& world) {
  const std::vector<WorkerSpec> run = {{.job = "worker", .device_count = 1}, {.job = "ps", .device_count = 0}};
  return world.on_cluster(run, [](Worker& worker) -> Json {
    if (worker.job() == "ps") return nullptr;
    tower::ParameterServerStrategy towers(worker);
    const ClusterSpec cluster = {{"worker", {"w0:1"}}, {"ps", {"p0:1"}}};
    const Json refused = {{"each",
                           {error_of([&] { towers.configure(cluster); }),
                            error_of([&] { towers.configure(cluster, {.type = "worker"}); }),
                            error_of([&] { towers.configure(two_workers(), {.type = "worker", .id = 0}); })}}};
    towers.configure(cluster, {.type = "worker", .id = 0});
    const Json again = error_of([&] { towers.configure(two_workers()); });
    return {{"refused", refused}, {"second_is_ignored", again}, {"roles", roles(towers)}};
  })[0];
}

const bool added = add_cases({
    {"prop-008", collective_refusals},
    {"prop-009", mirrored_refusals},
    {"prop-011", outside_scopes(mirrored_roles)},
    {"twr-x34", outside_scopes(no_roles)},
    {"twr-x35", collective_towers},
    {"twr-x36", driven_by_one},
    {"twr-x37", parameter_server},
    {"twr-x38", without_gpus},
    {"twr-x39", parameter_server_without_gpus},
});

}  // namespace
}  // namespace tandem::tower_properties_cases
