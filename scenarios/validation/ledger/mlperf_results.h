// Results of MLPerf Training as they are published: a folder for each submitter, with logs, systems and configurations.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/validation/ledger/ledger_file.h"

namespace tandem::validation {

// Reads SUBMITTER/results/SYSTEM/BENCHMARK/result_*.txt, SUBMITTER/systems/SYSTEM.json, and of the configurations
// SUBMITTER/benchmarks/BENCHMARK/**/config_*.sh the one whose name fits the system's nodes and accelerators, all below
// `folder`, which may be that of one submitter. Returns the rows by benchmark, in the order of the folders' names.
// Throws InputError for a folder without results, and for systems that cannot be read.
std::map<std::string, std::vector<LedgerRow>> read_mlperf(const std::filesystem::path& folder);

// What one log says. 0: it does not.
struct MlperfLog {
  std::int64_t batch = 0;  // of a step, of all devices
  double step_s = 0;       // median, without the first five that are logged; of fewer than six, without the first
};
MlperfLog read_mlperf_log(std::string_view text);

// Returns what a configuration sets: `export NAME=VALUE`, `: "${NAME:=VALUE}"`; of several, the last.
std::map<std::string, std::string> read_mlperf_settings(std::string_view text);

}  // namespace tandem::validation
