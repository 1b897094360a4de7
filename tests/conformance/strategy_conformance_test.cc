// Mirrored and OneDevice in every world: what a strategy computes does not depend on where it runs. The numbers of
// variables are those of TensorFlow's own tests. Values are whole numbers, so that every sum is exact.
#include <gmock/gmock.h>

#include "strategies/context.h"
#include "strategies/errors.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/mirrored.h"
#include "strategies/replica_context.h"
#include "strategies/strategies.h"
#include "tests/conformance/worlds.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Device*> devices_of(Worker& worker) {
  return {worker.devices().begin(), worker.devices().end()};
}

// What a tensor holds, brought to the host.
std::vector<float> host_values(Worker& worker, const Tensor& tensor) {
  const Tensor host = worker.cpu().allocate(tensor.dtype(), tensor.shape());
  tensor.device().synchronize();
  worker.cpu().compute_stream().copy(host, tensor);
  worker.cpu().compute_stream().synchronize();
  const std::span<float> values = host.values<float>();
  return {values.begin(), values.end()};
}

Tensor filled(Device& device, Shape shape, double value) {
  const Tensor tensor = device.allocate(DType::f32, shape);
  device.compute_stream().launch(op::fill(tensor, value));
  return tensor;
}

int replica_id() {
  return get_replica_context()->replica_id_in_sync_group();
}

template <typename Expected>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another kind of error: ") + error.what();
  }
  return "no error";
}

class Strategies : public InEveryWorld {
 protected:
  void run(int devices, const Program& program) const { open_world(GetParam(), 1, devices)->run(program); }
};

TEST_P(Strategies, RunRegroupsByIdentity) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value shared = Value::literal(5);
    const Value result = strategy.run([&](const Value::Parts&) {
      return Value::tuple({Value(5.0 * replica_id()), shared, Value::literal(7)});
    });
    ASSERT_TRUE(result.is(ValueKind::tuple));
    EXPECT_TRUE(result.parts()[0].is(ValueKind::per_replica));
    EXPECT_EQ(result.parts()[0].parts()[2].number(), 10);
    EXPECT_EQ(result.parts()[1].number(), 5);
    EXPECT_EQ(result.parts()[2].number(), 7);
    EXPECT_EQ(strategy.experimental_local_results(result).size(), 3u);
  });
}

TEST_P(Strategies, ReplicasAdvanceInOrderUpToTheNextMergeCall) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    std::vector<std::string> order;
    strategy.run([&](const Value::Parts&) {
      order.push_back("a" + std::to_string(replica_id()));
      get_replica_context()->merge_call([&](Strategy& merging, const Value::Parts&) {
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_EQ(&merging, &strategy);
        order.push_back("merge");
        return Value();
      });
      order.push_back("b" + std::to_string(replica_id()));
      return Value();
    });
    EXPECT_THAT(order, ElementsAre("a0", "a1", "a2", "merge", "b0", "b1", "b2"));
  });
}

TEST_P(Strategies, MergeCallRegroupsArgumentsAndSplitsTheResult) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value result = strategy.run([&](const Value::Parts&) {
      const Value part = get_replica_context()->merge_call(
          [](Strategy&, const Value::Parts& arguments) {
            EXPECT_TRUE(arguments[0].is(ValueKind::per_replica));
            EXPECT_TRUE(arguments[1].is(ValueKind::number));
            return Value::per_replica(
                {Value(arguments[0].parts()[1].number()), Value(arguments[0].parts()[0].number())});
          },
          {Value(10.0 + replica_id()), Value::literal(1)});
      return Value(part.number());
    });
    EXPECT_EQ(result.parts()[0].number(), 11);  // swapped
    EXPECT_EQ(result.parts()[1].number(), 10);
  });
}

TEST_P(Strategies, RunInsideAMergeFunction) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value result = strategy.run([&](const Value::Parts&) {
      return get_replica_context()->merge_call([](Strategy& merging, const Value::Parts&) {
        return merging.run([](const Value::Parts&) { return Value(1.0 + replica_id()); });
      });
    });
    EXPECT_EQ(result.parts()[1].number(), 2);
  });
}

TEST_P(Strategies, AReplicaThatSkipsAMergeCallIsAnErrorThatNamesWhoWaits) {
  for (const int skipping : {0, 1, 2}) {
    run(3, [&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker));
      const std::string message = message_of<RuntimeError>([&] {
        strategy.run([&](const Value::Parts&) {
          if (replica_id() != skipping) {
            get_replica_context()->merge_call([](Strategy&, const Value::Parts&) { return Value(); });
          }
          return Value();
        });
      });
      EXPECT_THAT(message, HasSubstr("different number of merge_call"));
      EXPECT_THAT(message, HasSubstr("replica " + std::to_string(skipping) + " (0 made) finished"));
      EXPECT_THAT(message, HasSubstr("replica " + std::to_string((skipping + 1) % 3) + " (call 1)"));
      EXPECT_EQ(strategy.run([](const Value::Parts&) { return Value::literal(1); }).number(), 1);  // still usable
    });
  }
}

TEST_P(Strategies, TheExceptionOfAReplicaReachesTheCaller) {
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto merge = [](const MergeFunction& function) { return get_replica_context()->merge_call(function); };
    const std::vector<ReplicaFunction> failing = {
        [](const Value::Parts&) -> Value {
          if (replica_id() == 1) throw Own("in a replica");
          return {};
        },
        [&](const Value::Parts&) {
          return merge([](Strategy&, const Value::Parts&) -> Value { throw Own("in a merge"); });
        },
        [&](const Value::Parts&) {
          return merge([](Strategy& s, const Value::Parts&) {
            return s.run([](const Value::Parts&) -> Value { throw Own("in a nested run"); });
          });
        },
        [&](const Value::Parts&) {
          return merge([&](Strategy& s, const Value::Parts&) {
            return s.run([&](const Value::Parts&) {
              return merge([](Strategy&, const Value::Parts&) -> Value { throw Own("in a nested merge"); });
            });
          });
        }};
    for (const ReplicaFunction& function : failing) EXPECT_THROW(strategy.run(function), Own);
  });
}

TEST_P(Strategies, ContextsAreAsInTensorFlow) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    EXPECT_FALSE(has_strategy());
    EXPECT_NE(get_replica_context(), nullptr);
    EXPECT_FALSE(in_cross_replica_context());
    {
      const Scope scope = strategy.scope();
      EXPECT_EQ(&get_strategy(), &strategy);
      EXPECT_TRUE(has_strategy());
      EXPECT_EQ(get_replica_context(), nullptr);
      EXPECT_EQ(get_cross_replica_context(), &strategy);
      const Scope again = strategy.scope();
      EXPECT_TRUE(in_cross_replica_context());
    }
    strategy.run([&](const Value::Parts&) {
      EXPECT_EQ(&get_replica_context()->strategy(), &strategy);
      EXPECT_EQ(get_cross_replica_context(), nullptr);
      EXPECT_THROW(strategy.reduce(ReduceOp::sum, Value::literal(1)), RuntimeError);
      EXPECT_THROW({ const Scope scope = strategy.scope(); }, RuntimeError);
      return Value();
    });
    EXPECT_FALSE(has_strategy());
    const Value joined = get_replica_context()->merge_call(
        [](Strategy&, const Value::Parts& arguments) { return Value(arguments[0].text() + arguments[1].text()); },
        {Value(std::string("foo_")), Value(std::string("bar"))});
    EXPECT_EQ(joined.text(), "foo_bar");
  });
}

TEST_P(Strategies, MixingStrategiesIsRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy one(worker, devices_of(worker));
    OneDeviceStrategy other(worker, *worker.devices()[0]);
    const Scope scope = one.scope();
    EXPECT_THAT(message_of<RuntimeError>([&] { const Scope inner = other.scope(); }), HasSubstr("mixing different"));
    EXPECT_THAT(message_of<RuntimeError>([&] { other.run([](const Value::Parts&) { return Value(); }); }),
                HasSubstr("mixing different"));
    EXPECT_THROW(experimental_set_strategy(&other), RuntimeError);
  });
}

TEST_P(Strategies, ReduceOfSharedAndPerReplicaNumbers) {
  run(4, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value ids = strategy.run([](const Value::Parts&) { return Value(1.0 + replica_id()); });
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, ids).number(), 10);
    EXPECT_EQ(strategy.reduce(ReduceOp::mean, ids).number(), 2.5);
    EXPECT_EQ(strategy.reduce(ReduceOp::mean, Value::literal(3)).number(), 3);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, Value::literal(0)).number(), 0);
    EXPECT_THROW(strategy.reduce(ReduceOp::sum, Value::literal(3)), ValueError);
    EXPECT_THROW(strategy.reduce(ReduceOp::sum, Value::mirrored({Value(1.0), Value(1.0)})), AssertionError);
  });
}

// Replica 0 holds one 0, replica 1 two 1s: every element has weight one, so the mean is 2/3.
TEST_P(Strategies, MeanOverAnAxisWeighsElements) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value values = strategy.run([](const Value::Parts&) {
      return Value(filled(get_replica_context()->device(), {1 + replica_id()}, replica_id()));
    });
    const Tensor mean = strategy.reduce(ReduceOp::mean, values, 0).tensor();
    EXPECT_FLOAT_EQ(host_values(worker, mean)[0], 2.0F / 3);
    const Tensor sum = strategy.reduce(ReduceOp::sum, values, -1).tensor();
    EXPECT_EQ(host_values(worker, sum)[0], 2);
    EXPECT_THROW(strategy.reduce(ReduceOp::sum, values, 1), ValueError);
  });
}

TEST_P(Strategies, EveryCrossDeviceOperationSums) {
  for (const char* name : {"nccl", "hierarchical_copy", "reduction_to_one_device"}) {
    for (const int n : {1, 2, 3, 8}) {
      for (const Packing packing : {Packing{.num_packs = 0}, Packing{.num_packs = 2}, Packing{.bytes_per_pack = 40}}) {
        run(n, [&](Worker& worker) {
          MirroredStrategy strategy(worker, devices_of(worker), name, packing);
          const std::vector<std::int64_t> sizes = {1, 7, 10, 1000};
          std::vector<std::vector<Tensor>> tensors(static_cast<std::size_t>(n));
          for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
            strategy.run([&](const Value::Parts&) {
              ReplicaContext& context = *get_replica_context();
              auto& mine = tensors[static_cast<std::size_t>(replica_id())];
              mine.clear();
              for (std::size_t t = 0; t < sizes.size(); ++t) {
                mine.push_back(
                    filled(context.device(), {sizes[t]}, static_cast<double>(t + 1) * (replica_id() + 1) * n));
              }
              context.all_reduce_async(op, mine).wait();
              return Value();
            });
            const double total = n * (n + 1) / 2 * (op == ReduceOp::sum ? n : 1);
            for (const auto& mine : tensors) {
              for (std::size_t t = 0; t < sizes.size(); ++t) {
                EXPECT_THAT(host_values(worker, mine[t]),
                            testing::Each(static_cast<float>(total * static_cast<double>(t + 1))))
                    << name << " over " << n << " devices, " << name_of(op);
              }
            }
          }
        });
      }
    }
  }
}

// On the simulated engine's own clock, which repeats; the real one's is in the benchmarks.
TEST_P(Strategies, PackingSmallGradientsPaysInTheModel) {
  if (!GetParam().collectives) GTEST_SKIP() << "a real engine's times are for benchmarks";
  const auto time_of = [&](const Packing& packing) {
    Nanoseconds took = 0;
    run(4, [&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker), "nccl", packing);
      std::vector<std::vector<Tensor>> gradients(4);
      for (std::size_t r = 0; r < 4; ++r) {
        for (int i = 0; i < 500; ++i) gradients[r].push_back(worker.devices()[r]->allocate(DType::f32, {256}));
      }
      const Nanoseconds start = worker.now();
      strategy.run([&](const Value::Parts&) {
        get_replica_context()
            ->all_reduce_async(ReduceOp::sum, gradients[static_cast<std::size_t>(replica_id())])
            .wait();
        return Value();
      });
      for (Device* device : worker.devices()) device->synchronize();
      took = worker.now() - start;
    });
    return static_cast<double>(took);
  };
  EXPECT_GE(time_of({.num_packs = 0}), 5 * time_of({.num_packs = 1}));
}

TEST_P(Strategies, AllReduceLeavesItsArgumentsAndKeepsTheStructure) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value result = strategy.run([](const Value::Parts&) {
      ReplicaContext& context = *get_replica_context();
      const Tensor mine = filled(context.device(), {3}, 1 + replica_id());
      const Value sums = context.all_reduce(ReduceOp::sum, Value::list({Value(mine), Value(2.0 * replica_id())}));
      return Value::tuple({sums, Value(mine)});
    });
    const Value& first = result.parts()[0].parts()[0];
    EXPECT_THAT(host_values(worker, first.parts()[1].tensor()), testing::Each(3.0F));
    EXPECT_EQ(result.parts()[0].parts()[1].number(), 2);
    EXPECT_THAT(host_values(worker, result.parts()[1].parts()[0].tensor()), testing::Each(1.0F));
  });
}

struct AssignCase {
  VariableAggregation aggregation;
  double initial;
  std::function<void(Variable&)> change;  // made in every replica
  std::vector<float> components;
};

// TensorFlow's values for two replicas, semantics of 2.4 and later.
TEST_P(Strategies, MirroredVariablesAggregateAssignments) {
  using enum VariableAggregation;
  const auto id = [] { return static_cast<double>(replica_id()); };
  const std::vector<AssignCase> cases = {
      {mean, 1, [id](Variable& v) { v.assign(id()); }, {0.5, 0.5}},
      {mean, 1, [id](Variable& v) { v.assign_add(id()); }, {1.5, 1.5}},
      {mean, 5, [id](Variable& v) { v.assign_sub(id()); }, {4.5, 4.5}},
      {mean, 1, [](Variable& v) { v.assign_add(Value::literal(5)); }, {6, 6}},
      {sum, 1, [](Variable& v) { v.assign(Value(2.0)); }, {4, 4}},
      {only_first_replica, 3, [id](Variable& v) { v.assign_add(7 * (id() + 1)); }, {10, 10}},
      {none, 1, [id](Variable& v) { v.assign_add(id()); }, {1, 2}},
  };
  for (const AssignCase& assign : cases) {
    run(2, [&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker));
      const auto variable = strategy.create_variable({.shape = {1},
                                                      .initial_value = [&](std::int64_t) { return assign.initial; },
                                                      .aggregation = assign.aggregation});
      strategy.run([&](const Value::Parts&) {
        assign.change(*variable);
        return Value();
      });
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(host_values(worker, variable->components()[i])[0], assign.components[i]);
      }
    });
  }
}

TEST_P(Strategies, ReplicasUpdateTheirOwnComponentsByThemselves) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {2}, .initial_value = [](std::int64_t) { return 10; }});
    const UpdateFunction add = [](Variable& component, const Value::Parts& arguments) {
      component.assign_add(arguments.front());
      return Value();
    };
    strategy.run([&](const Value::Parts&) {
      StrategyExtended& extended = get_strategy().extended();
      Value::Parts parts;
      for (Device* device : extended.worker_devices()) parts.emplace_back(filled(*device, {2}, 5));
      extended.replica_update(variable, add, {Value::mirrored(parts)});
      extended.replica_update(variable, add, {Value(filled(get_replica_context()->device(), {2}, replica_id()))});
      return Value();
    });
    for (int i = 0; i < 3; ++i) {
      const auto component = static_cast<std::size_t>(i);
      EXPECT_THAT(host_values(worker, variable->components()[component]), ElementsAre(15 + i, 15 + i));
    }
    EXPECT_THAT(message_of<RuntimeError>([&] { strategy.extended().replica_update(variable, add, {Value(1.0)}); }),
                HasSubstr("replica_update() is called in a replica context"));
  });
}

TEST_P(Strategies, SumOfASharedLiteralIsRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {1}, .aggregation = VariableAggregation::sum});
    EXPECT_THROW(strategy.run([&](const Value::Parts&) {
      variable->assign(Value::literal(5));
      return Value();
    }),
                 ValueError);
  });
}

TEST_P(Strategies, SyncOnReadVariablesAggregateWhenRead) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {1},
                                                    .initial_value = [](std::int64_t) { return 1.0; },
                                                    .synchronization = VariableSynchronization::on_read,
                                                    .aggregation = VariableAggregation::sum});
    strategy.run([&](const Value::Parts&) {
      variable->assign_add(2.0 + replica_id());
      return Value();
    });
    EXPECT_EQ(host_values(worker, variable->components()[0])[0], 3);
    EXPECT_EQ(host_values(worker, variable->components()[1])[0], 4);
    EXPECT_EQ(host_values(worker, variable->read())[0], 7);
    variable->assign(Value::literal(6));
    EXPECT_EQ(host_values(worker, variable->components()[1])[0], 3);
    EXPECT_THROW(variable->assign_add(Value::literal(1)), ValueError);
  });
}

TEST_P(Strategies, GlobalBatchesAreDividedAmongReplicas) {
  EXPECT_THAT(rebatch(4, 3), ElementsAre(2, 1, 1));
  EXPECT_THAT(rebatch(2, 4), ElementsAre(1, 1, 0, 0));
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    HostArray rows{.row_shape = {1}, .values = std::vector<float>{0, 1, 2, 3, 4, 5}};
    auto iterator = strategy.experimental_distribute_dataset(Dataset::from_tensor_slices({rows}).batch(4)).iterator();
    std::vector<std::vector<float>> seen;
    while (const auto batch = iterator.next()) {
      const Value& parts = batch->parts()[0];
      for (const Value& part : parts.parts()) seen.push_back(host_values(worker, part.tensor()));
    }
    // Sharded by data, as AUTO does without files: pieces of ceil(b / n) rows, and empty ones for the rest.
    EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(), ElementsAre(4), ElementsAre(5),
                                  ElementsAre()));
  });
}

TEST_P(Strategies, OneDeviceCallsDirectly) {
  run(1, [](Worker& worker) {
    OneDeviceStrategy strategy(worker, *worker.devices()[0]);
    const Value result = strategy.run([](const Value::Parts& arguments) { return arguments.front(); }, {Value(3.0)});
    EXPECT_EQ(result.number(), 3);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, result).number(), 3);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  });
}

TEST_P(Strategies, WrongNamesSuggestTheRightOnes) {
  run(1, [](Worker& worker) {
    EXPECT_THAT(message_of<ValueError>([&] { make_strategy("mirored", worker); }),
                HasSubstr("did you mean 'mirrored'"));
    EXPECT_THAT(message_of<ValueError>([&] { MirroredStrategy(worker, devices_of(worker), "ncl"); }),
                HasSubstr("did you mean 'nccl'"));
    EXPECT_THROW(MirroredStrategy(worker, {}), ValueError);
    EXPECT_THROW(MirroredStrategy(worker, devices_of(worker), "nccl", Packing{.num_packs = -1}), ValueError);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Strategies, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
