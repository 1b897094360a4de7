// What a file or an option says that became part of an imported scenario, so that a refusal of the scenario, whose
// lines nobody has seen, points there.
#pragma once

#include <string>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

struct Origin {
  std::string key;   // of the scenario: "strategy.micro_batches"
  Diagnostic given;  // the place, and as its path the name of the flag, option or key; no message
};

// Returns the error with the problems of `scenario`, as messages name it, at what gave the part of the scenario that
// they are about, or the nearest part around it. The first of several origins of a part counts. Problems of other parts
// stay as they are.
InputError at_origins(const InputError& error, const std::string& scenario, const std::vector<Origin>& origins);

}  // namespace tandem
