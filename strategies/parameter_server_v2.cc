#include "strategies/parameter_server_v2.h"

#include <fmt/format.h>

#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/cluster/cluster_util.h"
#include "strategies/input/input_workers.h"
#include "strategies/values/regroup.h"

namespace tandem {
namespace {

constexpr int kCoordinator = -1;

std::vector<Device*> own_devices(Worker& chief) {
  return {chief.devices().empty() ? &chief.cpu() : chief.devices().front()};
}

// Returns the servers' devices. ValueError for a cluster that this strategy does not take.
std::vector<Device*> checked_servers(Worker& chief) {
  std::map<std::string, std::map<int, std::string>> tasks;
  std::vector<Device*> servers;
  for (const WorkerSpec& spec : chief.cluster()) {
    tasks[spec.job][spec.task] = fmt::format("{}{}:2222", spec.job, spec.task);
    if (spec.job != "ps") continue;
    servers.push_back(&chief.device({.job = spec.job, .task = spec.task, .type = DeviceType::cpu, .index = 0}));
  }
  std::map<std::string, JobTasks> jobs;
  for (auto& [job, by_index] : tasks) jobs.emplace(job, JobTasks(std::move(by_index)));
  validate_parameter_server_cluster(ClusterSpec(std::move(jobs)), chief.job(), chief.task());
  return servers;
}

std::vector<std::vector<Device*>> devices_by_worker(Worker& chief) {
  std::vector<std::vector<Device*>> workers;
  for (const WorkerSpec& spec : chief.cluster()) {
    if (spec.job != "worker") continue;
    std::vector<Device*>& devices = workers.emplace_back();
    for (int i = 0; i < spec.device_count; ++i) {
      devices.push_back(&chief.device({.job = spec.job, .task = spec.task, .type = spec.device_type, .index = i}));
    }
    if (devices.size() != workers.front().size() || devices.empty()) {
      throw ValueError(fmt::format("worker {} has {} devices and worker 0 has {}: all need as many, at least one",
                                   spec.task, devices.size(), workers.front().size()));
    }
  }
  return workers;
}

}  // namespace

ParameterServerV2Extended::ParameterServerV2Extended(Worker& chief, Partitioner partitioner)
    : StoredExtended(chief, own_devices(chief), checked_servers(chief)),
      partitioner_(std::move(partitioner)),
      next_task_(static_cast<int>(parameter_devices().size())),
      worker_devices_(devices_by_worker(chief)),
      monitor_(chief.make_monitor()) {}

ParameterServerV2Extended::Assignment::Assignment(ParameterServerV2Extended& extended, int worker)
    : extended_(extended) {
  const std::lock_guard lock(*extended_.monitor_);
  extended_.assigned_[&Task::current()] = worker;
}
ParameterServerV2Extended::Assignment::~Assignment() {
  const std::lock_guard lock(*extended_.monitor_);
  extended_.assigned_.erase(&Task::current());
}

int ParameterServerV2Extended::assigned_worker() const {
  const std::lock_guard lock(*monitor_);
  const auto found = assigned_.find(&Task::current());
  return found == assigned_.end() ? kCoordinator : found->second;
}

int ParameterServerV2Extended::current_worker() const {
  const ReplicaContext* replica = get_replica_context();
  if (replica && &replica->strategy() == &strategy()) return replica->device().worker();
  const int assigned = assigned_worker();
  return assigned == kCoordinator ? worker().index() : devices_of_worker(assigned).front()->worker();
}

Value ParameterServerV2Extended::do_call_for_each_replica(const ReplicaFunction& function,
                                                          const Value::Parts& arguments) {
  const int assigned = assigned_worker();
  if (assigned == kCoordinator) return StoredExtended::do_call_for_each_replica(function, arguments);
  const std::vector<Device*>& devices = devices_of_worker(assigned);
  if (devices.size() > 1) return ReplicaGroup(strategy(), worker(), devices, 0).run(function, arguments);
  ReplicaContext context(strategy(), 0, 0, devices.front(), nullptr);
  const ModeGuard mode(Mode{.strategy = &strategy(), .replica = &context});
  Value::Parts mine;
  for (const Value& argument : arguments) mine.push_back(select_replica(0, argument));
  return function(mine);
}

Device& ParameterServerV2Extended::place(const VariableSpec& spec) {
  return *parameter_devices().at(static_cast<std::size_t>(next_task_({.name = spec.name})));
}

InputWorkers ParameterServerV2Extended::input_workers() {
  const int assigned = assigned_worker();
  if (assigned == kCoordinator) {
    throw ValueError(
        "a distributed dataset is not for the coordinator: make it in a function of create_per_worker_dataset()");
  }
  return {.worker = worker(),
          .devices = devices_of_worker(assigned),
          .num_workers = worker_count(),
          .pipeline_id = assigned,
          .num_replicas_in_sync = num_replicas_in_sync()};
}

ParameterServerStrategyV2::ParameterServerStrategyV2(Worker& chief, Partitioner partitioner)
    : Strategy("parameter_server_v2", std::make_unique<ParameterServerV2Extended>(chief, std::move(partitioner))) {}

int ParameterServerStrategyV2::scheduled_worker() const {
  const int worker = static_cast<const ParameterServerV2Extended&>(extended()).assigned_worker();
  if (worker == kCoordinator) throw RuntimeError("only a function that a ClusterCoordinator runs has a worker");
  return worker;
}

ParameterServerV2Extended& ParameterServerStrategyV2::parameter_server_extended() {
  return static_cast<ParameterServerV2Extended&>(extended());
}

ShardedVariable ParameterServerStrategyV2::create_sharded_variable(const VariableSpec& spec) {
  return make_sharded_variable(*this, spec, parameter_server_extended().partitioner());
}

Staleness ParameterServerStrategyV2::staleness() const {
  return static_cast<const StoredExtended&>(extended()).staleness();
}

}  // namespace tandem
