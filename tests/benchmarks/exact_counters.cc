#include "tests/benchmarks/exact_counters.h"

#include <algorithm>
#include <set>

namespace tandem {
namespace {

// Allocation counts of another build are not comparable.
const bool build_is_in_context = [] {
  benchmark::AddCustomContext("build", TANDEM_BENCHMARK_BUILD);
  return true;
}();

}  // namespace

void set_exact(benchmark::State& state, const std::string& name, double value) {
  state.counters["exact." + name] = value;
}

void count_allocations(benchmark::State& state, std::int64_t before) {
  const std::int64_t count = heap_allocations() - before;
  set_exact(state, "allocations", static_cast<double>(count) / static_cast<double>(state.iterations()));
}

void count_work(benchmark::State& state, const Timeline& timeline, std::int64_t iterations, Nanoseconds since_ns) {
  double ops = 0, op_bytes = 0, flops = 0, copies = 0, copied_bytes = 0, collectives = 0, collective_bytes = 0;
  std::set<std::int64_t> seen;  // calls of collectives, which have a record on each rank
  for (const Record& record : timeline.records) {
    if (record.start_ns < since_ns || record.kind == RecordKind::step) continue;
    if (record.kind == RecordKind::op) {
      ++ops;
      op_bytes += record.bytes;
      flops += record.flops;
    } else if (record.kind == RecordKind::copy) {
      ++copies;
      copied_bytes += record.bytes;
    } else if (seen.insert(record.sequence).second) {
      collectives += record.calls;
      collective_bytes += record.bytes * record.calls;
    }
  }
  double link_bytes = 0;
  for (const LinkUse& link : timeline.links) link_bytes += link.bytes;
  const auto set = [&](const char* name, double total) {
    if (total != 0) set_exact(state, name, total / static_cast<double>(iterations));
  };
  set("ops", ops);
  set("op_bytes", op_bytes);
  set("flops", flops);
  set("copies", copies);
  set("copied_bytes", copied_bytes);
  set("collectives", collectives);
  set("collective_bytes", collective_bytes);
  set("link_bytes", link_bytes);
}

void count_simulation(benchmark::State& state, const Timeline& timeline) {
  count_work(state, timeline);
  Nanoseconds end_ns = 0;
  for (const Record& record : timeline.records) end_ns = std::max(end_ns, record.end_ns);
  set_exact(state, "simulated_ns", static_cast<double>(end_ns));
}

}  // namespace tandem
