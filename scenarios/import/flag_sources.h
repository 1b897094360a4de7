// The texts in which flags are found. For scenarios/import/flags.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/flags.h"

namespace tandem {

std::string name_of_flag(std::string_view word);  // "--num-layers" -> "num_layers"

// Reads the flags of the command with --num-layers or --hidden-size that a shell script executes, and how many devices
// its launcher starts (nnodes, nproc_per_node, world_size). Also reads flags without a command, and a script between
// the fences of a Markdown text. Throws InputError.
void read_script_flags(std::string_view text, Flags& flags);

// Returns whether a text has lines "num_layers ....... 32", as Megatron-LM prints its arguments.
bool has_printed_arguments(std::string_view text);
// Reads such lines, whatever a launcher or a log has put before them. Leaves out arguments that are off, and names the
// others as the flags that set them. Throws InputError.
void read_printed_arguments(std::string_view text, Flags& flags);
// Does the same for arguments that are all known, with their values as Python writes them.
void read_arguments(const std::vector<Flag>& arguments, Flags& flags);

// Returns whether a text is a configuration of Megatron-Bridge: a ConfigContainer, as it is kept beside checkpoints.
bool has_bridge_config(std::string_view text);
// Reads what decides a step, under the names of Megatron-LM's arguments. Throws InputError.
void read_bridge_config(std::string_view text, Flags& flags);

}  // namespace tandem
