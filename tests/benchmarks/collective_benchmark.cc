// What `tandem collectives` costs on models of many machines, from the topology to the table.
//
// Time: CPU time of the whole. Counters: what one rank costs, which does not grow with their number where the cost is
// linear; ranks, and the time of the call.
#include <benchmark/benchmark.h>

#include "scenarios/collectives/collective_job.h"
#include "tests/benchmarks/exact_counters.h"
#include "topologies/generators/cluster.h"

namespace tandem {
namespace {

constexpr std::int64_t kMebi = 1 << 20;

void run_call(benchmark::State& state, const char* node, DeviceType type, int devices, CollectiveKind kind,
              std::int64_t bytes) {
  const int machines = static_cast<int>(state.range(0));
  double simulated_us = 0, ranks = 0;
  for (auto _ : state) {
    CollectiveJob job{.engine = "sim", .device_type = type, .workers = machines, .devices = devices};
    job.topology = std::make_shared<const Topology>(make_cluster(node, machines));
    const CollectiveSweep sweep{.kind = kind, .sizes = {bytes}, .warmup = 0, .iterations = 1};
    const CollectiveResult result = run_collective(job, sweep);
    simulated_us = result.table.rows.front().out_of_place_us.value_or(0);
    ranks = static_cast<double>(result.devices.size());
  }
  state.counters["per_rank"] = benchmark::Counter(ranks * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  set_exact(state, "ranks", ranks);
  set_exact(state, "simulated_us", simulated_us);
}

// Two to eight machines of 64 ranks, all of which send to all.
void all_to_all_of_cpus(benchmark::State& state) {
  run_call(state, "cpu-host", DeviceType::cpu, 64, CollectiveKind::all_to_all, 32 * kMebi);
}

// Each GPU on a machine of its own.
void all_reduce_of_machines(benchmark::State& state) {
  run_call(state, "hgx-h100", DeviceType::gpu, 1, CollectiveKind::all_reduce, 1024 * kMebi);
}

// Rings whose flows share links: a GPU has four NICs there.
void all_reduce_of_shared_links(benchmark::State& state) {
  run_call(state, "aws-p5", DeviceType::gpu, 8, CollectiveKind::all_reduce, 1024 * kMebi);
}

BENCHMARK(all_to_all_of_cpus)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK(all_reduce_of_machines)->Arg(1024)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(all_reduce_of_shared_links)->Arg(128)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
