// What a sweep costs: the whole of `tandem sweep tests/benchmarks/sweep.yaml` but the start of the program, a thousand
// points of a model of 96 layers on up to 512 GPUs in as many processes as there are processors.
//
// Time: on the clock. Counters: points, those done, and the CPU time of a point.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "scenarios/sweep/sweep.h"
#include "tests/benchmarks/exact_counters.h"

namespace tandem {
namespace {

double cpu_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void thousand_points(benchmark::State& state) {
  const double before_s = cpu_seconds_of_children();
  double points = 0, done = 0;
  for (auto _ : state) {
    const Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/tests/benchmarks/sweep.yaml");
    SweepTable table = swept_points(scenario);
    run_sweep(scenario, {}, table);
    benchmark::DoNotOptimize(sweep_text(table));
    points += static_cast<double>(table.points.size());
    done += table.count(PointState::done);
  }
  const auto iterations = static_cast<double>(state.iterations());
  set_exact(state, "points", points / iterations);
  set_exact(state, "done", done / iterations);
  state.counters["cpu_ms_of_a_point"] = (cpu_seconds_of_children() - before_s) / points * 1e3;
}

BENCHMARK(thousand_points)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);

}  // namespace
}  // namespace tandem
