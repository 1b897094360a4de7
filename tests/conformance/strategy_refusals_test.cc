// What strategies refuse, in every world, and that the message names what is wrong and what would be right.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/collective_all_reduce.h"
#include "strategies/cross_device/hierarchical_copy_all_reduce.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/cross_device/reduction_to_one_device.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/variables/apply_gradients.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

TEST_P(Strategies, ANullPointerAmongDevicesIsRefusedWithItsPlace) {
  run(2, [](Worker& worker) {
    const std::vector<Device*> devices = {worker.devices()[0], nullptr};
    const auto refused = [](const std::function<void()>& call) { return message_of<ValueError>(call); };
    const auto place = HasSubstr("the device at place 1 of the 2 of ");
    EXPECT_EQ(refused([&] { MirroredStrategy(worker, devices); }),
              "the device at place 1 of the 2 of a strategy is a null pointer; list devices of a worker, as "
              "Worker::devices() has them");
    EXPECT_THAT(refused([&] { MirroredStrategy(worker, devices, "hierarchical_copy"); }), place);
    EXPECT_THAT(refused([&] { CentralStorageStrategy(worker, devices); }), place);
    EXPECT_THAT(refused([&] { CentralStorageStrategy(worker, {nullptr}); }), HasSubstr("at place 0 of the 1 of"));
    EXPECT_THAT(refused([&] { MultiWorkerMirroredStrategy(worker, {.devices = devices}); }), place);
    EXPECT_THAT(refused([&] { ParameterServerStrategy(worker, devices); }), place);
    EXPECT_THAT(refused([&] { NcclAllReduce(worker, devices); }), place);
    EXPECT_THAT(refused([&] { CollectiveAllReduce(worker, devices, {devices[0]->id()}); }), place);
    EXPECT_THAT(refused([&] { HierarchicalCopyAllReduce(worker, devices, {}); }), place);
    EXPECT_THAT(refused([&] { ReductionToOneDevice(worker, devices); }), place);
    EXPECT_THAT(refused([&] { DistributedDataset(Dataset::range(4).batch(2), worker, devices); }), place);
    MirroredStrategy strategy(worker, devices_of(worker));
    EXPECT_THAT(
        refused([&] { strategy.extended().update_non_slot(devices, [](const Value::Parts&) { return Value(); }); }),
        place);
    EXPECT_THAT(refused([&] { NcclAllReduce(worker, devices_of(worker)).broadcast(1.0, Destinations(devices)); }),
                place);
  });
}

TEST_P(Strategies, AVariableOfAnotherStrategyIsNotChangedInRun) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker)), other(worker, {worker.devices()[0]});
    const auto foreign = other.create_variable({.name = "w", .shape = {1}, .aggregation = VariableAggregation::sum});
    const auto refused = [&](const std::function<void()>& change) {
      return message_of<RuntimeError>([&] {
        strategy.run([&](const Value::Parts&) {
          change();
          return Value();
        });
      });
    };
    EXPECT_EQ(refused([&] { foreign->assign_add(1); }),
              "assign_add() of variable 'w' in a context of a strategy that did not create it (mixing different "
              "strategies): it was created outside this 'mirrored' strategy's scope, by another 'mirrored' strategy; "
              "create it inside the scope");
    EXPECT_THAT(refused([&] {
                  foreign->scatter_add({filled(*worker.devices()[0], {1}, 1),
                                        constant(*worker.devices()[0], {0}, Shape{1}, DType::i64), Shape{1}});
                }),
                HasSubstr("a scatter of variable 'w' in a context of a strategy that did not create it"));
    EXPECT_EQ(host_values(worker, foreign->read()).at(0), 0);
  });
}

TEST_P(Strategies, ADenseAndASparseGradientOfOneVariableAreRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto w = strategy.create_variable({.name = "w", .shape = {2, 1}});
    const auto gradient = [](int replica) -> Value {
      Device& device = get_replica_context()->device();
      if (replica == 0) return filled(device, {2, 1}, 1);
      return IndexedSlices{filled(device, {1, 1}, 1), constant(device, {0}, Shape{1}, DType::i64), Shape{2, 1}};
    };
    const auto refused = [&](const std::function<void()>& call) {
      return message_of<TypeError>([&] {
        strategy.run([&](const Value::Parts&) {
          call();
          return Value();
        });
      });
    };
    EXPECT_EQ(
        refused([&] {
          apply_gradients({{gradient(replica_id()), w}}, [](Variable& v, const Value& sum) { v.assign_sub(sum); });
        }),
        "the gradient of variable 'w' is a tensor on replica 0 of this worker and an IndexedSlices on replica 1: "
        "all replicas give the same kind, dense or IndexedSlices");
    EXPECT_EQ(refused([&] { get_replica_context()->all_reduce(ReduceOp::sum, gradient(replica_id())); }),
              "a reduction of a tensor at place 0 and an IndexedSlices at place 1: all devices give the same kind");
    EXPECT_EQ(message_of<TypeError>([] { Value(IndexedSlices{}).tensor(); }),
              "expected a value that is a tensor, found an IndexedSlices");
  });
}

TEST_P(Strategies, AValueOfMorePartsThanReplicasIsRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value three = Value::per_replica({Value(1), Value(2), Value(3)});
    const auto nothing = [](const Value::Parts&) { return Value(); };
    EXPECT_EQ(message_of<ValueError>([&] { strategy.run(nothing, {Value::list({three})}); }),
              "run() needs a part for each of 2 replicas, and argument 0 is a per-replica value of 3 parts");
    MirroredStrategy one(worker, {worker.devices()[0]});
    EXPECT_EQ(message_of<ValueError>([&] { one.run(nothing, {three}); }),
              "run() needs a part for each of 1 replicas, and argument 0 is a per-replica value of 3 parts");
    const auto v = strategy.create_variable({.name = "v", .shape = {1}});
    EXPECT_THAT(message_of<ValueError>([&] { v->assign(three); }),
                HasSubstr("update() needs a part for each of 2 components, and argument 0"));
  });
}

TEST_P(Strategies, AnAxisOutsideTheRankIsRefusedWithTheRange) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto mine = [] { return Value(filled(get_replica_context()->device(), {2, 3}, 1)); };
    const Value parts = strategy.run([&](const Value::Parts&) { return mine(); });
    for (const int axis : {-1, 2}) {
      const std::string message =
          "gather along axis " + std::to_string(axis) + " of shape [2, 3], which has rank 2: the axis is from 0 to 1";
      EXPECT_EQ(message_of<InvalidArgumentError>([&] { strategy.gather(parts, axis); }), message);
      EXPECT_EQ(message_of<InvalidArgumentError>([&] {
                  strategy.run([&](const Value::Parts&) { return get_replica_context()->all_gather(mine(), axis); });
                }),
                message);
    }
    const Value numbers = strategy.run([](const Value::Parts&) { return Value(1.0 + replica_id()); });
    EXPECT_EQ(message_of<InvalidArgumentError>([&] { strategy.gather(numbers, 1); }),
              "gather along axis 1 of shape [1], which has rank 1: the axis is 0");
  });
}

}  // namespace
}  // namespace tandem
