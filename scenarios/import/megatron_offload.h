// What Megatron-LM keeps on the host, and in which types it keeps the optimizer's moments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/flags.h"
#include "topologies/base/dtype.h"

namespace tandem {

struct MegatronOffload {
  std::int64_t blocks = 0;  // whose activations are there
  std::string optimizer{};  // the share of its state, as YAML; empty: none
};

// Adds to `left_out` what of it a scenario does not have. `has_pieces`: parameters are divided among replicas.
MegatronOffload offload_of(const Flags& flags, bool has_pieces, std::vector<std::string>& left_out);

// Returns the value of `workload.precision.moments` for Adam, as YAML; empty: the usual one. Adds to `left_out` what of
// it a scenario does not have. Throws InputError for words that are no type of moments.
std::string moment_types_of(const Flags& flags, std::vector<std::string>& left_out);

// Returns Megatron-LM's word for a type of moments: f32, bf16, f16 or fp8.
std::string_view moment_word(DType type);

}  // namespace tandem
