#include "strategies/servers/parameter_server_v2.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "engine/engine.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/cluster_util.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/input/input_workers.h"
#include "strategies/strategy/regroup.h"
#include "strategies/variables/published_tensors.h"

namespace tandem {
namespace {

constexpr int kCoordinator = -1;

std::vector<Device*> own_devices(Worker& chief) {
  return {chief.devices().empty() ? &chief.cpu() : chief.devices().front()};
}

// Returns the servers' devices. Throws ValueError for a cluster that this strategy does not support.
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

ParameterServerV2Extended::ParameterServerV2Extended(Worker& chief, Partitioner partitioner,
                                                     std::shared_ptr<const ClusterResolver> cluster_resolver)
    : StoredExtended(chief, own_devices(chief), checked_servers(chief)),
      partitioner_(std::move(partitioner)),
      cluster_resolver_(checked_resolver(chief, std::move(cluster_resolver))),
      next_task_(static_cast<int>(parameter_devices().size())),
      worker_devices_(devices_by_worker(chief)),
      monitor_(chief.tasks().make_monitor()) {}

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

const std::vector<Device*>& ParameterServerV2Extended::worker_devices() const {
  const int assigned = assigned_worker();
  return assigned == kCoordinator ? StoredExtended::worker_devices() : devices_of_worker(assigned);
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
  if (devices.size() > 1) {
    const ReplicaFunction assigned_function = [&](const Value::Parts& mine) {
      const Assignment assignment(*this, assigned);  // each replica has a task of its own
      return function(mine);
    };
    return ReplicaGroup(strategy(), worker(), devices, 0).run(assigned_function, arguments);
  }
  ReplicaContext context(strategy(), 0, 0, devices.front(), nullptr);
  const ModeGuard mode(Mode{.strategy = &strategy(), .replica = &context});
  Value::Parts mine;
  for (const Value& argument : arguments) mine.push_back(select_replica(0, argument));
  return function(mine);
}

std::shared_ptr<Variable> ParameterServerV2Extended::make_variable(const VariableSpec& spec) {
  if (serves_functions_) {
    throw ValueError(fmt::format(
        "a function that a worker serves creates no variable, '{}': create it in the coordinator's program and pass it",
        spec.name));
  }
  std::shared_ptr<Variable> variable = StoredExtended::make_variable(spec);
  const std::lock_guard lock(*monitor_);
  std::erase_if(shared_variables_, [](const auto& entry) { return entry.second.expired(); });
  shared_variables_[static_cast<const StoredVariable&>(*variable).shared_name()] = variable;
  return variable;
}

std::shared_ptr<StoredTensor> ParameterServerV2Extended::store(const VariableSpec& spec, Device& device) {
  return publish_tensor(worker(), [&] { return new_tensor(spec, device); });
}

std::shared_ptr<Variable> ParameterServerV2Extended::shared_variable(const std::string& shared_name,
                                                                     const VariableSpec& spec) {
  {
    const std::lock_guard lock(*monitor_);
    const auto found = shared_variables_.find(shared_name);
    if (std::shared_ptr<Variable> known = found == shared_variables_.end() ? nullptr : found->second.lock())
      return known;
  }
  if (!serves_functions_) throw NotFoundError(fmt::format("variable '{}' is gone", spec.name));
  auto variable = std::make_shared<StoredVariable>(strategy(), spec, published_tensor(worker(), shared_name),
                                                   replicas_per_worker() > 1);
  note_variable(variable);
  if (!worker().capabilities().shared_objects) found_variables_.push_back(variable);
  const std::lock_guard lock(*monitor_);
  shared_variables_[shared_name] = variable;
  return variable;
}

Staleness ParameterServerV2Extended::staleness() const {
  Staleness total = staleness_of(std::nullopt);
  const std::lock_guard lock(*monitor_);
  total.add(elsewhere_);
  return total;
}

void ParameterServerV2Extended::add_staleness(const Staleness& staleness) {
  const std::lock_guard lock(*monitor_);
  elsewhere_.add(staleness);
}

void ParameterServerV2Extended::note_update(const Staleness& staleness) {
  if (serves_functions_ && !worker().capabilities().shared_objects) add_staleness(staleness);
}

Staleness ParameterServerV2Extended::take_staleness() {
  const std::lock_guard lock(*monitor_);
  return std::exchange(elsewhere_, {});
}

void ParameterServerV2Extended::note_served(int worker) {
  const std::lock_guard lock(*monitor_);
  served_.insert(worker);
}

bool ParameterServerV2Extended::has_served(int worker) const {
  const std::lock_guard lock(*monitor_);
  return served_.contains(worker);
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

ParameterServerStrategyV2::ParameterServerStrategyV2(Worker& chief, Partitioner partitioner,
                                                     std::shared_ptr<const ClusterResolver> cluster_resolver)
    : Strategy("parameter_server_v2", std::make_unique<ParameterServerV2Extended>(chief, std::move(partitioner),
                                                                                  std::move(cluster_resolver))) {}

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
