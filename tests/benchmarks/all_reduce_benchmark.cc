// The cpu engine's all-reduce: bus bandwidth over sizes, and beside MPI's in the same run.
#include <benchmark/benchmark.h>

#include "tests/benchmarks/cpu_all_reduce.h"
#include "tests/benchmarks/exact_counters.h"

namespace tandem {
namespace {

void all_reduce(benchmark::State& state) {
  double busbw = 0;
  Timeline timeline;
  for (auto _ : state) {
    busbw = cpu_all_reduce_busbw(state.range(0), &timeline);
    state.SetIterationTime(static_cast<double>(state.range(0)) / busbw);  // two ranks: the bus factor is 1
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  count_work(state, timeline);  // of the last iteration
}
BENCHMARK(all_reduce)->RangeMultiplier(8)->Range(1 << 10, 64 << 20)->Iterations(9)->UseManualTime();

// One iteration is one comparison of nine samples each, taken in turns.
void all_reduce_beside_mpi(benchmark::State& state) {
  for (auto _ : state) {
    std::string reason;
    const auto comparison = compare_all_reduce(kAllReduceBytes, 9, reason);
    if (!comparison) {
      state.SkipWithError(reason.c_str());
      return;
    }
    state.SetIterationTime(static_cast<double>(kAllReduceBytes) / comparison->cpu_median());
    state.counters["cpu_GB_per_s"] = comparison->cpu_median() * 1e-9;
    state.counters["mpi_GB_per_s"] = comparison->mpi_median() * 1e-9;
    state.counters["ratio"] = comparison->ratio();
  }
}
BENCHMARK(all_reduce_beside_mpi)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
