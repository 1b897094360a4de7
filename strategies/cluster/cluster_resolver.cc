#include "strategies/cluster/cluster_resolver.h"

#include "strategies/cluster/device_spec.h"

namespace tandem {
namespace {

bool is_on_task(const DeviceSpec& device, const TaskQuery& query) {
  return !query.task_type || !query.task_id || (device.job == query.task_type && device.task == query.task_id);
}

}  // namespace

std::string format_master_url(const std::string& address, const std::string& rpc_layer) {
  return rpc_layer.empty() ? address : rpc_layer + "://" + address;
}

std::string ClusterResolver::master(std::optional<std::string> task_type, std::optional<int> task_id,
                                    std::optional<std::string> rpc_layer) const {
  return find_master({.task_type = std::move(task_type), .task_id = task_id, .rpc_layer = std::move(rpc_layer)});
}

AcceleratorCounts ClusterResolver::num_accelerators(std::optional<std::string> task_type,
                                                    std::optional<int> task_id) const {
  return count_accelerators({.task_type = std::move(task_type), .task_id = task_id});
}

AcceleratorCounts ClusterResolver::count_accelerators(const TaskQuery& query) const {
  AcceleratorCounts counts;
  for (const std::string& name : visible_devices_) {
    const DeviceSpec device = DeviceSpec::parse(name);
    if (device.type && *device.type != "CPU" && is_on_task(device, query)) ++counts[*device.type];
  }
  return counts;
}

}  // namespace tandem
