// What the processes of a launch, by mpirun or srun, have to agree on before they run a scenario.
#pragma once

#include <optional>
#include <vector>

#include "engine/launched_job.h"
#include "engine/worker.h"
#include "scenarios/scenario.h"
#include "strategies/cluster/environment.h"

namespace tandem {

// A launched job has one task a rank: the launch says how many workers train, where it says anything. `workers` is how
// many were asked for. Throws InputError for too few ranks, and UnavailableError for another number than that.
void take_workers_of_launch(Scenario& scenario, const std::optional<int>& workers);

// States what this process is about to run, if it has joined a job: ranks that run different things are refused.
void state_to_job(const Scenario& scenario);

// Throws UnavailableError where TF_CONFIG describes another cluster than `tasks`, or says that this process is another
// task than the launch has made it: the tasks go to the ranks in their order. Nothing is wrong without TF_CONFIG, or
// with one that describes no cluster, or where this process has been launched alone.
void check_tf_config(const std::vector<WorkerSpec>& tasks, const Rank& rank, const Environment& variables);

}  // namespace tandem
