// How Megatron-LM's arguments divide layers among the stages of a pipeline, and the tokens of sequences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

// Returns Megatron-LM's word for it.
std::string_view comm_type_of(ContextExchange exchange);

// Returns how many of `tensor` devices divide each expert (--expert-tensor-parallel-size), 0 for all of them, and adds
// numbers that do not divide `tensor`, which are not modelled.
std::int64_t tensor_of_experts(const Flags& flags, std::int64_t tensor, std::vector<std::string>& left_out);

}  // namespace tandem
