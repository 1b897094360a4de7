// Makes scenarios from files of other programs: docs/import.md.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/import/input_file.h"

namespace tandem {

std::string text_of(ImportKind kind);  // "a Hugging Face configuration"

// What a file of another program does not say. Empty or 0 means a usual value, which is reported as assumed.
struct ImportChoices {
  std::int64_t tokens = 0;  // of a sequence
  int batch = 0;            // of all replicas together
  std::string dtype{};
  std::string optimizer{};
  std::string strategy{};
  std::string topology{};  // a name of the catalog, or a file
  int devices = 0;         // of a machine
  int workers = 0;
  std::string gpu{};              // the product of a topology file's GPUs
  int ranks = 0;                  // of a trace whose files do not say how many there are; 0: devices x workers
  bool recompute = false;         // activations of blocks
  std::int64_t bucket_bytes = 0;  // of gradients that a trace's ranks reduce together
};

struct Imported {
  ImportKind kind = ImportKind::scenario;
  std::string scenario{};               // its text
  int ranks = 0;                        // of a trace whose files do not say how many there are; 0: they do
  std::string model{};                  // the text of its model file, where it has one
  std::vector<std::string> facts{};     // "parameters: 8,030,261,248"
  std::vector<std::string> assumed{};   // sentences
  std::vector<std::string> left_out{};  // what changes times but is not modelled
};

// Makes a scenario from a file. `model_file` is how the scenario names its model; empty: the file itself, in the same
// folder. Throws InputError.
Imported import_file(const InputFile& file, const ImportChoices& options, const std::string& model_file);

// Does the same for traces, one file for each rank that has one. A single file of Chakra is read together with those
// beside it whose names differ in the rank only. Paths in the scenario are relative to `scenario_folder`, where the
// scenario will be.
Imported import_traces(const std::vector<std::filesystem::path>& files, const ImportChoices& options,
                       const std::filesystem::path& scenario_folder);

// Returns the model file of a configuration for sequences of `tokens` tokens (0: the usual number). Throws InputError.
std::string model_file_of(const InputFile& configuration, std::int64_t tokens);

}  // namespace tandem
