// Metrics in every world: states per replica, added up over the replicas of all workers when they are read. All numbers
// are whole or have few bits, so that sums are exact.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/training/metrics.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Tensor numbers(std::vector<double> values, std::optional<Shape> shape = std::nullopt, DType dtype = DType::f32) {
  return constant(get_replica_context()->device(), std::move(values), shape, dtype);
}

template <typename Update>
void in_replicas(Strategy& strategy, const Update& update) {
  strategy.run([&](const Value::Parts&) -> Value {
    update();
    return {};
  });
}

// Replica r of n gets elements r, r + n, ... of a list.
std::vector<double> part_of(const std::vector<double>& all) {
  std::vector<double> mine;
  const auto step = static_cast<std::size_t>(get_replica_context()->num_replicas_in_sync());
  for (auto i = static_cast<std::size_t>(replica_id()); i < all.size(); i += step) mine.push_back(all[i]);
  return mine;
}

void expect_results_of_all_metrics(Worker& worker, Strategy& strategy) {
  const Scope scope = strategy.scope();
  metrics::Mean mean, weighted("weighted");
  metrics::Sum sum;
  metrics::Accuracy accuracy;
  metrics::BinaryAccuracy binary;
  metrics::MeanSquaredError error;
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 12}, weights{1, 0, 2, 0, 1, 0, 0, 4};
  for (int step = 0; step < 2; ++step) {
    in_replicas(strategy, [&] {
      mean.update_state(numbers(part_of(values)));
      weighted.update_state(numbers(part_of(values)), Value(numbers(part_of(weights))));
      sum.update_state(numbers(part_of(values)), Value(0.5));
      accuracy.update_state(numbers(part_of({0, 1, 2, 3, 0, 1, 2, 3}), {}, DType::i32),
                            numbers(part_of({0, 2, 2, 0, 0, 0, 2, 0}), {}, DType::i64));
      binary.update_state(numbers(part_of({0, 1, 1, 0, 1, 1, 0, 0})),
                          numbers(part_of({0.25, 0.75, 0.5, 0.625, 1, 0.5, 0, 0})));
      error.update_state(numbers(part_of(values)), numbers(part_of({2, 2, 1, 4, 5, 6, 4, 12})));
    });
  }
  EXPECT_EQ(host_number(worker, mean.result()), 5);
  EXPECT_EQ(host_number(worker, weighted.result()), (1 + 6 + 5 + 48) / 8.0);
  EXPECT_EQ(host_number(worker, sum.result()), 40);
  EXPECT_EQ(host_number(worker, accuracy.result()), 4 / 8.0);
  EXPECT_EQ(host_number(worker, binary.result()), 5 / 8.0);
  EXPECT_EQ(host_number(worker, error.result()), (1 + 4 + 9) / 8.0);
  mean.reset_state();
  EXPECT_EQ(host_number(worker, mean.result()), 0);
  in_replicas(strategy, [&] { mean.update_state(Value(3.0)); });
  EXPECT_EQ(host_number(worker, mean.result()), 3);
}

TEST_P(Strategies, MetricsAddUpOverReplicas) {
  run(2, [](Worker& worker) {
    MirroredStrategy mirrored(worker, devices_of(worker)), one(worker, {worker.devices()[1]});
    CentralStorageStrategy central(worker, devices_of(worker));
    expect_results_of_all_metrics(worker, mirrored);
    expect_results_of_all_metrics(worker, one);
    expect_results_of_all_metrics(worker, central);
  });
}

TEST_P(Strategies, MetricsAddUpOverWorkers) {
  open_world(GetParam(), 2, 2)->run([](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    expect_results_of_all_metrics(worker, strategy);
  });
}

TEST_P(Strategies, MetricsCommunicateOnlyWhenTheyAreRead) {
  const auto engine = open_world(GetParam(), 1, 2);
  const auto collectives = [&](bool reads) {
    const Timeline timeline = engine->run([&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker));
      const Scope scope = strategy.scope();
      metrics::Mean mean;
      in_replicas(strategy,
                  [&] { mean.update_state(filled(get_replica_context()->device(), {1}, 1.0 + replica_id())); });
      const std::optional<double> read = reads ? std::optional(host_number(worker, mean.result())) : std::nullopt;
      EXPECT_EQ(read.value_or(1.5), 1.5);
      mean.reset_state();
    });
    return std::ranges::count_if(timeline.records, [](const Record& record) {
      return record.kind == RecordKind::collective || record.category == Category::communication;
    });
  };
  EXPECT_EQ(collectives(false), 0);
  EXPECT_GT(collectives(true), 0);
}

TEST_P(Strategies, MetricsOfOneReplicaAndOfAll) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Scope scope = strategy.scope();
    metrics::Sum sum("hits");
    EXPECT_EQ(sum.variables().front()->name(), "hits/total");
    EXPECT_EQ(sum.variables().front()->kind(), VariableKind::sync_on_read);
    const Value results = strategy.run([&](const Value::Parts&) -> Value {
      sum.update_state(numbers({1.0 + replica_id(), 4}));
      return Value::list({sum.local_result(), sum.result()});
    });
    const Value::Parts replicas = strategy.experimental_local_results(results);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(host_number(worker, replicas[i].parts()[0].tensor()), 5.0 + static_cast<double>(i));
      EXPECT_EQ(host_number(worker, replicas[i].parts()[1].tensor()), 11);
      EXPECT_EQ(&replicas[i].parts()[1].tensor().device(), worker.devices()[i]);
    }
    in_replicas(strategy, [&] {
      if (replica_id() == 0) sum.reset_state();
    });
    EXPECT_EQ(host_number(worker, sum.result()), 6);

    EXPECT_EQ(message_of<RuntimeError>([&] { sum.update_state(Value(1.0)); }),
              "update_state() of metric 'hits' is called outside run() of strategy 'mirrored', in whose scope it was "
              "created; call it inside, in every replica");
    EXPECT_THAT(message_of<RuntimeError>([&] { sum.local_result(); }), HasSubstr("call it inside run()"));
  });
}

TEST_P(Strategies, MetricsTakeWeightsAndTypes) {
  run(1, [](Worker& worker) {
    Device& host = worker.cpu();
    const auto tensor = [&](std::vector<double> values, std::optional<Shape> shape = {}, DType dtype = DType::f32) {
      return constant(host, std::move(values), shape, dtype);
    };
    metrics::Mean mean;  // of the default strategy, where everything is one replica
    EXPECT_EQ(host_number(worker, mean.result()), 0);
    mean.update_state(tensor({1, 3, 5, 7}, Shape{2, 2}), Value(tensor({3, 1})));
    EXPECT_EQ(host_number(worker, mean.result()), (3 * 2 + 6) / 4.0);
    mean.update_state(tensor({1, 2, 3, 4}, Shape{2, 2}, DType::i64), Value(tensor({1, 0, 1, 2}, Shape{2, 2})));
    EXPECT_EQ(host_number(worker, mean.result()), (12 + 12) / 8.0);
    EXPECT_EQ(
        message_of<ValueError>([&] {
          mean.update_state(tensor({1, 2, 3}), Value(tensor({1, 2})));
        }),
        "metric 'mean' is given values of shape [3] and weights of shape [2]: there is a weight for each value, or "
        "for each index of the first axes");
    metrics::MeanSquaredError error;
    error.update_state(tensor({0, 0, 0, 0}, Shape{2, 2}), tensor({1, 3, 2, 2}, Shape{2, 2}), Value(tensor({1, 3})));
    EXPECT_EQ(host_number(worker, error.result()), (5 + 3 * 4) / 4.0);
    EXPECT_EQ(message_of<ValueError>([&] {
                error.update_state(tensor({1, 2}), tensor({1}));
              }),
              "metric 'mean_squared_error' is given labels of shape [2] and predictions of shape [1]");
    metrics::Accuracy accuracy;
    const double large = 0x1p53;
    accuracy.update_state(tensor({large, 1, 255}, {}, DType::i64), tensor({large - 1, 1, 255}, {}, DType::i64));
    EXPECT_NEAR(host_number(worker, accuracy.result()), 2.0 / 3, 1e-7);
    accuracy.reset_state();
    accuracy.update_state(tensor({0, 255}, {}, DType::u8), tensor({255, 255}, {}, DType::u8));
    EXPECT_EQ(host_number(worker, accuracy.result()), 0.5);
    metrics::SparseCategoricalAccuracy categorical;
    categorical.update_state(tensor({2, 0, 1, 1}, {}, DType::i64),
                             tensor({0.1, 0.2, 0.7, 0.9, 0.05, 0.05, 0.3, 0.3, 0.4, 0, 1, 0}, Shape{4, 3}));
    EXPECT_EQ(host_number(worker, categorical.result()), 0.75);
  });
}

}  // namespace
}  // namespace tandem
