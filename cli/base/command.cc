#include "cli/base/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>

#include "cli/base/error_format.h"
#include "cli/base/output.h"
#include "cli/base/phase.h"
#include "scenarios/scenario/words.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "topologies/base/error.h"

namespace tandem {

void add_common_options(CLI::App& command, CommonOptions& options, bool with_json) {
  command.add_option("-o,--output", options.output, "Write the result to this file instead of stdout");
  CLI::Option* quiet = command.add_flag("-q,--quiet", options.quiet, "No progress on stderr, only errors");
  command
      .add_flag_callback("--verbose", &Phase::show_all,
                         "What is read, run and written on stderr, and how long it takes")
      ->excludes(quiet);
  command.add_flag("--no-color", options.no_color, "No colors (also: NO_COLOR in the environment)");
  add_errors_option(command);
  if (with_json) command.add_flag("--json", options.json, "Print one JSON document");
}

void add_page_option(CLI::App& command, CommonOptions& options) {
  command.add_option("--html", options.html, "Write the result with its pictures to this file, as one page");
  command.parse_complete_callback([&options] {
    if (options.json && is_page_alone(options)) {
      throw CLI::ValidationError("--html", "the page and the document of --json cannot both be the standard output");
    }
  });
}

void add_import_options(CLI::App& command, ImportOptions& options, CLI::Option* topology) {
  CLI::Option* gpu =
      command.add_option("--gpu", options.gpu, "The GPUs of a topology file that does not tell them, such as h100");
  CLI::Option* complete_with =
      command.add_option("--complete-with", options.complete_with,
                         "What a partial topology file lacks is as in this machine of the catalog or file, or none");
  if (topology == nullptr) return;
  gpu->needs(topology);
  complete_with->needs(topology);
}

void add_set_option(CLI::App& command, std::vector<std::string>& settings) {
  const CLI::Validator is_setting(
      [](const std::string& text) {
        const std::size_t equals = text.find('=');
        const bool is_whole = equals != 0 && equals != std::string::npos;
        return is_whole ? "" : "must be KEY=VALUE, such as workload.batch=64, found '" + text + "'";
      },
      "KEY=VALUE");
  command
      .add_option("--set", settings,
                  "Another value for a key of the scenario, KEY=VALUE, such as strategy.tensor=4; may be repeated")
      ->check(is_setting)
      ->allow_extra_args(false);
}

CLI::Validator device_types() {
  const auto words = device_type_words();
  const std::map<std::string, DeviceType> types(words.begin(), words.end());
  return CLI::CheckedTransformer(types).description(fmt::format("{{{}}}", fmt::join(names_of(words), ",")));
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::IsMember(words);
}

CLI::Validator number_within(double least, double most) {
  const auto problem = [least, most](const std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc{} && end == text.data() + text.size();
    if (is_number && value >= least && value <= most) return "";
    return fmt::format("must be from {} to {}, found {}", least, most, shortened(text));
  };
  return CLI::Validator(problem, fmt::format("{}-{}", least, most));
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

void add_nccl_option(CLI::App& command, std::map<std::string, std::string>& variables) {
  const CLI::Validator is_setting(
      [](const std::string& text) {
        const std::size_t equals = text.find('=');
        return equals == 0 || equals == std::string::npos ? "must be NAME=VALUE, found '" + text + "'" : "";
      },
      "NAME=VALUE");
  const auto add = [&variables](const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      const std::size_t equals = setting.find('=');
      variables[setting.substr(0, equals)] = setting.substr(equals + 1);
    }
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--nccl", add,
          "A variable of the simulated NCCL, NAME=VALUE, such as NCCL_ALGO=ring or version=2.21; may be repeated")
      ->check(is_setting);
}

}  // namespace tandem
