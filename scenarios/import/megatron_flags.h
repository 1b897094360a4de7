// Flags of Megatron-LM that change the time of a step without being modelled. Facts from NVIDIA/Megatron-LM,
// megatron/training/arguments.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/import/flags.h"

namespace tandem {

// Returns why the given flag changes times in a way that no scenario shows, or that it is unknown; nothing for other
// flags.
std::optional<std::string> why_not_modelled(const Flag& flag);

// Returns whether a flag is neither read nor known to change no time.
bool is_unknown_argument(std::string_view name);

// Throws InputError at a flag that takes no value and has one, which a launch of Megatron-LM refuses as well. In
// megatron_switches.cc.
void check_switches(const Flags& flags);

// "num-layers 24"
std::string shown_flag(const Flag& flag);

}  // namespace tandem
