// TensorFlow 1's strategies in every world: what they refuse, and the clusters and operations they are given.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cluster/simple_resolver.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/tower.h"
#include "strategies/types/mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> device_names(Worker& worker) {
  std::vector<std::string> names;
  for (const Device* device : worker.devices()) names.push_back(device->id().text());
  return names;
}

// Towers that mirror their variables, and towers that keep them in one place.
std::vector<tower::DistributionStrategy> towers_of(Worker& worker) {
  return {tower::MirroredStrategy(worker, {.devices = device_names(worker)}),
          tower::ParameterServerStrategy(worker, std::nullopt)};
}

void in_towers(const tower::DistributionStrategy& towers, const std::function<void()>& function) {
  towers.call_for_each_tower([&](const Value::Parts&) {
    function();
    return Value();
  });
}

// As in TensorFlow, the towers of a stored variable get one result of one update, which a SUM would count twice; those
// of a mirrored variable get one each, which they may add.
TEST_P(Strategies, TowersPassTheResultOfOneTowersUpdateToNoOtherVariable) {
  run(2, [](Worker& worker) {
    for (const tower::DistributionStrategy& towers : towers_of(worker)) {
      SCOPED_TRACE(towers.strategy().name());
      const Scope scope = towers.scope();
      const auto variable = [&](const char* name, VariableAggregation aggregation) {
        return towers.create_variable({.name = name, .shape = {1}, .aggregation = aggregation});
      };
      const auto v = variable("v", VariableAggregation::sum), w = variable("w", VariableAggregation::sum);
      const auto mean = variable("mean", VariableAggregation::mean);
      const auto mine = [] { return filled(tower::get_tower_context()->device(), {1}, 1); };
      const std::string refused = message_of<ValueError>([&] {
        Value of_first;
        in_towers(towers, [&] {
          const Tensor result = v->assign_add(mine());
          if (tower::get_tower_context()->tower_id() == 0) of_first = result;
          w->assign_add(of_first);
        });
      });
      EXPECT_THAT(refused, HasSubstr("SUM over 2 replicas of the non-DistributedValues tensor"));
      EXPECT_EQ(floats_of(worker, w->read())[0], 0);
      in_towers(towers, [&] { mean->assign_add(v->assign_add(mine())); });
      EXPECT_EQ(floats_of(worker, mean->read())[0], 4);

      const bool is_stored = v->components().size() == 1;
      const std::string own =
          message_of<ValueError>([&] { in_towers(towers, [&] { w->assign_add(v->assign_add(mine())); }); });
      EXPECT_THAT(own, HasSubstr(is_stored ? "non-DistributedValues" : "no error"));
      EXPECT_EQ(floats_of(worker, w->read())[0], is_stored ? 0 : 12);
    }
  });
}

// Counts what it is asked to reduce, and reduces it on one device.
class CountingOps final : public tower::CrossTowerOps {
 public:
  using CrossTowerOps::CrossTowerOps;
  std::vector<ReduceOp> calls{};

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override {
    calls.push_back(op);
    std::vector<Value> results;
    for (const auto& [value, destinations] : pairs) {
      results.push_back(ops_for("reduction_to_one_device", value, {}).reduce(op, value, destinations));
    }
    return results;
  }
};

TEST_P(Strategies, CrossTowerOpsMayBeAnObject) {
  run(2, [](Worker& worker) {
    const auto ops = std::make_shared<CountingOps>(worker);
    const tower::MirroredStrategy towers(worker, {.devices = device_names(worker), .cross_tower_ops = ops});
    const Scope scope = towers.scope();
    const Value ids = towers.call_for_each_tower([](const Value::Parts&) {
      const auto tower = *tower::get_tower_context();
      return Value(filled(tower.device(), {1}, 1 + 2 * tower.tower_id()));
    });
    const Value on_host = towers.reduce(VariableAggregation::sum, ids, "/device:CPU:0");
    EXPECT_EQ(floats_of(worker, towers.unwrap(on_host)[0].tensor())[0], 4);
    EXPECT_THAT(ops->calls, ElementsAre(ReduceOp::sum));
    const Value means = towers.batch_reduce(VariableAggregation::mean, {{ids, Destinations(ids)}})[0];
    ASSERT_EQ(towers.unwrap(means).size(), 2U);
    for (const Value& part : towers.unwrap(means)) EXPECT_EQ(floats_of(worker, part.tensor())[0], 2);
    EXPECT_THAT(ops->calls, ElementsAre(ReduceOp::sum, ReduceOp::mean));
    const auto v = towers.create_variable({.name = "v", .shape = {1}, .aggregation = VariableAggregation::sum});
    in_towers(towers, [&] { v->assign_add(filled(tower::get_tower_context()->device(), {1}, 3)); });
    for (const Value& component : v->component_values()) EXPECT_EQ(floats_of(worker, component.tensor())[0], 6);
    EXPECT_EQ(ops->calls.size(), 3U);
    EXPECT_EQ(towers.strategy().extended().cross_device_ops_name(), "cross_tower_ops");

    const tower::MirroredStrategy by_object(
        worker, {.devices = device_names(worker),
                 .cross_tower_ops = std::make_shared<tower::ReductionToOneDeviceCrossTowerOps>(worker)});
    const tower::MirroredStrategy by_name(worker, {.devices = device_names(worker), .cross_tower_ops = "nccl"});
    const tower::MirroredStrategy automatic(
        worker, {.devices = device_names(worker), .cross_tower_ops = std::shared_ptr<CountingOps>()});
    EXPECT_EQ(by_object.strategy().extended().cross_device_ops_name(), "cross_tower_ops");
    EXPECT_EQ(by_name.strategy().extended().cross_device_ops_name(), "nccl");
    EXPECT_NE(automatic.strategy().extended().cross_device_ops_name(), "cross_tower_ops");
  });
}

std::vector<std::vector<double>> steps_of(Worker& worker, DistributedIteratorV1& iterator) {
  std::vector<std::vector<double>> steps;
  for (int step = 0; step < 2; ++step) {
    const Value value = iterator.get_next();
    std::vector<double>& numbers = steps.emplace_back();
    for (const Value& part : value.parts()) numbers.push_back(host_values(worker, part.tensor()).at(0));
  }
  EXPECT_THROW(iterator.get_next(), OutOfRangeError);
  return steps;
}

TEST_P(Strategies, DatasetsAreDealtFromAFunctionAndAsTheyAre) {
  run(2, [](Worker& worker) {
    using Steps = std::vector<std::vector<double>>;
    Dataset numbers = Dataset::range(5);
    const Steps dealt = {{0, 1}, {2, 3}};
    const tower::MirroredStrategy towers(worker, {.devices = device_names(worker)});
    for (const DistributedDatasetV1& dataset :
         {towers.distribute_dataset([&] { return numbers; }), towers.distribute_dataset(numbers)}) {
      DistributedIteratorV1 once = dataset.make_one_shot_iterator(), again = dataset.make_initializable_iterator();
      EXPECT_EQ(steps_of(worker, once), dealt);
      EXPECT_EQ(steps_of(worker, again), dealt);
      again.initialize();
      EXPECT_EQ(steps_of(worker, again), dealt);
    }
    MirroredStrategy strategy(worker, devices_of(worker));
    DistributedIteratorV1 from_function = strategy.make_input_fn_iterator([&](const InputContext& context) {
      EXPECT_EQ(context.num_replicas_in_sync(), 2);
      return numbers;
    });
    EXPECT_EQ(steps_of(worker, from_function), dealt);
    const DistributedDataset distributed = strategy.experimental_distribute_dataset(Dataset::range(4).batch(2));
    DistributedIteratorV1 once = distributed.make_one_shot_iterator(),
                          again = distributed.make_initializable_iterator();
    EXPECT_EQ(steps_of(worker, once), dealt);
    EXPECT_EQ(steps_of(worker, again), dealt);
    again.initialize();
    EXPECT_EQ(steps_of(worker, again), dealt);
  });
}

const std::string kWorkerAndServer = R"({"worker": ["b:1"], "ps": ["p:1"]})";

// A worker of one device and a parameter server.
class ConfiguredTowers : public ReachingOthers<InEveryWorld> {
 protected:
  void run(const Program& program) const {
    EngineOptions options = world_options(GetParam(), 2, 1);
    options.workers[1].job = "ps";
    options.workers[1].task = 0;
    options.workers[1].device_count = 0;
    open_engine(GetParam().engine, options)->run([&](Worker& worker) {
      if (worker.job() != "ps") program(worker);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, ConfiguredTowers, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(ConfiguredTowers, ConfigureRefusesWhatTheRunIsNot) {
  run([](Worker& worker) {
    tower::ParameterServerStrategy servers(worker, std::nullopt);
    ClusterSpec five = {{"worker", {"w:1"}}, {"ps", {"p0:1", "p1:1", "p2:1", "p3:1", "p4:1"}}};
    const ClusterSpec cluster = ClusterSpec::from_json(kWorkerAndServer);
    EXPECT_EQ(message_of<ValueError>([&] { servers.configure(five, {.type = "worker", .id = 0}); }),
              "the cluster of configure() describes the tasks ps 0, ps 1, ps 2, ps 3, ps 4, worker 0, and the run has "
              "ps 0, worker 0");
    EXPECT_EQ(message_of<ValueError>([&] { servers.configure(cluster, {.type = "worker", .id = 7}); }),
              "the cluster of configure() says that this is worker 7, and describes only the tasks ps 0, worker 0");
    servers.configure(cluster, {.type = "worker", .id = 0});
    servers.configure(five, {.type = "worker", .id = 7});  // a second cluster is ignored

    tower::CollectiveAllReduceStrategy collective(worker, std::nullopt);
    EXPECT_THAT(message_of<ValueError>([&] { collective.configure(five, {.type = "worker", .id = 0}); }),
                HasSubstr("and the run has ps 0, worker 0"));
    tower::MirroredStrategy mirrored(worker, {.num_gpus = 0});
    EXPECT_THAT(message_of<ValueError>([&] {
                  mirrored.configure({{"worker", {"w0:1", "w1:1"}}});
                }),
                HasSubstr("describes the tasks worker 0, worker 1, and the run has ps 0, worker 0"));
  });
}

TEST_P(ConfiguredTowers, AResolverConfigures) {
  run([](Worker& worker) {
    const auto resolver = std::make_shared<SimpleResolver>(
        ClusterSpec::from_json(kWorkerAndServer),
        SimpleResolverOptions{.task = {.task_type = worker.job(), .task_id = worker.task()}});
    const tower::ParameterServerStrategy servers(worker, resolver, std::nullopt);
    EXPECT_EQ(servers.strategy().cluster_resolver(), resolver.get());
    EXPECT_EQ(servers.parameter_devices().front()->id().job, "ps");
    const tower::CollectiveAllReduceStrategy collective(worker, resolver, std::nullopt);
    EXPECT_EQ(collective.strategy().cluster_resolver(), resolver.get());
    const auto other = std::make_shared<SimpleResolver>(
        ClusterSpec::from_json(kWorkerAndServer),
        SimpleResolverOptions{.task = {.task_type = worker.job(), .task_id = worker.task() + 1}});
    EXPECT_THROW(tower::ParameterServerStrategy(worker, other, std::nullopt), ValueError);
    EXPECT_THROW(tower::CollectiveAllReduceStrategy(worker, other, std::nullopt), ValueError);
    EXPECT_THAT(message_of<ValueError>(
                    [&] { tower::ParameterServerStrategy(worker, std::shared_ptr<const ClusterResolver>()); }),
                HasSubstr("a null pointer is no cluster resolver"));
  });
}

}  // namespace
}  // namespace tandem
