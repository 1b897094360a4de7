// What to change where a job needs more memory than its devices have.
#pragma once

#include <string>
#include <vector>

#include "scenarios/estimates/device_memory.h"

namespace tandem {

// A change of a scenario with which its devices have enough memory.
struct FittingChange {
  std::string text;   // as keys of the scenario: "strategy.micro_batches: 16"
  MemoryNeed need{};  // after it
  double again = 0;   // flops of products that are computed again, as a share of those of a step
};

// Returns the changes that suffice by themselves, those that compute less again first; if there are none, the fewest
// of them that do so together, in one; nothing if even all of them do not. Tries the kernels of attention and loss, a
// distributed optimizer, parameters in pieces, smaller micro-batches or more passes, activations on the host, and
// recomputation. The numbers of devices stay as they are. Where none does, those with which the estimate is above the
// memory by no more than its uncertainty.
std::vector<FittingChange> changes_that_fit(const Job& job);

// "it fits with A (12.1 GB), B (14.2 GB, 5 % of the flops again) or C (...)", "it may fit with" those above the memory,
// or that nothing of the kind is enough.
std::string text_of(const std::vector<FittingChange>& changes);

}  // namespace tandem
