#include "scenarios/job/tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/strategies.h"

namespace tandem {
namespace {

int machines_of(const Scenario& scenario) {
  return scenario.topology ? std::max(1, scenario.topology->worker_count()) : 1;
}

// check_rules() checks a number of workers that is stated.
void check_machines(const Scenario& scenario) {
  const int machines = machines_of(scenario) - evaluators(scenario);
  if (scenario.devices.workers || machines <= 1 || strategy_info(scenario.strategy.name).several_workers) return;
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

WorkerSpec evaluator_of(const Scenario& scenario) {
  return {.job = kEvaluatorJob,
          .topology_worker = machines_of(scenario) - 1,
          .device_type = scenario.devices.type,
          .device_count = scenario.devices.per_worker};
}

WorkerSpec server_of(const Scenario& scenario, int index) {
  const int machines = machines_of(scenario);
  const int workers = training_workers(scenario);
  const int free = machines - workers - evaluators(scenario);
  return {.job = "ps",
          .task = index,
          .topology_worker = free > 0 ? workers + index % free : index % machines,
          .device_type = DeviceType::cpu,
          .device_count = 1};
}

}  // namespace

int evaluators(const Scenario& scenario) {
  return scenario.evaluation && scenario.evaluation->is_beside ? 1 : 0;
}

int training_workers(const Scenario& scenario) {
  return scenario.devices.workers.value_or(std::max(1, machines_of(scenario) - evaluators(scenario)));
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
  const bool is_alone = parameter_servers(scenario) > 0 && scenario.strategy.updates == VariableUpdates::asynchronous;
  const int workers = is_alone ? 1 : training_workers(scenario);
  return workers * scenario.devices.per_worker;
}

std::vector<WorkerSpec> tasks_of(const Scenario& scenario) {
  check_machines(scenario);
  const int workers = training_workers(scenario);
  const int servers = parameter_servers(scenario);
  std::vector<WorkerSpec> tasks;
  for (int i = 0; i < workers; ++i) tasks.push_back(worker_of(scenario, i));
  for (int i = 0; i < servers; ++i) tasks.push_back(server_of(scenario, i));
  if (evaluators(scenario) > 0) tasks.push_back(evaluator_of(scenario));
  if (tasks.size() == 1 && !scenario.devices.chief) tasks.front().job = "localhost";
  return tasks;
}

}  // namespace tandem
