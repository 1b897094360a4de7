#include "cli/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "scenarios/words.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "topologies/base/error.h"

namespace tandem {

void add_common_options(CLI::App& command, CommonOptions& options, bool with_json) {
  command.add_option("-o,--output", options.output, "Write the result to this file instead of stdout");
  command.add_flag("-q,--quiet", options.quiet, "No progress on stderr, only errors");
  command.add_flag("--no-color", options.no_color, "No colors (also: NO_COLOR in the environment)");
  if (with_json) command.add_flag("--json", options.json, "Print one JSON document");
}

CLI::Validator device_types() {
  const auto words = device_type_words();
  std::vector<std::string> names;
  for (const auto& [name, type] : words) names.push_back(name);
  const std::map<std::string, DeviceType> types(words.begin(), words.end());
  return CLI::CheckedTransformer(types).description(fmt::format("{{{}}}", fmt::join(names, ",")));
}

CLI::Validator known_cross_device_ops(const std::vector<std::string>& besides) {
  std::vector<std::string> known = cross_device_ops_names();
  known.insert(known.end(), besides.begin(), besides.end());
  const auto problem = [known](const std::string& name) -> std::string {
    if (std::find(known.begin(), known.end(), name) != known.end()) return "";
    const std::string message = fmt::format("unknown operations '{}' (known: {})", name, fmt::join(known, ", "));
    const std::string near = nearest_name(name, known);
    return near.empty() ? message : message + fmt::format("; did you mean '{}'?", near);
  };
  return CLI::Validator(problem, fmt::format("{}", fmt::join(known, "|")));
}

}  // namespace tandem
