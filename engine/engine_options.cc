#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/engine_info.h"
#include "engine/faults/faults.h"

namespace tandem {
namespace {

void check_faults_of(const EngineInfo& engine, const EngineOptions& options) {
  const Faults& faults = *options.faults;
  const auto lacks = [&](const char* what, const char* reason) {
    throw UsageError(fmt::format("engine '{}' has no {}; {}", engine.name, what, reason));
  };
  std::vector<NamedWorker> workers;
  for (const WorkerSpec& worker : options.workers) workers.push_back({worker.text(), worker.device_count});
  check_faults(faults, workers, options.topology ? options.topology->link_count() : 0);
  if (engine.faults == FaultSupport::all || faults.empty()) return;
  if (engine.faults == FaultSupport::none) lacks("faults", "nothing goes wrong in it on purpose");
  if (!faults.slow_links.empty()) lacks("slow links", "its links are those of this machine");
  if (!faults.jitter.empty()) lacks("jitter", "the times of a real machine vary by themselves");
  for (const SlowDevices& slow : faults.slow_devices) {
    if (slow.factor < 1) lacks("devices that are faster than they are", "a fault's factor must be at least 1");
  }
}

void check_worker(const EngineInfo& engine, const WorkerSpec& worker) {
  const std::vector<DeviceType>& types = engine.device_types;
  if (std::find(types.begin(), types.end(), worker.device_type) == types.end()) {
    std::vector<std::string_view> known;
    for (const DeviceType type : types) known.push_back(name_of(type));
    throw UsageError(fmt::format("engine '{}' has no devices of type {}, as {} asks for (it has {})", engine.name,
                                 name_of(worker.device_type), worker.text(), fmt::join(known, ", ")));
  }
  if (worker.device_count < 0) {
    throw UsageError(fmt::format("{} has {} devices, must be 0 or more", worker.text(), worker.device_count));
  }
  const DeviceId id{worker.job, worker.task, worker.device_type, 0};
  if (DeviceId::parse(id.text(), {}) != id) {
    throw UsageError(fmt::format("{} is no name of a worker, must be like /job:worker/task:0", worker.text()));
  }
}

void check_workers(const EngineInfo& engine, const std::vector<WorkerSpec>& workers) {
  if (workers.empty()) throw UsageError(fmt::format("engine '{}' needs at least one worker", engine.name));
  std::set<std::pair<std::string, int>> names;
  for (const WorkerSpec& worker : workers) {
    check_worker(engine, worker);
    if (!names.emplace(worker.job, worker.task).second) {
      throw UsageError(fmt::format("{} is there twice, must be there once", worker.text()));
    }
  }
}

}  // namespace

void check_options(const EngineInfo& engine, const EngineOptions& options) {
  const auto lacks = [&](const char* option, const char* reason) {
    throw UsageError(fmt::format("engine '{}' has no option {}; {}", engine.name, option, reason));
  };
  if (engine.needs_topology && !options.topology) {
    throw UsageError(fmt::format("engine '{}' needs a topology to simulate", engine.name));
  }
  if (options.values == ValueMode::none && !engine.optional_values) {
    lacks("values: none", "its tensors always carry values (values: real)");
  }
  if (options.collectives && !engine.models_collectives) lacks("collectives", "it executes them, and models none");
  if (!options.nccl.empty() && !engine.models_collectives) lacks("nccl", "it models no NCCL");
  if (options.schedule_seed && !engine.seeded_schedule) {
    lacks("schedule_seed", "its threads are scheduled by the operating system");
  }
  if (options.graphs && !engine.graphs) lacks("graphs", "it makes no graphs of launches");
  if (!options.alike.empty() && !engine.symmetry) lacks("alike", "every worker runs");
  if (options.merges_repeats && !engine.symmetry) lacks("merges_repeats", "all work is done");
  if (!options.alike.empty() && options.alike.size() != options.workers.size()) {
    throw UsageError(fmt::format("{} workers are said to be alike or not, must be all {}", options.alike.size(),
                                 options.workers.size()));
  }
  for (const WorkerSpec& worker : options.workers) {
    if (options.alike_devices >= 1 && worker.device_count % options.alike_devices == 0) continue;
    throw UsageError(fmt::format("blocks of {} devices that are alike do not divide the {} devices of /job:{}/task:{}",
                                 options.alike_devices, worker.device_count, worker.job, worker.task));
  }
  if (options.devices_in_step < 1) {
    throw UsageError(fmt::format("{} devices are in step, must be at least 1", options.devices_in_step));
  }
  if (options.work_spread && !(*options.work_spread >= 0 && *options.work_spread <= 1)) {
    throw UsageError(fmt::format("the work spread is {}, must be 0 to 1", *options.work_spread));
  }
  if (!(options.deadlock_timeout_s > 0) || std::isinf(options.deadlock_timeout_s)) {
    throw UsageError(fmt::format("the deadlock timeout is {} s, must be greater than 0", options.deadlock_timeout_s));
  }
  check_workers(engine, options.workers);
  if (options.faults) check_faults_of(engine, options);
}

}  // namespace tandem
