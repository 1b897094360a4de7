#include "strategies/types/mirrored.h"

#include <fmt/format.h>

#include <map>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/variables/components.h"
#include "strategies/variables/replicated_variables.h"

namespace tandem {
namespace {

bool is_local(std::string_view name) {
  return name.find("/job:") == name.npos || name.find("/job:localhost") != name.npos;
}

DeviceId device_named(const Worker& worker, const std::string& name) {
  const std::optional<DeviceId> id = DeviceId::parse(name, {.job = worker.job(), .task = worker.task()});
  if (!id) throw ValueError(fmt::format("'{}' is no device: write for example GPU:0", name));
  if (!is_local(name) && name.find("/task:") == name.npos) {
    throw ValueError(fmt::format("device '{}' names a job without a task", name));
  }
  return *id;
}

// Refuses devices of several workers. If the workers have different numbers of devices, that is reported first.
void check_one_worker(const std::vector<DeviceId>& ids) {
  std::map<std::pair<std::string, int>, int> counts;
  for (const DeviceId& id : ids) ++counts[{id.job, id.task}];
  for (const auto& [place, count] : counts) {
    if (count == counts.begin()->second) continue;
    throw ValueError(fmt::format("a strategy got {} devices of one worker and {} of another: all workers need as many",
                                 counts.begin()->second, count));
  }
  if (counts.size() > 1) {
    throw RuntimeError("MirroredStrategy computes on one worker; for several use MultiWorkerMirroredStrategy");
  }
}

}  // namespace

std::vector<Device*> mirrored_devices(Worker& worker, const std::vector<std::string>& names) {
  std::vector<DeviceId> ids;
  for (const std::string& name : names) {
    if (is_local(name) != is_local(names.front())) {
      throw ValueError(fmt::format(
          "local devices beside those of a job: '{}' and '{}'; name all with their job, or none", names.front(), name));
    }
    ids.push_back(device_named(worker, name));
  }
  check_one_worker(ids);
  std::vector<Device*> devices;
  for (const DeviceId& id : ids) {
    if (id.job != worker.job() || id.task != worker.task()) {
      throw ValueError(fmt::format("device {} is not one of this worker's", id.text()));
    }
    devices.push_back(&worker.device(id));
  }
  return devices;
}

std::shared_ptr<Variable> MirroredExtended::make_variable(const VariableSpec& spec) {
  std::vector<Tensor> components = make_components(spec, parameter_devices(), worker().cpu());
  if (spec.synchronization == VariableSynchronization::on_read) {
    return std::make_shared<SyncOnReadVariable>(strategy(), spec, std::move(components));
  }
  return std::make_shared<MirroredVariable>(strategy(), spec, std::move(components));
}

Value MirroredExtended::do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                                  const Value::Parts& arguments, bool group) {
  if (!variable_created_in_scope(*variable)) {
    throw AssertionError(
        fmt::format("update() of variable '{}', which was not created under this strategy: it has no "
                    "component on each of its devices; create it inside the strategy's scope",
                    variable->name()));
  }
  return ReplicatedExtended::do_update(variable, function, arguments, group);
}

MirroredStrategy::MirroredStrategy() : MirroredStrategy(worker_of_task()) {}

MirroredStrategy::MirroredStrategy(Worker& worker) : MirroredStrategy(worker, all_devices_of(worker)) {}

MirroredStrategy::MirroredStrategy(Worker& worker, std::vector<Device*> devices, std::string_view cross_device_ops,
                                   Packing packing)
    : Strategy("mirrored", std::make_unique<MirroredExtended>(
                               worker, ReplicatedSpec{.devices = std::move(devices),
                                                      .cross_device_ops = std::string(cross_device_ops),
                                                      .packing = packing})) {}

MirroredStrategy::MirroredStrategy(Worker& worker, std::vector<Device*> devices,
                                   std::shared_ptr<CrossDeviceOps> cross_device_ops)
    : Strategy("mirrored",
               std::make_unique<MirroredExtended>(
                   worker, ReplicatedSpec{.devices = std::move(devices), .ops = std::move(cross_device_ops)})) {}

}  // namespace tandem
