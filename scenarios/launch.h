// Makes the processes of a launch, by mpirun or srun, agree before they run a scenario.
#pragma once

#include <optional>
#include <vector>

#include "engine/launched_job.h"
#include "engine/worker.h"
#include "scenarios/scenario.h"
#include "strategies/cluster/environment.h"

namespace tandem {

// Sets the number of workers that train to fit the launch, which has one task for each rank. Does nothing for a process
// that was not launched with others. `workers` is the number that the user asked for. Throws InputError for too few
// ranks, and UnavailableError if the launch has another number than the user asked for.
void take_workers_of_launch(Scenario& scenario, const std::optional<int>& workers);

// Tells the job that this process has joined, if any, what it is about to run; ranks that run different things are
// refused.
void state_to_job(const Scenario& scenario);

// Throws UnavailableError where TF_CONFIG describes another cluster than `tasks`, or says that this process is another
// task than the launch has made it: the ranks get the tasks in their order. Accepts a missing TF_CONFIG, one that
// describes no cluster, and any if this process was launched alone.
void check_tf_config(const std::vector<WorkerSpec>& tasks, const Rank& rank, const Environment& variables);

}  // namespace tandem
