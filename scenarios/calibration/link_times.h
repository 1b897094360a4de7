// The times of collectives that the links of a topology predict by themselves, without any measured time.
#pragma once

#include <functional>
#include <vector>

#include "engine/collective.h"

namespace tandem {

// Returns a time in seconds for each size, 0 where none is known, or nothing at all.
using LinkTimes =
    std::function<std::vector<double>(CollectiveKind kind, int devices, int nodes, const std::vector<double>& bytes)>;

}  // namespace tandem
