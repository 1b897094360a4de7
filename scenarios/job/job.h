// The job that a scenario asks for: workers that train, parameter servers, the machines that they run on, and what they
// do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/run/report.h"
#include "scenarios/job/tasks.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/parallel/layout/parallel_options.h"

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
  int alike_devices = 1;     // so many neighbours on a worker do the same as well
  // The workload: one of these.
  const MlpSettings* mlp = nullptr;
  const LayersSettings* layers = nullptr;
  const TraceSettings* trace = nullptr;
};

// Throws InputError if the topology gives a strategy for one worker several machines.
Job job_of(const Scenario& scenario);
Job job_of(const Scenario&& scenario) = delete;  // it would not outlive the job

// Returns the machine whose CPU devices are short of cores, or come nearest to that; nothing if no task has CPU
// devices. `capabilities` are those of the engine, opened for the job.
std::optional<SharedCores> shared_cores(const Job& job, const Capabilities& capabilities);

// Returns a note for every machine on which devices of the job share a GPU, equal notes once, because their times are
// not those of as many GPUs. `capabilities` are those of the engine, opened for the job.
std::vector<std::string> notes_of_shared_gpus(const Job& job, const Capabilities& capabilities);

}  // namespace tandem
