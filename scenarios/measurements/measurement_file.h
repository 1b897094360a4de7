// Reads a file of measured collectives: the JSON form of tests/validation (docs/validation.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/nccl_tests/collective_table.h"
#include "scenarios/measurements/replay_machine.h"

namespace tandem::validation {

struct MeasuredTable {
  CollectiveTable table{};
  std::optional<ReplayMachine> machine{};  // empty where the file names none, or was read without its machines
  std::string lacks{};                     // why it cannot be replayed, in the file's words; empty: it can
};

struct MeasurementFile {
  std::string file{};
  std::string site{};   // who published it: `site` of its source, the owner of its repository, or its title
  bool healthy = true;  // false: the machine was unhealthy, in the words of its publisher
  std::vector<MeasuredTable> tables{};
  std::vector<std::string> notes{};  // what was read in another way than it is written, or not at all
};

enum class Machines : std::uint8_t { build, ignore };

// Parses a file. Throws InputError with every problem, at its line and column.
MeasurementFile parse_measurements(std::string_view text, const std::string& file, Machines machines = Machines::build);

// Returns whether the text is such a file rather than nccl-tests' JSON.
bool is_measurement_file(std::string_view text);

}  // namespace tandem::validation
