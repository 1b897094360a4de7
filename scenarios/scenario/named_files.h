// Finds the files that a scenario names: those that come with Tandem by their names, others by a path from the
// scenario's folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "topologies/base/strict_yaml.h"

namespace tandem {

// Returns whether a word is a path rather than the name of a file that comes with Tandem.
bool is_file_name(const std::string& text);

// Returns the file that `value` names, relative to `folder`; reports a file that does not exist and returns nothing.
std::optional<std::filesystem::path> existing_file(const YamlReader& value, const std::filesystem::path& folder);

// The place of one kind of files that come with Tandem, and what messages call such a file.
struct PackagedFiles {
  const char* what = "";
  const char* folder = "";
  const char* extension = "";
  const char* otherwise = "";  // the name if the scenario gives none
};

// Returns the file of that name that comes with Tandem, or a file relative to `folder`; reports any other value and
// returns nothing.
std::optional<std::filesystem::path> packaged_or_file(const YamlReader& value, const std::filesystem::path& folder,
                                                      const PackagedFiles& packaged);

// Returns what `read` makes of another file, whose problems it adds to those of this one.
template <typename Read>
auto included(const YamlReader& value, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const InputError& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) value.diagnostics().add(diagnostic);
    return {};
  }
}

}  // namespace tandem
