// `tandem run --explore`: the scenario under many schedules instead of once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/base/common_options.h"
#include "scenarios/reading/scenario_flags.h"
#include "scenarios/run/runner.h"
#include "topologies/readers/import.h"

namespace tandem {

struct RunFlags {
  CommonOptions common;
  std::string scenario;
  std::vector<std::string> settings{};  // --set
  ScenarioFlags changes;
  std::string topology;
  ImportOptions import;
  std::string trace;
  bool all = false;            // collectives, in the text
  bool details = false;        // of pictures, in the document
  bool assumptions = false;    // simulate with others
  std::optional<int> explore;  // this many schedules
  RunOptions run;
};

// Returns the command that runs this seed alone, with the same options.
std::string command_for(const RunFlags& flags, std::uint64_t seed);

// Prints the exploration. Returns kNotMet when a schedule failed, or an expectation of the run without a seed.
int explore(RunFlags flags);

}  // namespace tandem
