// How strategies find their worker, their devices and their cluster, and where device scopes put variables and work, in
// every world.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/servers/parameter_server_v2.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/device_scope.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/tower.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string name_of(const Device& device) {
  return device.id().text();
}

TEST_P(Strategies, WithoutAWorkerTheyAreOfTheProgramThatRuns) {
  run(2, [](Worker& worker) {
    EXPECT_EQ(&worker_of_task(), &worker);
    MirroredStrategy mirrored, of_worker(worker);
    CentralStorageStrategy central;
    MultiWorkerMirroredStrategy multi_worker, with_options(MultiWorkerOptions{.devices = devices_of(worker)});
    ParameterServerStrategy servers;
    for (Strategy* strategy :
         std::vector<Strategy*>{&mirrored, &of_worker, &central, &multi_worker, &with_options, &servers}) {
      SCOPED_TRACE(strategy->name());
      EXPECT_EQ(&strategy->extended().worker(), &worker);
      EXPECT_EQ(strategy->extended().worker_devices(), devices_of(worker));
      const Value ids = strategy->run([](const Value::Parts&) { return Value(1 + replica_id()); });
      EXPECT_EQ(strategy->reduce(ReduceOp::sum, ids).number(), 3);
    }
    const OneDeviceStrategy one("/cpu:0");
    EXPECT_EQ(one.extended().worker_devices(), std::vector<Device*>{&worker.cpu()});
    EXPECT_THROW(OneDeviceStrategy("/cpu:99"), UnavailableError);
    const tower::MirroredStrategy towers(tower::MirroredOptions{.num_gpus = 0});
    EXPECT_EQ(towers.worker_devices(), std::vector<Device*>{&worker.cpu()});
    EXPECT_EQ(tower::CollectiveAllReduceStrategy().worker_devices(), std::vector<Device*>{&worker.cpu()});
    EXPECT_EQ(tower::ParameterServerStrategy().worker_devices(), std::vector<Device*>{&worker.cpu()});
    // Also in the task of a replica.
    of_worker.run([&](const Value::Parts&) {
      EXPECT_EQ(&worker_of_task(), &worker);
      return Value();
    });
  });
}

TEST(StrategiesOutsideAProgram, HaveNoWorker) {
  const std::string message =
      "no worker's program is running here, so there is no current worker: make the strategy inside the program that "
      "Engine::run() calls, or give it a worker";
  EXPECT_EQ(message_of<RuntimeError>([] { MirroredStrategy(); }), message);
  EXPECT_EQ(message_of<RuntimeError>([] { CentralStorageStrategy(); }), message);
  EXPECT_EQ(message_of<RuntimeError>([] { MultiWorkerMirroredStrategy(); }), message);
  EXPECT_EQ(message_of<RuntimeError>([] { ParameterServerStrategy(); }), message);
  EXPECT_EQ(message_of<RuntimeError>([] { OneDeviceStrategy("/cpu:0"); }), message);
  EXPECT_EQ(message_of<RuntimeError>([] { tower::MirroredStrategy(); }), message);
  EXPECT_EQ(message_of<RuntimeError>([] { current_device(); }), message);
}

// A worker without compute devices, beside one that has them.
TEST_P(Strategies, AWorkerWithoutDevicesComputesOnItsCpu) {
  EngineOptions options = world_options(GetParam(), 2, 1);
  options.workers[1].job = "ps";
  options.workers[1].task = 0;
  options.workers[1].device_count = 0;
  open_engine(GetParam().engine, options)->run([](Worker& worker) {
    if (worker.job() != "ps") return;
    EXPECT_THAT(MirroredStrategy(worker).extended().worker_devices(), ElementsAre(&worker.cpu()));
    EXPECT_THAT(MirroredStrategy().extended().worker_devices(), ElementsAre(&worker.cpu()));
    EXPECT_THAT(CentralStorageStrategy().extended().worker_devices(), ElementsAre(&worker.cpu()));
  });
}

// A chief, a worker and two parameter servers.
class PlacedVariables : public ReachingOthers<InEveryWorld> {
 protected:
  void run(const Program& program) const {
    EngineOptions options = world_options(GetParam(), 4, 1);
    const std::vector<std::pair<std::string, int>> tasks = {{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      options.workers[i].job = tasks[i].first;
      options.workers[i].task = tasks[i].second;
      if (tasks[i].first == "ps") options.workers[i].device_count = 0;
    }
    open_engine(GetParam().engine, options)->run([&](Worker& worker) {
      if (worker.job() == "chief") program(worker);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, PlacedVariables, testing::ValuesIn(built_worlds()), name_of_world);

std::string place_of(Strategy& strategy, const std::string& name) {
  return name_of(*strategy.create_variable({.name = name, .shape = {1}})->devices().front());
}

TEST_P(PlacedVariables, ResolversAreThoseOfTheRunWhereNoneIsGiven) {
  run([](Worker& worker) {
    for (const ClusterResolver* resolver :
         {ParameterServerStrategy(worker).cluster_resolver(), ParameterServerStrategyV2(worker).cluster_resolver()}) {
      EXPECT_NE(resolver, nullptr);
    }
    ParameterServerStrategyV2 strategy(worker);
    EXPECT_EQ(strategy.cluster_resolver()->cluster_spec().num_tasks("ps"), 2);
    EXPECT_EQ(strategy.cluster_resolver()->task_type(), "chief");
    EXPECT_EQ(MirroredStrategy(worker).cluster_resolver(), nullptr);
  });
}

TEST_P(PlacedVariables, DeviceScopesPlaceThemOutsideStrategies) {
  run([](Worker& worker) {
    Strategy& outside = default_strategy();
    EXPECT_EQ(place_of(outside, "a"), name_of(worker.cpu()));
    {
      const DeviceScope server("/job:ps/task:1");
      EXPECT_EQ(device_scope_text(), "/job:ps/task:1");
      const auto there =
          outside.create_variable({.name = "b", .shape = {1}, .initial_value = [](std::int64_t) { return 3.0; }});
      EXPECT_EQ(name_of(*there->devices().front()), "/job:ps/replica:0/task:1/device:CPU:0");
      there->assign_add(4);
      EXPECT_EQ(host_values(worker, copied_to_host(worker, there->read())).at(0), 7);
      const DeviceScope inner("/task:0/cpu:0");
      EXPECT_EQ(place_of(outside, "c"), "/job:ps/replica:0/task:0/device:CPU:0") << "inner parts replace outer ones";
      EXPECT_EQ(name_of(current_device()), "/job:ps/replica:0/task:0/device:CPU:0");
    }
    EXPECT_EQ(device_scope_text(), "");
    const DeviceScope gpu("/cpu:7");
    const std::string refused = message_of<ValueError>([&] { place_of(outside, "d"); });
    EXPECT_THAT(refused, HasSubstr("variable 'd' in the device scope '/device:CPU:7': no device"));
    EXPECT_THAT(message_of<ValueError>([] { current_device(); }),
                HasSubstr("work in the device scope '/device:CPU:7'"));
    EXPECT_THROW(DeviceScope("/toaster"), ValueError);
    const DeviceScope tpu("/device:TPU:0");
    EXPECT_THAT(message_of<ValueError>([&] { place_of(outside, "d"); }), HasSubstr("devices are CPUs and GPUs"));
  });
}

// tf.device(tf.train.replica_device_setter(...)).
TEST_P(PlacedVariables, ADeviceSetterDealsThemToServers) {
  run([](Worker& worker) {
    Strategy& outside = default_strategy();
    const DeviceScope setter(*replica_device_setter({.ps_tasks = 2, .worker_device = "/job:chief/task:0"}));
    const std::string server = "/job:ps/replica:0/task:";
    EXPECT_EQ(place_of(outside, "a"), server + "0/device:CPU:0");
    EXPECT_EQ(place_of(outside, "b"), server + "1/device:CPU:0");
    EXPECT_EQ(place_of(outside, "c"), server + "0/device:CPU:0");
    EXPECT_EQ(&current_device(), &worker.cpu());
    const DeviceScope own("/job:chief/task:0");
    EXPECT_EQ(place_of(outside, "d"), name_of(worker.cpu())) << "another job than ps gets what it asks for";
  });
}

// As TensorFlow's tests of its strategies have it.
TEST_P(PlacedVariables, StrategiesPlaceTheirsWhateverScopesSay) {
  run([](Worker& worker) {
    ParameterServerStrategy servers(worker);
    ParameterServerStrategyV2 coordinated(worker);
    MirroredStrategy mirrored(worker);
    CentralStorageStrategy central(worker);
    OneDeviceStrategy one(worker, *worker.devices()[0]);
    const DeviceScope scope("/job:ps/task:1");
    EXPECT_EQ(place_of(servers, "a"), "/job:ps/replica:0/task:0/device:CPU:0") << "the first in turn";
    EXPECT_EQ(place_of(coordinated, "a"), "/job:ps/replica:0/task:0/device:CPU:0");
    for (Strategy* strategy : std::vector<Strategy*>{&mirrored, &central, &one}) {
      EXPECT_EQ(place_of(*strategy, "a"), name_of(*worker.devices()[0])) << strategy->name();
    }
  });
}

TEST_P(Strategies, DeviceScopesPlaceTheWorkOfReplicas) {
  for (const int devices : {1, 2}) {
    SCOPED_TRACE(devices);
    run(devices, [](Worker& worker) {
      MirroredStrategy strategy(worker);
      const DeviceScope around("/cpu:0");
      EXPECT_EQ(&current_device(), &worker.cpu());
      const Value sums = strategy.run([&](const Value::Parts&) {
        const ReplicaContext& replica = *get_replica_context();
        EXPECT_EQ(&current_device(), &replica.device()) << "a replica starts on its own device";
        const DeviceScope host("/cpu:0");
        EXPECT_EQ(&current_device(), &worker.cpu());
        return Value(filled(current_device(), {1}, 2));
      });
      EXPECT_EQ(&current_device(), &worker.cpu()) << "the scope around run() is open again";
      for (const Value& part : strategy.experimental_local_results(sums)) {
        EXPECT_EQ(&part.tensor().device(), &worker.cpu());
        EXPECT_THAT(floats_of(worker, part.tensor()), Each(2.0F));
      }
    });
  }
}

TEST_P(Strategies, AScopeIsNotLeftWhileADeviceScopeInsideIsOpen) {
  run(1, [](Worker& worker) {
    MirroredStrategy strategy(worker);
    const Scope scope = strategy.scope();
    {
      const DeviceScope inside("/cpu:0");
      EXPECT_EQ(message_of<RuntimeError>([&] { scope->leave(); }),
                "device scope nesting error: one that was opened inside this scope is still open");
      EXPECT_EQ(&get_strategy(), &strategy);
    }
    scope->leave();
    EXPECT_FALSE(has_strategy());
  });
}

}  // namespace
}  // namespace tandem
