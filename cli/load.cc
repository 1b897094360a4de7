#include "cli/load.h"

#include <fmt/format.h>

#include <filesystem>

#include "topologies/base/error.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string nearest_file(const fs::path& wanted) {
  const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string name = nearest_name(wanted.filename().string(), names);
  return name.empty() || !wanted.has_parent_path() ? name : (folder / name).string();
}

void check_exists(const std::string& what, const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    throw InputError({{.file = file, .path = "", .message = fmt::format("is a folder; expected a {} file", what)}});
  }
  if (fs::exists(file, ignored)) return;
  std::string message = fmt::format("no such {} file", what);
  if (const std::string near = nearest_file(file); !near.empty()) message += fmt::format("; did you mean '{}'?", near);
  throw InputError({{.file = file, .path = "", .message = message}});
}

}  // namespace

Scenario scenario_from(const std::string& file) {
  check_exists("scenario", file);
  return load_scenario(file);
}

std::shared_ptr<const Topology> topology_from(const std::string& file) {
  if (file.empty()) return nullptr;
  check_exists("topology", file);
  return std::make_shared<const Topology>(read_topology(file));
}

}  // namespace tandem
