// How Megatron-LM's arguments divide layers among the stages of a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/import/flags.h"

namespace tandem {

struct MegatronStages {
  std::int64_t of_device = 1;          // virtual stages
  std::vector<std::int64_t> blocks{};  // of each stage, in order; empty: equally many
};

// `predictors`: layers that predict further tokens, which follow the others in the last stage unless a layout says
// otherwise. Throws InputError for layers that these stages do not divide.
MegatronStages read_stages(const Flags& flags, std::int64_t pipeline, std::int64_t layers, std::int64_t predictors);

}  // namespace tandem
