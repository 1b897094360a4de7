// How a job goes on when it has lost a worker.
#pragma once

#include "scenarios/faults/fault_settings.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// Whether workers need none of the others in a step.
bool may_go_on_without(const Scenario& scenario);

// Returns the policy of a scenario with faults or a recovery: the one that it states, or TensorFlow's for its strategy.
RecoveryPolicy recovery_policy(const Scenario& scenario);

// Throws InputError for one that its strategy cannot follow.
void check_recovery_policy(const Scenario& scenario);

}  // namespace tandem
