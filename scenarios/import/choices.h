// Which options of an import apply to which kinds of file.
#pragma once

#include <string>

#include "scenarios/import/import.h"

namespace tandem {

// Throws InputError for an option that a file of that kind makes nothing of.
void check_choices(const std::string& file, ImportKind kind, const ImportChoices& choices);

// Whether a strategy divides parameters and gradients among all devices, which a trace can be timed anew with.
bool divides_parameters(const std::string& strategy);

// The value of `topology:` for so many of a machine. `gpu`: the product of its GPUs, where its file does not tell it.
std::string topology_text(const std::string& machine, int workers, const std::string& gpu);

}  // namespace tandem
