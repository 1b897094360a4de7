#include "scenarios/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/engine_info.h"
#include "scenarios/alike.h"
#include "scenarios/machine_watch.h"
#include "scenarios/parallel_settings.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

int machines_of(const Scenario& scenario) {
  return scenario.topology ? std::max(1, scenario.topology->worker_count()) : 1;
}

// check_rules() checks a number of workers that is stated.
void check_machines(const Scenario& scenario) {
  const int machines = machines_of(scenario);
  if (scenario.devices.workers || machines == 1 || strategy_info(scenario.strategy.name).several_workers) return;
  throw InputError({scenario.problem_at(
      "topology", fmt::format("strategy '{}' runs on one worker; this topology has {} (write devices: {{workers: 1}} "
                              "for the first one)",
                              scenario.strategy.name, machines))});
}

WorkerSpec worker_of(const Scenario& scenario, int index) {
  WorkerSpec spec{.job = "worker",
                  .task = index,
                  .topology_worker = index % machines_of(scenario),
                  .device_type = scenario.devices.type,
                  .device_count = scenario.devices.per_worker};
  if (scenario.devices.chief) {
    spec.job = index == 0 ? "chief" : "worker";
    spec.task = std::max(0, index - 1);
  }
  return spec;
}

WorkerSpec server_of(const Scenario& scenario, int index) {
  const int machines = machines_of(scenario);
  const int workers = training_workers(scenario);
  const int free = machines - workers;
  return {.job = "ps",
          .task = index,
          .topology_worker = free > 0 ? workers + index % free : index % machines,
          .device_type = DeviceType::cpu,
          .device_count = 1};
}

// Counts the GPUs of the machine that `task` runs on. A real engine is one machine, whatever the topology says.
int gpus_of_machine(const Job& job, const Capabilities& capabilities, const WorkerSpec& task) {
  if (job.models_machine) {
    return static_cast<int>(job.scenario.topology->nodes_of(task.topology_worker, NodeKind::gpu).size());
  }
  return static_cast<int>(std::count_if(capabilities.hardware.begin(), capabilities.hardware.end(),
                                        [](const Hardware& hardware) { return hardware.type == DeviceType::gpu; }));
}

// Returns how many CPU devices of that machine work at full rate at the same time; 0: not known.
int cores_of_machine(const Job& job, const Capabilities& capabilities, const WorkerSpec& task) {
  int cores = 0;
  if (job.models_machine) {
    const Topology& topology = *job.scenario.topology;
    for (const NodeIndex node : topology.nodes_of(task.topology_worker, NodeKind::cpu)) {
      if (const auto device = topology.device(node)) cores += device->cores;
    }
    return cores;
  }
  for (const Hardware& hardware : capabilities.hardware) {
    if (hardware.type == DeviceType::cpu) cores += hardware.cores;
  }
  return cores;
}

}  // namespace

int training_workers(const Scenario& scenario) {
  return scenario.devices.workers.value_or(machines_of(scenario));
}

std::int64_t training_devices(const Scenario& scenario) {
  return std::int64_t{training_workers(scenario)} * scenario.devices.per_worker;
}

std::optional<std::string> device_count_problem(const Scenario& scenario) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (training_devices(scenario) <= kMost) return std::nullopt;
  return fmt::format("{} workers of {} devices are more than {} devices", training_workers(scenario),
                     scenario.devices.per_worker, kMost);
}

int parameter_servers(const Scenario& scenario) {
  const bool is_required = strategy_info(scenario.strategy.name).parameter_servers == ServerUse::required;
  return scenario.devices.ps.value_or(is_required && training_workers(scenario) > 1 ? 1 : 0);
}

int devices_in_step(const Scenario& scenario) {
  const int workers = parameter_servers(scenario) > 0 ? 1 : training_workers(scenario);
  return workers * scenario.devices.per_worker;
}

std::vector<WorkerSpec> tasks_of(const Scenario& scenario) {
  check_machines(scenario);
  const int workers = training_workers(scenario);
  const int servers = parameter_servers(scenario);
  std::vector<WorkerSpec> tasks;
  for (int i = 0; i < workers; ++i) tasks.push_back(worker_of(scenario, i));
  for (int i = 0; i < servers; ++i) tasks.push_back(server_of(scenario, i));
  if (tasks.size() == 1 && !scenario.devices.chief) tasks.front().job = "localhost";
  return tasks;
}

Job job_of(const Scenario& scenario) {
  Job job{.scenario = scenario,
          .engine = engine_info(scenario.engine.name),
          .strategy = strategy_info(scenario.strategy.name),
          .tasks = tasks_of(scenario),
          .workers = training_workers(scenario),
          .servers = parameter_servers(scenario),
          .devices = training_devices(scenario),
          .devices_in_step = tandem::devices_in_step(scenario),
          .devices_of_replica = devices_of_one_replica(scenario),
          .mlp = std::get_if<MlpSettings>(&scenario.workload.kind),
          .layers = std::get_if<LayersSettings>(&scenario.workload.kind),
          .trace = std::get_if<TraceSettings>(&scenario.workload.kind)};
  job.models_machine = job.engine.needs_topology;
  job.divides_model = job.strategy.division && job.trace == nullptr;
  if (job.strategy.division) job.mesh = parallel_options(scenario);
  if (job.engine.symmetry) job.alike = alike_workers(job);
  return job;
}

std::optional<SharedCores> shared_cores(const Job& job, const Capabilities& capabilities) {
  const LaunchedJob* launched = job.models_machine ? nullptr : joined_job();
  const std::vector<WorkerSpec>& tasks = job.tasks;
  std::map<std::string, SharedCores> machines;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].device_type != DeviceType::cpu || tasks[i].device_count == 0) continue;
    std::string machine;
    if (job.models_machine) machine = std::to_string(tasks[i].topology_worker);
    if (launched != nullptr && i < launched->hosts().size()) machine = launched->hosts()[i];
    SharedCores& shared = machines[machine];
    shared.devices += tasks[i].device_count;
    const int cores = cores_of_machine(job, capabilities, tasks[i]);
    // Launchers may bind each rank to cores of its own; otherwise, all ranks of a machine have all of its cores.
    shared.cores = launched == nullptr ? cores : std::min(shared.cores + cores, online_processors());
  }
  std::erase_if(machines, [](const auto& machine) { return machine.second.cores == 0; });
  const auto fullest = std::max_element(machines.begin(), machines.end(), [](const auto& a, const auto& b) {
    return std::int64_t{a.second.devices} * b.second.cores < std::int64_t{b.second.devices} * a.second.cores;
  });
  return fullest == machines.end() ? std::nullopt : std::optional(fullest->second);
}

std::vector<std::string> notes_of_shared_gpus(const Job& job, const Capabilities& capabilities) {
  if (job.engine.join != nullptr) return {};  // the engine knows the machines of its processes, and says so itself
  struct Machine {
    int gpus = 0;
    std::map<int, int> devices;  // on each GPU
  };
  std::map<int, Machine> machines;
  for (const WorkerSpec& task : job.tasks) {
    if (task.device_type != DeviceType::gpu) continue;
    Machine& machine = machines[job.models_machine ? task.topology_worker : 0];
    machine.gpus = gpus_of_machine(job, capabilities, task);
    for (int i = 0; i < task.device_count && machine.gpus > 0; ++i) ++machine.devices[i % machine.gpus];
  }
  std::set<std::string> notes;
  for (const auto& [index, machine] : machines) {
    int devices = 0, most = 0;
    for (const auto& [gpu, count] : machine.devices) {
      devices += count;
      most = std::max(most, count);
    }
    if (most < 2) continue;
    notes.insert(
        fmt::format("shared: {} logical devices are on {} GPU{} of one machine, up to {} on each; times are "
                    "not those of {} GPUs",
                    devices, machine.gpus, machine.gpus == 1 ? "" : "s", most, devices));
  }
  return {notes.begin(), notes.end()};
}

}  // namespace tandem
