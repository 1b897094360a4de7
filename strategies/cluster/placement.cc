#include "strategies/cluster/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/cluster/device_spec.h"
#include "strategies/cluster/md5.h"

namespace tandem {
namespace {

int checked_tasks(int num_tasks) {
  if (num_tasks < 1) throw ValueError(fmt::format("a placement over {} ps tasks: there must be at least 1", num_tasks));
  return num_tasks;
}

}  // namespace

double byte_size_load(const PlacedOp& op) {
  return static_cast<double>(op.shape.element_count()) * static_cast<double>(size_of(op.dtype));
}

RoundRobinPlacement::RoundRobinPlacement(int num_tasks) : num_tasks_(checked_tasks(num_tasks)) {}

int RoundRobinPlacement::operator()(const PlacedOp&) {
  const int task = next_;
  next_ = (next_ + 1) % num_tasks_;
  return task;
}

GreedyPlacement::GreedyPlacement(int num_tasks, LoadFunction load)
    : loads_(static_cast<std::size_t>(checked_tasks(num_tasks))), load_(std::move(load)) {}

int GreedyPlacement::operator()(const PlacedOp& op) {
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += load_(op);
  return static_cast<int>(least - loads_.begin());
}

HashPlacement::HashPlacement(int num_tasks, int seed) : num_tasks_(checked_tasks(num_tasks)), seed_(seed) {}

int HashPlacement::operator()(const PlacedOp& op) const {
  std::uint64_t rest = 0;
  for (const std::uint8_t byte : md5(fmt::format("{}_{}", op.name, seed_))) {
    rest = (rest * 256 + byte) % static_cast<std::uint64_t>(num_tasks_);
  }
  return static_cast<int>(rest);
}

std::string DeviceSetter::device_of(const PlacedOp& op, std::string_view requested) {
  if (!options_.merge_devices && !requested.empty()) return std::string(requested);
  const DeviceSpec asked = DeviceSpec::parse(requested);
  if (!op.is_variable || options_.ps_device.empty()) {
    return DeviceSpec::parse(options_.worker_device).merged_with(asked).text();
  }
  DeviceSpec ps = DeviceSpec::parse(options_.ps_device);
  if (ps.job && (!asked.job || asked.job == ps.job)) ps.task = options_.strategy(op);
  return ps.merged_with(asked).text();
}

std::optional<DeviceSetter> replica_device_setter(DeviceSetterOptions options) {
  if (options.cluster) {
    const std::optional<std::string> job = DeviceSpec::parse(options.ps_device).job;
    if (!job || !options.cluster->has_job(*job)) return {};
    options.ps_tasks = options.cluster->num_tasks(*job);
  }
  if (options.ps_tasks == 0) return {};
  if (!options.strategy) options.strategy = RoundRobinPlacement(options.ps_tasks);
  return DeviceSetter(std::move(options));
}

}  // namespace tandem
