// The low-rank adapters of a configuration of Megatron-Bridge (its section `peft`).
#pragma once

#include <string>
#include <vector>

#include "scenarios/import/flags.h"
#include "scenarios/import/models/adapters.h"

namespace tandem {

// Returns none where the section is missing. Throws InputError for modules that the model does not have.
Adapters read_megatron_adapters(const Flags& flags, const ModelTable& table, std::vector<std::string>& left_out);

}  // namespace tandem
