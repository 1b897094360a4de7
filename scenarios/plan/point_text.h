// Scenarios of points, and spaces, as files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "scenarios/scenario/scenario.h"

namespace tandem {

struct YamlNode;

// Returns the scenario of a point.
Scenario scenario_of_point(const Scenario& scenario, std::size_t place);

// Returns the scenario of a point as the text of a file in `folder`, from which files that it names are found.
std::string text_of_point(const Scenario& scenario, std::size_t place, const std::filesystem::path& folder);

// Returns a value as YAML on one line, with the quotes that it had.
std::string yaml_line(const YamlNode& value);

// Returns the `sweep:` of a scenario as YAML, for a file of its own.
std::string space_text(const Scenario& scenario);

}  // namespace tandem
