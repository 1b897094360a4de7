#include "scenarios/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/parallel_settings.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 3> kOfOneWorker = {"central_storage", "mirrored", "one_device"};
constexpr std::array<std::string_view, 4> kWithoutServers = {"central_storage", "mirrored", "multi_worker_mirrored",
                                                             "one_device"};

constexpr std::array<std::string_view, 3> kWithOwnOperations = {"central_storage", "multi_worker_mirrored",
                                                                "parameter_server"};

int machines_of(const Scenario& scenario) {
  return scenario.topology ? std::max(1, scenario.topology->worker_count()) : 1;
}

void check_workers(const Scenario& scenario) {
  const int workers = training_workers(scenario);
  const int machines = machines_of(scenario);
  if (workers > 1 && !may_have_workers(scenario.strategy.name)) {
    throw InputError({scenario.problem_at(
        scenario.devices.workers ? "devices.workers" : "topology",
        scenario.devices.workers
            ? fmt::format("strategy '{}' runs on one worker; here are {}", scenario.strategy.name, workers)
            : fmt::format("strategy '{}' runs on one worker; this topology has {} (write devices: {{workers: 1}} for "
                          "the first one)",
                          scenario.strategy.name, workers))});
  }
  if (machines > 1 && workers > machines) {
    throw InputError(
        {scenario.problem_at("devices.workers", fmt::format("topology '{}' has {} machines for {} workers",
                                                            scenario.topology->name(), machines, workers))});
  }
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

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool may_have_workers(std::string_view strategy) {
  return !contains(kOfOneWorker, strategy);
}

bool may_have_servers(std::string_view strategy) {
  return !contains(kWithoutServers, strategy) && !is_parallel(strategy);
}

bool has_cross_device_ops(std::string_view strategy, std::string_view operations) {
  if (operations.empty() || operations == "auto") return true;
  if (!contains(kWithOwnOperations, strategy) && !is_parallel(strategy)) return true;
  return strategy == "multi_worker_mirrored" && operations == "collective";
}

int training_workers(const Scenario& scenario) {
  return scenario.devices.workers.value_or(machines_of(scenario));
}

int parameter_servers(const Scenario& scenario) {
  const bool needs_one = scenario.strategy.name == "parameter_server" && training_workers(scenario) > 1;
  return scenario.devices.ps.value_or(needs_one ? 1 : 0);
}

std::vector<WorkerSpec> tasks_of(const Scenario& scenario) {
  check_workers(scenario);
  const int workers = training_workers(scenario);
  const int servers = parameter_servers(scenario);
  std::vector<WorkerSpec> tasks;
  for (int i = 0; i < workers; ++i) tasks.push_back(worker_of(scenario, i));
  for (int i = 0; i < servers; ++i) tasks.push_back(server_of(scenario, i));
  if (tasks.size() == 1 && !scenario.devices.chief) tasks.front().job = "localhost";
  return tasks;
}

}  // namespace tandem
