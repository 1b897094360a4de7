// The flags of Megatron-LM: which of them change the time of a step without being modelled.
// Facts of NVIDIA/Megatron-LM, megatron/training/arguments.py.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/import/flags.h"

namespace tandem {

// Why a flag that is given changes times in a way that no scenario shows; nothing for the others. Flags that nobody
// here knows are said to be unknown.
std::optional<std::string> why_not_modelled(const Flag& flag);

// "num-layers 24"
std::string shown_flag(const Flag& flag);

// Expands "([0]*3+[1]*12)" or "[0,1,1]" to so many values; false if it is no such expression or of another length.
bool expand_list(const std::string& text, std::size_t length, std::vector<bool>& values);

}  // namespace tandem
