// What Megatron-LM's arguments compute again before its backward pass.
#pragma once

#include <string>

#include "scenarios/import/flags.h"

namespace tandem {

// Returns the value of `workload.activation_checkpointing`, as YAML; empty: nothing is computed again. Modules that the
// model does not have are left out. Throws InputError for words that are no granularity and no method.
std::string recomputation_of(const Flags& flags);

// Returns the modules of --recompute-modules that are kept all the same, because no layers are known for them.
std::string unknown_modules(const Flag& flag);

}  // namespace tandem
