// How torchtitan divides the blocks of a model among the stages of a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/import/titan/titan_job.h"

namespace tandem {

struct StagesOfTitan {
  std::int64_t of_device = 1;
  std::vector<std::int64_t> blocks{};  // of each stage, in order; empty: equally many
};

// Throws InputError at the key that asks for what cannot be.
StagesOfTitan stages_of_titan(const TitanJob& job);

}  // namespace tandem
