// Makes scenarios from files of other programs: docs/import.md.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/import/base/input_file.h"
#include "scenarios/import/base/origins.h"
#include "scenarios/import/choices.h"

namespace tandem {

struct Imported {
  ImportKind kind = ImportKind::scenario;
  std::string scenario{};               // its text
  int ranks = 0;                        // of a trace whose files do not say how many there are; 0: they do
  std::string model{};                  // the text of its model file, where it has one
  std::vector<std::string> facts{};     // "parameters: 8,030,261,248"
  std::vector<std::string> assumed{};   // sentences
  std::vector<std::string> left_out{};  // what changes times but is not modelled
  std::vector<Origin> origins{};        // of the scenario's parts
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
