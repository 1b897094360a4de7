#include "engine/threads/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tandem::threads {
namespace {

std::string worker_text(const WorkerSpec& worker) {
  return fmt::format("/job:{}/task:{}", worker.job, worker.task);
}

void check_worker(const WorkerSpec& worker, std::string_view engine, const std::vector<DeviceType>& types) {
  if (std::find(types.begin(), types.end(), worker.device_type) == types.end()) {
    std::vector<std::string_view> known;
    for (const DeviceType type : types) known.push_back(name_of(type));
    throw Error(fmt::format("engine '{}' has no devices of type {}, as {} asks for (it has {})", engine,
                            name_of(worker.device_type), worker_text(worker), fmt::join(known, ", ")));
  }
  if (worker.device_count < 0) {
    throw Error(fmt::format("{} has {} devices, must be 0 or more", worker_text(worker), worker.device_count));
  }
  const DeviceId id{worker.job, worker.task, worker.device_type, 0};
  if (DeviceId::parse(id.text(), {}) != id) {
    throw Error(fmt::format("{} is no name of a worker, must be like /job:worker/task:0", worker_text(worker)));
  }
}

}  // namespace

void check_options(const EngineOptions& options, std::string_view engine, const std::vector<DeviceType>& types) {
  if (options.values == ValueMode::none) {
    throw Error(
        fmt::format("engine '{}' has no option values: none; its tensors always carry values (values: real)", engine));
  }
  if (options.collectives) {
    throw Error(fmt::format("engine '{}' has no option collectives; it performs them, and models none", engine));
  }
  if (options.schedule_seed) {
    throw Error(fmt::format(
        "engine '{}' has no option schedule_seed; its threads are scheduled by the operating system", engine));
  }
  if (!(options.deadlock_timeout_s > 0) || std::isinf(options.deadlock_timeout_s)) {
    throw Error(fmt::format("the deadlock timeout is {} s, must be greater than 0", options.deadlock_timeout_s));
  }
  if (options.workers.empty()) throw Error(fmt::format("engine '{}' needs at least one worker", engine));
  std::set<std::pair<std::string, int>> names;
  for (const WorkerSpec& worker : options.workers) {
    check_worker(worker, engine, types);
    if (!names.emplace(worker.job, worker.task).second) {
      throw Error(fmt::format("{} is there twice, must be there once", worker_text(worker)));
    }
  }
}

}  // namespace tandem::threads
