#include "tests/conformance/kit/strategy_conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/strategy/replica_context.h"
#include "tests/conformance/kit/failure_points.h"
#include "tests/conformance/kit/judged_run.h"
#include "tests/conformance/kit/program_run.h"

namespace tandem {

std::vector<StrategyUnderTest> in_every_world(const StrategyTraits& traits) {
  std::vector<StrategyUnderTest> all;
  for (const World& world : built_worlds()) {
    for (const int replicas : {1, 2, 4}) {
      if (replicas > traits.max_replicas) continue;
      all.push_back({traits, world, replicas});
      if (traits.uses_servers) all.push_back({.traits = traits, .world = world, .replicas = replicas, .servers = 2});
      for (int workers = 2; traits.spans_workers && workers <= replicas; workers *= 2) {
        const int servers = traits.uses_servers ? 2 * workers - 3 : 0;
        all.push_back({.traits = traits, .world = world, .replicas = replicas, .workers = workers, .servers = servers});
      }
    }
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const StrategyUnderTest& tested) {
  out << "strategy '" << tested.traits.name << "' with " << tested.replicas
      << (tested.replicas == 1 ? " replica" : " replicas");
  if (tested.workers > 1) out << " in " << tested.workers << " workers";
  if (tested.servers > 0) out << " and " << tested.servers << " parameter servers";
  out << " in world " << tested.world.name;
  if (tested.world.schedule_seed) out << " (schedule seed " << *tested.world.schedule_seed << ")";
  return out;
}

std::ostream& operator<<(std::ostream& out, const StrategyTraits& traits) {
  return out << traits.name;
}

std::string StrategyConformance::name(const testing::TestParamInfo<StrategyUnderTest>& info) {
  const StrategyUnderTest& tested = info.param;
  std::string name = tested.traits.name + "_" + std::to_string(tested.replicas);
  if (tested.workers > 1) name += "_in_" + std::to_string(tested.workers) + "_workers";
  if (tested.servers > 0) name += "_with_" + std::to_string(tested.servers) + "_servers";
  return name + "_" + tested.world.name;
}

void StrategyConformance::under_strategy(const World& world, const StrategyProgram& program) const {
  run_strategy(GetParam(), world, program);
}

namespace {

ReplicaContext& replica() {
  return *get_replica_context();
}
int id() {
  return replica().replica_id_in_sync_group();
}
Tensor filled(Device& device, const Shape& shape, double value) {
  Tensor tensor = device.allocate(DType::f32, shape);
  device.compute_stream().launch(op::fill(tensor, value));
  return tensor;
}
VariableSpec one_number(double initial, VariableAggregation aggregation,
                        VariableSynchronization synchronization = VariableSynchronization::automatic) {
  return {.name = "v",
          .shape = {1},
          .initial_value = [initial](std::int64_t) { return initial; },
          .synchronization = synchronization,
          .aggregation = aggregation};
}

// Adds the numbers of all workers that train.
Numbers sums_of_workers(Worker& worker, const Numbers& numbers) {
  std::vector<DeviceId> hosts;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job != "ps") hosts.push_back({.job = spec.job, .task = spec.task, .type = DeviceType::cpu, .index = 0});
  }
  const std::vector<Tensor> sums = {worker.cpu().allocate(DType::f32, {static_cast<std::int64_t>(numbers.size())})};
  std::copy(numbers.begin(), numbers.end(), sums.front().values<float>().begin());
  const std::vector<Stream*> streams = {&worker.cpu().compute_stream()};
  worker.communicator(hosts).all_reduce(sums, Reduction::sum, streams);
  return host_values(worker, sums.front());
}

// What each local replica returned or has.
ByReplica local_numbers(Worker& worker, Strategy& strategy, const Value& value) {
  ByReplica numbers;
  for (const Value& part : strategy.experimental_local_results(value)) {
    numbers.push_back(part.is(ValueKind::number) ? Numbers{part.number()} : host_values(worker, part.tensor()));
  }
  return numbers;
}
// `number` of each local replica's id.
ByReplica of_each_replica(const Judge& judge, const std::function<Numbers(int)>& numbers) {
  ByReplica all;
  for (int i = 0; i < judge.local_replicas(); ++i) all.push_back(numbers(judge.first_replica() + i));
  return all;
}
Numbers repeated(std::int64_t count, double number) {
  return Numbers(static_cast<std::size_t>(count), number);
}

Value returns_its_id(const Value::Parts&) {
  return id();
}
void expect_to_run_again(Judge& judge, Worker& worker, Strategy& strategy) {
  judge.asks("run() after a run() that threw", "can be used again after an exception: run() begins anew");
  judge.expect_by_replica("the returned replica id", local_numbers(worker, strategy, strategy.run(returns_its_id)),
                          of_each_replica(judge, [](int i) { return Numbers{double(i)}; }));
}

TEST_P(StrategyConformance, EveryReplicaRunsOnceAndKnowsItself) {
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    const Numbers count = {double(GetParam().replicas)};
    judge.asks("num_replicas_in_sync()", "counts the replicas of all workers that are in sync");
    judge.expect("the strategy's", {double(strategy.num_replicas_in_sync())}, count);
    judge.asks("run()", "calls the function once for each replica of this worker, in the order of their ids");
    Numbers ids, counts;
    bool is_own = true;
    const Value returned = strategy.run([&](const Value::Parts&) {
      ids.push_back(id());
      counts.push_back(replica().num_replicas_in_sync());
      is_own = is_own && &replica().strategy() == &strategy;
      return id();
    });
    const ByReplica expected = of_each_replica(judge, [](int i) { return Numbers{double(i)}; });
    Numbers expected_ids;
    for (const Numbers& one : expected) expected_ids.push_back(one.front());
    judge.expect("the ids of the replicas that the function was called for", ids, expected_ids);
    if (!is_own) judge.fail("strategy() of a replica context is another strategy, must be the one that runs");
    judge.expect("num_replicas_in_sync() of the replica contexts", counts, repeated(std::ssize(ids), count.front()));
    judge.asks("experimental_local_results() of what run() returned, each replica its own id",
               "returns the results of run() in the order of the replicas");
    judge.expect_by_replica("the result", local_numbers(worker, strategy, returned), expected);
  });
}

TEST_P(StrategyConformance, MergeCallsMeetAndASkippedOneIsAnError) {
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    int merges = 0;
    judge.asks("merge_call() three times in each replica of a run()",
               "lets all replicas of a worker meet in a merge_call and calls its function once for all of them");
    strategy.run([&](const Value::Parts&) {
      for (int i = 0; i < 3; ++i) {
        replica().merge_call([&](Strategy&, const Value::Parts&) {
          ++merges;
          return Value();
        });
      }
      return Value();
    });
    judge.expect("how often the functions were called", {double(merges)}, {3});
    if (judge.local_replicas() == 1) return;
    judge.asks(fmt::format("run() in which replica {} makes a merge_call and the others none", judge.first_replica()),
               "refuses replicas that do not meet, and does not hang or go on without a word");
    judge.must_throw<RuntimeError>("RuntimeError", [&] {
      strategy.run([&](const Value::Parts&) {
        if (id() == judge.first_replica()) replica().merge_call([](Strategy&, const Value::Parts&) { return Value(); });
        return Value();
      });
    });
    expect_to_run_again(judge, worker, strategy);
  });
}

TEST_P(StrategyConformance, AnExceptionReachesTheCaller) {
  struct Own : std::exception {
    const char* what() const noexcept override { return "the replica's own exception"; }
  };
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    const int last = judge.first_replica() + judge.local_replicas() - 1;
    judge.asks(fmt::format("run() in which replica {} throws and the others make a merge_call", last),
               "rethrows the first exception of a replica from run()");
    judge.must_throw<Own>("the replica's exception", [&] {
      strategy.run([&](const Value::Parts&) -> Value {
        if (id() == last) throw Own();
        replica().merge_call([](Strategy&, const Value::Parts&) { return Value(); });
        return {};
      });
    });
    expect_to_run_again(judge, worker, strategy);
  });
}

TEST_P(StrategyConformance, ReductionsAndGathersAreExact) {
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    const int n = GetParam().replicas;
    judge.asks("run() that returns 3 elements of 4 * (id + 1)", "returns the results in the order of the replicas");
    const Value values =
        strategy.run([&](const Value::Parts&) { return Value(filled(replica().device(), {3}, 4 * (id() + 1))); });
    judge.expect_by_replica("the result", local_numbers(worker, strategy, values),
                            of_each_replica(judge, [](int i) { return repeated(3, 4 * (i + 1)); }));
    const auto expect_reduced = [&](const std::string& call, const Value& reduced, const Numbers& expected) {
      const std::string of = " of what run() returned, on replica r 3 elements of 4 * (r + 1)";
      judge.asks(call + of, "combines the values of all replicas, each once, and returns the result on the host's CPU");
      const Tensor& tensor = reduced.tensor();
      judge.expect("the result", host_values(worker, tensor), expected);
      judge.expect_text("the device of the result", tensor.device().id().text(), worker.cpu().id().text());
    };
    judge.asks("reduce()", "combines the values of all replicas");
    expect_reduced("reduce(SUM)", strategy.reduce(ReduceOp::sum, values), repeated(3, 2.0 * n * (n + 1)));
    expect_reduced("reduce(MEAN)", strategy.reduce(ReduceOp::mean, values), repeated(3, 2.0 * (n + 1)));
    expect_reduced("reduce(SUM, axis 0)", strategy.reduce(ReduceOp::sum, values, 0), {6.0 * n * (n + 1)});
    judge.asks("gather(axis 0) of what run() returned, on replica r 3 elements of 4 * (r + 1)",
               "concatenates the values of all replicas in the order of their ids");
    Numbers gathered;
    for (int r = 0; r < n; ++r) gathered.insert(gathered.end(), 3, 4 * (r + 1));
    judge.expect("the result", host_values(worker, strategy.gather(values, 0).tensor()), gathered);
    judge.asks("all_reduce(SUM) of 2 elements of id + 1 in a replica context",
               "combines the values of all replicas, each once, and gives the result to every replica");
    const Value sums = strategy.run([&](const Value::Parts&) {
      return replica().all_reduce(ReduceOp::sum, Value(filled(replica().device(), {2}, id() + 1)));
    });
    judge.expect_by_replica("the result", local_numbers(worker, strategy, sums),
                            judge.each(repeated(2, n * (n + 1) / 2.0)));
  });
}

std::string rule_of(VariableAggregation aggregation, VariableSynchronization synchronization, bool are_shared) {
  const std::string by = aggregation == VariableAggregation::sum    ? "adds the values of all replicas"
                         : aggregation == VariableAggregation::mean ? "takes the mean of the values of all replicas"
                         : are_shared ? "takes the value of the first replica of all workers"
                                      : "takes the value of its worker's first replica";
  return by + (synchronization == VariableSynchronization::on_read ? " when the variable is read"
                                                                   : " and changes every component alike");
}

TEST_P(StrategyConformance, VariablesAggregate) {
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    const int n = GetParam().replicas;
    const bool is_replicated = GetParam().traits.replicates_variables;
    const bool are_shared = GetParam().traits.uses_servers && GetParam().workers > 1;
    const auto expect_after = [&](VariableAggregation aggregation, VariableSynchronization synchronization,
                                  double expected) {
      judge.asks(
          fmt::format("assign_add(4 * (id + 1)) of variable 'v' (synchronization {}, aggregation {}, at first 0)",
                      name_of(synchronization), name_of(aggregation)),
          rule_of(aggregation, synchronization, are_shared));
      const auto v = strategy.create_variable(one_number(0, aggregation, synchronization));
      strategy.run([&](const Value::Parts&) {
        v->assign_add(filled(replica().device(), {1}, 4 * (id() + 1)));
        return Value();
      });
      judge.expect("read() after it", host_values(worker, v->read()), {expected});
      const bool is_on_read = synchronization == VariableSynchronization::on_read;
      if (!is_replicated) return;
      judge.expect_by_replica(
          "the replica's component of variable 'v'", components_of(worker, *v),
          is_on_read ? of_each_replica(judge, [](int i) { return Numbers{4.0 * (i + 1)}; }) : judge.each({expected}));
    };
    for (const auto synchronization : {VariableSynchronization::automatic, VariableSynchronization::on_read}) {
      expect_after(VariableAggregation::sum, synchronization, 2 * n * (n + 1));
      expect_after(VariableAggregation::mean, synchronization, 2 * (n + 1));
      // Each worker takes its own, as in TensorFlow, unless all change one variable.
      const int first = are_shared ? 0 : judge.first_replica();
      expect_after(VariableAggregation::only_first_replica, synchronization, 4 * (first + 1));
    }
    judge.asks("assign(5) of variable 'v' (aggregation MEAN) in the cross-replica context",
               is_replicated ? "keeps one component of the variable for each replica and assigns to all of them"
                             : "assigns to every component of the variable");
    const auto v = strategy.create_variable(one_number(1, VariableAggregation::mean));
    v->assign(Value::literal(5));
    const ByReplica found = components_of(worker, *v);
    judge.expect_by_replica("the component of variable 'v'", found,
                            is_replicated ? judge.each({5}) : ByReplica(found.size(), Numbers{5}));
  });
}

// The rows of a dataset by how often they came: "0 times: 16, 17".
std::string rows_that_came_otherwise(const Numbers& seen) {
  std::map<double, Numbers> rows;
  for (std::size_t row = 0; row < seen.size(); ++row) {
    if (seen[row] != 1) rows[seen[row]].push_back(static_cast<double>(row));
  }
  std::string lines;
  for (const auto& [times, which] : rows)
    lines += fmt::format("  came {} times: rows {}\n", times, numbers_text(which));
  return lines;
}

TEST_P(StrategyConformance, EveryElementOfADatasetComesOnce) {
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    // The last batch of the second dataset has one row, so that only one replica has data.
    for (const std::int64_t rows : {22, 17}) {
      judge.asks(fmt::format("experimental_distribute_dataset() of Dataset::range({}).batch(8)", rows),
                 "gives every row to one replica, also those of the last batch, which is smaller: input_workers() says "
                 "how batches are divided");
      auto iterator = strategy.experimental_distribute_dataset(Dataset::range(rows).batch(8)).iterator();
      Numbers seen = repeated(rows, 0);  // how often
      while (const auto batch = iterator.next()) {
        for (const Numbers& part : local_numbers(worker, strategy, *batch)) {
          for (const double element : part) ++seen.at(static_cast<std::size_t>(element));
        }
      }
      const std::string lines = rows_that_came_otherwise(sums_of_workers(worker, seen));
      if (!lines.empty()) judge.fail("not every row came once, over all replicas", lines);
    }
  });
}

TEST_P(StrategyConformance, TrainingDescends) {
  run_judged(GetParam(), [&](Judge& judge, Worker& worker, Strategy& strategy) {
    descend(judge, worker, strategy, {.steps = 12, .is_exact = GetParam().traits.trains_in_step});
  });
}

TEST_P(StrategyConformance, RandomCallsEndAlikeInEveryWorld) {
  const JudgedCall comparison{"random_calls(seed 7, 30 calls)",
                              "computes the same values on every engine and under every schedule"};
  std::mutex mutex;  // guards what the workers of real engines note
  const auto seen_by_workers = [&](StrategyUnderTest tested, const World& world) {
    std::map<int, std::vector<SeenCall>> seen;
    tested.world = world;
    run_judged(tested, [&](Judge& judge, Worker& worker, Strategy& strategy) {
      const auto calls = random_calls(worker, strategy, 7, 30, [&](const std::string& call) {
        judge.asks(call + " of " + comparison.call, comparison.rule);
      });
      const std::lock_guard lock(mutex);
      seen[worker.index()] = calls;
    });
    return seen;
  };
  const World first = built_worlds().front();
  const auto expected = seen_by_workers(GetParam(), first);
  if (HasFailure()) return;
  for (const auto& [worker, found] : seen_by_workers(GetParam(), GetParam().world)) {  // those of this process
    expect_same_calls(GetParam(), comparison.call, found, expected.at(worker), "in world " + first.name);
    EXPECT_GT(found.size(), 30u);
  }
}

TEST_P(StrategyConformance, DrawnProgramsComeToWhatTheyMust) {
  const StrategyUnderTest& tested = GetParam();
  const ProgramWorld world{.replicas = tested.replicas,
                           .workers = tested.workers,
                           .replicates_variables = tested.traits.replicates_variables,
                           .trains_in_step = tested.traits.trains_in_step,
                           .where = testing::PrintToString(tested)};
  expect_drawn_programs(world, [&](const StrategyProgram& program) { under_strategy(tested.world, program); });
}

// Why failures are not tried in this world, "" where they are.
std::string reason_to_skip_failures(const World& world) {
  if (engine_info(world.engine).faults == FaultSupport::none) return "nothing goes wrong in this engine on purpose";
  return rank_of_process().count > 1 ? "a lost worker takes its process with it" : "";
}

TEST_P(StrategyConformance, LostWorkersEndTheRunAtEveryCall) {
  if (const std::string reason = reason_to_skip_failures(GetParam().world); !reason.empty()) GTEST_SKIP() << reason;
  expect_lost_workers_to_end_runs(GetParam());
}

TEST_P(StrategyConformance, ExceptionsReachTheCallerFromEveryPoint) {
  if (const std::string reason = reason_to_skip_failures(GetParam().world); !reason.empty()) GTEST_SKIP() << reason;
  expect_exceptions_to_reach_callers(GetParam());
}

TEST_P(StrategyConformance, SlowDevicesChangeNoValue) {
  if (const std::string reason = reason_to_skip_failures(GetParam().world); !reason.empty()) GTEST_SKIP() << reason;
  expect_slow_devices_to_change_no_value(GetParam());
}

TEST_P(StrategyConformance, TrainingResumesFromItsCheckpointAfterEveryCall) {
  if (const std::string reason = reason_to_skip_failures(GetParam().world); !reason.empty()) GTEST_SKIP() << reason;
  expect_training_to_resume(GetParam());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StrategyConformance);

}  // namespace
}  // namespace tandem
