// Decides which options of an import apply to which kinds of file.
#pragma once

#include <string>

#include "scenarios/import/import.h"
#include "scenarios/import/yaml_writer.h"

namespace tandem {

// Throws InputError for an option that has no meaning for files of that kind.
void check_choices(const std::string& file, ImportKind kind, const ImportChoices& choices);

// Returns whether a strategy divides parameters and gradients among all devices, and can thus be given for a trace.
bool divides_parameters(const std::string& strategy);

// Equal machines, all of whose devices train.
struct UsedMachines {
  std::string name{};  // in the catalog, or a file
  int workers = 1;
  int devices = 1;    // of each
  std::string gpu{};  // the product of their GPUs, where the machine's file does not tell it
};
// Sets `topology` and `devices` of a scenario.
void set_machines(YamlMap& scenario, const UsedMachines& machines);

}  // namespace tandem
