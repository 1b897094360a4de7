#include "scenarios/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/job/machine_watch.h"

namespace tandem {
namespace {

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
