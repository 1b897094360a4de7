// The usual space of a plan: every way in which the known strategies can divide the work of a scenario among its
// devices.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario/scenario.h"

namespace tandem {

// So many machines of a kind, to choose from.
struct MachineChoice {
  std::string node{};          // its name in the catalog, or a file; empty: the scenario's
  int per_worker = 0;          // devices of each
  std::vector<int> workers{};  // how many machines
  int joined = 1;              // how many of them share an NVSwitch
};

struct SpaceChoices {
  std::vector<std::string> strategies{};  // empty: all that may run on the scenario's workers
  std::vector<MachineChoice> machines{};  // empty: the scenario's; several: all have a name
};

// Returns a `sweep:` for the scenario, as YAML in one line. Its conditions leave out what cannot be; what a strategy
// refuses beside that, points say themselves. Throws InputError for a strategy that does not exist, or that the
// scenario's devices have no use for.
std::string usual_space(const Scenario& scenario, const SpaceChoices& choices);

}  // namespace tandem
