#include "scenarios/collectives/collective_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/collectives/collective_program.h"
#include "scenarios/estimates/run_size.h"
#include "topologies/base/machine_memory.h"

namespace tandem {
namespace {

std::string job_name(const CollectiveJob& job) {
  return job.workers == 1 ? "localhost" : "worker";
}

std::unique_ptr<Engine> open_for(const CollectiveJob& job) {
  EngineOptions options;
  options.workers.clear();
  for (int task = 0; task < job.workers; ++task) {
    options.workers.push_back({.job = job_name(job),
                               .task = task,
                               .topology_worker = task,
                               .device_type = job.device_type,
                               .device_count = job.devices});
  }
  if (engine_info(job.engine).needs_topology) options.topology = job.topology;
  options.collectives = job.collectives;
  options.nccl = job.nccl;
  if (engine_info(job.engine).symmetry) options.alike.assign(options.workers.size(), 0);
  try {
    return open_engine(job.engine, std::move(options));
  } catch (const UsageError& error) {  // such as an unknown variable of NCCL
    throw InputError({{.file = "", .path = "", .message = error.what()}});
  }
}

void check_sweep(const CollectiveSweep& sweep, const CollectiveJob& job) {
  const int ranks = job.workers * job.devices;
  TANDEM_REQUIRE(sweep.root >= 0 && sweep.root < ranks,
                 fmt::format("root {} of {} devices, must be 0 to {}", sweep.root, ranks, ranks - 1));
  TANDEM_REQUIRE(sweep.iterations > 0 && sweep.warmup >= 0, "a sweep times at least one call");
}

// The calls of a model are equal once the first ones are on their way, so that the mean of any number follows from few.
constexpr int kMostSimulatedCalls = 20;

CollectiveSweep executed_part(CollectiveSweep sweep, const CollectiveJob& job) {
  if (!engine_info(job.engine).needs_topology) return sweep;
  sweep.iterations = std::min(sweep.iterations, kMostSimulatedCalls);
  sweep.warmup = std::min(sweep.warmup, kMostSimulatedCalls);
  return sweep;
}

// The calls of one size. Their time counts from the moment when every device could begin the first one.
struct TimedCalls {
  std::map<int, Nanoseconds> first_start_ns;                        // by device
  std::map<std::pair<int, int>, std::vector<Nanoseconds>> ends_ns;  // of each call, by device and stream
  std::string algorithm;

  void add(const Record& record) {
    const auto [entry, is_new] = first_start_ns.try_emplace(record.device, record.start_ns);
    if (!is_new) entry->second = std::min(entry->second, record.start_ns);
    ends_ns[{record.device, record.stream}].push_back(record.end_ns);
    if (algorithm.empty()) algorithm = record.algorithm;
  }
  // Returns the time of one of `calls`, of which the first `done` were executed, and the others follow as the later
  // half of these do.
  double us_per_call(int calls, int done) {
    Nanoseconds begin = 0;
    for (const auto& [device, start] : first_start_ns) begin = std::max(begin, start);
    for (auto& [stream, ends] : ends_ns) std::sort(ends.begin(), ends.end());
    const Nanoseconds end = end_ns(done);
    auto all = static_cast<double>(end - begin);
    if (const int half = done / 2; calls > done) {
      all += static_cast<double>(end - end_ns(half)) / (done - half) * (calls - done);
    }
    return all / 1e3 / calls;
  }

 private:
  Nanoseconds end_ns(int calls) const {
    Nanoseconds last = 0;
    for (const auto& [stream, ends] : ends_ns) {
      if (calls > 0) last = std::max(last, ends.at(std::min(ends.size(), static_cast<std::size_t>(calls)) - 1));
    }
    return last;
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

// Resident memory of `tandem collectives` (/usr/bin/time), 2026-11-25: all_gather on 32,768 H100s, 1 call and 20 calls
// of a size, took 7.2 MB more for each call: what is under way and the record.
constexpr double kRecordsOfACall = 2;

// Returns what the tensors of a size take on one device, with those that check the values.
double bytes_of_device(const CollectiveSweep& sweep, const collectives::Size& size, int ranks) {
  const auto element = static_cast<double>(size_of(sweep.dtype));
  const auto part = static_cast<double>(size.part_count);
  const int parts =
      output_parts(sweep.kind, ranks) + (collectives::works_in_place(sweep.kind) ? 0 : input_parts(sweep.kind, ranks));
  const double checked = sweep.checks_values ? 2 * static_cast<double>(size_of(DType::f64)) : 0;
  return part * (parts * element + checked);
}

// Refuses what this machine has too little memory for, or too few threads.
void check_size(const CollectiveJob& job, const CollectiveSweep& sweep, std::span<const collectives::Size> sizes) {
  const EngineInfo& engine = engine_info(job.engine);
  if (!engine.built() || sizes.empty()) return;  // opening it will say so
  const std::int64_t devices = std::int64_t{job.workers} * job.devices;
  const double calls_of_device = static_cast<double>(sizes.size()) * (sweep.warmup + double{1} * sweep.iterations);
  const std::string less = "fewer devices, sizes or calls need less";
  std::string problem;
  if (engine.needs_topology) {
    problem = simulation_problem_here({.devices = devices,
                                       .simulated = job.workers,  // a task each
                                       .records = kRecordsOfACall * static_cast<double>(devices) * calls_of_device,
                                       .less = less});
  } else {
    double bytes = 0;
    for (const collectives::Size& size : sizes)
      bytes = std::max(bytes, bytes_of_device(sweep, size, static_cast<int>(devices)));
    problem = host_problem_here(devices, bytes + bytes_of_records(calls_of_device), 1, less);
  }
  if (!problem.empty()) throw SizeError(problem);
}

// Runs the program until the engine knows which workers are alike.
Timeline run_until_known(Engine& engine, const Program& program) {
  for (;;) {
    try {
      return engine.run(program);
    } catch (const RunAgain&) {
    }
  }
}

std::vector<DeviceId> group_of(const CollectiveJob& job) {
  std::vector<DeviceId> ids;
  for (int task = 0; task < job.workers; ++task) {
    for (int i = 0; i < job.devices; ++i) ids.push_back({job_name(job), task, job.device_type, i});
  }
  return ids;
}

}  // namespace

CollectiveResult run_collective(const CollectiveJob& job, const CollectiveSweep& sweep,
                                const std::function<void(std::int64_t, std::int64_t)>& progress) {
  const std::vector<collectives::Size> sizes = collectives::sizes_of(sweep, job.workers * job.devices);
  const CollectiveSweep part = executed_part(sweep, job);
  check_size(job, part, sizes);
  const std::unique_ptr<Engine> engine = open_for(job);
  check_sweep(sweep, job);
  const std::int64_t timed_calls_in_all = static_cast<std::int64_t>(sizes.size()) * part.iterations;
  const std::vector<DeviceId> group = group_of(job);
  std::vector<std::atomic<std::int64_t>> wrong(sizes.size());
  const Timeline timeline = run_until_known(*engine, [&](Worker& worker) {
    collectives::run_sweep(worker, group, part, sizes, wrong, [&](std::int64_t done) {
      if (progress) progress(done, timed_calls_in_all);
    });
  });
  CollectiveResult result;
  result.table = table_of(job, sweep);
  result.deterministic = engine->capabilities().deterministic;
  result.settings = timeline.settings;
  result.notes = timeline.notes;
  result.consulted = timeline.consulted;
  result.devices = group;
  for (const Hardware& hardware : engine->capabilities().hardware) {
    if (hardware.type == job.device_type && result.device_model.empty()) result.device_model = hardware.name;
  }
  std::map<int, TimedCalls> timed = timed_calls(timeline);
  const bool out_of_place = !collectives::works_in_place(sweep.kind);
  if (!out_of_place) {
    result.notes.push_back(
        fmt::format("{} works in place: both groups of columns show that time", result.table.operation));
  }
  if (part.iterations < sweep.iterations) {
    result.notes.push_back(fmt::format("{} of {} calls of each size were simulated; the others take as long as these",
                                       part.iterations, sweep.iterations));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    TimedCalls& calls = timed[static_cast<int>(i)];
    CollectiveRow row;
    row.bytes = sizes[i].bytes;
    row.count = sizes[i].printed_count;
    row.out_of_place_us = calls.us_per_call(sweep.iterations, part.iterations);
    if (!out_of_place) row.in_place_us = row.out_of_place_us;
    if (sweep.checks_values && engine->capabilities().carries_values) row.wrong = wrong[i].load();
    row.algorithm = calls.algorithm;
    result.table.rows.push_back(std::move(row));
  }
  return result;
}

std::vector<double> timed_sizes(const CollectiveJob& job, const CollectiveSweep& sweep) {
  std::vector<double> sizes;
  for (const collectives::Size& size : collectives::sizes_of(sweep, job.workers * job.devices)) {
    sizes.push_back(static_cast<double>(size.bytes));
  }
  return sizes;
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
