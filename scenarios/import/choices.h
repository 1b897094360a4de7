// The options of an import, and which of them apply to which kinds of file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/import/base/input_file.h"
#include "scenarios/import/base/yaml_writer.h"

namespace tandem {

// What a file of another program does not say. Empty or 0 means a usual value, which is reported as assumed.
struct ImportChoices {
  std::int64_t tokens = 0;  // of a sequence
  int batch = 0;            // of all replicas together
  std::string dtype{};
  std::string precision{};
  std::string optimizer{};
  std::string strategy{};
  std::string topology{};  // a name of the catalog, or a file
  int devices = 0;         // of a machine
  int workers = 0;
  std::string gpu{};       // the product of a topology file's GPUs
  int ranks = 0;           // of a trace whose files do not say how many there are; 0: devices x workers
  bool recompute = false;  // activations of blocks
  int predictors = 0;      // blocks that predict further tokens
  std::string dispatch{};  // of rows to experts
  std::string config{};    // which one of a Python file of torchtitan
  std::string lora{};      // the file of PEFT that says which layers have adapters
  // Devices along the axes of a mesh, stages of each device, and examples of a micro-batch; 0: 1 each.
  int tensor = 0, pipeline = 0, context = 0, expert = 0, virtual_stages = 0, micro_batch = 0;
  bool divides_model() const {
    return tensor > 0 || pipeline > 0 || context > 0 || expert > 0 || virtual_stages > 0 || micro_batch > 0;
  }
  std::vector<std::string> chosen{};  // sentences: which of all these are a usual value, too
};

std::string text_of(ImportKind kind);  // "a Hugging Face configuration"

// Throws InputError for an option that has no meaning for files of that kind.
void check_choices(const std::string& file, ImportKind kind, const ImportChoices& choices);

// Throws InputError for any option: `file` is a scenario, which has all of this itself.
void check_no_choices(const std::string& file, const ImportChoices& choices);

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
