// The tasks of a scenario's job, and how many of each kind there are: the numbers of a Job, for scenarios of which
// nothing else is asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_info.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// The job of the task that evaluates beside training, with devices as a worker's. It has the last machine of a topology
// that has several.
inline constexpr const char* kEvaluatorJob = "evaluator";
int evaluators(const Scenario& scenario);  // 0 or 1

// Returns the number of workers that train, the chief included: the scenario's, else one for each machine of the
// topology but the evaluator's.
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

// Returns all tasks of the job, those that train first, an evaluator last. A single task is "localhost", as without a
// cluster. Parameter servers are placed in turn on the machines where no worker trains, or on all machines if there is
// no such machine. All tasks share the machine of a topology that has only one. Throws InputError if the topology gives
// a strategy for one worker several.
std::vector<WorkerSpec> tasks_of(const Scenario& scenario);

}  // namespace tandem
