// Why what a job asks its host to keep cannot be kept there.
//
// Pure function. Threads: any.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "strategies/parallel/division.h"

namespace tandem {

// `first`: the first layer of each stage, followed by the number of layers. Returns nothing where nothing is wrong.
std::optional<DivisionProblem> offload_problem(const DivisionRequest& request, std::span<const std::size_t> first);

}  // namespace tandem
