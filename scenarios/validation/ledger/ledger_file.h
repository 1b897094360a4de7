// Results of MLPerf Training: who ran which benchmark on which machine, and how long a step took (docs/validation.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/error.h"

namespace tandem::validation {

struct LedgerRow {
  std::string benchmark{};    // "resnet"
  std::string round{};        // "v2.0"
  std::string submitter{};    // "NVIDIA"
  std::string system{};       // the submitter's name for the machine and its software
  std::string accelerator{};  // "NVIDIA A100-SXM4-80GB"
  std::string network{};      // as the submitter describes it; empty: it does not
  int nodes = 1;
  int devices_of_node = 1;
  std::int64_t batch = 1;                         // of a step, of all devices
  double step_s = 0;                              // the median over the runs of their median steps
  std::string configuration{};                    // the name of its file; empty: unknown
  std::map<std::string, std::string> settings{};  // of this file, NAME=value
  FilePlace place{};

  std::int64_t devices() const { return std::int64_t{nodes} * devices_of_node; }
};

// Parses a file of one benchmark. Rows that state no devices, batch or time have 0 there. Throws InputError with every
// problem.
std::vector<LedgerRow> parse_ledger(std::string_view text, const std::string& file);

// Returns whether the text is such a file.
bool is_ledger_file(std::string_view text);

}  // namespace tandem::validation
