// How Megatron-LM's arguments divide layers among the stages of a pipeline, and the tokens of sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/import/flags.h"
#include "strategies/parallel/layout/parallel_options.h"

namespace tandem {

struct MegatronStages {
  std::int64_t of_device = 1;          // virtual stages
  std::vector<std::int64_t> blocks{};  // of each stage, in order; empty: equally many
};

// `predictors`: layers that predict further tokens, which follow the others in the last stage unless a layout says
// otherwise. Throws InputError for layers that these stages do not divide.
MegatronStages read_stages(const Flags& flags, std::int64_t pipeline, std::int64_t layers, std::int64_t predictors);

// Returns how `context` devices that divide tokens exchange keys and values (--cp-comm-type), and adds what of it is
// not modelled. Throws InputError for other words than Megatron-LM's, and for heads that they would have to divide and
// cannot.
ContextExchange context_exchange_of(const Flags& flags, std::int64_t tensor, std::int64_t context,
                                    std::vector<std::string>& left_out);

// Returns whether each of `tensor` devices has its experts as a whole (--expert-tensor-parallel-size 1), and adds other
// numbers than that and `tensor`, which are not modelled.
bool keeps_experts_whole(const Flags& flags, std::int64_t tensor, std::vector<std::string>& left_out);

}  // namespace tandem
