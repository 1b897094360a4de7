// What the cpu engine costs beside the work itself: an op, a round trip, a collective, a replica function.
#include <benchmark/benchmark.h>

#include <atomic>
#include <functional>

#include "engine/engine.h"
#include "engine/kernels/kernels.h"
#include "tests/benchmarks/exact_counters.h"

namespace tandem {
namespace {

// Runs `program`, whose iterations begin at the time that it returns, and counts their work.
void on_cpu(benchmark::State& state, int devices, const std::function<Nanoseconds(Worker&)>& program) {
  EngineOptions options;
  options.workers = {{.device_count = devices}};
  Nanoseconds begin = 0;
  const Timeline timeline = open_engine("cpu", options)->run([&](Worker& worker) { begin = program(worker); });
  count_work(state, timeline, state.iterations(), begin);
}

// The same op without an engine: what to subtract.
void tiny_kernel(benchmark::State& state) {
  on_cpu(state, 1, [&](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {16});
    const Nanoseconds begin = worker.now();
    const std::int64_t allocations = heap_allocations();
    for (auto _ : state) execute(op::fill(tensor, 1).kernel);
    count_allocations(state, allocations);
    return begin;
  });
}
BENCHMARK(tiny_kernel);

// Built, issued, performed and recorded; one synchronize for many, as in a training step.
void tiny_op(benchmark::State& state) {
  constexpr int kBatch = 1000;
  on_cpu(state, 1, [&](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {16});
    Stream& stream = worker.cpu().compute_stream();
    const Nanoseconds begin = worker.now();
    for (auto _ : state) {
      for (int i = 0; i < kBatch; ++i) stream.launch(op::fill(tensor, 1));
      stream.synchronize();
    }
    state.SetItemsProcessed(state.iterations() * kBatch);
    state.counters["us_per_op"] = benchmark::Counter(static_cast<double>(state.iterations()) * kBatch * 1e-6,
                                                     benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    return begin;
  });
}
BENCHMARK(tiny_op)->UseRealTime();

// Issued to a stream that has gone idle, and waited for.
void round_trip(benchmark::State& state) {
  on_cpu(state, 1, [&](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {16});
    Stream& stream = worker.cpu().compute_stream();
    const Nanoseconds begin = worker.now();
    for (auto _ : state) {
      stream.launch(op::fill(tensor, 1));
      stream.synchronize();
    }
    return begin;
  });
}
BENCHMARK(round_trip)->UseRealTime();

void small_all_reduce(benchmark::State& state) {
  constexpr int kBatch = 20;
  on_cpu(state, static_cast<int>(state.range(0)), [&](Worker& worker) {
    std::vector<DeviceId> ids;
    std::vector<Tensor> buffers;
    std::vector<Stream*> streams;
    for (Device* device : worker.devices()) {
      ids.push_back(device->id());
      buffers.push_back(device->allocate(DType::f32, {256}));
      streams.push_back(&device->stream(kCommunicationStream));
      streams.back()->launch(op::fill(buffers.back(), 0));
      streams.back()->synchronize();
    }
    Communicator& communicator = worker.communicator(ids);
    const Nanoseconds begin = worker.now();
    for (auto _ : state) {
      for (int i = 0; i < kBatch; ++i) communicator.all_reduce(buffers, Reduction::sum, streams);
      for (Stream* stream : streams) stream->synchronize();
    }
    state.counters["us_per_call"] = benchmark::Counter(static_cast<double>(state.iterations()) * kBatch * 1e-6,
                                                       benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    return begin;
  });
}
BENCHMARK(small_all_reduce)->Arg(2)->Arg(8)->UseRealTime();

void replica_functions(benchmark::State& state) {
  on_cpu(state, 1, [&](Worker& worker) {
    std::atomic<std::int64_t> calls = 0;
    const Nanoseconds begin = worker.now();
    for (auto _ : state) worker.tasks().run_concurrently(static_cast<int>(state.range(0)), [&](int) { ++calls; });
    set_exact(state, "calls", static_cast<double>(calls) / static_cast<double>(state.iterations()));
    return begin;
  });
}
BENCHMARK(replica_functions)->Arg(1)->Arg(2)->Arg(8)->UseRealTime();

void allocation(benchmark::State& state) {
  on_cpu(state, 1, [&](Worker& worker) {
    const Nanoseconds begin = worker.now();
    const std::int64_t allocations = heap_allocations();
    for (auto _ : state) benchmark::DoNotOptimize(worker.cpu().allocate(DType::f32, {state.range(0)}));
    count_allocations(state, allocations);
    return begin;
  });
}
BENCHMARK(allocation)->Arg(16)->Arg(16 << 20);

}  // namespace
}  // namespace tandem
