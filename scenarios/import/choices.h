// Decides which options of an import apply to which kinds of file.
#pragma once

#include <string>

#include "scenarios/import/import.h"

namespace tandem {

// Throws InputError for an option that has no meaning for files of that kind.
void check_choices(const std::string& file, ImportKind kind, const ImportChoices& choices);

// Returns whether a strategy divides parameters and gradients among all devices, and can thus be given for a trace.
bool divides_parameters(const std::string& strategy);

// Returns the value of `topology:` for `workers` machines. `gpu` is the product of their GPUs, where the machine's file
// does not tell it.
std::string topology_text(const std::string& machine, int workers, const std::string& gpu);

}  // namespace tandem
