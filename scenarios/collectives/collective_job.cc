#include "scenarios/collectives/collective_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/collectives/collective_program.h"

namespace tandem {
namespace {

std::unique_ptr<Engine> open_for(const CollectiveJob& job) {
  EngineOptions options;
  options.workers.clear();
  for (int task = 0; task < job.workers; ++task) {
    options.workers.push_back({.job = job.workers == 1 ? "localhost" : "worker",
                               .task = task,
                               .topology_worker = task,
                               .device_type = job.device_type,
                               .device_count = job.devices});
  }
  if (engine_info(job.engine).needs_topology) options.topology = job.topology;
  options.collectives = job.collectives;
  options.nccl = job.nccl;
  try {
    return open_engine(job.engine, std::move(options));
  } catch (const UsageError& error) {  // such as an unknown variable of NCCL
    throw InputError({{.file = "", .path = "", .message = error.what()}});
  }
}

void check_sweep(const CollectiveSweep& sweep, const CollectiveJob& job, const Capabilities& capabilities) {
  const std::vector<DType>& dtypes = capabilities.dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), sweep.dtype) == dtypes.end()) {
    std::vector<std::string> known;
    for (const DType dtype : dtypes) known.push_back(nccl_word_of(dtype));
    throw UnavailableError(fmt::format("engine '{}' has no tensors of {} (it has {})", capabilities.engine,
                                       nccl_word_of(sweep.dtype), fmt::join(known, ", ")));
  }
  const int ranks = job.workers * job.devices;
  TANDEM_REQUIRE(sweep.root >= 0 && sweep.root < ranks,
                 fmt::format("root {} of {} devices, must be 0 to {}", sweep.root, ranks, ranks - 1));
  TANDEM_REQUIRE(sweep.iterations > 0 && sweep.warmup >= 0, "a sweep times at least one call");
}

// The calls of one size. Their time counts from the moment when every device could begin the first one.
struct TimedCalls {
  std::map<int, Nanoseconds> first_start_ns;  // by device
  Nanoseconds last_end_ns = 0;
  std::string algorithm;

  void add(const Record& record) {
    const auto [entry, is_new] = first_start_ns.try_emplace(record.device, record.start_ns);
    if (!is_new) entry->second = std::min(entry->second, record.start_ns);
    last_end_ns = std::max(last_end_ns, record.end_ns);
    if (algorithm.empty()) algorithm = record.algorithm;
  }
  double us_per_call(int calls) const {
    Nanoseconds begin = 0;
    for (const auto& [device, start] : first_start_ns) begin = std::max(begin, start);
    return static_cast<double>(last_end_ns - begin) / 1e3 / calls;
  }
};

std::map<int, TimedCalls> timed_calls(const Timeline& timeline) {
  std::map<int, TimedCalls> calls;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::collective && record.step != kNoStep) calls[record.step].add(record);
  }
  return calls;
}

CollectiveTable table_of(const CollectiveJob& job, const CollectiveSweep& sweep) {
  CollectiveTable table;
  table.operation = operation_of(sweep.kind);
  table.dtype = nccl_word_of(sweep.dtype);
  table.redop = is_reducing(sweep.kind) ? nccl_word_of(sweep.reduction) : "none";
  table.root = has_root(sweep.kind) ? sweep.root : -1;
  table.devices = job.workers * job.devices;
  table.nodes = job.workers;
  return table;
}

}  // namespace

CollectiveResult run_collective(const CollectiveJob& job, const CollectiveSweep& sweep,
                                const std::function<void(int, int)>& progress) {
  const std::unique_ptr<Engine> engine = open_for(job);
  check_sweep(sweep, job, engine->capabilities());
  const std::vector<collectives::Size> sizes = collectives::sizes_of(sweep, job.workers * job.devices);
  std::vector<std::atomic<std::int64_t>> wrong(sizes.size());
  const Timeline timeline = engine->run([&](Worker& worker) {
    collectives::run_sweep(worker, sweep, sizes, wrong, [&](int done) {
      if (progress) progress(done, static_cast<int>(sizes.size()));
    });
  });
  CollectiveResult result;
  result.table = table_of(job, sweep);
  result.deterministic = engine->capabilities().deterministic;
  result.settings = timeline.settings;
  result.notes = timeline.notes;
  for (const TimelineDevice& device : timeline.devices) {
    const auto id = DeviceId::parse(device.name, {});
    if (id && id->type == job.device_type) result.devices.push_back(*id);
  }
  for (const Hardware& hardware : engine->capabilities().hardware) {
    if (hardware.type == job.device_type && result.device_model.empty()) result.device_model = hardware.name;
  }
  std::map<int, TimedCalls> timed = timed_calls(timeline);
  const bool out_of_place = !collectives::works_in_place(sweep.kind);
  if (!out_of_place) {
    result.notes.push_back(
        fmt::format("{} works in place: both groups of columns show that time", result.table.operation));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const TimedCalls& calls = timed[static_cast<int>(i)];
    CollectiveRow row;
    row.bytes = sizes[i].bytes;
    row.count = sizes[i].printed_count;
    row.out_of_place_us = calls.us_per_call(sweep.iterations);
    if (!out_of_place) row.in_place_us = row.out_of_place_us;
    if (sweep.checks_values && engine->capabilities().carries_values) row.wrong = wrong[i].load();
    row.algorithm = calls.algorithm;
    result.table.rows.push_back(std::move(row));
  }
  return result;
}

int devices_of_machine(const CollectiveJob& job) {
  if (job.topology) {
    int count = 0;
    for (const NodeIndex node :
         job.topology->nodes_of(0, job.device_type == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu)) {
      if (const auto& device = job.topology->node(node).device) count += device->cores;
    }
    return count;
  }
  CollectiveJob one = job;
  one.workers = one.devices = 1;
  const std::unique_ptr<Engine> engine = open_for(one);
  int count = 0;
  for (const Hardware& hardware : engine->capabilities().hardware) {
    if (hardware.type == job.device_type) count += hardware.cores;
  }
  return count;
}

}  // namespace tandem
