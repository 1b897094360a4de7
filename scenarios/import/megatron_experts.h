// How rows reach experts, and which kernels these have, by Megatron-LM's arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/import/flags.h"

namespace tandem {

// Values of workload.experts and workload.stack.experts, as YAML; empty: the usual one.
struct MegatronExperts {
  std::string dispatch{}, capacity{}, kernels{};
  std::int64_t groups = 0, used_groups = 0;  // to which routing is limited; 0: it is not
  bool overlaps_shared = false;              // a shared expert is computed beside exchanges
};

// Adds to `left_out` what is not modelled. Throws InputError for values that no dispatcher has.
MegatronExperts read_dispatched_experts(const Flags& flags, std::vector<std::string>& left_out);

}  // namespace tandem
