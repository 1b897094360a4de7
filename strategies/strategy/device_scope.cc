#include "strategies/strategy/device_scope.h"

#include <fmt/format.h>

#include <vector>

#include "strategies/base/errors.h"
#include "strategies/cluster/device_spec.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/variables/variable.h"

namespace tandem {

struct OpenDeviceScope {
  DeviceSpec spec{};
  std::shared_ptr<DeviceSetter> setter{};  // null: the spec counts
};

namespace {

// Merges the open scopes, the innermost first, as TensorFlow applies them to an op.
std::string merged_scopes(const PlacedOp& op) {
  std::string text;
  const std::vector<std::shared_ptr<const OpenDeviceScope>>& scopes = open_device_scopes();
  for (auto open = scopes.rbegin(); open != scopes.rend(); ++open) {
    const OpenDeviceScope& scope = **open;
    text = scope.setter ? scope.setter->device_of(op, text) : scope.spec.merged_with(DeviceSpec::parse(text)).text();
  }
  return text;
}

// Returns the device that a merged text names, completed from `base`.
Device& device_named_by(const std::string& text, Device& base, Worker& worker, std::string_view what) {
  if (text.empty()) return base;
  const DeviceSpec spec = DeviceSpec::parse(text);
  DeviceId id = base.id();
  const bool is_elsewhere = spec.job.value_or(id.job) != id.job || spec.task.value_or(id.task) != id.task;
  if (is_elsewhere) id = {.job = id.job, .task = id.task, .type = DeviceType::cpu, .index = 0};
  if (spec.type && *spec.type != "CPU" && *spec.type != "GPU") {
    throw ValueError(fmt::format("{} in the device scope '{}': devices are CPUs and GPUs", what, text));
  }
  const DeviceType type = !spec.type ? id.type : *spec.type == "GPU" ? DeviceType::gpu : DeviceType::cpu;
  id = {.job = spec.job.value_or(id.job),
        .task = spec.task.value_or(spec.job && *spec.job != id.job ? 0 : id.task),
        .type = type,
        .index = spec.index.value_or(type == id.type ? id.index : 0)};
  try {
    return worker.device(id);
  } catch (const UnavailableError& error) {
    throw ValueError(fmt::format("{} in the device scope '{}': {}", what, text, error.what()));
  }
}

}  // namespace

DeviceScope::DeviceScope(std::shared_ptr<const OpenDeviceScope> scope) {
  open_device_scopes().push_back(std::move(scope));
  depth_ = open_device_scopes().size();
}

DeviceScope::DeviceScope(std::string_view device)
    : DeviceScope(std::make_shared<const OpenDeviceScope>(OpenDeviceScope{.spec = DeviceSpec::parse(device)})) {}

DeviceScope::DeviceScope(DeviceSetter setter)
    : DeviceScope(std::make_shared<const OpenDeviceScope>(
          OpenDeviceScope{.setter = std::make_shared<DeviceSetter>(std::move(setter))})) {}

DeviceScope::~DeviceScope() {
  TANDEM_REQUIRE_IN_DESTRUCTOR(open_device_scopes().size() == depth_, "device scopes left in the wrong order");
  open_device_scopes().pop_back();
}

std::string device_scope_text() {
  return merged_scopes({.is_variable = false});
}

Device& current_device() {
  Worker& worker = worker_of_task();
  const ReplicaContext* replica = get_replica_context();
  Device& base = replica && replica != &default_replica_context() ? replica->device() : worker.cpu();
  return device_named_by(device_scope_text(), base, worker, "work");
}

Device& device_of_scopes(Worker& worker, const VariableSpec& spec) {
  const std::string text = merged_scopes({.name = spec.name, .shape = spec.shape, .dtype = spec.dtype});
  return device_named_by(text, worker.cpu(), worker, fmt::format("variable '{}'", spec.name));
}

}  // namespace tandem
