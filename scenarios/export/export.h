// Writes a scenario in the form of the program that would run it, the way back of scenarios/import: docs/import.md.
//
// What has been written is read back as scenarios/import does, and compared with the scenario: what of it the program
// cannot be told is either refused or said, and names of flags cannot differ from those that are read.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario/scenario.h"

namespace tandem {

// megatron: a shell script that starts Megatron-LM. torchtitan: a job's configuration in TOML.
enum class JobForm : std::uint8_t { megatron, torchtitan };
// The words for them on the command line.
const std::vector<std::pair<std::string, JobForm>>& job_forms();

struct ExportedJob {
  std::string text{};
  // Sentences, which the text has as comments: what changes the time of a step, though not which device has which part
  // of the model, and is not in the program's words.
  std::vector<std::string> not_said{};
};

// Throws InputError, at the keys of the scenario, for another model, layout, batch or type than the program can be
// given, and for what the program itself refuses.
ExportedJob export_job(const Scenario& scenario, JobForm form);

}  // namespace tandem
