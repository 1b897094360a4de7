// Benchmarks for exact_counts_test.sh.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>

namespace {

void counts(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(state.range(0));
  state.counters["exact.ops"] = static_cast<double>(state.range(0));
  state.counters["exact.seconds"] = 0.1;
  state.counters["exact.allocations"] = state.iterations() == 1 ? 5 : 0;  // as where later iterations allocate nothing
  state.counters["noise"] = static_cast<double>(reinterpret_cast<std::uintptr_t>(&state));
}
BENCHMARK(counts)->Arg(7)->Arg(1000000007);

// As in a benchmark that needs what this machine lacks.
void fails(benchmark::State& state) {
  state.SkipWithError("no such device");
}
BENCHMARK(fails);

void counts_nothing(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(state.range(0));
}
BENCHMARK(counts_nothing)->Arg(1);

const bool build_is_in_context = [] {
  const char* build = std::getenv("SAMPLE_BUILD");
  benchmark::AddCustomContext("build", build != nullptr ? build : "one compiler");
  return true;
}();

}  // namespace
