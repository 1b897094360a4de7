// What strategies cost beside the device work: per op of a step, per run(), per variable, and what packing saves.
#include <benchmark/benchmark.h>

#include <atomic>
#include <functional>

#include "engine/engine.h"
#include "engine/kernels/kernels.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "tests/benchmarks/exact_counters.h"

namespace tandem {
namespace {

// Runs `program`, whose iterations begin at the time that it returns, and counts their work.
void on_cpu(benchmark::State& state, int devices, const std::function<Nanoseconds(Worker&, Strategy&)>& program,
            Packing packing = {}) {
  EngineOptions options;
  options.workers = {{.device_count = devices}};
  Nanoseconds begin = 0;
  const Timeline timeline = open_engine("cpu", options)->run([&](Worker& worker) {
    MirroredStrategy strategy(worker, {worker.devices().begin(), worker.devices().end()}, "nccl", packing);
    begin = program(worker, strategy);
  });
  count_work(state, timeline, state.iterations(), begin);
}

void synchronize_all(Worker& worker) {
  for (Device* device : worker.devices()) device->synchronize();
}

// A step of 1,000 ops a replica that do next to nothing. us_per_op: of one replica's ops, the kernel's own time, which
// `bare_kernel` shows, included.
void step_of_tiny_ops(benchmark::State& state) {
  constexpr int kOps = 1000;
  on_cpu(state, static_cast<int>(state.range(0)), [&](Worker& worker, Strategy& strategy) {
    std::vector<Tensor> tensors;
    for (Device* device : worker.devices()) tensors.push_back(device->allocate(DType::f32, {16}));
    const Nanoseconds begin = worker.now();
    for (auto _ : state) {
      strategy.run([&](const Value::Parts&) {
        ReplicaContext& context = *get_replica_context();
        const Tensor& mine = tensors[static_cast<std::size_t>(context.replica_id_in_sync_group())];
        for (int i = 0; i < kOps; ++i) context.device().compute_stream().launch(op::fill(mine, 1));
        return Value();
      });
      synchronize_all(worker);
    }
    state.counters["us_per_op"] = benchmark::Counter(static_cast<double>(state.iterations() * kOps) * 1e-6,
                                                     benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    return begin;
  });
}
BENCHMARK(step_of_tiny_ops)->Arg(1)->Arg(2)->UseRealTime();

void bare_kernel(benchmark::State& state) {
  on_cpu(state, 1, [&](Worker& worker, Strategy&) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {16});
    const Nanoseconds begin = worker.now();
    const std::int64_t allocations = heap_allocations();
    for (auto _ : state) execute(op::fill(tensor, 1).kernel);
    count_allocations(state, allocations);
    return begin;
  });
}
BENCHMARK(bare_kernel);

void empty_run(benchmark::State& state) {
  on_cpu(state, static_cast<int>(state.range(0)), [&](Worker& worker, Strategy& strategy) {
    std::atomic<std::int64_t> calls = 0;
    const Nanoseconds begin = worker.now();
    for (auto _ : state)
      strategy.run([&](const Value::Parts&) {
        ++calls;
        return Value();
      });
    state.counters["us_per_replica"] =
        benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)) * 1e-6,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    set_exact(state, "calls", static_cast<double>(calls) / static_cast<double>(state.iterations()));
    return begin;
  });
}
BENCHMARK(empty_run)->Arg(1)->Arg(2)->Arg(8)->UseRealTime();

void reduce_of_a_scalar(benchmark::State& state) {
  on_cpu(state, 8, [&](Worker& worker, Strategy& strategy) {
    Value::Parts parts;
    for (int i = 0; i < 8; ++i) parts.emplace_back(static_cast<double>(i));
    const Value value = Value::per_replica(parts);
    const Nanoseconds begin = worker.now();
    const std::int64_t allocations = heap_allocations();
    for (auto _ : state) benchmark::DoNotOptimize(strategy.reduce(ReduceOp::sum, value).number());
    count_allocations(state, allocations);
    return begin;
  });
}
BENCHMARK(reduce_of_a_scalar)->UseRealTime();

// 100 mirrored variables on 8 replicas, each updated by a function that does nothing: the calls alone.
void update_of_100_variables(benchmark::State& state) {
  on_cpu(state, 8, [&](Worker& worker, Strategy& strategy) {
    std::vector<std::shared_ptr<Variable>> variables;
    for (int i = 0; i < 100; ++i) variables.push_back(strategy.create_variable({.name = "v", .shape = {16}}));
    const Value one = Value::literal(1);
    synchronize_all(worker);
    const Nanoseconds begin = worker.now();
    const std::int64_t allocations = heap_allocations();
    for (auto _ : state) {
      for (const auto& variable : variables) {
        strategy.extended().update(variable, [](Variable&, const Value::Parts&) { return Value(); }, {one});
      }
    }
    count_allocations(state, allocations);
    state.counters["us_per_call_and_replica"] =
        benchmark::Counter(static_cast<double>(state.iterations() * 800) * 1e-6,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    return begin;
  });
}
BENCHMARK(update_of_100_variables)->UseRealTime();

// 500 gradients of 256 floats each on two replicas: one pack, or 500 calls of the communicator.
void small_gradients(benchmark::State& state) {
  const Packing packing{.num_packs = state.range(0) != 0 ? 1 : 0};
  on_cpu(
      state, 2,
      [&](Worker& worker, Strategy& strategy) {
        std::vector<std::vector<Tensor>> gradients(2);
        for (std::size_t r = 0; r < 2; ++r) {
          for (int i = 0; i < 500; ++i) gradients[r].push_back(worker.devices()[r]->allocate(DType::f32, {256}));
        }
        const Nanoseconds begin = worker.now();
        for (auto _ : state) {
          strategy.run([&](const Value::Parts&) {
            ReplicaContext& context = *get_replica_context();
            context
                .all_reduce_async(ReduceOp::sum,
                                  gradients[static_cast<std::size_t>(context.replica_id_in_sync_group())])
                .wait();
            return Value();
          });
          synchronize_all(worker);
        }
        return begin;
      },
      packing);
}
BENCHMARK(small_gradients)->ArgName("packed")->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace tandem
