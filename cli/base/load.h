// Input files of the command line.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/base/common_options.h"
#include "scenarios/import/import.h"
#include "scenarios/scenario/scenario.h"
#include "topologies/readers/import.h"
#include "topologies/topology.h"

namespace tandem {

// A scenario file, or the standard input ("-"); one of another program is imported with usual values for what it does
// not say, which stderr shows. `settings`: those of --set, "workload.batch=64". All throw InputError; its message for a
// missing file suggests the file of that folder with the nearest name.
Scenario scenario_from(const std::string& file, const std::vector<std::string>& settings = {});

// Throws InputError for a file that does not exist, with the nearest name, or that is a folder. `what`: "scenario".
void check_exists(const std::string& what, const std::string& file);

inline bool is_standard_input(const std::string& file) {
  return file == "-";
}

// A topology file of any kind; "" gives none. What was assumed in reading it goes to stderr, unless quiet.
std::shared_ptr<const Topology> topology_from(const std::string& file, const CommonOptions& common = {},
                                              const ImportOptions& options = {});

// The same, or a machine of the catalog by its name. Notes are the caller's.
ImportedTopology topology_named(const std::string& name_or_file, const ImportOptions& options = {});

// Prints what a reader assumed to stderr, unless quiet.
void print_notes(const std::vector<std::string>& notes, const CommonOptions& common);

// Imports a file. Where the options leave it open, activations are computed again, and the number of machines doubled,
// until the devices' memory is large enough; what was chosen is among the result's assumptions. Throws InputError.
// `folder`: where the scenario will be, beside which a topology file is.
Imported import_that_fits(const std::shared_ptr<const InputFile>& file, ImportChoices options,
                          const std::string& model_file, const std::filesystem::path& folder);

// Parses an imported scenario. Its problems are those of the options, flags and keys that gave its parts. Throws
// InputError.
Scenario parse_imported(const Imported& imported, const std::string& name, const std::vector<ScenarioSetting>& settings,
                        const std::shared_ptr<const SharedParts>& parts);

// Returns what the scenario of an imported file is made of: the file, which is then not opened again.
std::shared_ptr<SharedParts> parts_of(const std::shared_ptr<const InputFile>& file);

}  // namespace tandem
