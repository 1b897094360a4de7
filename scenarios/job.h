// Who takes part in a scenario's job: workers that train, parameter servers, and the machines that they run on.
#pragma once

#include <string_view>
#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

// What is known of the strategies that come with Tandem; a user's own may have all of it.
bool may_have_workers(std::string_view strategy);  // more than one
bool may_have_servers(std::string_view strategy);
bool has_cross_device_ops(std::string_view strategy, std::string_view operations);

// The scenario's workers that train, the chief among them: what it says, else as many as the topology has.
int training_workers(const Scenario& scenario);
// What the scenario says; else one for the workers of strategy 'parameter_server' where there are several.
int parameter_servers(const Scenario& scenario);

// All tasks of the job, those that train first. One that is alone is "localhost", as without a cluster. Parameter
// servers are on the machines that no worker trains on, in turn, else on all; a topology of one machine is shared by
// all. Throws InputError for a strategy that runs on one worker and for fewer machines than workers.
std::vector<WorkerSpec> tasks_of(const Scenario& scenario);

}  // namespace tandem
