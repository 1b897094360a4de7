// Which cross-device operations a strategy uses, in every world: what "auto" chooses, objects and classes of the
// user's, options per call. Values are whole numbers, so that every sum is exact.
#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <thread>

#include "docs/examples/tree_all_reduce.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/choose.h"
#include "strategies/cross_device/collective_all_reduce.h"
#include "strategies/cross_device/hierarchical_copy_all_reduce.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/cross_device/reduction_to_one_device.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/tower/strategies.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<DeviceId> ids_of(const std::vector<Device*>& devices) {
  std::vector<DeviceId> ids;
  for (const Device* device : devices) ids.push_back(device->id());
  return ids;
}

// Replica i's tensor of `size` elements is filled with 10^i, so that a sum shows who took part, and how often.
Value powers_of_ten(const std::vector<Device*>& devices, std::int64_t size) {
  Value::Parts parts;
  double value = 1;
  for (Device* device : devices) {
    parts.emplace_back(filled(*device, {size}, value));
    value *= 10;
  }
  return Value::per_replica(std::move(parts));
}

// Sums tensors of several sizes on all devices and on the host, and expects every replica to count once.
void expect_sums(Worker& worker, Strategy& strategy) {
  const std::vector<Device*> devices = devices_of(worker);
  float total = 0, power = 1;
  for (std::size_t i = 0; i < devices.size(); ++i, power *= 10) total += power;
  const Scope scope = strategy.scope();
  std::vector<ReducePair> pairs;
  for (const std::int64_t size : {7, 1, 30}) pairs.emplace_back(powers_of_ten(devices, size), devices);
  pairs.emplace_back(powers_of_ten(devices, 2), worker.cpu());
  const std::vector<Value> sums = strategy.extended().batch_reduce_to(ReduceOp::sum, pairs);
  for (const Value& sum : sums) {
    for (const Value& part : sum.is_distributed() ? sum.parts() : Value::Parts{sum}) {
      EXPECT_THAT(floats_of(worker, part.tensor()), Each(total));
    }
  }
  const Value means = strategy.run([](const Value::Parts&) {
    ReplicaContext& context = *get_replica_context();
    return context.all_reduce(ReduceOp::mean, Value(filled(context.device(), {5}, 1 + 2 * replica_id())));
  });
  for (const Value& mean : strategy.experimental_local_results(means)) {
    EXPECT_THAT(floats_of(worker, mean.tensor()), Each(static_cast<float>(devices.size())));
  }
}

TEST_P(Strategies, AutoIsTheCollectiveOnDevicesOfOneKind) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    EXPECT_EQ(strategy.extended().cross_device_ops_name(), "collective");
    EXPECT_EQ(MirroredStrategy(worker, devices_of(worker), "nccl").extended().cross_device_ops_name(), "nccl");
    expect_sums(worker, strategy);
  });
}

// The GPUs of small_cluster's only worker with NVLinks between those that `links` names.
std::shared_ptr<const Topology> with_nvlinks(const std::vector<std::vector<int>>& links) {
  auto topology = std::make_shared<Topology>(*small_cluster(1, static_cast<int>(links.size())));
  const Figure rate{.value = 20e9, .source = "a test's round figure"}, delay{.value = 1e-6, .source = rate.source};
  const auto nvlink = std::make_shared<const LinkModel>(LinkModel{LinkKind::nvlink, rate, delay});
  const auto gpu = [&](int i) { return topology->find("w0.gpu" + std::to_string(i)).value(); };
  for (int i = 0; i < static_cast<int>(links.size()); ++i) {
    for (const int peer : links[static_cast<std::size_t>(i)]) {
      if (i < peer) topology->add_link(gpu(i), gpu(peer), nvlink);
    }
  }
  return topology;
}

const std::vector<std::vector<int>> kDgx1 = {{1, 2, 3, 4}, {0, 2, 3, 5}, {0, 1, 3, 6}, {0, 1, 2, 7},
                                             {0, 5, 6, 7}, {1, 4, 6, 7}, {2, 4, 5, 7}, {3, 4, 5, 6}};

// TensorFlow 1 goes by the links; its towers print what was chosen. TensorFlow 2 takes the collective in any case.
TEST_P(Strategies, AutoOfTowersGoesByTheLinks) {
  if (!GetParam().collectives) GTEST_SKIP() << "a world whose links are what they are";
  const std::vector<std::vector<int>> none(8), four = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
  struct Case {
    std::vector<std::vector<int>> links;
    std::string_view expected;
  };
  for (const Case& on : {Case{kDgx1, "hierarchical_copy"}, {none, "nccl"}, {four, "nccl"}}) {
    EngineOptions options = world_options(GetParam(), 1, static_cast<int>(on.links.size()));
    options.topology = with_nvlinks(on.links);
    open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
      std::vector<std::vector<int>> seen;
      for (const Hardware& hardware : worker.capabilities().hardware) {
        if (hardware.type == DeviceType::gpu) seen.push_back(hardware.links);
      }
      EXPECT_EQ(seen, on.links);
      const tower::MirroredStrategy towers(worker);
      EXPECT_EQ(towers.strategy().extended().cross_device_ops_name(), on.expected);
      expect_sums(worker, towers.strategy());
      MirroredStrategy mirrored(worker, devices_of(worker));
      EXPECT_EQ(mirrored.extended().cross_device_ops_name(), "collective");
    });
  }
}

TEST_P(Strategies, LinksOfWhatIsNoGpuAreNotThere) {
  run(2, [](Worker& worker) {
    for (const Hardware& hardware : worker.capabilities().hardware) {
      EXPECT_TRUE(hardware.type == DeviceType::gpu || hardware.links.empty()) << hardware.name;
    }
    const CrossDeviceChoice choice = choose_automatically_v1(worker, worker.devices());
    const bool are_gpus = GetParam().compute_devices == DeviceType::gpu;
    EXPECT_EQ(choice.algorithm, are_gpus ? CrossDeviceAlgorithm::nccl : CrossDeviceAlgorithm::reduction_to_one_device);
  });
}

TEST_P(Strategies, AutoReducesToOneDeviceWhereGpusAndCpusAreTogether) {
  if (GetParam().compute_devices != DeviceType::gpu) GTEST_SKIP() << "a world of CPUs only";
  run(2, [](Worker& worker) {
    std::vector<Device*> devices = devices_of(worker);
    devices.push_back(&worker.cpu());
    MirroredStrategy strategy(worker, devices);
    EXPECT_EQ(strategy.extended().cross_device_ops_name(), "reduction_to_one_device");
    const Value sum = strategy.extended().reduce_to(ReduceOp::sum, powers_of_ten(devices, 3), Destinations(devices));
    for (const Value& part : sum.parts()) EXPECT_THAT(floats_of(worker, part.tensor()), Each(111.0F));
  });
}

TEST_P(Strategies, AStrategyTakesOperationsOfTheUser) {
  for (const int replicas : {1, 2, 3, 4, 6}) {
    run(replicas, [&](Worker& worker) {
      for (const Packing& packing : {Packing{.num_packs = 0}, Packing{.num_packs = 2}, Packing{.bytes_per_pack = 16}}) {
        MirroredStrategy strategy(worker, devices_of(worker),
                                  std::make_shared<TreeAllReduce>(worker, devices_of(worker), packing));
        EXPECT_EQ(strategy.extended().cross_device_ops_name(), "tree");
        expect_sums(worker, strategy);
      }
    });
  }
}

TEST_P(Strategies, AStrategyTakesAnyOperationsAsAnObject) {
  run(4, [](Worker& worker) {
    const std::vector<Device*> devices = devices_of(worker);
    const std::vector<std::shared_ptr<CrossDeviceOps>> all = {
        std::make_shared<NcclAllReduce>(worker, devices),
        std::make_shared<HierarchicalCopyAllReduce>(worker, devices, Packing{.num_packs = 4}),
        std::make_shared<ReductionToOneDevice>(worker, devices, Packing{}, devices.back()),
        std::make_shared<CollectiveAllReduce>(worker, devices, ids_of(devices), Packing{},
                                              CommunicationOptions{.bytes_per_pack = 64})};
    for (const std::shared_ptr<CrossDeviceOps>& ops : all) {
      MirroredStrategy strategy(worker, devices, ops);
      EXPECT_EQ(strategy.extended().cross_device_ops_name(), ops->name());
      expect_sums(worker, strategy);
    }
    MirroredStrategy unspecified(worker, devices, std::shared_ptr<CrossDeviceOps>());
    EXPECT_EQ(unspecified.extended().cross_device_ops_name(), "collective");
  });
}

TEST_P(Strategies, OperationsForOtherDevicesAreRefused) {
  run(3, [](Worker& worker) {
    const std::vector<Device*> devices = devices_of(worker), two = {devices[0], devices[1]},
                               turned = {devices[1], devices[0]};
    const auto ops = std::make_shared<TreeAllReduce>(worker, two);
    EXPECT_NO_THROW(MirroredStrategy(worker, two, ops));
    EXPECT_THAT(message_of<ValueError>([&] { MirroredStrategy(worker, devices, ops); }), HasSubstr("'tree'"));
    EXPECT_THROW(MirroredStrategy(worker, turned, ops), ValueError);
  });
}

TEST_P(Strategies, AGroupThatDoesNotFitIsRefused) {
  run(3, [](Worker& worker) {
    const std::vector<Device*> devices = devices_of(worker), two = {devices[0], devices[1]};
    const std::vector<DeviceId> all = ids_of(devices), first_two = ids_of(two);
    EXPECT_THAT(message_of<ValueError>([&] { CollectiveAllReduce(worker, two, all); }),
                HasSubstr("a group of 3 devices cannot be divided among workers of 2"));
    EXPECT_THROW(CollectiveAllReduce(worker, {devices[2]}, first_two), ValueError);
    EXPECT_THROW(CollectiveAllReduce(worker, {devices[1], devices[0]}, first_two), ValueError);
    EXPECT_THROW(CollectiveAllReduce(worker, {}, first_two), ValueError);
    EXPECT_EQ(CollectiveAllReduce(worker, two, first_two).group_size(), 2);
  });
}

Tensor largest(Stream& stream, const std::vector<Tensor>& tensors) {
  Tensor result = stream.device().allocate(tensors.front().dtype(), tensors.front().shape());
  stream.copy(result, tensors.front());
  for (const Tensor& tensor : tensors) {
    stream.launch(op::elementwise(kernel::Binary::maximum, result, result, tensor));
  }
  return result;
}

TEST_P(Strategies, ReductionToOneDeviceTakesADeviceAndAnAccumulation) {
  run(3, [](Worker& worker) {
    const std::vector<Device*> devices = devices_of(worker);
    for (Device* device : {devices[0], devices[2], &worker.cpu()}) {
      MirroredStrategy strategy(worker, devices,
                                std::make_shared<ReductionToOneDevice>(worker, devices, Packing{}, device, largest));
      StrategyExtended& extended = strategy.extended();
      const Value everywhere = extended.reduce_to(ReduceOp::sum, powers_of_ten(devices, 2), Destinations(devices));
      for (const Value& part : everywhere.parts()) EXPECT_THAT(floats_of(worker, part.tensor()), Each(100.0F));
      const Value on_host = extended.reduce_to(ReduceOp::sum, powers_of_ten(devices, 2), worker.cpu());
      EXPECT_THAT(floats_of(worker, on_host.tensor()), Each(100.0F));
    }
    const auto elsewhere = [&](Stream&, const std::vector<Tensor>&) { return filled(*devices[1], {2}, 1); };
    ReductionToOneDevice wrong(worker, devices, {}, devices[0], elsewhere);
    EXPECT_THROW(wrong.reduce(ReduceOp::sum, powers_of_ten(devices, 2), Destinations(devices)), UsageError);
  });
}

// Three tensors of 16 bytes go alone, in one pack, or in a pack of two and one more: as many collectives are recorded.
TEST_P(Strategies, OptionsOfACallOverrideThePacking) {
  std::vector<std::size_t> collectives;
  const std::vector<CommunicationOptions> calls = {
      {}, {.bytes_per_pack = 1 << 20}, {.bytes_per_pack = 16}, {.implementation = CommunicationImplementation::ring}};
  for (const CommunicationOptions& options : calls) {
    const Timeline timeline = open_world(GetParam(), 1, 2)->run([&](Worker& worker) {
      const std::vector<Device*> devices = devices_of(worker);
      MirroredStrategy strategy(worker, devices, "collective", Packing{.num_packs = 0});
      std::vector<ReducePair> pairs;
      for (int i = 0; i < 3; ++i) pairs.emplace_back(powers_of_ten(devices, 4), devices);
      for (const Value& sum : strategy.extended().batch_reduce_to(ReduceOp::sum, pairs, options)) {
        for (const Value& part : sum.parts()) EXPECT_THAT(floats_of(worker, part.tensor()), Each(11.0F));
      }
    });
    std::set<std::int64_t> calls_seen;
    for (const Record& record : timeline.records) {
      if (record.kind == RecordKind::collective) calls_seen.insert(record.sequence);
    }
    collectives.push_back(calls_seen.size());
  }
  EXPECT_THAT(collectives, ElementsAre(3, 1, 2, 3));
}

TEST_P(Strategies, OptionsOfACallAreChecked) {
  run(2, [](Worker& worker) {
    const std::vector<Device*> devices = devices_of(worker);
    MirroredStrategy strategy(worker, devices);
    StrategyExtended& extended = strategy.extended();
    const Value ones = powers_of_ten(devices, 1);
    const Destinations all(devices);
    for (const CommunicationOptions& wrong :
         {CommunicationOptions{.bytes_per_pack = -1}, CommunicationOptions{.timeout_seconds = 0.0}}) {
      EXPECT_THROW(extended.reduce_to(ReduceOp::sum, ones, all, wrong), ValueError);
      EXPECT_THROW(extended.batch_reduce_to("sum", {{ones, all}}, wrong), ValueError);
      EXPECT_THROW(extended.begin_batch_reduce_to(ReduceOp::sum, {{ones, all}}, wrong), ValueError);
    }
    const Value sum = extended.reduce_to("SUM", ones, all, {.timeout_seconds = 60.0});
    for (const Value& part : sum.parts()) EXPECT_THAT(floats_of(worker, part.tensor()), Each(11.0F));
  });
}

// A replica's own call takes options, too.
TEST_P(Strategies, AnAllReduceOfReplicasTakesOptions) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto sum_with = [&](const CommunicationOptions& options) {
      return strategy.run([&](const Value::Parts&) {
        ReplicaContext& context = *get_replica_context();
        return context.all_reduce("sum", Value(filled(context.device(), {3}, 1 + replica_id())), options);
      });
    };
    const Value sums = sum_with({.bytes_per_pack = 4, .timeout_seconds = 60.0});
    for (const Value& part : sums.parts()) {
      EXPECT_THAT(floats_of(worker, part.tensor()), Each(3.0F));
    }
    EXPECT_THROW(sum_with({.bytes_per_pack = -4}), ValueError);
    EXPECT_EQ(strategy.run([](const Value::Parts&) { return Value::literal(1); }).number(), 1);  // still usable
  });
}

TEST_P(Strategies, ATimeoutOfACallEndsTheRunWhereAWorkerDoesNotJoin) {
  EXPECT_THROW(open_world(GetParam(), 2, 1)->run([](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    if (worker.index() == 1) return;
    Device& device = *worker.devices().front();
    strategy.extended().reduce_to(ReduceOp::sum, Value(filled(device, {1}, 1)), device, {.timeout_seconds = 0.2});
    device.synchronize();
  }),
               DeadlineExceededError);
}

// Worker 1 joins the second call, which has the strategy's own timeout, later than the first call's allows.
TEST_P(Strategies, ATimeoutOfACallIsThatCallsOnly) {
  const bool is_simulated = GetParam().collectives.has_value();
  open_world(GetParam(), 2, 1)->run([&](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    Device& device = *worker.devices().front();
    const auto sum = [&](const CommunicationOptions& options) {
      const Value one = Value(filled(device, {1}, 1));
      return floats_of(worker, strategy.extended().reduce_to(ReduceOp::sum, one, device, options).tensor());
    };
    EXPECT_THAT(sum({.timeout_seconds = 1.0}), ElementsAre(2));
    if (worker.index() == 1) {
      const auto wait = [=] { std::this_thread::sleep_for(std::chrono::milliseconds(is_simulated ? 0 : 1500)); };
      device.compute_stream().launch(op::host_function("late", {.flops = 2e12}, wait));
    }
    EXPECT_THAT(sum({}), ElementsAre(2));
  });
}

TEST_P(Strategies, ThirtyTwoBitIntegersAreReducedOnOneDevice) {
  run(2, [](Worker& worker) {
    const std::vector<Device*> devices = devices_of(worker);
    class Refusing final : public CrossDeviceOps {
     public:
      Refusing(Worker& here, const std::vector<Device*>& on) : CrossDeviceOps(here, on) {}
      std::string_view name() const override { return "refusing"; }
      void sum_in_place(const std::vector<TensorGroup>&) override { throw ValueError("not asked for integers"); }
    };
    MirroredStrategy strategy(worker, devices, std::make_shared<Refusing>(worker, devices));
    const auto on_each = [&](DType dtype) {
      Value::Parts parts;
      for (Device* device : devices) {
        parts.emplace_back(device->allocate(dtype, {2}));
        device->compute_stream().launch(op::fill(parts.back().tensor(), 3));
      }
      return Value::per_replica(std::move(parts));
    };
    StrategyExtended& extended = strategy.extended();
    const Destinations all(devices);
    const Value sum = extended.reduce_to(ReduceOp::sum, on_each(DType::i32), all);
    for (const Value& part : sum.parts()) {
      const Tensor as_float = part.tensor().device().allocate(DType::f32, {2});
      as_float.device().compute_stream().launch(op::cast(as_float, part.tensor()));
      EXPECT_THAT(floats_of(worker, as_float), Each(6.0F));
    }
    EXPECT_THROW(extended.reduce_to(ReduceOp::sum, on_each(DType::f32), all), ValueError);
    EXPECT_THAT(message_of<ValueError>([&] {
                  extended.batch_reduce_to(ReduceOp::sum, {{on_each(DType::i32), all}, {on_each(DType::f32), all}});
                }),
                HasSubstr("different cross-device ops"));
  });
}

}  // namespace
}  // namespace tandem
