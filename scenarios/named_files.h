// Files that a scenario names: what comes with Tandem by its name, anything else by a path from the scenario's folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "topologies/base/strict_yaml.h"

namespace tandem {

// Whether a word is a path rather than the name of something packaged.
bool is_file_name(const std::string& text);

// The file that `value` names, from `folder`. Nothing when there is none, which is reported.
std::optional<std::filesystem::path> existing_file(const YamlReader& value, const std::filesystem::path& folder);

// Where files of one kind stand among the data that comes with Tandem, and what a message calls one.
struct PackagedFiles {
  const char* what = "";
  const char* folder = "";
  const char* extension = "";
  const char* otherwise = "";  // the name where the file gives none
};

// The packaged file of that name, or a file from `folder`. Nothing when it is neither, which is reported.
std::optional<std::filesystem::path> packaged_or_file(const YamlReader& value, const std::filesystem::path& folder,
                                                      const PackagedFiles& packaged);

// What `read` makes of another file, with that file's problems added to this one's.
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
