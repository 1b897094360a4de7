// Makes the processes of a launch, by mpirun or srun, agree before they run a scenario.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_info.h"
#include "engine/worker.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/cluster/environment.h"

namespace tandem {

// Makes this process the task of TF_CONFIG's cluster that TF_CONFIG says (start_task_of), for engines that spread over
// processes. Throws UnavailableError, with what is wrong in TF_CONFIG.
void take_task_of_tf_config();

// Joins the processes that were launched together with this one, over which the scenario's engine spreads a run.
// Returns null for a process that is alone and for an engine that is not built or keeps runs in one process. Throws
// UnavailableError as the functions here do.
LaunchedJob* join_launch(const Scenario& scenario);

// Returns what the launch decides of a scenario, as changes of its document: it has one task for each rank, so many
// workers train; tasks of TF_CONFIG also say whether the first is the chief, and how many parameter servers there are.
// Returns nothing for a process that was not launched with others. `workers`: the number that the user asked for; "":
// none. Throws InputError for too few ranks, and UnavailableError if the launch has another number than the user asked
// for, or as join_launch() does.
std::vector<ScenarioSetting> settings_of_launch(const Scenario& scenario, const std::string& workers);

// Throws UnavailableError if this process is a rank of a launch and the engine keeps runs in one process, where every
// rank would run everything and write the same files; except in a job, whose rank 0 predicts on such an engine, and in
// programs that divide their work themselves (refuse_jobs).
void check_engine_of_launch(const EngineInfo& engine);

// Tells the job that this process has joined, if any, what it is about to run; ranks that run different things are
// refused.
void state_to_job(const Scenario& scenario);

// Throws UnavailableError where TF_CONFIG describes another cluster than `tasks`, or says that this process is another
// task than the launch has made it: the ranks get the tasks in their order. Accepts a missing TF_CONFIG, and one that
// describes no cluster. A process that was launched alone must be alone in its TF_CONFIG, or an evaluator, which is no
// task of the cluster.
void check_tf_config(const std::vector<WorkerSpec>& tasks, const Rank& rank, const Environment& variables);
// The same for ranks that are not the tasks of a scenario: as many as TF_CONFIG has.
void check_tf_config(const Rank& rank, const Environment& variables);

// What ranks must have in common besides what they run: returns the addresses that TF_CONFIG gives the tasks, by the
// name of this in messages.
std::map<std::string, std::string> tf_config_of_all(const Environment& variables);

}  // namespace tandem
