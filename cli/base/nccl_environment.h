// Tells people that the model of NCCL does not read the environment, which NCCL itself does.
#pragma once

#include <map>
#include <string>

#include "strategies/cluster/environment.h"

namespace tandem {

// Returns a line about the variables of NCCL that the environment sets and `stated` does not, or nothing.
std::string unread_nccl_variables(const Environment& environment, const std::map<std::string, std::string>& stated);

}  // namespace tandem
