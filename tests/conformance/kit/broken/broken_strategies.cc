// Strategies with one fault each, as their authors might make it, in the conformance kit. Every program of this file
// fails on purpose: kit_messages_test.cc runs it and reads what it says.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/input/input_workers.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {
namespace {

using Base = MirroredExtended;
using Options = CommunicationOptions;

// A value per replica that is reduced: each pair is replaced by what `function` makes of it.
using PairFunction = std::function<Value(const ReducePair& pair)>;
ReductionInFlight each_pair(const std::vector<ReducePair>& pairs, const PairFunction& function) {
  ReductionInFlight result;
  std::transform(pairs.begin(), pairs.end(), std::back_inserter(result.values), function);
  return result;
}

struct ForgetsTheAllReduce : Base {
  using Base::Base;
  ReductionInFlight begin_reduction(ReduceOp, const std::vector<ReducePair>& pairs, const Options&) override {
    return each_pair(pairs, [&](const ReducePair& pair) {
      return copies_on(pair.second.resolve(worker()), pair.first.parts().front());
    });
  }
};

struct AveragesInsteadOfAdding : Base {
  using Base::Base;
  ReductionInFlight begin_reduction(ReduceOp, const std::vector<ReducePair>& pairs, const Options& options) override {
    return Base::begin_reduction(ReduceOp::mean, pairs, options);
  }
};

struct ReducesTwice : Base {
  using Base::Base;
  ReductionInFlight begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                    const Options& options) override {
    std::vector<ReducePair> again = pairs;
    for (auto& [value, destinations] : again) {
      const ReducePair once = {value, Destinations(worker_devices())};
      value = Value::per_replica(Base::begin_reduction(op, {once}, options).wait().front().parts());
    }
    return Base::begin_reduction(op, again, options);
  }
};

struct UpdatesOnlyReplica0 : Base {
  using Base::Base;
  Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                  const Value::Parts& arguments, bool group) override {
    int component = 0;
    const UpdateFunction first = [&](Variable& own, const Value::Parts& parts) {
      return component++ == 0 ? function(own, parts) : Value();
    };
    return Base::do_update(variable, first, arguments, group);
  }
};

struct ReducesToTheWrongDevice : Base {
  using Base::Base;
  ReductionInFlight begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                    const Options& options) override {
    std::vector<ReducePair> moved = pairs;
    for (auto& pair : moved) pair.second = Destinations(*worker_devices().back());
    return Base::begin_reduction(op, moved, options);
  }
};

struct Deadlocks : Base {
  using Base::Base;
  Value do_call_for_each_replica(const ReplicaFunction&, const Value::Parts&) override {
    const std::unique_ptr<Monitor> monitor = worker().tasks().make_monitor();
    const std::lock_guard lock(*monitor);
    while (true) monitor->wait("a replica that never comes");
  }
};

// Gives each replica whole batches, and ends the iteration where there are not enough for all.
struct DropsTheLastBatch : Base {
  using Base::Base;
  InputWorkers input_workers() override {
    InputWorkers workers = Base::input_workers();
    workers.num_replicas_in_sync = 0;
    workers.enable_partial_batch_handling = false;
    return workers;
  }
};

struct IgnoresOnReadAggregation : Base {
  using Base::Base;
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override {
    VariableSpec changed = spec;
    if (spec.synchronization == VariableSynchronization::on_read) {
      changed.aggregation = VariableAggregation::only_first_replica;
    }
    return Base::make_variable(changed);
  }
};

struct SaysAnotherNumberOfReplicas : Base {
  using Base::Base;
  int num_replicas_in_sync() const override { return Base::num_replicas_in_sync() + 1; }
};

struct ThrowsInRun : Base {
  using Base::Base;
  Value do_call_for_each_replica(const ReplicaFunction&, const Value::Parts&) override {
    throw NotImplementedError("replicas of unequal devices");
  }
};

struct ReversesResults : Base {
  using Base::Base;
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    Value result = Base::do_call_for_each_replica(function, arguments);
    if (!result.is(ValueKind::per_replica)) return result;
    return Value::per_replica({result.parts().rbegin(), result.parts().rend()});
  }
};

struct GathersInReverse : Base {
  using Base::Base;
  Value gather_to(const Value& value, int axis, const std::vector<Device*>& to) override {
    if (!value.is_distributed()) return Base::gather_to(value, axis, to);
    const Value::Parts& parts = value.parts();
    return Base::gather_to(Value::per_replica({parts.rbegin(), parts.rend()}), axis, to);
  }
};

struct RunsReplica0Alone : Base {
  using Base::Base;
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    bool is_first = true;
    const auto first = [&](const Value::Parts& parts) {
      return std::exchange(is_first, false) ? function(parts) : Value(1);
    };
    return Base::do_call_for_each_replica(first, arguments);
  }
};

struct SwallowsExceptions : Base {
  using Base::Base;
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    try {
      return Base::do_call_for_each_replica(function, arguments);
    } catch (const std::exception&) {
      return 1;
    }
  }
};

// Says in words of its own that a worker was lost.
struct RewordsLosses : Base {
  using Base::Base;
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    try {
      return Base::do_call_for_each_replica(function, arguments);
    } catch (const UnavailableError&) {
      throw RuntimeError("the strategy has lost its worker");
    }
  }
};

// Takes the mean where somebody else was slow.
struct AsksTheClock : Base {
  using Base::Base;
  ReductionInFlight begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                    const Options& options) override {
    return Base::begin_reduction(worker().now() % 2 == 0 ? op : ReduceOp::mean, pairs, options);
  }
};

// The gradients are a little larger in every later run of the process.
struct RemembersEarlierRuns : Base {
  using Base::Base;
  ReductionInFlight begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                    const Options& options) override {
    static std::atomic<int> calls = 0;
    ReductionInFlight reduction = Base::begin_reduction(op, pairs, options);
    const double factor = 1 + 1e-4 * calls++;
    const Value sum = reduction.wait().front();
    const Value::Parts bare = {sum};
    for (const Value& part : sum.is_distributed() ? sum.parts() : bare) {
      if (!part.is(ValueKind::tensor)) continue;
      part.tensor().device().compute_stream().launch(op::scale_add(part.tensor(), part.tensor(), factor, 0));
    }
    return reduction;
  }
};

// Worker 0 makes a sum of its own before a step, the others after it.
struct MeetsInAnotherOrder : MultiWorkerMirroredExtended {
  explicit MeetsInAnotherOrder(Worker& worker) : MultiWorkerMirroredExtended(worker, MultiWorkerOptions()) {}
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    if (first_replica_id() == 0) reduce_number(ReduceOp::sum, 1);
    Value result = MultiWorkerMirroredExtended::do_call_for_each_replica(function, arguments);
    if (first_replica_id() != 0) reduce_number(ReduceOp::sum, 1);
    return result;
  }
};

// Counts the replicas of its own worker alone.
struct CountsOwnReplicas : MultiWorkerMirroredExtended {
  explicit CountsOwnReplicas(Worker& worker) : MultiWorkerMirroredExtended(worker, MultiWorkerOptions()) {}
  int num_replicas_in_sync() const override { return static_cast<int>(worker_devices().size()); }
};

std::vector<StrategyUnderTest> tested;
std::vector<StrategyTraits> tested_at_scale;

void add_tests_of(const StrategyTraits& traits) {
  for (const StrategyUnderTest& each : in_every_world(traits)) {
    const bool is_quick = each.world.name == "sim_fluid" || each.world.name == "sim_seed_1";
    if (is_quick && each.replicas > 1 && (each.workers > 1) == traits.spans_workers) tested.push_back(each);
  }
  tested_at_scale.push_back(traits);
}

template <typename Extended>
void add(const std::string& name) {
  const auto make = [name](Worker& worker, const StrategyOptions&) {
    const ReplicatedSpec spec{.devices = {worker.devices().begin(), worker.devices().end()}};
    return std::make_unique<Strategy>(name, std::make_unique<Extended>(worker, spec));
  };
  register_strategy({.name = name, .make = make});
  add_tests_of({.name = name});
}

template <typename Extended>
void add_of_several_workers(const std::string& name) {
  const auto make = [name](Worker& worker, const StrategyOptions&) {
    return std::make_unique<Strategy>(name, std::make_unique<Extended>(worker));
  };
  register_strategy({.name = name, .several_workers = true, .make = make});
  add_tests_of({.name = name, .spans_workers = true});
}

[[maybe_unused]] const bool registered = [] {
  add<ForgetsTheAllReduce>("forgets_the_all_reduce");
  add<AveragesInsteadOfAdding>("averages_instead_of_adding");
  add<ReducesTwice>("reduces_twice");
  add<UpdatesOnlyReplica0>("updates_only_replica_0");
  add<ReducesToTheWrongDevice>("reduces_to_the_wrong_device");
  add<Deadlocks>("deadlocks");
  add<DropsTheLastBatch>("drops_the_last_batch");
  add<IgnoresOnReadAggregation>("ignores_on_read_aggregation");
  add<SaysAnotherNumberOfReplicas>("says_another_number_of_replicas");
  add<ThrowsInRun>("throws_in_run");
  add<ReversesResults>("reverses_results");
  add<GathersInReverse>("gathers_in_reverse");
  add<RunsReplica0Alone>("runs_replica_0_alone");
  add<SwallowsExceptions>("swallows_exceptions");
  add<RemembersEarlierRuns>("remembers_earlier_runs");
  add<RewordsLosses>("rewords_losses");
  add<AsksTheClock>("asks_the_clock");
  add_of_several_workers<MeetsInAnotherOrder>("meets_in_another_order");
  add_of_several_workers<CountsOwnReplicas>("counts_own_replicas");
  return true;
}();

INSTANTIATE_TEST_SUITE_P(Broken, StrategyConformance, testing::ValuesIn(tested), StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(Broken, StrategyAtScale, testing::ValuesIn(tested_at_scale), StrategyAtScale::name);

}  // namespace
}  // namespace tandem
