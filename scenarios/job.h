// The job that a scenario asks for: workers that train, parameter servers, the machines that they run on, and what they
// do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "scenarios/scenario.h"
#include "strategies/parallel/parallel_options.h"

namespace tandem {

// What everything about a run depends on, derived once. Plain data. `scenario` has the topology of the run, and must
// outlive the job.
struct Job {
  const Scenario& scenario;
  const EngineInfo& engine;
  const StrategyInfo& strategy;
  bool models_machine = false;            // whether the engine predicts, and does not measure
  std::vector<WorkerSpec> tasks{};        // those that train first; see tasks_of()
  int workers = 1, servers = 0;           // among the tasks
  std::int64_t devices = 1;               // that train, on all workers
  int devices_in_step = 1;                // that wait for one another in every step
  int devices_of_replica = 1;             // that compute one replica of the data
  std::optional<ParallelOptions> mesh{};  // over all devices, if the strategy divides the model
  bool divides_model = false;             // false for traces, which do what was recorded
  std::vector<int> alike{};  // by worker, if the engine asks: workers with equal numbers do the same on equal shares
  // The workload: one of these.
  const MlpSettings* mlp = nullptr;
  const LayersSettings* layers = nullptr;
  const TraceSettings* trace = nullptr;
};

// Throws InputError if the topology gives a strategy for one worker several machines.
Job job_of(const Scenario& scenario);
Job job_of(const Scenario&& scenario) = delete;  // it would not outlive the job

// The numbers below are those of a Job, for scenarios of which nothing else is asked.

// Returns the number of workers that train, the chief included: the scenario's, else one for each machine of the
// topology.
int training_workers(const Scenario& scenario);
// Returns the number of devices that train, on all workers.
std::int64_t training_devices(const Scenario& scenario);
// Returns what is wrong with that number if it is too large to count, and nothing otherwise.
std::optional<std::string> device_count_problem(const Scenario& scenario);
// Returns the number of parameter servers: the scenario's, else one if the strategy requires it.
int parameter_servers(const Scenario& scenario);
// Returns the number of devices that wait for one another in every step: all that train, or those of one worker where
// workers train independently with parameter servers.
int devices_in_step(const Scenario& scenario);

// Returns all tasks of the job, those that train first. A single task is "localhost", as without a cluster. Parameter
// servers are placed in turn on the machines where no worker trains, or on all machines if there is no such machine.
// All tasks share the machine of a topology that has only one. Throws InputError if the topology gives a strategy for
// one worker several.
std::vector<WorkerSpec> tasks_of(const Scenario& scenario);

// Returns the machine whose CPU devices are short of cores, or come nearest to that; nothing if no task has CPU
// devices. `capabilities` are those of the engine, opened for the job.
std::optional<SharedCores> shared_cores(const Job& job, const Capabilities& capabilities);

// Returns a note for every machine on which devices of the job share a GPU, equal notes once, because their times are
// not those of as many GPUs. `capabilities` are those of the engine, opened for the job.
std::vector<std::string> notes_of_shared_gpus(const Job& job, const Capabilities& capabilities);

}  // namespace tandem
