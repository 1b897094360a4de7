#include "scenarios/faults/recovery_policy.h"

#include <fmt/format.h>

#include "scenarios/job/tasks.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

bool may_go_on_without(const Scenario& scenario) {
  return parameter_servers(scenario) > 0 && scenario.strategy.updates == VariableUpdates::asynchronous;
}

RecoveryPolicy recovery_policy(const Scenario& scenario) {
  if (scenario.faults->recovery.policy) return *scenario.faults->recovery.policy;
  if (may_go_on_without(scenario)) return RecoveryPolicy::continue_;
  return training_workers(scenario) > 1 ? RecoveryPolicy::restart_all : RecoveryPolicy::end;
}

void check_recovery_policy(const Scenario& scenario) {
  if (recovery_policy(scenario) != RecoveryPolicy::continue_ || may_go_on_without(scenario)) return;
  throw InputError({scenario.problem_at(
      "recovery.policy",
      fmt::format("workers of strategy '{}' do not go on without one that is lost; restart_all, wait, "
                  "spare and elastic are possible",
                  scenario.strategy.name))});
}

}  // namespace tandem
